// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of the caller, which a system call would not trust: where that answers EFAULT, so
 * does the call that stands for it here.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "copy.h"

/* The kernel copies, within this process. Where it must not, it is done without a net. */
static int copy_checked(long call, void *local, const void *remote, size_t size)
{
	const struct iovec ours = { local, size }, theirs = { (void *)remote, size };
	int saved = errno, err = 0;
	long done;

	done = syscall(call, syscall(SYS_getpid), &ours, 1UL, &theirs, 1UL, 0UL);
	if (done < 0 && errno != EFAULT) {
		if (call == SYS_process_vm_readv)
			memcpy(local, remote, size);
		else
			memcpy((void *)remote, local, size);
	} else if (done < 0 || (size_t)done < size) {
		err = -EFAULT;
	}
	errno = saved;
	return err;
}

/**
 * libprofil_copy_in - Copy from where the caller says
 * @to: Where to.
 * @from: The caller's.
 * @size: Bytes.
 *
 * Return: 0 or -EFAULT.
 */
int libprofil_copy_in(void *to, const void *from, size_t size)
{
	return size ? copy_checked(SYS_process_vm_readv, to, from, size) : 0;
}

/**
 * libprofil_copy_out - Copy to where the caller says
 * @to: The caller's.
 * @from: Where from.
 * @size: Bytes.
 *
 * Return: 0 or -EFAULT, and then some may have been copied.
 */
int libprofil_copy_out(void *to, const void *from, size_t size)
{
	return size ? copy_checked(SYS_process_vm_writev, (void *)from, to, size) : 0;
}
