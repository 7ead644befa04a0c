# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# What the scripts here have in common: how to fail, and how something gets into the cache.
# Wants to know "here", the directory of these scripts.
#
# What is in the cache is called KIND-HASH, with the hash of all it was made from. It is made
# beside its place, as NAME.new, and renamed when it is complete; a lock of its own sees to it that
# one process does this. So what is there is whole, whoever was interrupted, and never written
# again. What nobody used for a month is removed when another of its kind is made.

export LC_ALL=C
umask 022
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/profil

die() {
	echo "vm/run: $*" >&2
	exit 125
}

# with_proc SCRIPT [ARG...]: starts the script again where there is a /proc, if here is none, as in
# a bare chroot.
with_proc() {
	[[ ! -e /proc/self ]] || return 0
	"$here/../need" mount || die "cannot mount /proc"
	# shellcheck disable=SC2016 # for that shell
	exec unshare --mount --propagation unchanged \
		sh -c 'mount -t proc proc /proc && exec "$@"' sh "$@"
}

# Removes files and directories, but nothing that is only mounted there.
remove() {
	local path
	for path; do
		[[ -r /proc/self/mountinfo ]] || die "without /proc $path cannot be removed safely"
		! grep -qF " $(realpath -m "$path")/" /proc/self/mountinfo ||
			die "something is mounted below $path, so that is not removed"
		rm -rf --one-file-system "${path:?}"
	done
}

# Prints one word that changes with standard input and with any file in the directories.
hash_of() {
	local dir
	{
		cat
		for dir; do
			(cd "$dir" && find . -type f -print0 | sort -z | xargs -0 -r sha256sum)
		done
	} | sha256sum | cut -c1-16
}

# Prints shell scripts, but for what does not matter in them.
code_of() {
	sed '/^[[:space:]]*#/d; /^$/d' "$@"
}

# cached NAME WHAT COMMAND...: unless NAME is in the cache, has COMMAND make it, as the file or
# directory that it gets as its last argument. Its output is shown if it fails. Not for use in a
# condition: there bash would not notice what fails in COMMAND, if that is a function.
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
		(set -e && "$@" "$place.new") >"$place.log" 2>&1 </dev/null
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
		find "$cache" -maxdepth 1 -name "${name%%-*}-*" -mtime +30 -print0 |
			while IFS= read -r -d '' old; do
				remove "$old"
			done
	) 9>"$place.lock"
}
