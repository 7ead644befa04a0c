// SPDX-License-Identifier: GPL-2.0
/*
 * How fork, exec and exit are heard of, and nothing else: see target.c for what they do.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/string.h>
#include <linux/tracepoint.h>
#include <trace/events/sched.h>

#include "compat.h"
#include "profil.h"

static void exit_probe(PROFIL_EXIT_PROBE_ARGS)
{
	profil_task_exited(task);
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint;	/* that it is registered with, or NULL */
} probes[] = {
	{ .name = "sched_process_fork", .probe = profil_task_forked },
	{ .name = "sched_process_exec", .probe = profil_task_execed },
	{ .name = "sched_process_exit", .probe = exit_probe },
	{ .name = "sched_process_free", .probe = profil_task_freed },
};

struct follow_search {
	const char *name;
	struct tracepoint *found;
};

static void follow_search_one(struct tracepoint *tracepoint, void *data)
{
	struct follow_search *search = data;

	if (!strcmp(tracepoint->name, search->name))
		search->found = tracepoint;
}

/* By its name, since few are exported; NULL if there is none. */
struct tracepoint *profil_follow_find_tracepoint(const char *name)
{
	struct follow_search search = { .name = name };

	for_each_kernel_tracepoint(follow_search_one, &search);
	return search.found;
}

int profil_follow_init(void)
{
	struct tracepoint *tracepoint;
	unsigned int i;
	int err;

	/* Registered by address: the compiler must see that the arguments are right. */
	check_trace_callback_type_sched_process_fork(profil_task_forked);
	check_trace_callback_type_sched_process_exec(profil_task_execed);
	check_trace_callback_type_sched_process_exit(exit_probe);
	check_trace_callback_type_sched_process_free(profil_task_freed);

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		err = -EOPNOTSUPP;
		tracepoint = profil_follow_find_tracepoint(probes[i].name);
		if (tracepoint)
			err = tracepoint_probe_register(tracepoint, probes[i].probe, NULL);
		if (err) {
			pr_err("cannot hook the tracepoint %s: %d\n", probes[i].name, err);
			profil_follow_exit();
			return err;
		}
		probes[i].tracepoint = tracepoint;
	}
	return 0;
}

void profil_follow_exit(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (probes[i].tracepoint)
			tracepoint_probe_unregister(probes[i].tracepoint, probes[i].probe, NULL);
		probes[i].tracepoint = NULL;
	}
	tracepoint_synchronize_unregister();
}
