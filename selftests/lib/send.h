/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sending descriptors to another process
 */
#ifndef _SELFTESTS_SEND_H
#define _SELFTESTS_SEND_H

#include "device.h"

#include <sys/socket.h>

/**
 * send_fd() - Send a descriptor through a socket
 * @to: the socket
 * @what: the descriptor
 *
 * Return: 0, or a negative errno.
 */
static inline int send_fd(int to, int what)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &what, sizeof(int));
	return sendmsg(to, &msg, 0) == 1 ? 0 : -errno;
}

/**
 * receive_fd() - Receive a descriptor from a socket
 * @from: the socket
 *
 * Return: the descriptor, or -1.
 */
static inline int receive_fd(int from)
{
	char control[CMSG_SPACE(sizeof(int))] = {}, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int received = -1;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return received;
}

#endif /* _SELFTESTS_SEND_H */
