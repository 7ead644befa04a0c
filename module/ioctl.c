// SPDX-License-Identifier: GPL-2.0
/*
 * From ioctl to session: the contract at the top of uapi/linux/profil.h, for all
 * commands alike. Each handler gets a zero-extended copy of its structure, and what
 * it leaves there goes back to the caller if it succeeds and the command has results.
 */
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "profil.h"

static long query(void *data)
{
	struct profil_query *arg = data;

	if (arg->flags)
		return -EOPNOTSUPP;

	arg->tick_hz = HZ;
	arg->hook = profil_tick_hook();
	arg->tick_ns = TICK_NSEC;
	arg->features = PROFIL_FEATURE_PROCESS | PROFIL_FEATURE_THREAD | PROFIL_FEATURE_SYSTEM |
			PROFIL_FEATURE_REPIN;
	arg->widths = 2 | 4 | 8;
	arg->max_ranges = PROFIL_MAX_RANGES;
	arg->max_granule = PROFIL_MAX_GRANULE;
	arg->max_step = PROFIL_MAX_STEP;
	arg->max_counters = PROFIL_MAX_COUNTERS;
	return 0;
}

static bool scope_known(u32 scope)
{
	return scope == PROFIL_SCOPE_PROCESS || scope == PROFIL_SCOPE_THREAD;
}

static long start(void *data)
{
	const struct profil_start *arg = data;

	if (arg->flags & ~PROFIL_START_REPLACE || !scope_known(arg->scope) ||
	    arg->modes & ~(PROFIL_MODE_USER | PROFIL_MODE_SYSTEM))
		return -EOPNOTSUPP;
	if (!arg->modes || arg->nr_ranges > PROFIL_MAX_RANGES || arg->__reserved)
		return -EINVAL;

	return profil_session_start(arg);
}

/* Fills in the members of @arg after its inputs. */
static void stats_result(struct profil_stats *arg, const struct profil_stats *stats)
{
	u32 size = arg->size, scope = arg->scope;

	*arg = *stats;
	arg->size = size;
	arg->scope = scope;
}

static long stats(void *data)
{
	struct profil_stats *arg = data, stats = {};
	int err;

	if (arg->flags || !scope_known(arg->scope))
		return -EOPNOTSUPP;
	if (arg->__reserved)
		return -EINVAL;

	err = profil_session_stats(arg->scope, &stats);
	if (!err)
		stats_result(arg, &stats);
	return err;
}

static long arg_read(void *arg, size_t known, size_t least, const void __user *uarg, u32 *size)
{
	if (get_user(*size, (const u32 __user *)uarg))
		return -EFAULT;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	if (*size < least)
		return -EINVAL;
	return copy_struct_from_user(arg, known, uarg, *size);
}

static long stop(void *data)
{
	const struct profil_stop *arg = data;
	void __user *uresult = (void __user *)(unsigned long)arg->stats;
	struct profil_stats result = {}, stats = {};
	u32 size = 0;
	long err;

	if (arg->flags || !scope_known(arg->scope))
		return -EOPNOTSUPP;
	if (arg->__reserved)
		return -EINVAL;
	if (arg->stats != (unsigned long)arg->stats)
		return -EFAULT;

	if (uresult) {
		err = arg_read(&result, sizeof(result), sizeof(result), uresult, &size);
		if (err)
			return err;
		if (result.flags)
			return -EOPNOTSUPP;
		if (result.__reserved)
			return -EINVAL;
		result.size = size;
		result.scope = arg->scope;
		/* Before there is no way back: can the result be written? */
		if (copy_to_user(uresult, &result, min_t(size_t, size, sizeof(result))))
			return -EFAULT;
	}

	err = profil_session_stop(arg->scope, &stats);
	if (err || !uresult)
		return err;
	stats_result(&result, &stats);
	if (copy_to_user(uresult, &result, min_t(size_t, size, sizeof(result))))
		return -EFAULT;
	return 0;
}

union profil_arg {
	struct profil_query query;
	struct profil_start start;
	struct profil_stop stop;
	struct profil_stats stats;
};

static const struct {
	long (*handler)(void *arg);
	size_t size;
	size_t least;		/* up to the last member of the first version */
	bool result;		/* the structure is written back */
} commands[] = {
	[_IOC_NR(PROFIL_IOC_QUERY)] = {
		.handler = query,
		.size = sizeof(struct profil_query),
		.least = offsetofend(struct profil_query, max_counters),
		.result = true,
	},
	[_IOC_NR(PROFIL_IOC_START)] = {
		.handler = start,
		.size = sizeof(struct profil_start),
		.least = offsetofend(struct profil_start, ranges),
	},
	[_IOC_NR(PROFIL_IOC_STOP)] = {
		.handler = stop,
		.size = sizeof(struct profil_stop),
		.least = offsetofend(struct profil_stop, stats),
	},
	[_IOC_NR(PROFIL_IOC_STATS)] = {
		.handler = stats,
		.size = sizeof(struct profil_stats),
		.least = offsetofend(struct profil_stats, locked),
		.result = true,
	},
};

long profil_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	unsigned int nr = _IOC_NR(cmd);
	union profil_arg arg;
	u32 size;
	long err;

	if (nr >= ARRAY_SIZE(commands) || cmd != _IO(PROFIL_IOC_MAGIC, nr))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(commands));

	err = arg_read(&arg, commands[nr].size, commands[nr].least, (void __user *)uarg, &size);
	if (err)
		return err;
	err = commands[nr].handler(&arg);
	if (err || !commands[nr].result)
		return err;
	/* The first member again, as it was read first: the caller may write meanwhile. */
	*(u32 *)&arg = size;
	if (copy_to_user((void __user *)uarg, &arg, min_t(size_t, size, commands[nr].size)))
		return -EFAULT;
	return 0;
}
