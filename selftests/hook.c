// SPDX-License-Identifier: GPL-2.0
/*
 * How the tick is reached, and what happens when the administrator takes that away:
 * the module's parameter, sysctl kernel.ftrace_enabled, and the kprobes' switch.
 *
 * Needs root. Whatever a test did, the module is loaded afterwards as it was before.
 */
#include "kselftest_harness.h"

#include <sys/mman.h>

#include "kernel.h"
#include "loop.h"

#define FTRACE_ENABLED	"/proc/sys/kernel/ftrace_enabled"
#define KPROBES_ENABLED	"/sys/kernel/debug/kprobes/enabled"
#define PARAMETER	"/sys/module/profil/parameters/tick_hook"
#define ATTRIBUTE	"/sys/class/misc/profil/tick_hook"

static u32 page[1024] __attribute__((aligned(4096)));

#define NEEDS		"needs root and FUNCTION_TRACER, for " FTRACE_ENABLED

static bool can_change(void)
{
	return !geteuid() && !access(FTRACE_ENABLED, W_OK);
}

FIXTURE(hook) {
	char params[64];	/* as the module was loaded */
	int log;
};

FIXTURE_SETUP(hook)
{
	char choice[32];

	if (!can_change())
		return;
	ASSERT_TRUE(module_is_loaded());
	file_line(PARAMETER, choice, sizeof(choice));
	ASSERT_NE(0, choice[0]);
	snprintf(self->params, sizeof(self->params), "tick_hook=%s", choice);
	ASSERT_TRUE(await(module_users() == 0));
	self->log = log_open();
	ASSERT_LE(0, self->log);
}

/* The module anew, with @params; the device must not be open. */
static int reload(const char *params)
{
	if (module_is_loaded() && !await(module_unload() == 0))
		return -EBUSY;
	return module_load(params);
}

FIXTURE_TEARDOWN(hook)
{
	char choice[64] = "tick_hook=";

	if (!can_change())
		return;
	EXPECT_EQ(0, file_write(FTRACE_ENABLED, "1"));
	if (!access(KPROBES_ENABLED, W_OK)) {
		EXPECT_EQ(0, file_write(KPROBES_ENABLED, "1"));
	}
	file_line(PARAMETER, choice + strlen(choice), 32);
	if (!module_is_loaded() || strcmp(choice, self->params)) {
		if (module_is_loaded()) {
			session_stop(PROFIL_SCOPE_PROCESS, NULL);
			device_close();
		}
		EXPECT_EQ(0, reload(self->params));
	}
}

static u32 hook_now(void)
{
	struct profil_query q;

	return device_query(&q) ? ~0U : q.hook;
}

static int start(void)
{
	struct profil_range range = range_of_loops(page, 4);

	return session_start(PROFIL_SCOPE_PROCESS, 0, &range, 1);
}

/* A session that is on counts, stops and has counted right. */
static void expect_counting(struct __test_metadata *_metadata)
{
	struct profil_stats s;

	EXPECT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 20));
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(20U, s.ticks);
	EXPECT_EQ(s.hit, counters_sum(page, 4, ARRAY_SIZE(page)));
}

/*
 * The choice
 */

static void expect_choice(struct __test_metadata *_metadata, FIXTURE_DATA(hook) *self,
			  const char *choice, u32 hook, const char *name)
{
	char params[32], line[32];

	snprintf(params, sizeof(params), "tick_hook=%s", choice);
	ASSERT_EQ(0, reload(params));
	ASSERT_EQ(0, start());
	EXPECT_EQ(hook, hook_now());
	EXPECT_TRUE(log_has(self->log, name));
	EXPECT_STREQ(name, file_line(ATTRIBUTE, line, sizeof(line)));
	EXPECT_STREQ(choice, file_line(PARAMETER, line, sizeof(line)));
	EXPECT_TRUE(tick_is_hooked());
	expect_counting(_metadata);
}

TEST_F(hook, ftrace_is_used_when_asked_for_and_says_so)
{
	if (!can_change())
		SKIP(return, NEEDS);
	expect_choice(_metadata, self, "ftrace", PROFIL_HOOK_FTRACE, "ftrace");
}

TEST_F(hook, kprobe_is_used_when_asked_for_and_says_so)
{
	if (!can_change())
		SKIP(return, NEEDS);
	expect_choice(_metadata, self, "kprobe", PROFIL_HOOK_KPROBE, "kprobe");
}

TEST_F(hook, auto_is_ftrace_where_that_can_be)
{
	if (!can_change())
		SKIP(return, NEEDS);
	if (!file_has(TRACEFS "/available_filter_functions", tick_function(), NULL, 0))
		SKIP(return, "%s cannot be traced by ftrace", tick_function());
	expect_choice(_metadata, self, "auto", PROFIL_HOOK_FTRACE, "ftrace");
}

TEST_F(hook, an_unknown_choice_does_not_load)
{
	if (!can_change())
		SKIP(return, NEEDS);
	EXPECT_EQ(-EINVAL, reload("tick_hook=nonsense"));
	EXPECT_FALSE(module_is_loaded());
	EXPECT_TRUE(log_has(self->log, "nonsense"));
	EXPECT_EQ(-EINVAL, reload("tick_hook="));
	EXPECT_EQ(-EINVAL, reload("tick_hook=ftrac"));
	EXPECT_EQ(-EINVAL, reload("tick_hook=ftracer"));
	EXPECT_FALSE(module_is_loaded());
	EXPECT_TRUE(await(access(PROFIL_DEVICE, F_OK)));
	EXPECT_FALSE(tick_is_hooked());
}

/*
 * kernel.ftrace_enabled
 */

TEST_F(hook, ftrace_cannot_be_disabled_while_somebody_profiles)
{
	if (!can_change())
		SKIP(return, NEEDS);
	ASSERT_EQ(0, reload("tick_hook=ftrace"));
	ASSERT_EQ(0, start());
	EXPECT_EQ(-EBUSY, file_write(FTRACE_ENABLED, "0"));
	EXPECT_EQ(1, file_number(FTRACE_ENABLED, ""));
	expect_counting(_metadata);
}

TEST_F(hook, ftrace_can_be_disabled_when_nobody_profiles_and_then_starts_fail)
{
	int err;

	if (!can_change())
		SKIP(return, NEEDS);
	ASSERT_EQ(0, reload("tick_hook=auto"));
	ASSERT_EQ(0, start());
	ASSERT_NE((u32)PROFIL_HOOK_NONE, hook_now());
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, NULL));
	ASSERT_TRUE(await(hook_now() == PROFIL_HOOK_NONE));
	EXPECT_FALSE(tick_is_hooked());
	ASSERT_EQ(0, file_write(FTRACE_ENABLED, "0"));

	/* A kprobe is the fallback, unless it is by ftrace as well. */
	err = start();
	if (!err) {
		EXPECT_EQ((u32)PROFIL_HOOK_KPROBE, hook_now());
		expect_counting(_metadata);
	} else {
		struct profil_stats s;

		EXPECT_EQ(-EBUSY, err);
		EXPECT_EQ(0, session_stats(PROFIL_SCOPE_PROCESS, &s));
		EXPECT_EQ((u32)PROFIL_STATE_OFF, s.state);
		EXPECT_EQ(0U, locked_bytes());
	}

	ASSERT_EQ(0, file_write(FTRACE_ENABLED, "1"));
	ASSERT_EQ(0, start());
	expect_counting(_metadata);
}

TEST_F(hook, a_module_that_could_not_hook_the_tick_does_not_load)
{
	int err;

	if (!can_change())
		SKIP(return, NEEDS);
	ASSERT_TRUE(await(module_unload() == 0));
	ASSERT_EQ(0, file_write(FTRACE_ENABLED, "0"));
	EXPECT_EQ(-EBUSY, module_load("tick_hook=ftrace"));
	EXPECT_FALSE(module_is_loaded());
	err = module_load("tick_hook=auto");
	if (err) {
		EXPECT_EQ(-EBUSY, err);
		EXPECT_FALSE(module_is_loaded());
	}
	ASSERT_EQ(0, file_write(FTRACE_ENABLED, "1"));
	EXPECT_EQ(0, reload("tick_hook=ftrace"));
}

/*
 * kprobes can be disarmed behind the module's back
 */

/* Runs the loop, so that a CPU must tick, until the module's log says @text. */
static bool log_comes(int log, const char *text)
{
	u64 cap = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + BURN_CAP_NS;

	while (!log_has(log, text)) {
		if (cpu_ns(CLOCK_THREAD_CPUTIME_ID) > cap)
			return false;
		loop_run(1, LOOP_BURST);
	}
	return true;
}

/* It is refused, or it is noticed. */
static void expect_disarm_noticed(struct __test_metadata *_metadata, FIXTURE_DATA(hook) *self,
				  const char *control)
{
	struct profil_stats before, after, s;
	int err;

	ASSERT_EQ(0, reload("tick_hook=kprobe"));
	ASSERT_EQ(0, start());
	EXPECT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 20));
	EXPECT_TRUE(log_has(self->log, "kprobe"));

	err = file_write(control, "0");
	if (err == -EBUSY) {
		expect_counting(_metadata);
		return;
	}
	ASSERT_EQ(0, err);
	EXPECT_EQ(0, session_stats(PROFIL_SCOPE_PROCESS, &before));
	EXPECT_TRUE(log_comes(self->log, "kprobe")) {
		TH_LOG("%s: nobody noticed", control);
	}
	EXPECT_EQ(0, session_stats(PROFIL_SCOPE_PROCESS, &after));
	EXPECT_EQ((u32)PROFIL_STATE_ON, after.state);
	/* No ticks came, and it can be seen that there should have been some. */
	EXPECT_GE(before.ticks + 2, after.ticks);
	EXPECT_LE(before.expected + 20, after.expected);

	ASSERT_EQ(0, file_write(control, "1"));
	EXPECT_TRUE(loop_burn(PROFIL_SCOPE_PROCESS, 0, 20)) {
		TH_LOG("%s is 1 again, and no tick comes", control);
	}
	ASSERT_EQ(0, session_stop(PROFIL_SCOPE_PROCESS, &s));
	EXPECT_TRUE(accounted(&s));
	EXPECT_LE(s.ticks + s.missed, s.expected + 20);
	EXPECT_EQ(s.hit, counters_sum(page, 4, ARRAY_SIZE(page)));
}

TEST_F(hook, kprobes_that_are_disarmed_are_noticed)
{
	if (!can_change())
		SKIP(return, NEEDS);
	if (access(KPROBES_ENABLED, W_OK))
		SKIP(return, "no %s: needs a mounted debugfs", KPROBES_ENABLED);
	expect_disarm_noticed(_metadata, self, KPROBES_ENABLED);
}

TEST_F(hook, kprobes_that_ftrace_enabled_disarms_are_noticed)
{
	if (!can_change())
		SKIP(return, NEEDS);
	expect_disarm_noticed(_metadata, self, FTRACE_ENABLED);
}

TEST_HARNESS_MAIN
