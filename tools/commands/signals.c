// SPDX-License-Identifier: GPL-2.0-or-later
/* See sampling.h: signals, and the end of the command. */
#define _GNU_SOURCE
#include <err.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/sampling.h"

#define NS_PER_MS	1000000ULL
/* Within this time after the first signal, further signals do not end the session. */
#define SECOND_SIGNAL_NS	(500 * NS_PER_MS)
/* After SIGINT from another process, the session ends with the command, or after this time. */
#define INTERRUPT_NS	NS_PER_S

int session_take_signals(struct session *s)
{
	static const int numbers[] = {
		SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2,
	};
	sigset_t set = s->signals_of_caller;

	s->old_sigpipe = signal(SIGPIPE, SIG_IGN);
	/* If SIGCHLD were ignored, the kernel would not keep the exit status of the command. */
	s->old_sigchld = signal(SIGCHLD, SIG_DFL);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, &s->old_mask);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals >= 0)
		return 0;
	warn("signalfd");
	return -1;
}

bool session_reap(struct session *s)
{
	if (!s->child || waitpid(s->child, &s->status, WNOHANG) != s->child)
		return false;
	s->child = 0;
	return true;
}

bool session_handle_signals(struct session *s)
{
	const u64 now = clock_ns(CLOCK_MONOTONIC);
	struct signalfd_siginfo info;
	bool end = false;

	while (read(s->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (sigismember(&s->signals_of_caller, info.ssi_signo)) {
			sigaddset(&s->arrived, info.ssi_signo);
			continue;
		}
		if (s->child && info.ssi_code <= 0)
			kill(s->child, info.ssi_signo);
		if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2)
			continue;
		s->end_signal = info.ssi_signo;
		if (!s->child || (s->first_signal && now - s->first_signal > SECOND_SIGNAL_NS))
			end = true;
		else if (info.ssi_signo == SIGINT && info.ssi_code <= 0)
			s->interrupted = now + INTERRUPT_NS;
		if (!s->first_signal)
			s->first_signal = now;
	}
	return end || now >= s->interrupted;
}

void session_wait_for_command(struct session *s)
{
	bool end = false;

	while (s->child && !end) {
		session_wait(s, UINT64_MAX, false);
		end = session_handle_signals(s);
		session_reap(s);
	}
}

int session_status(const struct session *s, bool failed)
{
	if (s->child)
		return COMMAND_SIGNAL + s->end_signal;
	if (WIFSIGNALED(s->status))
		return COMMAND_SIGNAL + WTERMSIG(s->status);
	if (WEXITSTATUS(s->status))
		return WEXITSTATUS(s->status);
	return failed ? COMMAND_FAILED : 0;
}
