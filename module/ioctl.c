// SPDX-License-Identifier: GPL-2.0
/*
 * From ioctl to session: the contract at the top of uapi/linux/profil.h, for all
 * commands alike. Each handler gets a zero-extended copy of its structure, and what
 * it leaves there goes back to the caller if it succeeds and the command has results.
 */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>

#include "profil.h"

/* Of the caller. */
static u32 min_period(void)
{
	if (ns_capable_noaudit(&init_user_ns, CAP_PERFMON) ||
	    ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN))
		return PROFIL_MIN_PERIOD;
	return max(READ_ONCE(profil_min_period), PROFIL_MIN_PERIOD);
}

static long query(struct file *file, void *data)
{
	struct profil_query *arg = data;

	if (arg->flags)
		return -EOPNOTSUPP;

	arg->tick_hz = HZ;
	arg->hook = profil_tick_hook();
	arg->tick_ns = TICK_NSEC;
	arg->features = PROFIL_FEATURE_PROCESS | PROFIL_FEATURE_THREAD | PROFIL_FEATURE_SYSTEM |
			PROFIL_FEATURE_FORK | PROFIL_FEATURE_DESCRIPTOR |
			PROFIL_FEATURE_RECORDS | PROFIL_FEATURE_CLOCK |
			PROFIL_FEATURE_PCS | PROFIL_FEATURE_DESCRIBE;
	arg->widths = 2 | 4 | 8;
	arg->max_ranges = PROFIL_MAX_RANGES;
	arg->max_granule = PROFIL_MAX_GRANULE;
	arg->max_step = PROFIL_MAX_STEP;
	arg->max_counters = PROFIL_MAX_COUNTERS;
	arg->max_records = PROFIL_MAX_RECORDS;
	arg->max_sessions = PROFIL_MAX_SESSIONS;
	arg->min_period = min_period();
	arg->max_period = PROFIL_MAX_PERIOD;
	arg->max_clocked = PROFIL_MAX_CLOCKED;
	arg->__reserved = 0;
	return 0;
}

static bool scope_known(u32 scope)
{
	return scope == PROFIL_SCOPE_PROCESS || scope == PROFIL_SCOPE_THREAD;
}

static long period_check(u64 period, bool jitter)
{
	if (!period)
		return jitter ? -EINVAL : 0;
	if (period < PROFIL_MIN_PERIOD || period > PROFIL_MAX_PERIOD)
		return -EINVAL;
	return period < min_period() ? -EPERM : 0;
}

static long start(struct file *file, void *data)
{
	const struct profil_start *arg = data;
	long err;

	if (arg->flags & ~(PROFIL_START_REPLACE | PROFIL_START_JITTER) ||
	    !scope_known(arg->scope) || arg->modes & ~(PROFIL_MODE_USER | PROFIL_MODE_SYSTEM))
		return -EOPNOTSUPP;
	if (arg->nr_ranges > PROFIL_MAX_RANGES || arg->__reserved)
		return -EINVAL;
	err = period_check(arg->period, arg->flags & PROFIL_START_JITTER);

	return err ? err : profil_classic_start(arg);
}

#define STATS_LEAST	offsetofend(struct profil_stats, locked)

/* Fills in the members of @arg after its inputs. */
static void stats_result(struct profil_stats *arg, const struct profil_stats *stats)
{
	u32 size = arg->size, scope = arg->scope;

	*arg = *stats;
	arg->size = size;
	arg->scope = scope;
}

static long stats(struct file *file, void *data)
{
	struct profil_stats *arg = data, stats = {};
	int err;

	if (arg->flags || !scope_known(arg->scope))
		return -EOPNOTSUPP;
	if (arg->__reserved)
		return -EINVAL;

	err = profil_classic_stats(arg->scope, &stats);
	if (!err)
		stats_result(arg, &stats);
	return err;
}

/*
 * A copy of an array of the caller's, to be given back by kvfree(), or an error pointer. As
 * vmemdup_user(), but charged: who copies can be kept waiting for a page, with all of it here.
 */
void *profil_array_from_user(u64 address, u32 nr, size_t size)
{
	void *array;

	if (address != (unsigned long)address)
		return ERR_PTR(-EFAULT);
	array = kvmalloc_array(nr, size, GFP_KERNEL_ACCOUNT);
	if (!array)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(array, (const void __user *)(unsigned long)address, nr * size)) {
		kvfree(array);
		return ERR_PTR(-EFAULT);
	}
	return array;
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

/* A struct profil_stats that a command is to fill in besides its own structure. */
struct result {
	void __user *uarg;		/* NULL if it is not wanted */
	u32 size;
	struct profil_stats stats;
};

/* Before there is no way back: can it be written? */
static long result_prepare(struct result *result, u64 address)
{
	struct profil_stats *stats = &result->stats;
	long err;

	memset(result, 0, sizeof(*result));
	if (address != (unsigned long)address)
		return -EFAULT;
	result->uarg = (void __user *)(unsigned long)address;
	if (!result->uarg)
		return 0;
	err = arg_read(stats, sizeof(*stats), STATS_LEAST, result->uarg, &result->size);
	if (err)
		return err;
	if (stats->flags)
		return -EOPNOTSUPP;
	if (stats->__reserved)
		return -EINVAL;
	stats->size = result->size;
	if (copy_to_user(result->uarg, stats, min_t(size_t, result->size, sizeof(*stats))))
		return -EFAULT;
	return 0;
}

static long result_write(struct result *result, u32 scope, const struct profil_stats *stats)
{
	if (!result->uarg)
		return 0;
	result->stats.scope = scope;
	stats_result(&result->stats, stats);
	if (copy_to_user(result->uarg, &result->stats,
			 min_t(size_t, result->size, sizeof(result->stats))))
		return -EFAULT;
	return 0;
}

static long stop(struct file *file, void *data)
{
	const struct profil_stop *arg = data;
	struct profil_stats stats = {};
	struct result result;
	long err;

	if (arg->flags || !scope_known(arg->scope))
		return -EOPNOTSUPP;
	if (arg->__reserved)
		return -EINVAL;
	err = result_prepare(&result, arg->stats);
	if (!err)
		err = profil_classic_stop(arg->scope, &stats);
	return err ? err : result_write(&result, arg->scope, &stats);
}

static long describe(struct file *file, void *data)
{
	struct profil_describe *arg = data;
	struct profil_stats stats = {};
	struct result result;
	long err;

	if (arg->flags)
		return -EOPNOTSUPP;
	if (arg->pid < 0)
		return -EINVAL;
	err = result_prepare(&result, arg->stats);
	if (!err)
		err = profil_classic_describe(arg, &stats);
	return err ? err : result_write(&result, PROFIL_SCOPE_PROCESS, &stats);
}

static long open(struct file *file, void *data)
{
	const struct profil_open *arg = data;
	long err;

	if (arg->flags & ~PROFIL_OPEN_JITTER ||
	    arg->modes & ~(PROFIL_MODE_USER | PROFIL_MODE_SYSTEM) ||
	    arg->fork > PROFIL_FORK_FRESH || arg->exec > PROFIL_EXEC_FOLLOW)
		return -EOPNOTSUPP;
	if (!arg->modes || arg->nr_records > PROFIL_MAX_RECORDS ||
	    (arg->fork == PROFIL_FORK_FRESH && arg->nr_records))
		return -EINVAL;
	err = period_check(arg->period, arg->flags & PROFIL_OPEN_JITTER);

	return err ? err : profil_descriptor_open(arg);
}

static long attach(struct file *file, void *data)
{
	struct profil_attach *arg = data;

	if (arg->flags || !scope_known(arg->scope))
		return -EOPNOTSUPP;
	if (arg->pid < 0)
		return -EINVAL;

	return profil_descriptor_attach(file, arg);
}

static long add(struct file *file, void *data)
{
	const struct profil_add *arg = data;

	if (arg->flags)
		return -EOPNOTSUPP;
	if (arg->__reserved || !arg->nr_ranges || arg->nr_ranges > PROFIL_MAX_RANGES ||
	    arg->space == PROFIL_SPACE_ALL)
		return -EINVAL;

	return profil_descriptor_add(file, arg);
}

static long remove(struct file *file, void *data)
{
	struct profil_remove *arg = data;

	if (arg->flags)
		return -EOPNOTSUPP;
	if (arg->__reserved || arg->start >= arg->end)
		return -EINVAL;
	arg->nr_removed = 0;

	return profil_descriptor_remove(file, arg);
}

static long enable(struct file *file, void *data)
{
	const struct profil_enable *arg = data;

	if (arg->flags)
		return -EOPNOTSUPP;

	return profil_descriptor_enable(file);
}

static long disable(struct file *file, void *data)
{
	const struct profil_disable *arg = data;
	struct profil_stats stats = {};
	struct result result;
	long err;

	if (arg->flags)
		return -EOPNOTSUPP;
	err = result_prepare(&result, arg->stats);
	if (!err)
		err = profil_descriptor_disable(file, &stats);
	return err ? err : result_write(&result, 0, &stats);
}

static long snapshot(struct file *file, void *data)
{
	const struct profil_snapshot *arg = data;
	struct profil_stats stats = {};
	struct result result;
	long err;

	if (arg->flags & ~PROFIL_SNAPSHOT_RESET)
		return -EOPNOTSUPP;
	if (arg->__reserved || arg->nr_copies > PROFIL_MAX_COPIES)
		return -EINVAL;
	err = result_prepare(&result, arg->stats);
	if (!err)
		err = profil_descriptor_snapshot(file, arg, &stats);
	return err ? err : result_write(&result, 0, &stats);
}

static long session_stats(struct file *file, void *data)
{
	struct profil_stats *arg = data, stats = {};
	int err;

	if (arg->flags)
		return -EOPNOTSUPP;
	if (arg->__reserved || arg->scope)
		return -EINVAL;

	err = profil_descriptor_stats(file, &stats);
	if (!err)
		stats_result(arg, &stats);
	return err;
}

union profil_arg {
	struct profil_query query;
	struct profil_start start;
	struct profil_stop stop;
	struct profil_stats stats;
	struct profil_open open;
	struct profil_attach attach;
	struct profil_add add;
	struct profil_remove remove;
	struct profil_enable enable;
	struct profil_disable disable;
	struct profil_snapshot snapshot;
	struct profil_describe describe;
};

struct command {
	long (*handler)(struct file *file, void *arg);
	size_t size;
	size_t least;		/* up to the last member of the first version */
	bool result;		/* the structure is written back */
};

#define COMMAND(cmd, handler_, type, last, result_)		\
	[_IOC_NR(cmd)] = {					\
		.handler = (handler_),				\
		.size = sizeof(struct type),			\
		.least = offsetofend(struct type, last),	\
		.result = (result_),				\
	}

/* Of the device */
static const struct command device_commands[] = {
	COMMAND(PROFIL_IOC_QUERY, query, profil_query, max_counters, true),
	COMMAND(PROFIL_IOC_START, start, profil_start, ranges, false),
	COMMAND(PROFIL_IOC_STOP, stop, profil_stop, stats, false),
	COMMAND(PROFIL_IOC_STATS, stats, profil_stats, locked, true),
	COMMAND(PROFIL_IOC_OPEN, open, profil_open, nr_records, false),
	COMMAND(PROFIL_IOC_DESCRIBE, describe, profil_describe, taken, true),
};

/* Of a session's descriptor */
static const struct command session_commands[] = {
	COMMAND(PROFIL_IOC_STATS, session_stats, profil_stats, locked, true),
	COMMAND(PROFIL_IOC_ATTACH, attach, profil_attach, space, true),
	COMMAND(PROFIL_IOC_ADD, add, profil_add, ranges, false),
	COMMAND(PROFIL_IOC_REMOVE, remove, profil_remove, end, true),
	COMMAND(PROFIL_IOC_ENABLE, enable, profil_enable, flags, false),
	COMMAND(PROFIL_IOC_DISABLE, disable, profil_disable, stats, false),
	COMMAND(PROFIL_IOC_SNAPSHOT, snapshot, profil_snapshot, stats, false),
};

static long dispatch(struct file *file, unsigned int cmd, void __user *uarg,
		     const struct command *commands, unsigned int nr_commands)
{
	unsigned int nr = _IOC_NR(cmd);
	union profil_arg arg;
	u32 size;
	long err;

	if (nr >= nr_commands || cmd != _IO(PROFIL_IOC_MAGIC, nr))
		return -ENOTTY;
	commands += array_index_nospec(nr, nr_commands);
	if (!commands->handler)
		return -ENOTTY;

	err = arg_read(&arg, commands->size, commands->least, uarg, &size);
	if (err)
		return err;
	/* Before there is no way back: can the result be written? */
	if (commands->result && copy_to_user(uarg, &arg, min_t(size_t, size, commands->size)))
		return -EFAULT;
	err = commands->handler(file, &arg);
	if (err || !commands->result)
		return err;
	/* The first member again, as it was read first: the caller may write meanwhile. */
	*(u32 *)&arg = size;
	if (copy_to_user(uarg, &arg, min_t(size_t, size, commands->size)))
		return -EFAULT;
	return 0;
}

long profil_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	return dispatch(file, cmd, (void __user *)uarg, device_commands,
			ARRAY_SIZE(device_commands));
}

long profil_session_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	return dispatch(file, cmd, (void __user *)uarg, session_commands,
			ARRAY_SIZE(session_commands));
}
