// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the installation and the linger time of the hook and of the switch probe, and the effect of
 * disabling ftrace.
 *
 * Needs root. Each test ends with the module loaded, and restores the linger time.
 */
#include "kselftest_harness.h"

#include "kernel.h"
#include "loop.h"
#include "process.h"

#define FTRACE_ENABLED	"/proc/sys/kernel/ftrace_enabled"
#define ATTRIBUTE	"/sys/class/misc/profil/tick_hook"

static u32 page[1024] __attribute__((aligned(4096)));

static char linger[32];		/* the parameter as it was before the test */

static void save_linger(struct __test_metadata *_metadata)
{
	SKIP_SETUP_IF(geteuid() || access(FTRACE_ENABLED, W_OK),
		      "needs root and FUNCTION_TRACER, for " FTRACE_ENABLED);
	ASSERT_TRUE(module_is_loaded());
	file_line(LINGER_S, linger, sizeof(linger));
	ASSERT_NE(0, linger[0]);
	ASSERT_TRUE(await(module_users() == 0));
}

FIXTURE(hook) {
	int log;
};

FIXTURE_SETUP(hook)
{
	save_linger(_metadata);
	self->log = log_open();
	ASSERT_LE(0, self->log);
}

static int start(u64 period)
{
	struct profil_range range = range_of_loops(page, 4);

	memset(page, 0, sizeof(page));
	return clock_start(PROFIL_SCOPE_PROCESS, 0, period, &range, 1);
}

static int start_and_stop(u64 period)
{
	return start(period) ?: session_stop(PROFIL_SCOPE_PROCESS, NULL);
}

/*
 * Reloads the module with @parameter; the device must not be open. If the driver is built in, sets
 * this parameter, and ends a session, so that it takes effect.
 */
static int reload(const char *parameter)
{
	if (module_is_built_in())
		return file_write(LINGER_S, strchr(parameter, '=') + 1) ?: start_and_stop(0);
	if (module_is_loaded() && !await(module_unload() == 0))
		return -EBUSY;
	return module_load(parameter);
}

FIXTURE_TEARDOWN(hook)
{
	EXPECT_EQ(0, file_write(FTRACE_ENABLED, "1"));
	if (!module_is_loaded())
		EXPECT_EQ(0, module_load(""));
	EXPECT_EQ(0, file_write(LINGER_S, linger));
}

static u32 hook_now(void)
{
	struct profil_query q;

	return device_query(&q) ? ~0U : q.hook;
}

/* Checks that the session, which is on, counts and can be stopped. */
static void expect_counting(struct __test_metadata *_metadata)
{
	struct profil_stats s;

	EXPECT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 6));
	ASSERT_STOP(PROFIL_SCOPE_PROCESS, &s);
	EXPECT_LE(6U, s.ticks);
	EXPECT_EQ(s.hit, counters_sum(page, 4, ARRAY_SIZE(page)));
}

/*
 * When the hook is installed
 */

static bool hook_is(u32 hook, const char *name)
{
	char line[32];

	return hook_now() == hook && !strcmp(name, file_line(ATTRIBUTE, line, sizeof(line))) &&
	       tick_is_hooked() == (hook != PROFIL_HOOK_NONE);
}

static bool hook_is_in_place(void)
{
	return hook_is(PROFIL_HOOK_FTRACE, "ftrace");
}

static bool hook_is_gone(void)
{
	return hook_is(PROFIL_HOOK_NONE, "none");
}

TEST_F(hook, loading_the_module_tries_the_hook_and_logs_it)
{
	SKIP_IF(module_stays(), "%s", module_stays());
	ASSERT_EQ(0, reload("linger_s=1000"));
	EXPECT_EQ(1000, file_number(LINGER_S, ""));
	EXPECT_TRUE(log_has(self->log, "by ftrace"));
	EXPECT_TRUE(hook_is_in_place());
}

TEST_F(hook, query_and_attribute_tell_whether_the_hook_is_in_place)
{
	ASSERT_EQ(0, reload("linger_s=0"));
	for (unsigned int i = 0; i < 3; i++) {
		ASSERT_TRUE(await(hook_is_gone()));
		ASSERT_EQ(0, start(0));
		EXPECT_TRUE(hook_is_in_place());
		expect_counting(_metadata);
	}
	EXPECT_TRUE(await(hook_is_gone()));
}

/*
 * How long the hook stays: installing or removing it patches kernel text
 */

#define PATCHED		"profil_patched"
#define CYCLES		3U

FIXTURE(linger) {
};

FIXTURE_VARIANT(linger) {
	u64 period;
};

FIXTURE_VARIANT_ADD(linger, of_the_hook) { .period = 0 };
FIXTURE_VARIANT_ADD(linger, of_the_probe) { .period = 1000000 };

/*
 * Counts the calls of the function that ends each text patch. Return: -ENOENT if it is not known.
 * Tries each name: the lists of functions in tracefs take seconds to read on slow machines.
 */
static int count_patches(void)
{
	static const char *const names[] = { "text_poke_finish", "smp_text_poke_batch_finish" };
	int err = -ENOENT;

	for (unsigned int i = 0; i < ARRAY_SIZE(names) && err == -ENOENT; i++) {
		err = probe_add(PATCHED, names[i]);
		/* The error of Linux 6.12 */
		if (err == -EINVAL)
			err = -ENOENT;
	}
	return err ?: file_write(PROBE_DIR(PATCHED) "enable", "1");
}

FIXTURE_SETUP(linger)
{
	int err;

	save_linger(_metadata);
	ASSERT_EQ(0, reload("linger_s=0"));
	/* Loading the module has installed and removed the hook once. */
	ASSERT_TRUE(await(hook_now() == PROFIL_HOOK_NONE));
	err = count_patches();
	if (err == -ENOENT)
		file_write(LINGER_S, linger);
	SKIP_SETUP_IF(err == -ENOENT, "needs tracefs and a known function that patches text");
	ASSERT_EQ(0, err);
}

FIXTURE_TEARDOWN(linger)
{
	file_write(PROBE_DIR(PATCHED) "enable", "0");
	probe_remove(PATCHED);
	session_stop(PROFIL_SCOPE_PROCESS, NULL);
	EXPECT_EQ(0, file_write(LINGER_S, linger));
}

/* Returns the number of text patches so far; -1 if it is not known. */
static long long patches(void)
{
	u64 hits, misses;

	return probe_profile(PATCHED, &hits, &misses) && !misses ? (long long)hits : -1;
}

TEST_F(linger, ends_by_removing_the_hook_or_probe)
{
	for (unsigned int i = 0; i < CYCLES; i++) {
		long long before = patches();

		ASSERT_LE(0, before);
		ASSERT_EQ(0, start_and_stop(variant->period));
		/* One patch when it is installed, one when it is removed */
		EXPECT_TRUE(await(patches() >= before + 2));
	}
}

/* The pauses exceed 2 s, the linger time of an earlier version. */
TEST_F(linger, outlasts_pauses_between_sessions_without_a_text_patch)
{
	long long before, after;

	ASSERT_EQ(0, file_write(LINGER_S, "300"));
	ASSERT_EQ(0, start_and_stop(variant->period));
	before = patches();
	for (unsigned int i = 0; i < CYCLES; i++) {
		pause_ns(2300000000);
		if (!variant->period) {
			EXPECT_TRUE(hook_is_in_place());
		}
		ASSERT_EQ(0, start_and_stop(variant->period));
	}
	after = patches();
	ASSERT_LE(0, before);
	ASSERT_LE(0, after);
	/* The kernel sometimes patches its text for other reasons. */
	EXPECT_GT(before + CYCLES, after);
}

/*
 * kernel.ftrace_enabled
 */

TEST_F(hook, ftrace_cannot_be_disabled_while_the_hook_is_in_place)
{
	ASSERT_EQ(0, reload("linger_s=300"));
	EXPECT_EQ(-EBUSY, file_write(FTRACE_ENABLED, "0"));
	ASSERT_EQ(0, start(0));
	EXPECT_EQ(-EBUSY, file_write(FTRACE_ENABLED, "0"));
	EXPECT_EQ(1, file_number(FTRACE_ENABLED, ""));
	expect_counting(_metadata);
	EXPECT_EQ(-EBUSY, file_write(FTRACE_ENABLED, "0"));
}

TEST_F(hook, ftrace_can_be_disabled_when_the_hook_is_gone_and_then_starts_fail)
{
	ASSERT_EQ(0, reload("linger_s=0"));
	ASSERT_TRUE(await(hook_is_gone()));
	ASSERT_EQ(0, file_write(FTRACE_ENABLED, "0"));

	EXPECT_EQ(-EBUSY, start(0));
	EXPECT_TRUE(log_has(self->log, "kernel.ftrace_enabled"));
	EXPECT_EQ((u32)PROFIL_STATE_OFF, state_of(PROFIL_SCOPE_PROCESS));
	EXPECT_EQ(0U, pinned_bytes());
	EXPECT_EQ((u32)PROFIL_HOOK_NONE, hook_now());

	ASSERT_EQ(0, file_write(FTRACE_ENABLED, "1"));
	ASSERT_EQ(0, start(0));
	expect_counting(_metadata);
}

TEST_F(hook, a_module_that_cannot_hook_the_tick_does_not_load)
{
	SKIP_IF(module_stays(), "%s", module_stays());
	ASSERT_TRUE(await(module_unload() == 0));
	EXPECT_FALSE(tick_is_hooked());
	ASSERT_EQ(0, file_write(FTRACE_ENABLED, "0"));
	EXPECT_EQ(-EBUSY, module_load(""));
	EXPECT_FALSE(module_is_loaded());
	EXPECT_TRUE(log_has(self->log, tick_function()));
	EXPECT_TRUE(await(access(PROFIL_DEVICE, F_OK)));
	ASSERT_EQ(0, file_write(FTRACE_ENABLED, "1"));
	EXPECT_EQ(0, module_load(""));
}

TEST_HARNESS_MAIN
