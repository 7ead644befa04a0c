// SPDX-License-Identifier: GPL-2.0-or-later
/* See maps.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "recording/maps.h"

/*
 * Memory that is not read in this time is not read. A child that has a CPU, or waits for one, waits
 * for no page: the machine is slow, and the child gets this time again, at most so many times.
 */
#define MEMORY_MS	100
#define MEMORY_TIMES	20
#define MEMORY_MAX	4096

/* A newline is the only byte of a path that has an escape there. */
static void unescape_newlines(char *path)
{
	char *to = path;

	for (; *path; path++) {
		*to = *path;
		if (!strncmp(path, "\\012", 4)) {
			*to = '\n';
			path += 3;
		}
		to++;
	}
	*to = '\0';
}

struct profil_record *maps_parse(char *line, bool *is_executable)
{
	struct profil_record found = { .flags = PROFIL_RECORD_MAPPED }, *mapping;
	unsigned long long start, end, offset, ino;
	char permissions[5];
	int path = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, permissions, &offset,
		   &found.major, &found.minor, &ino, &path) < 7 ||
	    !path || start >= end)
		return NULL;
	*is_executable = permissions[2] == 'x';
	found.pc = start;
	found.start = start;
	found.end = end;
	line += path;
	if (ino) {
		found.flags |= PROFIL_RECORD_FILE;
		found.offset = offset;
		found.ino = ino;
		found.generation = MAPS_NO_GENERATION;
		unescape_newlines(line);
	} else if (!strcmp(line, "[heap]") || !strncmp(line, "[stack", 6) ||
		   !strncmp(line, "[anon", 5)) {
		*line = '\0';
	}
	mapping = xcalloc(1, sizeof(*mapping) + strlen(line));
	memcpy(mapping, &found, offsetof(struct profil_record, path));
	strcpy((char *)mapping + offsetof(struct profil_record, path), line);
	return mapping;
}

bool maps_is_deleted(const char *path)
{
	static const char end[] = " (deleted)";
	const size_t length = strlen(path);

	return length >= strlen(end) && !strcmp(path + length - strlen(end), end);
}

/* The module gives a device only its name. */
bool maps_is_memory(const char *path)
{
	return !strcmp(path, "zero") || !strcmp(path, "/dev/zero") ||
	       !strncmp(path, "/memfd:", 7) ||
	       (maps_is_deleted(path) && (!strncmp(path, "/SYSV", 5) ||
					  !strncmp(path, "/dev/zero (", 11) ||
					  !strncmp(path, "/anon_hugepage (", 16)));
}

/* In a child, which can be killed while it waits for a page */
static void copy_memory(pid_t pid, u64 address, size_t size, int fd)
{
	char bytes[MEMORY_MAX];
	const struct iovec local = { .iov_base = bytes, .iov_len = size };
	const struct iovec remote = { .iov_base = (void *)(uintptr_t)address, .iov_len = size };
	const ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		_exit(errno);
	_exit(n == (ssize_t)size && write(fd, bytes, size) == n ? 0 : EFAULT);
}

/* Returns true if the child has a CPU, or waits for one. */
static bool is_runnable(pid_t child)
{
	FILE *file = proc_open(child, "stat");
	char state = 0;
	const bool is_read = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1;

	if (file)
		fclose(file);
	return is_read && state == 'R';
}

/* Waits for the answer of the child. Returns false if there is none. */
static bool await_answer(int fd, pid_t child)
{
	struct pollfd answer = { .fd = fd, .events = POLLIN };

	for (int i = 0; i < MEMORY_TIMES; i++) {
		if (poll(&answer, 1, MEMORY_MS) > 0)
			return true;
		if (!is_runnable(child))
			return false;
	}
	return false;
}

bool maps_read_memory(pid_t pid, u64 address, void *to, size_t size)
{
	ssize_t n = -1;
	pid_t child;
	int fds[2], status = 0;

	if (size > MEMORY_MAX || pipe2(fds, O_CLOEXEC))
		return false;
	child = fork();
	if (!child)
		copy_memory(pid, address, size, fds[1]);
	close(fds[1]);
	if (child > 0 && await_answer(fds[0], child))
		n = read(fds[0], to, size);
	close(fds[0]);
	if (child < 0)
		return false;
	kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : ETIMEDOUT;
	return n == (ssize_t)size;
}
