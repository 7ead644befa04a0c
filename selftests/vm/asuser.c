// SPDX-License-Identifier: GPL-2.0
/*
 * A library that is preloaded into the virtiofsd of --with DIR if COMMAND runs as the guest's user.
 * It maps DIR's owner on the host to that user in the guest, and back. So files of the owner belong
 * to the user in the guest, and files that the user makes belong to the owner on the host.
 *
 * PROFIL_VM_OWNER is "UID GID" of DIR. Other ids stay the same.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define USER 1000

static uid_t owner_uid;
static gid_t owner_gid;

/* Not strtoul(): with the guest's libc, its name may be one that the host's libc lacks. */
static unsigned int number(const char **text)
{
	unsigned int n = 0;

	for (; **text >= '0' && **text <= '9'; ++*text)
		n = n * 10 + (**text - '0');
	return n;
}

static void __attribute__((constructor)) read_owner(void)
{
	const char *owner = getenv("PROFIL_VM_OWNER");

	owner_uid = number(&owner);
	owner++;
	owner_gid = number(&owner);
}

static unsigned int to_guest(unsigned int id, unsigned int owner)
{
	return id == owner ? USER : id;
}

static unsigned int to_host(unsigned int id, unsigned int owner)
{
	return id == USER ? owner : id;
}

int fstatat64(int dir, const char *path, struct stat64 *st, int flags)
{
	__typeof__(fstatat64) *next = dlsym(RTLD_NEXT, "fstatat64");
	int ret = next(dir, path, st, flags);

	if (!ret) {
		st->st_uid = to_guest(st->st_uid, owner_uid);
		st->st_gid = to_guest(st->st_gid, owner_gid);
	}
	return ret;
}

int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *st)
{
	__typeof__(statx) *next = dlsym(RTLD_NEXT, "statx");
	int ret = next(dir, path, flags, mask, st);

	if (!ret) {
		st->stx_uid = to_guest(st->stx_uid, owner_uid);
		st->stx_gid = to_guest(st->stx_gid, owner_gid);
	}
	return ret;
}

int fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
	__typeof__(fchownat) *next = dlsym(RTLD_NEXT, "fchownat");

	return next(dir, path, to_host(uid, owner_uid), to_host(gid, owner_gid), flags);
}

/* virtiofsd calls this to set the ids of the process that made the request, for one thread only. */
long syscall(long number, ...)
{
	__typeof__(syscall) *next = dlsym(RTLD_NEXT, "syscall");
	long arg[6];
	va_list args;
	int i;

	va_start(args, number);
	for (i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_setresuid)
		arg[1] = to_host(arg[1], owner_uid);
	if (number == SYS_setresgid)
		arg[1] = to_host(arg[1], owner_gid);
	return next(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
