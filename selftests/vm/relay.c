// SPDX-License-Identifier: GPL-2.0
/*
 * relay DIR SECONDS: the host's end of a guest's standard streams
 *
 * DIR contains the sockets of the guest's four ports. "in" carries DIR/settings, and then stdin, to
 * init.c. "out" and "err" carry COMMAND's output to stdout and stderr. "result" carries the report
 * of init.c, which relay writes to DIR/result. Its last line is "end OUT ERR", the number of bytes
 * that COMMAND wrote to each stream. When relay has delivered so many, it closes the ports, which
 * tells the guest.
 *
 * Exit status: 0 done; 1 the guest ended first; 124 SECONDS are over (0: no limit).
 */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "pump.h"

static struct pump in, out, err_;

static const char *path_of(const char *dir, const char *name)
{
	static char path[sizeof(((struct sockaddr_un *)0)->sun_path)];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		errx(125, "%s: name too long", dir);
	return path;
}

static int connect_to(const char *dir, const char *socket_name)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, path_of(dir, socket_name));
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) ||
	    fcntl(fd, F_SETFL, O_NONBLOCK))
		err(125, "%s", addr.sun_path);
	return fd;
}

static int open_in(const char *dir, const char *name, int flags)
{
	int fd = open(path_of(dir, name), flags, 0600);

	if (fd < 0)
		err(125, "%s/%s", dir, name);
	return fd;
}

/* Continues with stdin after the settings, and ends the stream after stdin. */
static void next_input(void)
{
	if (in.broken || !pump_done(&in) || in.from < 0)
		return;
	if (in.from != STDIN_FILENO) {
		close(in.from);
		in.from = STDIN_FILENO;
		in.ended = false;
	} else {
		/* Not close(): when a socket hangs up, QEMU drops data that it has not read. */
		shutdown(in.to, SHUT_WR);
		in.from = -1;
	}
}

/* Closes the port if the reader of the output is gone, so that COMMAND gets a SIGPIPE. */
static void pass_on_hangup(struct pump *p)
{
	if (p->broken && p->from >= 0) {
		close(p->from);
		p->from = -1;
	}
}

static bool delivered(const struct pump *p, uint64_t bytes)
{
	return p->broken || p->passed >= bytes;
}

/* Writes the report to the log. True if its "end" came, and as many bytes are delivered. */
static bool result_reached(int port, int log, bool readable, bool *ended)
{
	static char text[65536];
	static size_t size;
	uint64_t bytes_out, bytes_err;
	const char *end;
	ssize_t n;

	if (readable) {
		n = read(port, text + size, sizeof(text) - 1 - size);
		if (n > 0 && write(log, text + size, n) != n)
			err(125, "result");
		if (n > 0)
			size += n;
		else
			*ended = n == 0 || pump_failed(n);
	}
	end = strstr(text, "\nend ");
	return end && strchr(end + 1, '\n') &&
	       sscanf(end, " end %" SCNu64 " %" SCNu64, &bytes_out, &bytes_err) == 2 &&
	       delivered(&out, bytes_out) && delivered(&err_, bytes_err);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	int port, log;
	int64_t limit, start = now_ms();
	struct pollfd fds[7];
	bool ended = false;

	if (argc != 3)
		errx(125, "usage: relay DIR SECONDS");
	limit = atoll(argv[2]) * 1000;
	signal(SIGPIPE, SIG_IGN);

	/* "in" is last: its first byte tells the guest that the other ports are connected. */
	out = (struct pump){ .from = connect_to(argv[1], "out.sock"), .to = STDOUT_FILENO,
			     .shared = true };
	err_ = (struct pump){ .from = connect_to(argv[1], "err.sock"), .to = STDERR_FILENO,
			      .shared = true };
	port = connect_to(argv[1], "result.sock");
	log = open_in(argv[1], "result", O_WRONLY | O_CREAT | O_TRUNC);
	in = (struct pump){ .from = open_in(argv[1], "settings", O_RDONLY),
			    .to = connect_to(argv[1], "in.sock") };

	for (;;) {
		int64_t left = limit ? start + limit - now_ms() : 60000;

		if (left <= 0)
			return 124;
		pump_want(&in, &fds[0]);
		pump_want(&out, &fds[2]);
		pump_want(&err_, &fds[4]);
		fds[6] = (struct pollfd){ .fd = ended ? -1 : port, .events = POLLIN };
		if (poll(fds, 7, left < 60000 ? left : 60000) < 0) {
			if (errno == EINTR)
				continue;
			err(125, "poll");
		}
		pump_move(&in, &fds[0]);
		pump_move(&out, &fds[2]);
		pump_move(&err_, &fds[4]);
		next_input();
		pass_on_hangup(&out);
		pass_on_hangup(&err_);
		if (result_reached(port, log, fds[6].revents, &ended))
			return 0;
		if (ended && pump_done(&out) && pump_done(&err_))
			return 1;
	}
}
