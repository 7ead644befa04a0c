/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters of a process, as "profil gperf" captures them, as a recording
 *
 * The process has started a classic session with profil(), or with a similar historical call.
 */
#ifndef PROFIL_TOOLS_CAPTURE_H
#define PROFIL_TOOLS_CAPTURE_H

#include "recording/recording.h"

/* Stands for the name of a file, for ticks of counters that have no single address. */
#define CAPTURE_ELSEWHERE "[elsewhere]"

/**
 * capture_read - Read the counters of a process
 * @pid: The process.
 * @fd: /dev/profil, to copy the counters while the process runs.
 * @handed_over: @fd is a file with a copy of the counters, in the format of <handover.h>.
 * @recording: Out: the recording.
 *
 * Return: 0 or a negative error: -EAGAIN if the process keeps starting other profiles, -EFAULT if
 * its counters cannot be read, -EINVAL or -ENODEV if it has no profile, -EPERM or -EACCES without
 * ptrace rights, -EBADMSG if the file has another format, or the profile is inconsistent.
 */
int capture_read(pid_t pid, int fd, bool handed_over, struct recording **recording);

#endif /* PROFIL_TOOLS_CAPTURE_H */
