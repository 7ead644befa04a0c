// SPDX-License-Identifier: GPL-2.0
/*
 * The statistics of a session, as user space reads them.
 *
 * Context: system calls (may sleep).
 */
#include "internal.h"

static void stats_sum(const struct profil_session *s, struct profil_counts *sums)
{
	int cpu, mode, i;

	memset(sums, 0, sizeof(*sums));
	for (mode = 0; mode < 2; mode++)
		for (i = 0; i < PROFIL_NR_OUTCOMES; i++)
			sums->n[mode][i] = atomic64_read(&s->stats_early[mode][i]);
	if (!s->counts)
		return;
	for_each_possible_cpu(cpu) {
		const struct profil_counts *counts = per_cpu_ptr(s->counts, cpu);

		for (mode = 0; mode < 2; mode++)
			for (i = 0; i < PROFIL_NR_OUTCOMES; i++)
				sums->n[mode][i] += READ_ONCE(counts->n[mode][i]);
		sums->missed += READ_ONCE(counts->missed);
	}
}

/* Fills in @stats, which are zero. @restart: also resets the statistics, under home->lock. */
void profil_stats_read(struct profil_session *s, struct profil_stats *stats, bool restart)
{
	u32 period = s->period ? s->period : TICK_NSEC;
	u64 n[PROFIL_NR_OUTCOMES], runtime = 0;
	struct profil_counts sums;
	int i;

	lockdep_assert(!restart || lockdep_is_held(&s->home->lock));
	stats_sum(s, &sums);
	for (i = 0; i < PROFIL_NR_OUTCOMES; i++) {
		u64 user = sums.n[0][i] - s->stats_base.n[0][i];
		u64 system = sums.n[1][i] - s->stats_base.n[1][i];

		n[i] = user + system;
		if (i < PROFIL_UNSELECTED) {
			stats->user += user;
			stats->system += system;
		}
	}
	stats->ticks = stats->user + stats->system;
	stats->hit = n[PROFIL_HIT];
	stats->outside = n[PROFIL_OUTSIDE];
	stats->saturated = n[PROFIL_SATURATED];
	stats->dropped_overrun = n[PROFIL_DROPPED_OVERRUN];
	stats->dropped_buffer = n[PROFIL_DROPPED_BUFFER];
	stats->dropped_contended = n[PROFIL_DROPPED_CONTENDED];
	stats->dropped_exec = n[PROFIL_DROPPED_EXEC];
	stats->dropped_exit = n[PROFIL_DROPPED_EXIT];
	stats->dropped_record = n[PROFIL_DROPPED_RECORD];
	stats->dropped = stats->ticks - stats->hit - stats->outside - stats->saturated;
	stats->unselected = n[PROFIL_UNSELECTED];
	stats->missed = sums.missed - s->stats_base.missed;

	if (s->on)
		runtime = profil_targets_runtime(s, NULL, restart);
	runtime += restart ? atomic64_xchg(&s->runtime, 0) : atomic64_read(&s->runtime);
	stats->expected = s->machine ? stats->ticks + stats->unselected + stats->missed :
			  div_u64(runtime + period / 2, period);
	stats->locked = (u64)s->charged << PAGE_SHIFT;
	stats->state = s->phase == PROFIL_ENDED ? PROFIL_STATE_ENDED :
		       s->on ? PROFIL_STATE_ON : PROFIL_STATE_OFF;
	stats->end = s->end;
	raw_spin_lock_irq(&profil_index_lock);
	stats->unfollowed = s->unfollowed;
	stats->targets = s->nr_targets;
	if (restart)
		s->unfollowed = 0;
	raw_spin_unlock_irq(&profil_index_lock);
	if (restart)
		s->stats_base = sums;
}
