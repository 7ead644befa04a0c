/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters of a classic profile, which a process has started with profil() or a call like it,
 * as a recording
 */
#ifndef PROFIL_TOOLS_CLASSIC_H
#define PROFIL_TOOLS_CLASSIC_H

#include "recording/recording.h"

/* The path of a file that has the ticks of counters that belong to no address. */
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
 * Return: 0 or a negative error: -EBADMSG if it is another file, or the profile is inconsistent.
 */
int classic_read(pid_t pid, int fd, struct recording **recording);

#endif /* PROFIL_TOOLS_CLASSIC_H */
