/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conversion of the counters of a classic session to a recording
 *
 * A process starts a classic session with profil(), or with a similar historical call.
 */
#ifndef PROFIL_TOOLS_CLASSIC_H
#define PROFIL_TOOLS_CLASSIC_H

#include "recording/recording.h"

/* The name that stands in place of a file for the ticks of counters for no single address. */
#define CLASSIC_ELSEWHERE "[elsewhere]"

/**
 * classic_copy - Copy the counters of a process while it runs
 * @pid: The process.
 * @device: A descriptor of /dev/profil.
 * @recording: Out: the recording.
 *
 * Return: 0 or a negative error: -EAGAIN if the process keeps starting other profiles, -EFAULT if
 * its counters cannot be read, -EINVAL or -ENODEV if it has no profile, -EPERM or -EACCES without
 * ptrace rights, -EBADMSG if the profile is inconsistent.
 */
int classic_copy(pid_t pid, int device, struct recording **recording);

/**
 * classic_read - Read the counters that a process has handed over
 * @pid: The process.
 * @fd: A file of the form that <handover.h> describes.
 * @recording: Out: the recording.
 *
 * Return: 0 or a negative error: -EBADMSG if the file has another form, or the profile is
 * inconsistent.
 */
int classic_read(pid_t pid, int fd, struct recording **recording);

#endif /* PROFIL_TOOLS_CLASSIC_H */
