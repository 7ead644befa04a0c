// SPDX-License-Identifier: GPL-2.0-or-later
/* See sampling.h: runtimes of languages that write the names of the code that they generate. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "commands/sampling.h"

/* What a runtime reads. Options are added to those that the user has set; a switch stays. */
static const struct {
	const char *name;
	const char *value;
	bool is_options;
} variables[] = {
	{ "PYTHONPERFSUPPORT", "1", false },
	{ "NODE_OPTIONS", "--perf-basic-prof --interpreted-frames-native-stack", true },
	/* A JVM that does not have an option would not start. */
	{ "JAVA_TOOL_OPTIONS", "-XX:+IgnoreUnrecognizedVMOptions", true },
	{ "JAVA_TOOL_OPTIONS", "-XX:+UnlockDiagnosticVMOptions", true },
	{ "JAVA_TOOL_OPTIONS", "-XX:+DumpPerfMapAtExit -XX:+PreserveFramePointer", true },
	{ "DOTNET_PerfMapEnabled", "1", false },
};

void runtimes_ask(void)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *old = getenv(variables[i].name);
		char *value;

		if (!old || !*old) {
			setenv(variables[i].name, variables[i].value, 1);
		} else if (variables[i].is_options) {
			value = concat(old, " ", variables[i].value, NULL);
			setenv(variables[i].name, value, 1);
			free(value);
		}
	}
}

/* The time of a file can be this much before the clock. */
#define CLOCK_STEP_NS (NS_PER_S / 100)

/* Removes the map of a process that has ended, if it was created since the time @data points to. */
static void remove_map(void *data, pid_t pid)
{
	const u64 *since = data;
	struct statx st;
	char path[64];
	u64 birth;

	if (!kill(pid, 0) || errno != ESRCH)
		return;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_BASIC_STATS, &st))
		return;
	birth = st.stx_btime.tv_sec * NS_PER_S + st.stx_btime.tv_nsec;
	if (st.stx_mask & STATX_BTIME && S_ISREG(st.stx_mode) && st.stx_uid == geteuid() &&
	    birth + CLOCK_STEP_NS >= *since)
		unlink(path);
}

void runtimes_clean(struct session *s, u64 since)
{
	stream_visit_processes(&s->stream, remove_map, &since);
}
