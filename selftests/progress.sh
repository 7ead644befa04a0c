# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions that print the progress of work that takes minutes and happens once, such as the
# installation of packages. They print to the file descriptor PROFIL_PROGRESS, which make check and
# others open, or to the terminal, if standard error is one. Otherwise they print nothing, because
# standard error belongs to the command that runs in a VM.

if [ -z "${PROFIL_PROGRESS:-}" ]; then
	PROFIL_PROGRESS=8
	if [ -t 2 ]; then
		exec 8>/dev/tty
	else
		exec 8>/dev/null
	fi
	export PROFIL_PROGRESS
fi

tell() {
	{ echo "# $*" >&"$PROFIL_PROGRESS"; } 2>/dev/null || :
}

# telling WHAT LOG COMMAND...: runs COMMAND, whose output goes to LOG, and prints WHAT, then each 20 s
# the last line of LOG, and at the end the time that it took. Returns the status of COMMAND.
telling() {
	local what=$1 log=$2 status=0 start=$SECONDS teller errexit=$-
	shift 2
	tell "$what"
	while sleep 20; do
		tell "  $((SECONDS - start)) s: $(tail -n 1 "$log" | tr -d '[:cntrl:]' | cut -c 1-80)"
	done >/dev/null 2>&1 9>&- &
	teller=$!
	set +e
	# mmdebstrap fails if its first free descriptor has more than one digit.
	(eval "exec $PROFIL_PROGRESS>&-"; set -e; "$@") >"$log" 2>&1 </dev/null
	status=$?
	kill "$teller"
	wait "$teller" 2>/dev/null
	tell "  ended after $((SECONDS - start)) s"
	[[ $errexit != *e* ]] || set -e
	return $status
}
