# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Completion of profil for bash: see profil complete in profil(1)

_profil()
{
	local current=${COMP_WORDS[COMP_CWORD]} kind at words=() word

	[ "$current" != = ] || current=
	{
		read -r kind at
		mapfile -t words
	} < <(profil complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	COMPREPLY=()
	case $kind in
	COMMAND)
		# This function is a part of bash-completion.
		if declare -F _command_offset >/dev/null; then
			_command_offset "$at"
		elif [ "$COMP_CWORD" -eq "$at" ]; then
			mapfile -t COMPREPLY < <(compgen -c -- "$current")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$current")
		fi
		return
		;;
	FILE | DIR)
		compopt -o filenames 2>/dev/null
		[ "$kind" = DIR ] && kind=-d || kind=-f
		mapfile -t COMPREPLY < <(compgen "$kind" -- "$current")
		return
		;;
	PID)
		words=(/proc/[0-9]*)
		words=("${words[@]#/proc/}")
		;;
	esac
	for word in "${words[@]%%$'\t'*}"; do
		[[ $word != "$current"* ]] || COMPREPLY+=("$word")
	done
}

complete -F _profil profil
