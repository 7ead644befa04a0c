# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# with_ccache NAME: lets compilers use ccache, and sets cache, and tmp to an empty directory, which is
# removed at the end. It has the same name each time, unless another run has it, so what did not
# change is not compiled again.
with_ccache() {
	cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/profil
	tmp=$cache/$1
	export CCACHE_DIR=$cache/ccache PATH=/usr/lib/ccache:$PATH
	mkdir -p "$cache"
	exec 9>"$tmp.lock"
	if flock -n 9; then
		rm -rf --one-file-system "$tmp"
		mkdir "$tmp"
	else
		tmp=$(mktemp -d)
	fi
	trap 'rm -rf --one-file-system "$tmp"' EXIT
}
