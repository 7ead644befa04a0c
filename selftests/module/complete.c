// SPDX-License-Identifier: GPL-2.0
/*
 * The completion of records: if a tick cannot look up the mapping, as mmap_lock is taken, the task
 * does it when it returns to user mode.
 */
#include "kselftest_harness.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	150

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "loop.h"
#include "records.h"

#define ENOUGH		16384		/* records: more than any test has ticks */
#define DEPTH		8
#define PERIOD		200000		/* ns */

static const u32 without_pc = PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT;

static atomic_bool enough;

static void *map_and_unmap(void *unused)
{
	(void)unused;
	while (!enough) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

		if (p == MAP_FAILED)
			break;
		for (unsigned int i = 0; i < 1 << 20; i += PAGE)
			p[i] = 1;
		munmap(p, 1 << 20);
	}
	return NULL;
}

static void *compute(void *i)
{
	while (!enough)
		loop_run((unsigned long)i, LOOP_BURST);
	return NULL;
}

FIXTURE(changing) {
};

FIXTURE_SETUP(changing)
{
	enough = false;
	nr = 0;
}

FIXTURE_TEARDOWN(changing)
{
	close(fd);
}

FIXTURE_VARIANT(changing) {
	u32 period, stack_depth;
};

FIXTURE_VARIANT_ADD(changing, at_the_tick) { 0, 0 };
FIXTURE_VARIANT_ADD(changing, with_a_clock) { PERIOD, 0 };
FIXTURE_VARIANT_ADD(changing, with_stacks) { PERIOD, DEPTH };

/* Most of the time, mmap_lock is taken, and ticks cannot look up mappings. */
TEST_F(changing, mappings_are_known_in_all_threads)
{
	unsigned int i, unknown = 0;
	pthread_t threads[6];
	struct profil_stats s;
	int err;

	fd = descriptor_open_as((struct profil_open){
		.modes = MODES_ALL, .period = variant->period, .nr_records = ENOUGH,
		.stack_depth = variant->stack_depth,
	});
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	for (unsigned long j = 0; j < ARRAY_SIZE(threads); j++)
		ASSERT_EQ(0, pthread_create(&threads[j], NULL, j % 2 ? compute : map_and_unmap,
					    (void *)(j % 4)));
	ASSERT_EQ(0, descriptor_enable(fd));
	do {
		err = read_all();
	} while (!err && nr < 500);
	enough = true;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_EQ(0, read_all());
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(s.outside, nr);
	for (i = 0; i < nr; i++)
		unknown += !(records[i]->flags & (PROFIL_RECORD_MAPPED | without_pc));
	TH_LOG("%u records, %u without mapping", nr, unknown);
	EXPECT_GE(nr / 100, unknown);
}

TEST_HARNESS_MAIN
