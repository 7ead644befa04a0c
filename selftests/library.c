// SPDX-License-Identifier: GPL-2.0
/*
 * libprofil: profil() as programs link it, and preloaded under one that did not.
 *
 * Built twice: with the shared library, and with the static one (library_static).
 */
#include "kselftest_harness.h"

#include <dirent.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>

#include "device.h"
#include "libc_profil.h"
#include "profil.h"

#define SCOPE		PROFIL_SCOPE_PROCESS
#define COUNTERS	4096

static unsigned short counters[COUNTERS];

static u64 sum(void)
{
	u64 s = 0;
	unsigned int i;

	for (i = 0; i < COUNTERS; i++)
		s += *(volatile unsigned short *)&counters[i];
	return s;
}

static u32 state(void)
{
	struct profil_stats stats;

	return session_stats(SCOPE, &stats) ? UINT32_MAX : stats.state;
}

/* Counts of burn() and nothing else. */
static int profil_burn(void)
{
	return profil(counters, sizeof(counters), addr(__start_profil_burn), 65536);
}

/* glibc declares the buffer nonnull, and the compiler believes it. */
static unsigned short *volatile null;

/* Burns until so many ticks have hit. */
static int burn_hits(u64 hits)
{
	struct profil_stats stats = {};
	int err;

	while (stats.hit < hits) {
		err = burn_ticks(SCOPE, 1) ?: session_stats(SCOPE, &stats);
		if (err)
			return err;
	}
	return 0;
}

/* The descriptors of this process, in a string. */
static void descriptors(char *list, size_t size)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	size_t len = 0;

	*list = 0;
	while (dir && (entry = readdir(dir)))
		len += snprintf(list + len, len < size ? size - len : 0, " %s", entry->d_name);
	if (dir)
		closedir(dir);
}

FIXTURE(library) {
};

FIXTURE_SETUP(library)
{
	ASSERT_LE(0, device_fd());
	ASSERT_EQ(PROFIL_STATE_OFF, state());
}

FIXTURE_TEARDOWN(library)
{
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_EQ(PROFIL_STATE_OFF, state());
	EXPECT_EQ(0, locked_bytes());
}

TEST_F(library, counts)
{
	struct profil_stats stats;
	u64 hits;

	ASSERT_EQ(0, profil_burn());
	EXPECT_EQ(PROFIL_STATE_ON, state());
	EXPECT_EQ(0, burn_hits(5));
	ASSERT_EQ(0, session_stats(SCOPE, &stats));
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_EQ(PROFIL_STATE_OFF, state());
	hits = sum();
	EXPECT_LE(stats.hit, hits);
	EXPECT_TRUE(accounted(&stats));
	EXPECT_EQ(0, stats.unselected);		/* user and system */

	/* Off is off. Then on again: adds to what is there. */
	ASSERT_EQ(0, session_start(PROFIL_SCOPE_THREAD, 0, NULL, 0));
	EXPECT_EQ(0, burn_ticks(PROFIL_SCOPE_THREAD, 3));
	EXPECT_EQ(0, session_stop(PROFIL_SCOPE_THREAD, NULL));
	EXPECT_EQ(hits, sum());
	ASSERT_EQ(0, profil_burn());
	EXPECT_EQ(0, burn_hits(2));
	EXPECT_LE(hits + 2, sum());
}

/* Counter (pc - offset) / 2 * scale / 65536, as the kernel's ABI has it. */
TEST_F(library, rule)
{
	const unsigned int scales[] = { 65536, 32768, 16384, 131072, 2, 1, UINT_MAX };
	const u64 length = __stop_profil_burn - __start_profil_burn;
	u64 first, last, hits;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(scales); i++) {
		memset(counters, 0, sizeof(counters));
		/* The burned text begins 64 bytes past the offset. */
		first = 32ULL * scales[i] >> 16;
		last = (64 + length - 1) / 2 * scales[i] >> 16;
		ASSERT_EQ(0, profil(counters, sizeof(counters), addr(__start_profil_burn) - 64,
				    scales[i]));
		EXPECT_EQ(0, first < COUNTERS ? burn_hits(3) : burn_ticks(SCOPE, 3));
		ASSERT_EQ(0, profil(null, 0, 0, 0));
		for (hits = 0, j = first; j <= last && j < COUNTERS; j++)
			hits += counters[j];
		EXPECT_EQ(first < COUNTERS, hits > 0);
		EXPECT_EQ(hits, sum());
	}
}

TEST_F(library, replaces)
{
	static unsigned short other[COUNTERS];
	struct profil_stats stats;
	u64 hits;

	ASSERT_EQ(0, profil_burn());
	EXPECT_EQ(0, burn_hits(3));
	ASSERT_EQ(0, profil(other, sizeof(other), addr(__start_profil_burn), 65536));
	hits = sum();
	EXPECT_LE(3, hits);
	EXPECT_EQ(0, burn_hits(3));
	EXPECT_EQ(hits, sum());
	ASSERT_EQ(0, session_stats(SCOPE, &stats));
	ASSERT_EQ(0, profil_burn());
	EXPECT_EQ(0, burn_hits(1));
	EXPECT_LT(hits, sum());
}

/* Off, in each way to say it; also when it is off. */
TEST_F(library, off)
{
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_EQ(0, profil(null, sizeof(counters), 0x1000, 65536));
	EXPECT_EQ(0, profil(counters, sizeof(counters), 0, 0));
	EXPECT_EQ(PROFIL_STATE_OFF, state());

	ASSERT_EQ(0, profil_burn());
	EXPECT_EQ(PROFIL_STATE_ON, state());
	EXPECT_EQ(0, profil(null, sizeof(counters), 0x1000, 65536));
	EXPECT_EQ(PROFIL_STATE_OFF, state());

	ASSERT_EQ(0, profil_burn());
	EXPECT_EQ(PROFIL_STATE_ON, state());
	EXPECT_EQ(0, profil(counters, sizeof(counters), addr(burn), 0));
	EXPECT_EQ(PROFIL_STATE_OFF, state());

	/* With a bad buffer and scale 0: off, since the buffer is of no matter. */
	ASSERT_EQ(0, profil_burn());
	EXPECT_EQ(0, profil((void *)16, 64, 0, 0));
	EXPECT_EQ(PROFIL_STATE_OFF, state());
}

TEST_F(library, tiny_buffers)
{
	struct profil_stats stats;
	size_t size;

	/* On, but nothing is counted: one byte holds no counter. */
	for (size = 0; size < 2; size++) {
		ASSERT_EQ(0, profil(counters, size, 0, 1));
		EXPECT_EQ(PROFIL_STATE_ON, state());
		EXPECT_EQ(0, burn_ticks(SCOPE, 2));
		ASSERT_EQ(0, session_stats(SCOPE, &stats));
		EXPECT_EQ(stats.ticks, stats.outside);
		EXPECT_EQ(0, locked_bytes());
	}
	/* Three hold one, and the third stays as it is. */
	counters[1] = 0x5555;
	ASSERT_EQ(0, profil(counters, 3, addr(__start_profil_burn), 1));
	EXPECT_EQ(0, burn_hits(2));
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_LE(2, counters[0]);
	EXPECT_EQ(0x5555, counters[1]);
}

TEST_F(library, any_scale_any_offset)
{
	const unsigned int scales[] = { 1, 2, 3, 65535, 65536, 65537, 131072, INT_MAX, UINT_MAX };
	const size_t offsets[] = { 0, 1, 0x1000, (size_t)1 << 31, SIZE_MAX / 2, SIZE_MAX - 1,
				   SIZE_MAX };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(scales); i++) {
		for (j = 0; j < ARRAY_SIZE(offsets); j++) {
			EXPECT_EQ(0, profil(counters, sizeof(counters), offsets[j], scales[i]));
			EXPECT_EQ(PROFIL_STATE_ON, state());
		}
	}
}

TEST_F(library, errno_on_success)
{
	errno = 12345;
	EXPECT_EQ(0, profil(null, 0, 0, 0));	/* inside: EINVAL */
	EXPECT_EQ(12345, errno);
	EXPECT_EQ(0, profil_burn());
	EXPECT_EQ(12345, errno);
	EXPECT_EQ(0, profil_burn());
	EXPECT_EQ(12345, errno);
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_EQ(12345, errno);
}

#define EXPECT_ERROR(error, call) do {		\
	errno = 0;				\
	EXPECT_EQ(-1, call);			\
	EXPECT_EQ(error, errno);		\
} while (0)

/* A bad buffer: EFAULT, and the profile that was on goes on. */
TEST_F(library, bad_buffer)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct profil_stats stats;
	unsigned int on;
	u8 *p;

	p = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, mprotect(p + page, page, PROT_READ));
	ASSERT_EQ(0, munmap(p + 2 * page, page));

	for (on = 0; on < 2; on++) {
		if (on) {
			ASSERT_EQ(0, profil_burn());
			ASSERT_EQ(0, burn_hits(2));
		}
		EXPECT_ERROR(EFAULT, profil((void *)16, 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)(p + page), 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)(p + 2 * page), 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)p, page + 2, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)(p + 1), 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil((void *)(uintptr_t)-2, 64, 0, 65536));
		EXPECT_ERROR(EFAULT, profil(counters, SIZE_MAX, 0, 65536));
		EXPECT_ERROR(EFAULT, profil(counters, SIZE_MAX / 2, 0, 65536));
		EXPECT_EQ(on ? PROFIL_STATE_ON : PROFIL_STATE_OFF, state());
	}
	ASSERT_EQ(0, session_stats(SCOPE, &stats));
	EXPECT_EQ(0, burn_ticks(SCOPE, 2));
	EXPECT_LE(stats.hit, sum());
}

TEST_F(library, memlock)
{
	const size_t size = 64 << 10;
	const struct rlimit limit = { size, size };
	u8 *p = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	if (geteuid() == 0)
		ASSERT_EQ(0, setresuid(1000, 1000, 1000));
	EXPECT_ERROR(ENOMEM, profil((void *)p, size + 2, 0, 65536));
	EXPECT_EQ(PROFIL_STATE_OFF, state());
	EXPECT_EQ(0, profil((void *)p, size, 0, 65536));
	EXPECT_EQ(size, locked_bytes());
	EXPECT_ERROR(ENOMEM, profil((void *)p, 2 * size, 0, 65536));
	EXPECT_EQ(PROFIL_STATE_ON, state());
	EXPECT_EQ(size, locked_bytes());
	EXPECT_EQ(0, profil((void *)(p + size), size, 0, 65536));
}

/* No descriptor stays, none is needed: also with all but one in use. */
TEST_F(library, no_descriptor)
{
	char before[4096], after[4096];
	int fd, last = -1;

	descriptors(before, sizeof(before));
	ASSERT_EQ(0, profil_burn());
	descriptors(after, sizeof(after));
	EXPECT_STREQ(before, after);
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	EXPECT_ERROR(EFAULT, profil((void *)16, 64, 0, 65536));
	descriptors(after, sizeof(after));
	EXPECT_STREQ(before, after);

	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		last = fd;
	ASSERT_EQ(EMFILE, errno);
	EXPECT_ERROR(EMFILE, profil_burn());
	ASSERT_EQ(0, close(last));
	EXPECT_EQ(0, profil_burn());
	EXPECT_EQ(0, profil(null, 0, 0, 0));
}

/* SIGPROF and ITIMER_PROF are the program's own. */
static volatile sig_atomic_t alarms;

static void on_sigprof(int sig)
{
	(void)sig;
	alarms++;
}

TEST_F(library, no_signal)
{
	const struct itimerval every_ms = { { 0, 1000 }, { 0, 1000 } };
	struct itimerval timer;
	struct sigaction action;
	u64 bursts = 1 << 14;

	ASSERT_EQ(0, profil_burn());
	ASSERT_EQ(0, burn_hits(2));
	ASSERT_EQ(0, sigaction(SIGPROF, NULL, &action));
	EXPECT_EQ(SIG_DFL, action.sa_handler);
	ASSERT_EQ(0, getitimer(ITIMER_PROF, &timer));
	EXPECT_EQ(0, timer.it_interval.tv_sec + timer.it_interval.tv_usec + timer.it_value.tv_sec +
		  timer.it_value.tv_usec);

	/* Both at once. */
	ASSERT_NE(SIG_ERR, signal(SIGPROF, on_sigprof));
	ASSERT_EQ(0, setitimer(ITIMER_PROF, &every_ms, NULL));
	EXPECT_EQ(0, burn_hits(6));
	while (alarms < 3 && bursts--)
		burn();
	EXPECT_LE(3, alarms);
	EXPECT_LE(6, sum());
}

/*
 * Without the device, or the right to it: a /dev of one's own.
 */
static bool own_dev(void)
{
	return !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("none", "/dev", "tmpfs", 0, "mode=755");
}

FIXTURE(dev) {
	dev_t device;
	bool own;
};

FIXTURE_SETUP(dev)
{
	struct stat st;

	ASSERT_EQ(0, stat(PROFIL_DEVICE, &st));
	self->device = st.st_rdev;
	self->own = geteuid() == 0 && own_dev();
}

FIXTURE_TEARDOWN(dev)
{
}

#define NEEDS_OWN_DEV() do {						\
	if (!self->own)							\
		SKIP(return, "needs a mount namespace: run as root");	\
} while (0)

TEST_F(dev, missing)
{
	NEEDS_OWN_DEV();
	EXPECT_ERROR(ENOSYS, profil_burn());
	EXPECT_ERROR(ENOSYS, profil(null, 0, 0, 0));
	ASSERT_EQ(0, umount("/dev"));
	EXPECT_EQ(0, profil_burn());
	EXPECT_EQ(0, profil(null, 0, 0, 0));
}

TEST_F(dev, without_driver)
{
	NEEDS_OWN_DEV();
	ASSERT_EQ(0, mknod(PROFIL_DEVICE, S_IFCHR | 0666, makedev(major(self->device), 254)));
	EXPECT_ERROR(ENOSYS, profil_burn());
	ASSERT_EQ(0, unlink(PROFIL_DEVICE));
	ASSERT_EQ(0, mknod(PROFIL_DEVICE, S_IFCHR | 0666, makedev(511, 7)));
	EXPECT_ERROR(ENOSYS, profil_burn());
}

TEST_F(dev, something_else)
{
	NEEDS_OWN_DEV();
	ASSERT_EQ(0, mknod(PROFIL_DEVICE, S_IFREG | 0666, 0));
	EXPECT_ERROR(ENOSYS, profil_burn());
	EXPECT_ERROR(ENOSYS, profil(null, 0, 0, 0));
	ASSERT_EQ(0, unlink(PROFIL_DEVICE));
	ASSERT_EQ(0, mknod(PROFIL_DEVICE, S_IFCHR | 0666, makedev(1, 3)));	/* null */
	EXPECT_ERROR(ENOSYS, profil_burn());
}

TEST_F(dev, no_right)
{
	NEEDS_OWN_DEV();
	ASSERT_EQ(0, mknod(PROFIL_DEVICE, S_IFCHR | 0600, self->device));
	ASSERT_EQ(0, chmod(PROFIL_DEVICE, 0600));
	EXPECT_EQ(0, profil_burn());
	EXPECT_EQ(0, profil(null, 0, 0, 0));
	ASSERT_EQ(0, setresuid(1000, 1000, 1000));
	EXPECT_ERROR(EACCES, profil_burn());
	EXPECT_ERROR(EACCES, profil(null, 0, 0, 0));
}

/*
 * libc_profil, which lies beside this program, with the shared library under it.
 */
static int run_libc_profil(const char *preload)
{
	char self[PATH_MAX] = "", path[PATH_MAX + 16];
	int status;
	pid_t child;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return -errno;
	snprintf(path, sizeof(path), "%s/libc_profil", dirname(self));
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		if (preload)
			setenv("LD_PRELOAD", preload, 1);
		else
			unsetenv("LD_PRELOAD");
		execl(path, path, NULL);
		_exit(127);
	}
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST(preload)
{
	EXPECT_EQ(LIBC_PROFIL_COUNTED, run_libc_profil("libprofil.so.1"));
}

/* That test can fail: without the library it is libc's profil() that counts. */
TEST(no_preload)
{
	EXPECT_EQ(LIBC_PROFIL_IS_LIBCS, run_libc_profil(NULL));
}

TEST_HARNESS_MAIN
