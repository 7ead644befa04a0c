// SPDX-License-Identifier: GPL-2.0-or-later
/* See confined.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <libiberty/libiberty.h>

#include "symbols/confined.h"

/*
 * The time of a CPU, the memory and the answer that each process may have. After one that needed
 * more time, others get less, since a recording can have many such files.
 */
#define SECONDS		3
#define SECONDS_LATER	1
#define MEMORY		(320ULL << 20)
#define ANSWER_MAX	(16ULL << 20)
/* For each byte above this size of its files, a process gets more time and memory. */
#define BYTES_FREE	(32ULL << 20)
#define BYTES_PER_SECOND (32ULL << 20)
#define MEMORY_PER_BYTE	4
#define FILE_MAX	(8ULL << 30)
/* The process may be waiting for a CPU, or for a disk. */
#define WAIT_MAX_NS	(60 * NS_PER_S)
#define SECONDS_MAX	600
/* With sanitizers, all takes so many times longer. */
#define SANITIZED	4
#define FILES_MAX	16
/* The maximum number of files of split debug information: there is one for each object. */
#define SPLIT_MAX	4096
#define EXIT_MEMORY	77
#define DESCRIPTORS	16

/* ---- in the confined process ---- */

static bool is_confined;
static const struct confined *current;	/* the work of this process */

#ifndef __SANITIZE_ADDRESS__
/*
 * Libraries take a failed allocation for a damaged file, and would say that there are no names. The
 * C library allows a program to replace these functions.
 */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *old, size_t size);

static void *allocated(void *memory)
{
	if (!memory && is_confined)
		_exit(EXIT_MEMORY);
	return memory;
}

void *malloc(size_t size)
{
	return allocated(__libc_malloc(size));
}

void *calloc(size_t nr, size_t size)
{
	return allocated(__libc_calloc(nr, size));
}

void *realloc(void *old, size_t size)
{
	void *memory = __libc_realloc(old, size);

	return size ? allocated(memory) : memory;
}
#endif

void confined_write(const struct confined *confined, const void *data, size_t size)
{
	ssize_t written;

	for (; size; size -= written, data += written) {
		written = write(confined->output, data, size);
		if (written < 0 && errno == EINTR)
			written = 0;
		if (written < 0)
			_exit(1);
	}
}

int confined_ask(const struct confined *confined, const struct file_request *request)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char byte = 0;
	struct iovec none = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr reply = {
		.msg_iov = &none, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header;
	int fd = -1;

	if (send(confined->requests, request, sizeof(*request), MSG_NOSIGNAL) !=
	    sizeof(*request) || recvmsg(confined->requests, &reply, MSG_CMSG_CLOEXEC) != 1)
		_exit(1);
	header = CMSG_FIRSTHDR(&reply);
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

bool confined_is_here(void)
{
	return is_confined;
}

int confined_open(const char *path)
{
	struct file_request request = { .kind = FILE_SPLIT };

	if (!current->may_ask || strlen(path) >= sizeof(request.name)) {
		errno = EPERM;
		return -1;
	}
	strcpy(request.name, path);
	return confined_ask(current, &request);
}

#ifndef __SANITIZE_ADDRESS__
/* The system calls of malloc(), of reading a file, and of the answer. Others fail with EPERM. */
static const int calls[] = {
	SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(lseek), SCMP_SYS(_llseek), SCMP_SYS(fstat),
	SCMP_SYS(fstat64), SCMP_SYS(newfstatat), SCMP_SYS(fcntl), SCMP_SYS(fcntl64),
	SCMP_SYS(close), SCMP_SYS(write), SCMP_SYS(sendto), SCMP_SYS(recvmsg), SCMP_SYS(brk),
	SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(sysinfo),
	SCMP_SYS(getrandom), SCMP_SYS(clock_gettime), SCMP_SYS(futex), SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigprocmask), SCMP_SYS(exit), SCMP_SYS(exit_group),
};

static const int memory_calls[] = { SCMP_SYS(mmap), SCMP_SYS(mmap2), SCMP_SYS(mprotect) };

/* Makes the filter once, in the parent. Without one, the process has only limits. */
static const struct sock_fprog *call_filter(void)
{
	static struct sock_fprog filter;
	static bool is_made;
	scmp_filter_ctx context;
	bool fine = true;
	off_t size;
	int fd;

	if (is_made)
		return filter.len ? &filter : NULL;
	is_made = true;
	fd = memfd_create("filter", MFD_CLOEXEC);
	context = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	for (size_t i = 0; context && i < sizeof(calls) / sizeof(*calls); i++)
		fine &= !seccomp_rule_add(context, SCMP_ACT_ALLOW, calls[i], 0);
	for (size_t i = 0; context && i < sizeof(memory_calls) / sizeof(*memory_calls); i++)
		fine &= !seccomp_rule_add(context, SCMP_ACT_ALLOW, memory_calls[i], 1,
					  SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (context && fine && fd >= 0 && !seccomp_export_bpf(context, fd)) {
		size = lseek(fd, 0, SEEK_END);
		filter.filter = xmalloc(size);
		if (pread(fd, filter.filter, size, 0) == size)
			filter.len = size / sizeof(*filter.filter);
	}
	if (context)
		seccomp_release(context);
	if (fd >= 0)
		close(fd);
	return filter.len ? &filter : NULL;
}
#endif

static void set_limit(int resource, u64 soft, u64 hard)
{
	const struct rlimit limit = { .rlim_cur = soft, .rlim_max = hard };

	setrlimit(resource, &limit);
}

/* Closes all descriptors but those of the process. */
static void close_others(const struct confined *confined)
{
	int keep[] = { confined->output, confined->requests, confined->fd };
	unsigned int from = 0;

#ifdef __SANITIZE_ADDRESS__
	from = STDERR_FILENO + 1;
#endif
	for (;;) {
		unsigned int next = ~0U;

		for (size_t i = 0; i < sizeof(keep) / sizeof(*keep); i++)
			if (keep[i] >= 0 && (unsigned int)keep[i] >= from &&
			    (unsigned int)keep[i] < next)
				next = keep[i];
		if (next > from)
			close_range(from, next == ~0U ? next : next - 1, 0);
		if (next == ~0U)
			return;
		from = next + 1;
	}
}

/* The sanitizers need much memory, and system calls of their own. */
static void confine(const struct confined *confined)
{
	sigset_t signals;

	close_others(confined);
	current = confined;
	is_confined = true;
	set_limit(RLIMIT_CORE, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGXCPU, SIG_DFL);
	sigemptyset(&signals);
	sigaddset(&signals, SIGXCPU);
	sigprocmask(SIG_UNBLOCK, &signals, NULL);
#ifndef __SANITIZE_ADDRESS__
	set_limit(RLIMIT_FSIZE, 0, 0);
	set_limit(RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (call_filter())
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, call_filter());
#endif
}

/* ---- in the parent ---- */

/* A process has exceeded its time. */
static bool was_too_long;

/**
 * struct child - A confined process
 * @pid: Its id.
 * @size: The bytes of its files on the disk.
 * @memory: Of this process, which the child has, too.
 * @nr_files: Number of files that it has asked for.
 * @nr_split: Number of files of split debug information.
 * @seconds: The CPU time that it may have.
 * @bytes: The memory that it may have in addition to @memory.
 * @answer_max: The maximum size of its answer.
 */
struct child {
	pid_t pid;
	u64 size;
	u64 memory;
	unsigned int nr_files;
	unsigned int nr_split;
	u64 seconds;
	u64 bytes;
	u64 answer_max;
};

static u64 memory_of_this_process(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (file && fscanf(file, "%lu", &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return (u64)pages * sysconf(_SC_PAGESIZE);
}

/* Computes the limits. @fd: a file that the child gets. */
static void child_allow(const struct confined *confined, struct child *child, int fd)
{
	struct stat st;
	u64 more = 0;

	if (confined->by_size && fd >= 0 && !fstat(fd, &st))
		child->size += (u64)st.st_blocks * 512;
	if (child->size > FILE_MAX)
		child->size = FILE_MAX;
	if (child->size > BYTES_FREE)
		more = child->size - BYTES_FREE;
	child->seconds = was_too_long && !confined->has_budget ? SECONDS_LATER : SECONDS;
	child->seconds += more / BYTES_PER_SECOND + confined->seconds;
	child->bytes = MEMORY + more * MEMORY_PER_BYTE + 2 * confined->bytes;
	child->answer_max = ANSWER_MAX + confined->bytes;
}

/* Only root may exceed the limit of the user. */
static void limit_child(pid_t pid, int resource, u64 value, u64 max)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return;
	if (limit.rlim_max > max)
		limit.rlim_max = max;
	limit.rlim_cur = value < limit.rlim_max ? value : limit.rlim_max;
	prlimit(pid, resource, &limit, NULL);
}

/* Sets the limits of the child. In the child, @child->pid is 0, which means itself. */
static void child_limit(const struct child *child)
{
#ifndef __SANITIZE_ADDRESS__
	limit_child(child->pid, RLIMIT_CPU, child->seconds, SECONDS_MAX);
	if (child->memory)
		limit_child(child->pid, RLIMIT_AS, child->memory + child->bytes, RLIM_INFINITY);
#else
	limit_child(child->pid, RLIMIT_CPU, SANITIZED * child->seconds, SECONDS_MAX);
#endif
}

static bool reply(int requests, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte = 0;
	struct iovec none = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &none, .msg_iovlen = 1 };
	struct cmsghdr *header;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	return sendmsg(requests, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* Answers a request for a file. Returns false if it is not valid. */
static bool handle_request(struct confined *confined, struct child *child)
{
	struct file_request request;
	bool sent, is_split;
	int fd = -1;

	if (recv(confined->requests, &request, sizeof(request), MSG_DONTWAIT) !=
	    sizeof(request) || !confined->may_ask)
		return false;
	is_split = request.kind == FILE_SPLIT;
	if (!is_split && ++child->nr_files > FILES_MAX)
		return false;
	if (!is_split || child->nr_split++ < SPLIT_MAX)
		fd = file_request_open(confined->root, confined->path, &request);
	child_allow(confined, child, fd);
	child_limit(child);
	sent = reply(confined->requests, fd);
	if (fd >= 0)
		close(fd);
	return sent;
}

/* Reads a part of the answer. Returns its size, 0 at the end, or -1 if it is too large. */
static ssize_t read_part(struct confined *confined, const struct child *child, size_t *room)
{
	ssize_t n;

	if (confined->size == *room) {
		*room = *room ? 2 * *room : 1 << 14;
		confined->answer = xrealloc(confined->answer, *room);
	}
	n = read(confined->output, confined->answer + confined->size, *room - confined->size);
	if (n < 0)
		return errno == EINTR ? 1 : 0;
	confined->size += n;
	if (confined->size <= child->answer_max)
		return n;
	snprintf(confined->problem, sizeof(confined->problem),
		 "its names need more than %llu MB of memory",
		 (unsigned long long)child->answer_max >> 20);
	return -1;
}

/* Called while this process waits. */
static void (*idle_call)(void *data);
static void *idle_data;
static u64 idle_ns;
static u64 idle_last;

void confined_set_idle(void (*call)(void *data), void *data, u64 interval_ns)
{
	idle_call = call;
	idle_data = data;
	idle_ns = interval_ns;
}

/* Waits until the process writes or asks. Returns false after the time @end. */
static bool wait_for_input(struct pollfd files[2], u64 end)
{
	for (;;) {
		const u64 now = clock_ns(CLOCK_MONOTONIC);
		u64 left = end > now ? end - now : 0;

		/* Many processes that end soon take long, too. */
		if (idle_call && now - idle_last >= idle_ns) {
			idle_call(idle_data);
			idle_last = now;
		}
		if (!left)
			return false;
		if (idle_call && left > idle_ns)
			left = idle_ns;
		if (poll(files, 2, left / 1000000 + 1) > 0)
			return true;
	}
}

static void set_too_long(struct confined *confined, u64 seconds)
{
	was_too_long |= !confined->has_budget;
	snprintf(confined->problem, sizeof(confined->problem),
		 "%s could not be read within %llu s", confined->subject,
		 (unsigned long long)seconds);
}

/* Reads the answer to its end. Returns false if the process must be killed. */
static bool read_answer(struct confined *confined, struct child *child)
{
	u64 end = clock_ns(CLOCK_MONOTONIC) + WAIT_MAX_NS;
	struct pollfd files[] = {
		{ .fd = confined->output, .events = POLLIN },
		{ .fd = confined->requests, .events = POLLIN },
	};
	size_t room = 0;
	ssize_t n = 1;

	while (n > 0) {
		if (!wait_for_input(files, end)) {
			set_too_long(confined, WAIT_MAX_NS / NS_PER_S);
			return false;
		}
		if (files[0].revents)
			n = read_part(confined, child, &room);
		if (files[1].revents & (POLLHUP | POLLERR)) {
			files[1].fd = -1;
		} else if (files[1].revents & POLLIN) {
			if (!handle_request(confined, child))
				return false;
			/* A download can take long. The time of the CPU is limited anyway. */
			end = clock_ns(CLOCK_MONOTONIC) + WAIT_MAX_NS +
			      child->seconds * NS_PER_S;
		}
	}
	return !n;
}

/* Sets the reason for which the process has ended. */
static void set_problem(struct confined *confined, const struct child *child, int status)
{
	const size_t size = sizeof(confined->problem);

	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MEMORY)
		snprintf(confined->problem, size,
			 "%s could not be read with %llu MB of memory", confined->subject,
			 (unsigned long long)child->bytes >> 20);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
		set_too_long(confined, child->seconds);
	else if (WIFSIGNALED(status))
		snprintf(confined->problem, size,
			 "%s could not be read: signal %d ended the process that reads them",
			 confined->subject, WTERMSIG(status));
	else
		snprintf(confined->problem, size, "%s are damaged", confined->subject);
}

static bool wait_for(struct confined *confined, struct child *child)
{
	bool done = read_answer(confined, child);
	int status = 0;

	/* This changes nothing if it has ended. */
	kill(child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (done && WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	if (!*confined->problem)
		set_problem(confined, child, status);
	confined->exceeded = true;
	free(confined->answer);
	confined->answer = NULL;
	confined->size = 0;
	return false;
}

static void run_child(struct confined *confined, const struct child *child)
{
	if (confined->prepare)
		confined->prepare(confined);
	child_limit(child);
	confine(confined);
	confined->work(confined);
	_exit(0);
}

bool confined_run(struct confined *confined)
{
	struct child child = { .memory = memory_of_this_process() };
	int pipe_fds[2] = { -1, -1 }, socket_fds[2] = { -1, -1 };
	bool done = false;

	confined->answer = NULL;
	confined->size = 0;
	*confined->problem = '\0';
	confined->exceeded = false;
#ifndef __SANITIZE_ADDRESS__
	call_filter();
#endif
	child_allow(confined, &child, confined->fd);
	if (!pipe2(pipe_fds, O_CLOEXEC) &&
	    !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socket_fds))
		child.pid = fork();
	else
		child.pid = -1;
	if (!child.pid) {
		confined->output = pipe_fds[1];
		confined->requests = socket_fds[1];
		run_child(confined, &child);
	}
	close(pipe_fds[1]);
	close(socket_fds[1]);
	confined->output = pipe_fds[0];
	confined->requests = socket_fds[0];
	if (child.pid > 0) {
		done = wait_for(confined, &child);
	} else {
		snprintf(confined->problem, sizeof(confined->problem),
			 "no process could be started to read it: %s", strerror(errno));
	}
	close(pipe_fds[0]);
	close(socket_fds[0]);
	return done;
}
