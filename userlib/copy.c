// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions that copy from and to addresses that the caller of the library passes.
 *
 * A system call fails with EFAULT if such an address is invalid. The historical calls were system
 * calls, so the library must fail in the same way, and must not crash.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "copy.h"

/*
 * Copies with process_vm_readv() or process_vm_writev() on this process itself, because the kernel
 * checks the addresses. If seccomp forbids this call, memcpy() copies, without a check.
 */
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
 * libprofil_copy_in - Copy from an address that the caller has passed
 * @to: Memory of the library.
 * @from: Address that the caller has passed.
 * @size: Number of bytes.
 *
 * Return: 0 or -EFAULT.
 */
int libprofil_copy_in(void *to, const void *from, size_t size)
{
	return size ? copy_checked(SYS_process_vm_readv, to, from, size) : 0;
}

/**
 * libprofil_copy_out - Copy to an address that the caller has passed
 * @to: Address that the caller has passed.
 * @from: Memory of the library.
 * @size: Number of bytes.
 *
 * Return: 0; or -EFAULT, and then a part may have been copied.
 */
int libprofil_copy_out(void *to, const void *from, size_t size)
{
	return size ? copy_checked(SYS_process_vm_writev, (void *)from, to, size) : 0;
}
