# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash

# with_proc SCRIPT [ARG...]: if there is no /proc, as in a bare chroot, starts the script again with
# one. The root of a chroot is not a mount point, so it cannot be made private.
with_proc() {
	[[ ! -e /proc/self ]] || return 0
	"$(dirname "${BASH_SOURCE[0]}")/need" mount || exit
	# shellcheck disable=SC2016 # for that shell
	exec unshare --mount --propagation unchanged sh -c '
		mount -t proc proc /proc || exit
		"$@"
		status=$?
		umount -l /proc
		exit $status' sh "$@"
}
