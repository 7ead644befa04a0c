// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions with a descriptor: limits on the number of sessions and on locked memory
 */
#include "session.h"

#define MOST	64U	/* sessions of a task */

/* Attaches as many sessions to the caller as possible. Returns their number. */
static u32 attach_all(struct __test_metadata *_metadata, int *fds, u32 scope)
{
	struct profil_query q;

	ASSERT_EQ(0, device_query(&q));
	ASSERT_LE(2U, q.max_sessions);
	ASSERT_GE(MOST, q.max_sessions);
	for (u32 i = 0; i < q.max_sessions; i++) {
		fds[i] = must_open(.fork = PROFIL_FORK_SHARE);
		ASSERT_EQ(0, descriptor_attach(fds[i], scope, 0, NULL));
	}
	return q.max_sessions;
}

static void expect_no_more(struct __test_metadata *_metadata, u32 scope)
{
	int fds[MOST], one_more = must_open();
	u32 n = attach_all(_metadata, fds, scope);

	EXPECT_EQ(-EBUSY, descriptor_attach(one_more, scope, 0, NULL));
	close(fds[0]);
	EXPECT_EQ(0, descriptor_attach(one_more, scope, 0, NULL));
	close(one_more);
	while (--n)
		close(fds[n]);
}

TEST_F_CALL(session, is_limited_in_number_for_each_process,
	    expect_no_more(_metadata, PROFIL_SCOPE_PROCESS))
TEST_F_CALL(session, is_limited_in_number_for_each_thread,
	    expect_no_more(_metadata, PROFIL_SCOPE_THREAD))

/* Otherwise each generation of children could have more sessions. */
static void expect_no_more_in_a_child(struct __test_metadata *_metadata, u32 scope)
{
	int fds[MOST];
	u32 n = attach_all(_metadata, fds, scope);

	EXPECT_CHILD({
		for (u32 more = PROFIL_SCOPE_PROCESS; more <= PROFIL_SCOPE_THREAD; more++)
			MUST(descriptor_attach(must_open(), more, 0, NULL) ==
			     (more == scope ? -EBUSY : 0));
	});
	while (n)
		close(fds[--n]);
}

TEST_F(session, counts_toward_the_limit_when_it_is_inherited)
{
	expect_no_more_in_a_child(_metadata, PROFIL_SCOPE_PROCESS);
	expect_no_more_in_a_child(_metadata, PROFIL_SCOPE_THREAD);
}

/*
 * Adds a range far above a small RLIMIT_MEMLOCK. The kernel allocates nothing for the 2^22 pages of
 * the buffer: an array would take 32 MiB.
 */
TEST_F_CHILD(session, beyond_RLIMIT_MEMLOCK_is_refused_before_it_allocates)
{
	struct profil_range range;
	u64 size = 1ULL << 36;
	void *buffer;

	become_user(USER);
	limit_memlock(65536);
	buffer = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	MUST(buffer != MAP_FAILED);
	for (unsigned int i = 0; i < 100; i++) {
		range = range_all(buffer, 1ULL << 31, 8);
		MUST(session_start(PROFIL_SCOPE_PROCESS, 0, &range, 1) == -EPERM);
	}
	return pinned_bytes() ? 99 : 0;
}

TEST_F_CHILD(session, is_charged_to_the_creators_RLIMIT_MEMLOCK)
{
	static u32 pages[2][PAGE_MAX / sizeof(u32)] PAGE_ALIGNED;
	struct profil_range ranges[] = {
		range_of(0x10000, 0x10010, &pages[0][0], 1, 4),
		range_of(0x20000, 0x20010, &pages[1][0], 1, 4),
	};

	become_user(USER);
	limit_memlock(PAGE);
	fd = must_sample(must_open(), PROFIL_SCOPE_PROCESS, NULL, 0);
	MUST(descriptor_add(fd, PROFIL_SPACE_SELF, ranges, 2) == -EPERM);
	MUST(!pinned_bytes() && !stats_now().locked);
	MUST(!descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[0], 1));
	MUST(descriptor_add(fd, PROFIL_SPACE_SELF, &ranges[1], 1) == -EPERM);
	MUST(pinned_bytes() == PAGE);
	return descriptor_remove(fd, PROFIL_SPACE_SELF, 0, UINT64_MAX) == 1 ? 0 : 108;
}

TEST_HARNESS_MAIN
