// SPDX-License-Identifier: GPL-2.0
/*
 * Dispatches ioctls, by the contract at the top of uapi/linux/profil.h. A handler gets a
 * zero-extended copy of its structure, and zeroed statistics. After success, the structure is
 * copied back if the command has results, and the statistics if the caller asks for them.
 *
 * Context: system calls (may sleep).
 */
#include <linux/nospec.h>

#include "compat.h"
#include "internal.h"

static int ioctl_query(struct file *file, void *data, struct profil_stats *stats)
{
	struct profil_query *arg = data;

	arg->tick_hz = HZ;
	arg->hook = READ_ONCE(profil_tick.installed) ? PROFIL_HOOK_FTRACE : PROFIL_HOOK_NONE;
	arg->tick_ns = TICK_NSEC;
	arg->features = PROFIL_FEATURE_PROCESS | PROFIL_FEATURE_THREAD | PROFIL_FEATURE_SYSTEM |
			PROFIL_FEATURE_FORK | PROFIL_FEATURE_DESCRIPTOR | PROFIL_FEATURE_RECORDS |
			PROFIL_FEATURE_CLOCK | PROFIL_FEATURE_PCS | PROFIL_FEATURE_DESCRIBE |
			PROFIL_FEATURE_MACHINE | PROFIL_FEATURE_STACKS |
			(PROFIL_HAS_UNWIND ? PROFIL_FEATURE_UNWIND : 0);
	arg->widths = 2 | 4 | 8;
	arg->max_ranges = PROFIL_MAX_RANGES;
	arg->max_granule = PROFIL_MAX_GRANULE;
	arg->max_step = PROFIL_MAX_STEP;
	arg->max_counters = PROFIL_MAX_COUNTERS;
	arg->max_records = PROFIL_MAX_RECORDS;
	arg->max_sessions = PROFIL_MAX_SESSIONS;
	arg->min_period = profil_clock_min_period();
	arg->max_period = PROFIL_MAX_PERIOD;
	arg->max_clocked = PROFIL_MAX_CLOCKED;
	arg->max_stack_depth = PROFIL_MAX_STACK;
	arg->max_unwind_rows = PROFIL_HAS_UNWIND ? PROFIL_MAX_UNWIND_ROWS : 0;
	arg->max_unwind_tables = PROFIL_HAS_UNWIND ? PROFIL_MAX_UNWIND_TABLES : 0;
	return 0;
}

/* Room for the largest structure of a command */
#define ARG_SIZE	sizeof(struct profil_stats)

struct ioctl_command {
	/* handlers for the device and for a session's descriptor; NULL: unknown command */
	int (*device)(struct file *file, void *arg, struct profil_stats *stats);
	int (*session)(struct file *file, void *arg, struct profil_stats *stats);
	size_t size;
	size_t least;		/* size of the structure's first version */
	size_t reserved;	/* offset of __reserved; 0: none */
	size_t stats;		/* offset of the address of a struct profil_stats; 0: none */
	u32 flags;		/* known flags */
	bool result;		/* the structure is copied back */
};

#define COMMAND(cmd, device_, session_, type, last, ...)	\
	[_IOC_NR(cmd)] = {					\
		.device = device_,				\
		.session = session_,				\
		.size = sizeof(struct type) + BUILD_BUG_ON_ZERO(sizeof(struct type) > ARG_SIZE), \
		.least = offsetofend(struct type, last),	\
		__VA_ARGS__					\
	}

#define RESERVED(type)	.reserved = offsetof(struct type, __reserved)
#define STATS(type)	.stats = offsetof(struct type, stats)
#define FLAGS(known)	.flags = (known)
#define RESULT		.result = true

static const struct ioctl_command ioctl_commands[] = {
	COMMAND(PROFIL_IOC_QUERY, ioctl_query, NULL, profil_query, max_counters, RESULT),
	COMMAND(PROFIL_IOC_START, profil_classic_start, NULL, profil_start, ranges,
		RESERVED(profil_start), FLAGS(PROFIL_START_REPLACE | PROFIL_START_JITTER)),
	COMMAND(PROFIL_IOC_STOP, profil_classic_stop, NULL, profil_stop, stats,
		RESERVED(profil_stop), STATS(profil_stop)),
	COMMAND(PROFIL_IOC_STATS, profil_classic_stats, profil_descriptor_stats, profil_stats,
		locked, RESERVED(profil_stats), RESULT),
	COMMAND(PROFIL_IOC_OPEN, profil_descriptor_open, NULL, profil_open, nr_records,
		RESERVED(profil_open), FLAGS(PROFIL_OPEN_JITTER)),
	COMMAND(PROFIL_IOC_DESCRIBE, profil_classic_describe, NULL, profil_describe, taken,
		STATS(profil_describe), RESULT),
	COMMAND(PROFIL_IOC_ATTACH, NULL, profil_descriptor_attach, profil_attach, space, RESULT),
	COMMAND(PROFIL_IOC_ADD, NULL, profil_descriptor_add, profil_add, ranges,
		RESERVED(profil_add)),
	COMMAND(PROFIL_IOC_REMOVE, NULL, profil_descriptor_remove, profil_remove, end,
		RESERVED(profil_remove), RESULT),
	COMMAND(PROFIL_IOC_ENABLE, NULL, profil_descriptor_enable, profil_enable, flags),
	COMMAND(PROFIL_IOC_DISABLE, NULL, profil_descriptor_disable, profil_disable, stats,
		STATS(profil_disable)),
	COMMAND(PROFIL_IOC_SNAPSHOT, NULL, profil_descriptor_snapshot, profil_snapshot, stats,
		RESERVED(profil_snapshot), STATS(profil_snapshot), FLAGS(PROFIL_SNAPSHOT_RESET)),
	COMMAND(PROFIL_IOC_UNWIND, NULL, profil_descriptor_unwind, profil_unwind, rules,
		FLAGS(PROFIL_UNWIND_VDSO | PROFIL_UNWIND_CODE)),
};

static int ioctl_write_result(const struct ioctl_command *c, const void *arg, void __user *uarg)
{
	return copy_to_user(uarg, arg, min_t(size_t, *(u32 *)arg, c->size)) ? -EFAULT : 0;
}

/* Copies the structure of @c. User space may change it meanwhile, so its size is read only once. */
static int ioctl_read_arg(const struct ioctl_command *c, void *arg, void __user *uarg)
{
	u32 size;
	int err;

	if (get_user(size, (u32 __user *)uarg))
		return -EFAULT;
	if (size > PAGE_SIZE)
		return -E2BIG;
	if (size < c->least)
		return -EINVAL;
	err = copy_struct_from_user(arg, c->size, uarg, size);
	if (err)
		return err;
	*(u32 *)arg = size;
	if (((u32 *)arg)[1] & ~c->flags)
		return -EOPNOTSUPP;
	if (c->reserved && *(u32 *)(arg + c->reserved))
		return -EINVAL;
	/* Checks that the result can be written, before the handler has effects. */
	return c->result ? ioctl_write_result(c, arg, uarg) : 0;
}

static long ioctl_dispatch(struct file *file, unsigned int cmd, void __user *uarg, bool session)
{
	const struct ioctl_command *c, *c_stats = &ioctl_commands[_IOC_NR(PROFIL_IOC_STATS)];
	struct profil_stats stats = {};
	void __user *ustats = NULL;
	u64 arg[ARG_SIZE / sizeof(u64)];
	int (*handler)(struct file *file, void *arg, struct profil_stats *stats);
	int err, ret;

	if (cmd != _IO(PROFIL_IOC_MAGIC, _IOC_NR(cmd)) ||
	    _IOC_NR(cmd) >= ARRAY_SIZE(ioctl_commands))
		return -ENOTTY;
	c = &ioctl_commands[array_index_nospec(_IOC_NR(cmd), ARRAY_SIZE(ioctl_commands))];
	handler = session ? c->session : c->device;
	if (!handler)
		return -ENOTTY;

	err = ioctl_read_arg(c, arg, uarg);
	if (!err && c->stats) {
		ustats = u64_to_user_ptr(arg[c->stats / sizeof(u64)]);
		if (ustats)
			err = ioctl_read_arg(c_stats, &stats, ustats);
		stats = (struct profil_stats) { .size = stats.size };
	}
	if (err)
		return err;
	ret = handler(file, arg, &stats);
	if (ret < 0)
		return ret;
	if (c->result)
		err = ioctl_write_result(c, arg, uarg);
	if (ustats && !err)
		err = ioctl_write_result(c_stats, &stats, ustats);
	return err ? err : ret;
}

long profil_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	return ioctl_dispatch(file, cmd, (void __user *)uarg, false);
}

long profil_session_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	return ioctl_dispatch(file, cmd, (void __user *)uarg, true);
}
