# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# Functions of the scripts here: for failures, and for the cache. A script sets "here" to the
# directory of these scripts first.
#
# An entry of the cache is called KIND-HASH, with the hash of everything it is made from. It is made
# as NAME.new, and renamed when it is complete, under a lock of its own. So an entry is complete
# even if a process was interrupted, and it is never written again. An entry that was not used for a
# month is removed when another of its kind is made.

# shellcheck source-path=SCRIPTDIR
. "$here/../progress.sh"
# shellcheck source-path=SCRIPTDIR
. "$here/../proc.sh"

export LC_ALL=C
umask 022
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/profil

die() {
	echo "vm/run: $*" >&2
	exit 125
}

# Removes files and directories, but refuses if something is mounted below them.
remove() {
	local path
	for path; do
		[[ -r /proc/self/mountinfo ]] || die "without /proc $path cannot be removed safely"
		! grep -qF " $(realpath -m "$path")/" /proc/self/mountinfo ||
			die "something is mounted below $path, so that is not removed"
		rm -rf --one-file-system "${path:?}"
	done
}

# Prints a hash of standard input and of all files in the directories.
hash_of() {
	local dir
	{
		cat
		for dir; do
			(cd "$dir" && find . -type f -print0 | sort -z | xargs -0 -r sha256sum)
		done
	} | sha256sum | cut -c1-16
}

# Prints shell scripts without comments and empty lines.
code_of() {
	sed '/^[[:space:]]*#/d; /^$/d' "$@"
}

# kernel_of ARCH FLAVOUR: prints the end of a kernel's version, and of the names of its packages.
# Debian has no kernel of riscv64 for clouds.
kernel_of() {
	case $1/$2 in
	*/generic | riscv64/cloud) echo "$1" ;;
	*/16k) echo "$1-16k" ;;
	*) echo "$2-$1" ;;
	esac
}

# gnu_of ARCH: prints how the names of cross compilers begin
gnu_of() {
	case $1 in
	arm64) echo aarch64-linux-gnu ;;
	*) echo "$1-linux-gnu" ;;
	esac
}

# cached NAME WHAT COMMAND...: if NAME is not in the cache, calls COMMAND to make it; its last
# argument is the file or directory to make. WHAT describes this, and is printed with the output of
# COMMAND if it fails. Do not use it in a condition: there, bash ignores failures inside of a
# function.
cached() {
	local name=$1 place=$cache/$1 what=$2 status old
	shift 2
	if [[ -e $place ]]; then
		touch -c "$place"
		return
	fi
	mkdir -p "$cache"
	(
		flock 9
		[[ ! -e $place ]] || exit 0
		remove "$place.new"
		set +e
		telling "$what: once; can take minutes" "$place.log" "$@" "$place.new"
		status=$?
		set -e
		if ((status)); then
			cat "$place.log" >&2
			remove "$place.new" "$place.log"
			die "cannot $what"
		fi
		touch "$place.new"
		mv "$place.new" "$place"
		rm -f "$place.log"
		# Not NAME.new: while it is being made, it may have the age of what is put into it.
		find "$cache" -maxdepth 1 -name "${name%%-*}-*[0-9a-f]" -mtime +30 -print0 |
			while IFS= read -r -d '' old; do
				remove "$old"
			done
	) 9>"$place.lock"
}
