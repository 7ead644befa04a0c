// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil gperf: prints the counters of a process, while it runs or each time that it calls
 * osProfileFlush()
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include <handover.h>
#include <profil.h>

#include "commands/command.h"
#include "recording/capture.h"
#include "text/text.h"

struct options {
	pid_t pid;
	bool wait;
	struct text_options output;
};

/* Returns the exit status, or -1 if the command shall continue. */
static int parse_options(int argc, char **argv, struct options *options)
{
	int status = command_parse(&command_gperf, argc, argv, options);
	u64 number;

	if (status >= 0)
		return status;
	if (optind + 1 != argc) {
		command_print_help(stderr, &command_gperf);
		return COMMAND_USAGE;
	}
	if (!command_parse_number(argv[optind], INT_MAX, &number)) {
		warnx("\"%s\" is not a process id", argv[optind]);
		return COMMAND_USAGE;
	}
	options->pid = number;
	text_get_terminal(&options->output);
	return -1;
}

static void print_error(pid_t pid, int err)
{
	switch (err) {
	case -ESRCH:
		warnx("there is no process %d", pid);
		break;
	case -EINVAL:
	case -ENODEV:
		warnx("process %d has no profile", pid);
		break;
	case -EPERM:
	case -EACCES:
		warnx("process %d: %s (ptrace rights are needed: see kernel.yama.ptrace_scope)",
		      pid, strerror(-err));
		break;
	case -EFAULT:
		warnx("process %d: cannot read its counters: %s (it may have unmapped them)",
		      pid, strerror(-err));
		break;
	case -EAGAIN:
		warnx("process %d keeps starting other profiles", pid);
		break;
	case -EBADMSG:
		warnx("process %d: its profile is inconsistent", pid);
		break;
	case -ENOTTY:
		warnx("the profil module is too old for this command");
		break;
	default:
		warnx("process %d: %s", pid, strerror(-err));
	}
}

/* Prints and frees @recording. If @err is not 0, there is no recording: prints the error. */
static bool report(const struct options *options, struct recording *recording, int err)
{
	struct rows rows = {
		.keys = { &row_keys[ROWS_BY_DSO], &row_keys[ROWS_BY_SYMBOL] },
		.nr_keys = 2,
		.demangle = true,
	};

	if (!err && rows_make(&rows, recording))
		text_report(stdout, &rows, &options->output);
	rows_free(&rows);
	if (recording)
		recording_free(recording);
	if (err)
		print_error(options->pid, err);
	return !err && !fflush(stdout);
}

static bool has_ended(int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	return poll(&poll_fd, 1, 0) > 0;
}

static bool report_once(const struct options *options, int pidfd)
{
	struct recording *recording = NULL;
	int err, device;

	device = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);
	if (device < 0) {
		warnx(PROFIL_DEVICE ": %s%s", strerror(errno),
		      errno == ENOENT ? ": the profil module must be loaded" : "");
		return false;
	}
	err = capture_read(options->pid, device, false, &recording);
	close(device);
	/* The process may have exited, and another process may have got its id. */
	if (has_ended(pidfd))
		err = -ESRCH;
	return report(options, recording, err);
}

/* ---- waiting for osProfileFlush() ---- */

/* Returns true if @pid made the connection: other processes can connect to the socket, too. */
static bool is_from(int connection, pid_t pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid == pid;
}

/* Receives the one message of the connection. Returns the descriptor in it, or -1. */
static int receive_file(int connection)
{
	union {
		struct cmsghdr header;
		char room[CMSG_LEN(sizeof(int))];	/* for no more than one descriptor */
	} control;
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.room),
	};
	struct cmsghdr *header;
	int file;

	if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) < 0)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(int)))
		return -1;
	memcpy(&file, CMSG_DATA(header), sizeof(file));
	return file;
}

static bool report_flush(const struct options *options, int connection)
{
	struct recording *recording = NULL;
	int err, file = -1;

	if (is_from(connection, options->pid))
		file = receive_file(connection);
	if (file < 0)
		return true;
	err = capture_read(options->pid, file, true, &recording);
	close(file);
	return report(options, recording, err);
}

static int listen_for(pid_t pid)
{
	struct sockaddr_un address;
	socklen_t length = handover_address(&address, pid);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&address, length) &&
	    !listen(fd, SOMAXCONN))
		return fd;
	if (errno == EADDRINUSE)
		warnx("another \"profil gperf\" already waits for process %d", pid);
	else
		warn("cannot wait");
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * Prints a report for each osProfileFlush(), until the process ends. Accepts connections before it
 * looks at the pidfd, so that it does not miss the last connection of a process that has ended.
 */
static bool report_flushes(const struct options *options, int pidfd)
{
	int host = listen_for(options->pid), connection;
	struct pollfd fds[] = {
		{ .fd = host, .events = POLLIN },
		{ .fd = pidfd, .events = POLLIN },
	};
	bool done = true;

	if (host < 0)
		return false;
	while (poll(fds, 2, -1) >= 0 || errno == EINTR) {
		while ((connection = accept4(host, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
			done &= report_flush(options, connection);
			close(connection);
		}
		if (fds[1].revents)
			break;
	}
	close(host);
	return done;
}

static int run(int argc, char **argv)
{
	struct options options = {};
	int status, pidfd;
	bool done;

	status = parse_options(argc, argv, &options);
	if (status >= 0)
		return status;
	pidfd = pidfd_open(options.pid, 0);
	if (pidfd < 0) {
		print_error(options.pid, errno == EINVAL ? -ESRCH : -errno);
		return COMMAND_FAILED;
	}
	done = options.wait ? report_flushes(&options, pidfd) : report_once(&options, pidfd);
	close(pidfd);
	return done ? 0 : COMMAND_FAILED;
}

static const struct command_option options[] = {
	{ .name = "wait", .letter = 'w',
	  .help = "print at each osProfileFlush() until the process ends",
	  .set = command_set_true, .offset = offsetof(struct options, wait) },
	{ .name = "lines", .letter = 'n', .value = "N", .help = "print the first N lines only",
	  .set = command_set_lines, .offset = offsetof(struct options, output.lines) },
	COMMAND_HELP
};

const struct command command_gperf = {
	.name = "gperf",
	.about = "print the profile that a process makes of itself, by function",
	.usage = "[OPTION...] PID",
	.help = "Prints, by function, the profile that a running process makes of itself with\n"
		"osProfileStart(), profil() or a similar call.",
	.operand = "PID",
	.options = options,
	.run = run,
};
