// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * server PORT - an HTTP server that serves its own profile
 *
 *	go tool pprof http://localhost:PORT/debug/pprof/profile?seconds=5
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <profil/pprof.h>

/* Sends a profile of the next seconds. This is all that a server needs for it. */
static void send_profile(int client, unsigned int seconds)
{
	struct profil_pprof *profile = profil_pprof_start(1000);

	if (!profile) {
		dprintf(client, "HTTP/1.0 503 Unavailable\r\n\r\nprofil: %s\n", strerror(errno));
		return;
	}
	sleep(seconds);
	dprintf(client, "HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n");
	if (profil_pprof_write(profile, client))
		warn("cannot send the profile");
	profil_pprof_stop(profile);
}

/* Answers one request. */
static void *serve(void *data)
{
	int client = (intptr_t)data;
	unsigned int seconds = 30;
	char request[4096];
	ssize_t len = read(client, request, sizeof(request) - 1);

	request[len > 0 ? len : 0] = '\0';
	if (!strncmp(request, "GET /debug/pprof/profile", 24)) {
		sscanf(request, "GET /debug/pprof/profile?seconds=%u", &seconds);
		send_profile(client, seconds);
	} else {
		dprintf(client, "HTTP/1.0 404 Not Found\r\n\r\n");
	}
	close(client);
	return NULL;
}

/* The work of the server: three quarters of the time in hot(), one in warm(). */

static __attribute__((noinline)) void hot(void)
{
	for (volatile int i = 0; i < 300000; i++)
		;
}

static __attribute__((noinline)) void warm(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
}

static void *work(void *data)
{
	for (;;) {
		hot();
		warm();
	}
	return data;
}

static void start_thread(void *(*function)(void *data), void *data)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, function, data);

	if (error)
		errx(1, "cannot create a thread: %s", strerror(error));
	pthread_detach(thread);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	int server = socket(AF_INET, SOCK_STREAM, 0), client;

	if (argc != 2)
		errx(2, "usage: server PORT");
	signal(SIGPIPE, SIG_IGN);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = htons(atoi(argv[1]));
	if (server < 0 || bind(server, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(server, 8))
		err(1, "port %s", argv[1]);
	start_thread(work, NULL);
	while ((client = accept(server, NULL, NULL)) >= 0)
		start_thread(serve, (void *)(intptr_t)client);
	err(1, "accept");
}
