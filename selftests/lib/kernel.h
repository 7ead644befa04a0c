/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel apart from the device: files in /proc and /sys, tasks, probes, the module, the log
 */
#ifndef _SELFTESTS_KERNEL_H
#define _SELFTESTS_KERNEL_H

#include "device.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#define TRACEFS		"/sys/kernel/tracing"
#define HUGETLB_POOL	"/proc/sys/vm/nr_hugepages"

/* The size of a huge page, the memory of one page table: 2 MiB if pages have 4 KiB */
#define HUGE_PAGE	(PAGE * PAGE / sizeof(u64))

/* Returns the number after @key at the beginning of a line of the file @path, or -1. */
static inline long long file_number(const char *path, const char *key)
{
	size_t len = strlen(key);
	long long number = -1;
	char line[256];
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, len)) {
			sscanf(line + len, "%lld", &number);
			break;
		}
	}
	fclose(f);
	return number;
}

/* Returns true if the @nr pages of private anonymous memory at @start are present. */
static inline bool pages_present(void *start, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		unsigned char present;

		if (mincore((char *)start + i * PAGE, PAGE, &present) || !(present & 1))
			return false;
	}
	return true;
}

/**
 * pinned_pages() - Count the pinned pages of the whole system
 *
 * Each CPU holds a part of the counts until they are collected, which only root can request.
 *
 * Return: the number of pages; 0 for an ordinary user.
 */
static inline long long pinned_pages(void)
{
	if (access("/proc/sys/vm/stat_refresh", R_OK))
		return 0;
	file_number("/proc/sys/vm/stat_refresh", "");
	return file_number("/proc/vmstat", "nr_foll_pin_acquired") -
	       file_number("/proc/vmstat", "nr_foll_pin_released");
}

/* Returns true if a line of the file @path contains @word. @line: Out: the first one; or NULL. */
static inline bool file_has(const char *path, const char *word, char *line, int size)
{
	char own[512], *p;
	size_t len = strlen(word);
	bool found = false;
	FILE *f;

	if (!line) {
		line = own;
		size = sizeof(own);
	}
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && fgets(line, size, f)) {
		for (p = strstr(line, word); p && !found; p = strstr(p + 1, word))
			found = (p == line || strchr(" \t+/", p[-1])) &&
				(!p[len] || strchr(" \t\n+:(", p[len]));
	}
	fclose(f);
	return found;
}

/* Returns the first line of the file @path, without its newline, or "" if it cannot be read. */
static inline const char *file_line(const char *path, char *line, int size)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(line, size, f))
		line[0] = 0;
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	return line;
}

/* Opens the file @path with @flags, and writes @text in one call: 0, or a negative errno. */
static inline int file_write_as(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Writes @text to the file @path in one call: 0, or a negative errno. */
static inline int file_write(const char *path, const char *text)
{
	return file_write_as(path, 0, text);
}

/* Like file_write(), but first stores the first line of the file in @old. */
static inline int file_exchange(const char *path, const char *text, char *old, int size)
{
	file_line(path, old, size);
	return file_write(path, text);
}

/* Like file_write(), but appends, so that tracefs keeps the rest of its lists. */
static inline int file_append(const char *path, const char *text)
{
	return file_write_as(path, O_APPEND, text);
}

static char hugetlb_pool[16];	/* the number of huge pages in the pool, to restore */

/* Maps @size bytes of huge pages, for which the pool grows. Returns NULL if there are none. */
static inline void *hugetlb_map(size_t size, int flags)
{
	void *p;
	int err;

	file_exchange(HUGETLB_POOL, "8", hugetlb_pool, sizeof(hugetlb_pool));
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_HUGETLB | flags, -1, 0);
	if (p != MAP_FAILED)
		return p;
	err = errno;
	file_write(HUGETLB_POOL, hugetlb_pool);
	errno = err;
	return NULL;
}

static inline void hugetlb_unmap(void *p, size_t size)
{
	munmap(p, size);
	file_write(HUGETLB_POOL, hugetlb_pool);
}

/* Skips the test if hugetlb_map() has returned NULL. */
#define NEED_HUGETLB(p)	SKIP_IF(!(p), "no huge pages here: %s", strerror(errno))

/* Returns true on PREEMPT_RT, where interrupts are threads, and spinlocks are mutexes. */
static inline bool preempt_rt(void)
{
	struct utsname uts;

	return !uname(&uts) && strstr(uts.version, "PREEMPT_RT");
}

/*
 * Tasks
 */

/* Returns the state in /proc/PID/stat: 'R', 'S', 'D', 'Z' or others; 0 if there is no such task. */
static inline char task_state(pid_t pid)
{
	char path[64], line[512], *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file_line(path, line, sizeof(line));
	state = strrchr(line, ')');
	return state ? state[2] : 0;
}

/* Returns the CPU time of a thread, in ns; 0 if there is no such thread. */
static inline u64 task_ns(pid_t pid)
{
	char path[64], line[128];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	return strtoull(file_line(path, line, sizeof(line)), NULL, 10);
}

/* Returns the CPU time of all kworkers, in ns. */
static inline u64 kworkers_ns(void)
{
	char path[64], line[512], *name;
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	u64 sum = 0;
	int parent;

	while (dir && (entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		if (!pid || !strstr(file_line(path, line, sizeof(line)), "(kworker/"))
			continue;
		name = strrchr(line, ')');
		/* Kernel threads are children of kthreadd (2). */
		if (name && sscanf(name + 1, " %*c %d", &parent) == 1 && parent == 2)
			sum += task_ns(pid);
	}
	if (dir)
		closedir(dir);
	return sum;
}

/*
 * The tick function
 */

static inline const char *tick_function(void)
{
	static const char *name;

	if (!name) {
		if (file_has("/proc/kallsyms", "sched_tick", NULL, 0))
			name = "sched_tick";
		else
			name = "scheduler_tick";
	}
	return name;
}

/* Returns true if ftrace traces the function. */
static inline bool tick_is_hooked(void)
{
	return file_has(TRACEFS "/enabled_functions", tick_function(), NULL, 0);
}

/*
 * kprobe events, in tracefs
 */

#define PROBE_DIR(name)	TRACEFS "/events/kprobes/" name "/"
#define RECORD_CMD	TRACEFS "/options/record-cmd"

static char record_cmd[8];	/* the value to restore */

static inline void probe_remove(const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "-:%s", name);
	file_append(TRACEFS "/kprobe_events", text);
	if (record_cmd[0])
		file_write(RECORD_CMD, record_cmd);
}

/*
 * Adds an event @name at the beginning of @function: 0, or a negative errno. Turns the
 * recording of task names off: for it, the kernel would patch the code of every switch and
 * wakeup.
 */
static inline int probe_add(const char *name, const char *function)
{
	char text[128];
	int err;

	probe_remove(name);
	file_line(RECORD_CMD, record_cmd, sizeof(record_cmd));
	err = file_write(RECORD_CMD, "0");
	snprintf(text, sizeof(text), "p:%s %s", name, function);
	return err ?: file_append(TRACEFS "/kprobe_events", text);
}

/*
 * Stores how often the event occurred, and how often it was missed. Returns false if there is no
 * such event.
 */
static inline bool probe_profile(const char *name, u64 *hits, u64 *misses)
{
	unsigned long long hit, missed;
	char line[256], of[64];
	bool found = false;
	FILE *f;

	f = fopen(TRACEFS "/kprobe_profile", "re");
	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%63s %llu %llu", of, &hit, &missed) == 3 &&
			!strcmp(of, name);
	fclose(f);
	if (found) {
		*hits = hit;
		*misses = missed;
	}
	return found;
}

/*
 * The module
 */

#define LINGER_S	"/sys/module/profil/parameters/linger_s"

static inline bool module_is_loaded(void)
{
	return !access("/sys/module/profil", F_OK);
}

/* Returns true if the driver is a part of the kernel (CONFIG_PROFIL=y). */
static inline bool module_is_built_in(void)
{
	return module_is_loaded() && access("/sys/module/profil/initstate", F_OK);
}

/*
 * Returns the number of references: open descriptors, and sessions until they have released their
 * last page. Always 0 if the driver is built in, because then nothing counts them.
 */
static inline long long module_users(void)
{
	return module_is_built_in() ? 0 : file_number("/sys/module/profil/refcnt", "");
}

/*
 * Checks in the teardown of a fixture that no session of the test remains. @users and @locked:
 * module_users() and pinned_bytes() of the setup.
 */
#define EXPECT_NO_SESSIONS(users, locked) do {						\
	/* Sessions of the previous test may have ended after the setup. */		\
	EXPECT_TRUE(await(module_users() <= (users))) {					\
		TH_LOG("the module has %lld users, not %lld", module_users(), users);	\
	}										\
	EXPECT_TRUE(await(pinned_bytes() == (locked)));					\
} while (0)

/* Returns the reason why a test cannot unload the module; NULL if it can. */
static inline const char *module_stays(void)
{
	if (geteuid())
		return "only root can unload the module";
	return module_is_built_in() ? "the driver is built in" : NULL;
}

/* Returns 0, or a negative errno: -EWOULDBLOCK while the module is in use. */
static inline int module_unload(void)
{
	return syscall(SYS_delete_module, "profil", O_NONBLOCK) < 0 ? -errno : 0;
}

/* Loads the module in the file @ko: 0, or a negative errno. */
static inline int ko_load(const char *ko, const char *params)
{
	int fd = open(ko, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = syscall(SYS_finit_module, fd, params, 0) < 0 ? -errno : 0;
	close(fd);
	return err;
}

/*
 * Loads the module with @params: 0, or a negative errno. PROFIL_KO names the file; the default is
 * the place where depmod looks first, or that of a driver in the kernel's tree.
 */
static inline int module_load(const char *params)
{
	static const char *const places[] = { "updates", "kernel/drivers/misc/profil" };
	const char *ko = getenv("PROFIL_KO");
	char path[PATH_MAX];
	struct utsname uts;

	uname(&uts);
	for (unsigned int i = 0; !ko && i < 2; i++) {
		snprintf(path, sizeof(path), "/lib/modules/%s/%s/profil.ko", uts.release,
			 places[i]);
		if (i || !access(path, F_OK))
			ko = path;
	}
	return ko_load(ko, params);
}

/*
 * device_fd() always returns the same number. A process that must not use the module
 * closes the device, and opens it again with that number.
 */
static inline void device_close(void)
{
	close(device_fd());
}

static inline int device_reopen(int number)
{
	int fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fd != number) {
		dup3(fd, number, O_CLOEXEC);
		close(fd);
	}
	return 0;
}

/*
 * The log
 */

/* Opens the kernel log, to read the messages that follow. */
static inline int log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* Reads the next messages of the log: does one of the module contain @text? */
static inline bool log_has(int fd, const char *text)
{
	char record[2048];
	ssize_t n;

	for (;;) {
		n = read(fd, record, sizeof(record) - 1);
		if (n < 0 && errno == EPIPE)
			continue;	/* some messages are lost */
		if (n <= 0)
			return false;
		record[n] = 0;
		if (strstr(record, "profil") && strstr(record, text))
			return true;
	}
}

#endif /* _SELFTESTS_KERNEL_H */
