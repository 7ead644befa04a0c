// SPDX-License-Identifier: GPL-2.0
/*
 * Stacks: the return addresses in records, and the reason why there are no more.
 *
 * This program is compiled with frame pointers. Its tests look at the ticks in loops that run above
 * known frames: those of functions of this program, or frames that the test has written.
 *
 * Also built as a 32-bit program (stacks_32).
 */
#include "fixture.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/personality.h>

#include "program.h"
#include "records.h"

#define RECORDS		1024U
#define DEPTH		127U	/* the maximum */
#define TICKS		10U	/* that a test waits for */

/* Opens a session of this process whose records have up to @depth addresses. */
static void open_stacks(u32 depth)
{
	fd = must_sample(must_open(.fork = PROFIL_FORK_SHARE, .nr_records = RECORDS,
				   .stack_depth = depth), PROFIL_SCOPE_PROCESS, NULL, 0);
}

/* Opens a session with a period. */
static void open_clocked_stacks(u32 scope, u64 period)
{
	fd = must_sample(must_open(.nr_records = RECORDS, .period = period, .stack_depth = DEPTH),
			 scope, NULL, 0);
}

/* Closes the session, and forgets its records. */
static void drop_session(void)
{
	close_session();
	nr = 0;
}

FIXTURE(stacks) {
};

FIXTURE_SETUP(stacks)
{
	sessions_setup(_metadata);
}

FIXTURE_TEARDOWN(stacks)
{
	sessions_teardown(_metadata);
}

#ifdef __arm__

TEST_F(stacks, of_32_bit_code_of_arm_are_unsupported)
{
	open_stacks(DEPTH);
	EXPECT_TRUE(descriptor_burn(fd, 0, TICKS));
	ASSERT_EQ(0, descriptor_disable(fd, NULL));
	EXPECT_EQ(0, read_all());
	EXPECT_LE(TICKS, nr);
	EXPECT_EQ(stats_now().outside, nr);
	for_each_record(r) {
		ASSERT_TRUE(r->flags & PROFIL_RECORD_STACK);
		EXPECT_EQ(0U, stack_of(r)->nr);
		EXPECT_EQ((u32)PROFIL_STACK_UNSUPPORTED, stack_of(r)->end);
		EXPECT_EQ(0U, stack_of(r)->innermost[0]);
		EXPECT_EQ(0U, stack_of(r)->innermost[1]);
	}
}

#else

#include "frames.h"
#include "held.h"
#include "swap_area.h"
#include "tags.h"

/* Returns true if the tick of @r was in the loop at @text in this process. */
static bool is_at(const struct profil_record *r, const char *text)
{
	return r->pid == getpid() && r->pc - addr(text) < FRAMES_LOOP_SIZE;
}

/*
 * Runs @function(@arg) as the outermost function, and reads the records, until @ticks more of them
 * are in the loop at @text.
 */
static bool run(void (*function)(unsigned long arg), unsigned long arg, const char *text,
		unsigned int ticks)
{
	unsigned int found = 0, seen = nr;

	return work_until(found >= ticks, {
		frames_call(function, arg);
		if (read_all())
			return false;
		for_each_new_record(r, seen)
			found += is_at(r, text);
	});
}

static bool stack_is(const struct profil_record *r, const uintptr_t *addresses, u32 n, u32 end)
{
	const struct profil_stack *stack = stack_of(r);

	if (!(r->flags & PROFIL_RECORD_STACK) || stack->nr != n || stack->end != end)
		return false;
	for (u32 i = 0; i < n; i++)
		if (stack->addresses[i] != addresses[i])
			return false;
	return true;
}

/* Checks that each tick in the loop at @text has this stack. */
static bool expect_stack(struct __test_metadata *_metadata, const char *text,
			 const uintptr_t *addresses, u32 n, u32 end)
{
	bool passed = true;

	for_each_record(r) {
		if (!is_at(r, text))
			continue;
		EXPECT_TRUE(stack_is(r, addresses, n, end)) {
			passed = false;
			TH_LOG("flags %x: %u addresses, end %u, not %u addresses, end %u",
			       r->flags, stack_of(r)->nr, stack_of(r)->end, n, end);
		}
	}
	return passed;
}

#define EXPECT_STACK(text, addresses, n, end) expect_stack(_metadata, text, addresses, n, end)

/* Checks that each tick in the loop at @text has these innermost words. */
static void expect_innermost(struct __test_metadata *_metadata, const char *text, __u64 first,
			     __u64 second)
{
	for_each_record(r) {
		const __u64 *words = stack_of(r)->innermost;

		if (!is_at(r, text))
			continue;
		EXPECT_TRUE(words[0] == first && words[1] == second) {
			TH_LOG("%#llx, %#llx, not %#llx, %#llx", words[0], words[1], first, second);
		}
	}
}

#define EXPECT_INNERMOST(text, first, second) expect_innermost(_metadata, text, first, second)

/*
 * Functions with known callers
 */

/* The return addresses, the innermost first, that recurse() stores. */
static uintptr_t callers[256];

static __attribute__((noinline, noclone)) void recurse(unsigned long levels)
{
	callers[levels] = (uintptr_t)__builtin_return_address(0);
	if (levels > 1)
		recurse(levels - 1);
	else
		frames_loop(LOOP_BURST, &callers[0]);
	asm volatile("");	/* so that the call is not a jump */
}

TEST_F(stacks, have_the_return_address_of_each_caller)
{
	open_stacks(DEPTH);
	for (unsigned long levels = 1; levels <= 41; levels += 20) {
		nr = 0;
		EXPECT_TRUE(run(recurse, levels, frames_loop_text, TICKS));
		EXPECT_STACK(frames_loop_text, callers, levels + 1, PROFIL_STACK_OUTERMOST);
	}
}

TEST_F_TIMEOUT(stacks, have_no_more_addresses_than_the_session_asks_for, 150)
{
	const unsigned long levels = 12;
	const u32 depths[] = { 1, 2, 12, 13, 14, DEPTH };

	for (unsigned int i = 0; i < ARRAY_SIZE(depths); i++) {
		open_stacks(depths[i]);
		EXPECT_TRUE(run(recurse, levels, frames_loop_text, TICKS));
		if (depths[i] <= levels)
			EXPECT_STACK(frames_loop_text, callers, depths[i], PROFIL_STACK_DEPTH);
		else
			EXPECT_STACK(frames_loop_text, callers, levels + 1,
				     PROFIL_STACK_OUTERMOST);
		drop_session();
	}
	/* As deep as possible. */
	open_stacks(DEPTH);
	EXPECT_TRUE(run(recurse, 200, frames_loop_text, TICKS));
	EXPECT_STACK(frames_loop_text, callers, DEPTH, PROFIL_STACK_DEPTH);
}

TEST_F(stacks, of_sessions_of_one_task_have_their_own_depths)
{
	const u32 depths[] = { 3, 1, 0, DEPTH };
	int sessions[ARRAY_SIZE(depths)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(depths); i++) {
		open_stacks(depths[i]);
		sessions[i] = fd;
	}
	EXPECT_TRUE(run(recurse, 5, frames_loop_text, TICKS));
	drop_session();
	for (i = 0; i < ARRAY_SIZE(depths) - 1; i++) {
		fd = sessions[i];
		EXPECT_EQ(0, read_all());
		EXPECT_LE(TICKS, nr);
		if (depths[i])
			EXPECT_STACK(frames_loop_text, callers, depths[i], PROFIL_STACK_DEPTH);
		for_each_record(r)
			EXPECT_EQ(!depths[i], !(r->flags & PROFIL_RECORD_STACK));
		drop_session();
	}
}

TEST_F(stacks, are_not_in_records_of_a_session_without_them)
{
	struct profil_open open = {
		.size = offsetof(struct profil_open, stack_depth),
		.modes = MODES_ALL,
		.nr_records = RECORDS,
		.stack_depth = 10,
	};

	/* The structure of a program that was compiled before there were stacks. */
	fd = ioctl(device_fd(), PROFIL_IOC_OPEN, &open);
	ASSERT_LE(0, fd);
	must_sample(fd, PROFIL_SCOPE_PROCESS, NULL, 0);
	EXPECT_TRUE(run(recurse, 10, frames_loop_text, TICKS));
	for_each_record(r)
		EXPECT_EQ(0U, r->flags & PROFIL_RECORD_STACK);
}

static int recurse_in_child(void)
{
	u64 until = stats_now().outside + 4 * TICKS;

	while (stats_now().outside < until)
		frames_call(recurse, 7);
	return 0;
}

TEST_F(stacks, of_a_forked_child_are_those_of_the_child)
{
	unsigned int found[2] = {};
	pid_t child;

	open_stacks(DEPTH);
	EXPECT_TRUE(run(recurse, 7, frames_loop_text, 1));
	nr = 0;
	child = spawn(recurse_in_child);
	EXPECT_TRUE(run(recurse, 3, frames_loop_text, TICKS));
	EXPECT_EQ(0, status_of(child));
	EXPECT_EQ(0, read_all());
	/* The parent has overwritten the first elements with the same addresses, but for one. */
	callers[3] = callers[2];
	for_each_record(r) {
		bool in_child = r->pid == child;

		if (r->pc - addr(frames_loop_text) >= FRAMES_LOOP_SIZE)
			continue;
		found[in_child]++;
		EXPECT_EQ(in_child ? 8U : 4U, stack_of(r)->nr);
		if (in_child)
			EXPECT_TRUE(stack_is(r, callers, 8, PROFIL_STACK_OUTERMOST));
	}
	EXPECT_LE(5U, found[0]);
	EXPECT_LE(5U, found[1]);
}

TEST_F(stacks, have_the_return_address_while_a_function_has_no_frame)
{
	const char *const steps[] = {
		frames_step_0, frames_step_1, frames_step_2, frames_step_3
	};
	const uintptr_t calls[] = { (uintptr_t)frames_steps_return, (uintptr_t)frames_call_return };
	uintptr_t fp;

	open_stacks(DEPTH);
	for (unsigned int i = 0; i < ARRAY_SIZE(steps); i++)
		EXPECT_TRUE(run(frames_steps, (unsigned long)&fp, steps[i], TICKS));
	for (unsigned int i = 0; i < ARRAY_SIZE(steps); i++) {
		bool framed = i == 2;

		EXPECT_STACK(steps[i], calls + !framed, 1 + framed, PROFIL_STACK_OUTERMOST);
#ifdef FRAMES_LINK_REGISTER
		EXPECT_INNERMOST(steps[i], calls[0], 0);
#else
		if (i == 0 || i == 3)
			EXPECT_INNERMOST(steps[i], calls[0], addr(&fp));
		else
			EXPECT_INNERMOST(steps[i], fp, calls[0]);
#endif
	}
}

static int zero = -1;	/* /dev/zero */

extern const char read_text[] __attribute__((visibility("hidden")));

/* Makes a long system call, at read_text. */
static __attribute__((noinline, noclone)) void read_zeros(unsigned long n)
{
	static char zeros[1 << 20];
	long result;

	callers[0] = (uintptr_t)__builtin_return_address(0);
#if defined(__x86_64__)
	asm volatile("read_text: syscall"
		     : "=a"(result) : "a"(SYS_read), "D"(zero), "S"(zeros), "d"(n)
		     : "rcx", "r11", "memory");
#elif defined(__i386__)
	asm volatile("read_text: int $0x80"
		     : "=a"(result) : "a"(SYS_read), "b"(zero), "c"(zeros), "d"(n) : "memory");
#elif defined(__aarch64__)
	register long x0 asm("x0") = zero;
	register char *x1 asm("x1") = zeros;
	register long x2 asm("x2") = n;
	register long x8 asm("x8") = SYS_read;

	asm volatile("read_text: svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x8) : "memory");
	result = x0;
#elif defined(__riscv)
	register long a0 asm("a0") = zero;
	register char *a1 asm("a1") = zeros;
	register long a2 asm("a2") = n;
	register long a7 asm("a7") = SYS_read;

	asm volatile("read_text: ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
	result = a0;
#endif
	asm volatile("" : : "r"(__builtin_frame_address(0)));	/* it has a frame until here */
	MUST(result == (long)n);
}

TEST_F(stacks, of_a_system_call_are_those_of_its_caller)
{
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, zero);
	open_stacks(DEPTH);
	EXPECT_TRUE(run(read_zeros, 1 << 20, read_text, TICKS));
	EXPECT_STACK(read_text, callers, 1, PROFIL_STACK_OUTERMOST);
	EXPECT_LE(TICKS / 2,
		  records_where(r, is_at(r, read_text) && r->flags & PROFIL_RECORD_SYSTEM));
}

static int (*vdso_clock_gettime)(clockid_t clock, struct timespec *t);

/* The C library may have no frame pointers, so this calls the function of the vDSO itself. */
static __attribute__((noinline, noclone)) void read_clock(unsigned long n)
{
	struct timespec t;

	callers[0] = (uintptr_t)__builtin_return_address(0);
	while (n--)
		vdso_clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
}

static void *vdso_function(void)
{
	static const char *const names[] = { "linux-vdso.so.1", "linux-gate.so.1" };
	void *vdso = NULL;

	for (unsigned int i = 0; i < ARRAY_SIZE(names) && !vdso; i++)
		vdso = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
	if (!vdso)
		return NULL;
	return dlsym(vdso, "__vdso_clock_gettime") ?: dlsym(vdso, "__kernel_clock_gettime");
}

TEST_F(stacks, of_the_vdso_lead_to_its_caller)
{
	unsigned int in_vdso = 0, whole = 0, seen = 0;

	vdso_clock_gettime = vdso_function();
	SKIP_IF(!vdso_clock_gettime, "the vDSO is unknown: %s", dlerror());
	open_stacks(DEPTH);
	work_until(whole, {
		frames_call(read_clock, 10000);
		ASSERT_EQ(0, read_all());
		for_each_new_record(r, seen) {
			const struct profil_stack *stack = stack_of(r);

			if (strcmp(path_of(r), "[vdso]"))
				continue;
			in_vdso++;
			ASSERT_TRUE(r->flags & PROFIL_RECORD_STACK);
			/* Some kernels have a vDSO without frame pointers. */
			whole += stack->end == PROFIL_STACK_OUTERMOST && stack->nr &&
				 stack->addresses[stack->nr - 1] == callers[0];
		}
	});
	SKIP_IF(!whole, "no stack of %u in the vDSO was whole, of %u", in_vdso, nr);
}

/*
 * Sessions of each kind
 */

FIXTURE(kinds) {
};

FIXTURE_VARIANT(kinds) {
	u32 scope;
	u64 period;
};

FIXTURE_VARIANT_ADD(kinds, thread) { PROFIL_SCOPE_THREAD, 0 };
FIXTURE_VARIANT_ADD(kinds, process_clock) { PROFIL_SCOPE_PROCESS, 1000000 };
FIXTURE_VARIANT_ADD(kinds, thread_clock) { PROFIL_SCOPE_THREAD, 1000000 };
FIXTURE_VARIANT_ADD(kinds, machine) { PROFIL_SCOPE_MACHINE, 0 };
FIXTURE_VARIANT_ADD(kinds, machine_clock) { PROFIL_SCOPE_MACHINE, 1000000 };

FIXTURE_SETUP(kinds)
{
	ASSERT_LE(0, device_fd());
}

FIXTURE_TEARDOWN(kinds)
{
	if (fd >= 0)
		drop_session();
}

TEST_F(kinds, of_sessions_have_the_same_stacks)
{
	SKIP_IF(variant->scope == PROFIL_SCOPE_MACHINE && geteuid(),
		"only root can sample the machine");
	open_clocked_stacks(variant->scope, variant->period);
	EXPECT_TRUE(run(recurse, 5, frames_loop_text, TICKS));
	EXPECT_STACK(frames_loop_text, callers, 6, PROFIL_STACK_OUTERMOST);
}

/*
 * Frames that the test has written
 */

#define NR_FRAMES	16U
#define WORD		sizeof(uintptr_t)
#define ADDRESS		addr(frames_loop_text)	/* the return address of the first frame */

/*
 * Page 0 has the stack pointer, page 1 has the frames, page 2 is not mapped, and page 3 is not
 * present at first.
 */
static char *area;
static struct frame *frames;

/* Addresses at which user mode has no memory. */
static const uintptr_t unreadable[] = {
#if defined(__x86_64__)
	0x7fffffffeff8, 0x7ffffffff000, 0x7ffffffffff8, 0x800000000000, 0xfffffffffffff8,
	0x100000000000000, 0x7fffffffeffffff8, 0x7ffffffffffffff8, 0x8000000000000000,
	0xffff7ffffffffff8, 0xffff800000000000, 0xffff888000000000, 0xffffc90000000000,
	0xffffffff81000000, 0xffffffffff600000, -4096UL, -16UL, -8UL,
#elif defined(__aarch64__)
	0xfffffffffff8, 0x80000000000000, 0xffff000000000000, 0xffff800000000000,
	0xffff800080000000, -4096UL, -16UL, -8UL,
#elif defined(__riscv)
	0x800000000000, 0xfffffffffffff8, 0x100000000000000, 0x7ffffffffffffff8,
	0x8000000000000000, 0xff60000000000000, 0xffffffff80000000, -4096UL, -8UL,
#else
	0xfffff000, -16U, -8U, -4U,
#endif
};

/* Values that are not addresses of user mode. */
static const uintptr_t not_of_user[] = {
	0,
#if __SIZEOF_POINTER__ == 8
	0xff80000000000000, 0xffff888000000000, 0xffff800080000000, 0xffffffff81000000,
	0xffffffffff600000, -1UL,
#endif
};

static uintptr_t first_fp, first_sp, first_lr;

static void loop_at_frames(unsigned long unused)
{
	(void)unused;
	frames_loop_at(LOOP_BURST, first_fp, first_sp, first_lr);
}

/* Runs the loop with frame pointer @fp. Its stack must have the addresses of @n frames. */
static void expect_end(struct __test_metadata *_metadata, uintptr_t fp, u32 n, u32 end)
{
	uintptr_t addresses[NR_FRAMES];

	for (u32 i = 0; i < n; i++)
		addresses[i] = (fp - (uintptr_t)frames) / sizeof(*frames) + ADDRESS + i;
	nr = 0;
	first_fp = frames_pointer(fp);
	EXPECT_TRUE(run(loop_at_frames, 0, frames_loop_at_text, 5));
	if (!expect_stack(_metadata, frames_loop_at_text, addresses, n, end))
		TH_LOG("frame pointer %#lx, 5th %#lx, its address %#lx", (unsigned long)fp,
		       (unsigned long)frames[4].next, (unsigned long)frames[4].address);
}

#define EXPECT_END(fp, n, end) expect_end(_metadata, (uintptr_t)(fp), n, end)

/* Expects the walk to end at the fifth frame, with its address, if it is linked to @to. */
static void expect_end_at(struct __test_metadata *_metadata, uintptr_t to, u32 end)
{
	frames[4].next = frames_pointer(to);
	EXPECT_END(frames, 5, end);
}

#define EXPECT_END_AT(to, end) expect_end_at(_metadata, (uintptr_t)(to), end)

/* Links the fifth frame to a sixth one at @place, which is the outermost one. */
static void continue_at(void *place)
{
	*(struct frame *)place = (struct frame) { 0, ADDRESS + 5 };
	frames[4].next = frames_pointer((uintptr_t)place);
}

FIXTURE(frames) {
};

FIXTURE_SETUP(frames)
{
	area = map_small(4 * PAGE);
	ASSERT_EQ(0, munmap(area + 2 * PAGE, PAGE));
	memset(area, 0, 2 * PAGE);
	frames = (struct frame *)(area + PAGE);
	for (u32 i = 0; i < NR_FRAMES; i++)
		frames[i] = (struct frame) {
			frames_pointer((uintptr_t)&frames[i + 1]), ADDRESS + i
		};
	frames[NR_FRAMES - 1].next = 0;
	first_fp = 0;
	first_sp = (uintptr_t)area + PAGE / 2;
	open_stacks(DEPTH);
}

FIXTURE_TEARDOWN(frames)
{
	drop_session();
}

TEST_F(frames, end_with_a_frame_pointer_of_0)
{
	EXPECT_END(0, 0, PROFIL_STACK_OUTERMOST);
	EXPECT_END(frames, NR_FRAMES, PROFIL_STACK_OUTERMOST);
	EXPECT_END(&frames[NR_FRAMES - 1], 1, PROFIL_STACK_OUTERMOST);
	EXPECT_END_AT(0, PROFIL_STACK_OUTERMOST);
}

TEST_F(frames, end_where_one_is_misaligned)
{
	EXPECT_END((uintptr_t)frames + 1, 0, PROFIL_STACK_MISALIGNED);
	for (unsigned int i = 1; i < WORD; i++)
		EXPECT_END_AT((uintptr_t)&frames[5] + i, PROFIL_STACK_MISALIGNED);
}

TEST_F(frames, end_where_one_is_not_above_the_previous_one)
{
	/* A frame that is entirely 0 is at the stack pointer; one below it is not read. */
	EXPECT_END(first_sp, 0, PROFIL_STACK_ADDRESS);
	EXPECT_END(first_sp - WORD, 0, PROFIL_STACK_ORDER);
	EXPECT_END(WORD, 0, PROFIL_STACK_ORDER);

	EXPECT_END_AT(&frames[4], PROFIL_STACK_ORDER);
	EXPECT_END_AT((uintptr_t)&frames[4] - WORD, PROFIL_STACK_ORDER);
	EXPECT_END_AT(&frames[0], PROFIL_STACK_ORDER);
	EXPECT_END_AT(WORD, PROFIL_STACK_ORDER);
}

TEST_F_TIMEOUT(frames, end_where_one_is_not_in_user_memory, 150)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(unreadable); i++) {
		EXPECT_END(unreadable[i], 0, PROFIL_STACK_UNREADABLE);
		EXPECT_END_AT(unreadable[i], PROFIL_STACK_UNREADABLE);
	}
}

TEST_F(frames, end_where_one_is_not_mapped_or_not_present)
{
	char *hole = area + 2 * PAGE, *last = area + 3 * PAGE;

	EXPECT_END_AT(hole, PROFIL_STACK_UNREADABLE);
	EXPECT_END_AT(hole - WORD, PROFIL_STACK_UNREADABLE);
	EXPECT_END_AT(last, PROFIL_STACK_UNREADABLE);
	EXPECT_FALSE(pages_present(last, 1));

	continue_at(last);
	EXPECT_END(frames, 6, PROFIL_STACK_OUTERMOST);
	ASSERT_EQ(0, mprotect(last, PAGE, PROT_READ));
	EXPECT_END(frames, 6, PROFIL_STACK_OUTERMOST);
	ASSERT_EQ(0, mprotect(last, PAGE, PROT_NONE));
	EXPECT_END_AT(last, PROFIL_STACK_UNREADABLE);
	ASSERT_EQ(0, mprotect(last, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_END(frames, 6, PROFIL_STACK_OUTERMOST);
	ASSERT_EQ(0, madvise(last, PAGE, MADV_DONTNEED));
	EXPECT_END_AT(last, PROFIL_STACK_UNREADABLE);
	EXPECT_FALSE(pages_present(last, 1));
}

#ifdef __x86_64__

/* Maps the last page of user memory, with page tables of 5 or 4 levels. */
static void *map_last_page(void)
{
	const unsigned int bits[] = { 56, 47 };
	void *page = MAP_FAILED;

	for (unsigned int i = 0; i < ARRAY_SIZE(bits) && page == MAP_FAILED; i++)
		page = mmap((void *)((1UL << bits[i]) - 2 * PAGE), PAGE,
			    PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return page;
}

TEST_F(frames, end_where_user_memory_ends)
{
	char *page = map_last_page();
	const uintptr_t end = (uintptr_t)page + PAGE, last = end - 2 * WORD;

	SKIP_IF(page == MAP_FAILED, "no page at the end: %s", strerror(errno));
	EXPECT_END(end - WORD, 0, PROFIL_STACK_UNREADABLE);
	*(struct frame *)last = (struct frame) { end - WORD, ADDRESS + 5 };
	frames[4].next = frames_pointer(last);
	EXPECT_END(frames, 6, PROFIL_STACK_ORDER);
	*(struct frame *)last = (struct frame) { 0, ADDRESS + 5 };
	EXPECT_END(frames, 6, PROFIL_STACK_OUTERMOST);
	first_sp = last;
	*(struct frame *)last = (struct frame) { end - 1, end };
	EXPECT_END(0, 0, PROFIL_STACK_OUTERMOST);
	EXPECT_INNERMOST(frames_loop_at_text, end - 1, 0);
	first_sp = end - WORD;
	EXPECT_END(0, 0, PROFIL_STACK_OUTERMOST);
	EXPECT_INNERMOST(frames_loop_at_text, 0, 0);
	munmap(page, PAGE);
}

#endif

TEST_F(frames, end_beyond_the_end_of_a_file)
{
	char *last = area + 3 * PAGE;
	int file = memfd_create("frames", MFD_CLOEXEC);

	ASSERT_LE(0, file);
	ASSERT_EQ(0, ftruncate(file, PAGE));
	ASSERT_EQ((void *)last, mmap(last, PAGE, PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_FIXED, file, 0));
	continue_at(last);
	EXPECT_END(frames, 6, PROFIL_STACK_OUTERMOST);
	ASSERT_EQ(0, ftruncate(file, 0));
	EXPECT_END(frames, 5, PROFIL_STACK_UNREADABLE);
	close(file);
}

TEST_F(frames, end_at_a_page_that_is_swapped_out)
{
	char *last = area + 3 * PAGE;

	SKIP_IF(geteuid() || swap_start(), "no swap area can be made");
	continue_at(last);
	EXPECT_TRUE(await(!madvise(last, PAGE, MADV_PAGEOUT) && !pages_present(last, 1)));
	EXPECT_END(frames, 5, PROFIL_STACK_UNREADABLE);
	EXPECT_FALSE(pages_present(last, 1));
	EXPECT_EQ(ADDRESS + 5, ((volatile struct frame *)last)->address);
	EXPECT_END(frames, 6, PROFIL_STACK_OUTERMOST);
	swap_stop();
}

TEST_F(frames, end_at_a_huge_page_that_is_not_present)
{
	char *huge;

	SKIP_IF(geteuid(), "needs root");
	huge = hugetlb_map(HUGE_PAGE, MAP_PRIVATE);
	NEED_HUGETLB(huge);
	first_sp = (uintptr_t)huge;
	EXPECT_END(huge, 0, PROFIL_STACK_UNREADABLE);
	EXPECT_FALSE(pages_present(huge, 1));
	*(struct frame *)huge = (struct frame) { 0, ADDRESS };
	EXPECT_END(0, 0, PROFIL_STACK_OUTERMOST);
	hugetlb_unmap(huge, HUGE_PAGE);
}

/* A page that a process provides is not requested: the tick would wait for the process. */
static void expect_no_request(struct __test_metadata *_metadata, enum held_kind kind)
{
	struct held held;

	NEED_HELD(&held, kind, PAGE);
	*(struct frame *)held.memory = (struct frame) { 0, ADDRESS };
	first_sp = (uintptr_t)held.memory;
	EXPECT_END(0, 0, PROFIL_STACK_OUTERMOST);
#ifndef FRAMES_LINK_REGISTER
	EXPECT_INNERMOST(frames_loop_at_text, 0, ADDRESS);
#endif
	ASSERT_EQ(0, held_back(&held));
	EXPECT_END(held.memory, 0, PROFIL_STACK_UNREADABLE);
	EXPECT_INNERMOST(frames_loop_at_text, 0, 0);
	EXPECT_FALSE(held_asked(&held));
	held_unmap(&held);
}

TEST_F_CALL(frames, end_at_a_page_that_a_userfaultfd_provides,
	    expect_no_request(_metadata, HELD_USERFAULT))
TEST_F_CALL(frames, end_at_a_page_that_a_FUSE_file_system_provides,
	    expect_no_request(_metadata, HELD_FUSE))

TEST_F_TIMEOUT(frames, end_where_a_return_address_is_not_one_of_user_mode, 150)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(not_of_user); i++) {
		frames[4].address = not_of_user[i];
		EXPECT_END(frames, 4, PROFIL_STACK_ADDRESS);
		EXPECT_END(&frames[4], 0, PROFIL_STACK_ADDRESS);
	}
}

/* Runs the loop with @words at the stack pointer, or with the first one in the link register. */
static void expect_words(struct __test_metadata *_metadata, const uintptr_t words[2], u64 first,
			 u64 second)
{
#ifdef FRAMES_LINK_REGISTER
	first_lr = words[0];
	second = 0;
#else
	memcpy((void *)first_sp, words, 2 * WORD);
#endif
	nr = 0;
	EXPECT_TRUE(run(loop_at_frames, 0, frames_loop_at_text, 5));
	EXPECT_INNERMOST(frames_loop_at_text, first, second);
}

#define EXPECT_WORDS(at_0, at_1, first, second) \
	expect_words(_metadata, (uintptr_t[]){ at_0, at_1 }, first, second)

TEST_F_TIMEOUT(frames, have_only_user_addresses_as_innermost_words, 150)
{
	const uintptr_t before_hole = (uintptr_t)area + 2 * PAGE - 2 * WORD;

	EXPECT_WORDS(1, ADDRESS, 1, ADDRESS);
	for (unsigned int i = 0; i < ARRAY_SIZE(not_of_user); i++) {
		EXPECT_WORDS(not_of_user[i], ADDRESS, 0, ADDRESS);
		EXPECT_WORDS(ADDRESS, not_of_user[i], ADDRESS, 0);
	}
	first_sp++;
	EXPECT_WORDS(ADDRESS, ADDRESS + 1, ADDRESS, ADDRESS + 1);
	first_sp = before_hole;
	EXPECT_WORDS(ADDRESS, ADDRESS + 1, ADDRESS, ADDRESS + 1);
}

static void expect_no_words_at(struct __test_metadata *_metadata, uintptr_t sp)
{
	first_sp = sp;
	nr = 0;
	EXPECT_TRUE(run(loop_at_frames, 0, frames_loop_at_text, 5));
	EXPECT_STACK(frames_loop_at_text, NULL, 0, PROFIL_STACK_OUTERMOST);
	EXPECT_INNERMOST(frames_loop_at_text, first_lr, 0);
}

TEST_F_TIMEOUT(frames, have_no_innermost_words_at_an_unreadable_stack_pointer, 150)
{
	const uintptr_t hole = (uintptr_t)area + 2 * PAGE;
	const uintptr_t at[] = { 0, 1, WORD, hole - WORD, hole - 2 * WORD + 1, hole,
				 hole + PAGE - WORD, hole + PAGE };

	*(uintptr_t *)(hole - WORD) = ADDRESS;
#ifdef FRAMES_LINK_REGISTER
	first_lr = ADDRESS;
#endif
	for (unsigned int i = 0; i < ARRAY_SIZE(at); i++)
		expect_no_words_at(_metadata, at[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(unreadable); i++)
		expect_no_words_at(_metadata, unreadable[i]);
	EXPECT_FALSE(pages_present(area + 3 * PAGE, 1));
}

#ifdef HAVE_TAGS

TEST_F(frames, have_addresses_without_tags_and_authentication_codes)
{
#ifdef __riscv
	const uintptr_t bits = 0xaa00000000000000;
#else
	const uintptr_t bits = 0xab70000000000000;
#endif

	SKIP_IF(!tags_enable(), "no tagged addresses here");
	first_sp |= bits;
	EXPECT_WORDS(ADDRESS | bits, 0, ADDRESS, 0);
	for (u32 i = 0; i < NR_FRAMES; i++) {
		frames[i].next |= i + 1 < NR_FRAMES ? bits : 0;
		frames[i].address |= bits;
	}
	EXPECT_END(frames, NR_FRAMES, PROFIL_STACK_OUTERMOST);
}

#endif

/*
 * Frames that another thread changes meanwhile
 */

static uintptr_t any_of(unsigned int *random, const uintptr_t *values, size_t n)
{
	return values[rand_r(random) % n];
}

static void *write_any_frames(void *unused)
{
	volatile struct frame *f = frames;
	unsigned int random = 1, i;

	(void)unused;
	while (!enough) {
		i = rand_r(&random) % NR_FRAMES;
		switch (rand_r(&random) % 8) {
		case 0:
			f[i].address = any_of(&random, not_of_user, ARRAY_SIZE(not_of_user));
			break;
		case 1:
			f[i].address = any_of(&random, unreadable, ARRAY_SIZE(unreadable));
			break;
		case 2:
			f[i].next = any_of(&random, unreadable, ARRAY_SIZE(unreadable));
			break;
		case 3:
			f[i].next = (uintptr_t)&f[rand_r(&random) % NR_FRAMES] +
				    rand_r(&random) % 9;
			break;
		default:
			f[i].next = frames_pointer((uintptr_t)&f[i + 1]);
			f[i].address = ADDRESS + i;
			break;
		}
	}
	return NULL;
}

/* Opens a session of this thread alone, with many ticks. */
static void open_again(void)
{
	drop_session();
	open_clocked_stacks(PROFIL_SCOPE_THREAD, 200000);
}

TEST_F_TIMEOUT(frames, of_a_changing_stack_have_only_addresses_of_text, 150)
{
	unsigned int ends[PROFIL_STACK_NULL + 1] = {}, i = 0, j;

	open_again();
	start_beside(write_any_frames, 0);
	first_fp = frames_pointer((uintptr_t)frames);
	first_sp = (uintptr_t)frames;
	/* The other thread may have no CPU for a time. */
	while (i < 20000 && (i < 200 || !ends[PROFIL_STACK_UNREADABLE] ||
			     !ends[PROFIL_STACK_ADDRESS])) {
		ASSERT_TRUE(run(loop_at_frames, 0, frames_loop_at_text, 1));
		for_each_new_record(r, i) {
			const struct profil_stack *stack = stack_of(r);

			if (!is_at(r, frames_loop_at_text))
				continue;
			ASSERT_GE((u32)PROFIL_STACK_ADDRESS, stack->end);
			ends[stack->end]++;
			ASSERT_GE(2 * NR_FRAMES + 2, stack->nr);
			/* Frames can overlap, but their links are not in an executable mapping. */
			for (j = 0; j < stack->nr; j++)
				EXPECT_GT(NR_FRAMES, stack->addresses[j] - ADDRESS);
			for (j = 0; j < 2; j++)
				EXPECT_EQ(0U, stack->innermost[j] >> (WORD == 8 ? 56 : 32));
		}
	}
	stop_beside();
	TH_LOG("outermost %u, misaligned %u, order %u, unreadable %u, address %u",
	       ends[PROFIL_STACK_OUTERMOST], ends[PROFIL_STACK_MISALIGNED],
	       ends[PROFIL_STACK_ORDER], ends[PROFIL_STACK_UNREADABLE], ends[PROFIL_STACK_ADDRESS]);
	EXPECT_LT(0U, ends[PROFIL_STACK_UNREADABLE]);
	EXPECT_LT(0U, ends[PROFIL_STACK_ADDRESS]);
}

/* Unmaps page 3, maps it, and makes it unreadable and not present, again and again. */
static void *change_mappings(void *unused)
{
	char *last = area + 3 * PAGE;

	(void)unused;
	while (!enough) {
		munmap(last, PAGE);
		if (mmap(last, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != last)
			break;
		*(volatile struct frame *)last = (struct frame) { 0, ADDRESS + 5 };
		loop_run(1, LOOP_BURST / 4);
		mprotect(last, PAGE, PROT_NONE);
		mprotect(last, PAGE, PROT_READ);
		loop_run(1, LOOP_BURST / 4);
		madvise(last, PAGE, MADV_DONTNEED);
	}
	return NULL;
}

TEST_F_TIMEOUT(frames, may_be_unmapped_at_any_time, 150)
{
	unsigned int whole = 0, cut = 0, i = 0;

	open_again();
	frames[4].next = frames_pointer((uintptr_t)area + 3 * PAGE);
	start_beside(change_mappings, 0);
	first_fp = frames_pointer((uintptr_t)frames);
	while (i < 20000 && (whole < TICKS || cut < TICKS)) {
		ASSERT_TRUE(run(loop_at_frames, 0, frames_loop_at_text, 1));
		for_each_new_record(r, i) {
			const struct profil_stack *stack = stack_of(r);

			if (!is_at(r, frames_loop_at_text))
				continue;
			/* A new page contains zeros. */
			EXPECT_TRUE((stack->nr == 5 && (stack->end == PROFIL_STACK_UNREADABLE ||
							stack->end == PROFIL_STACK_ADDRESS)) ||
				    (stack->nr == 6 && stack->end == PROFIL_STACK_OUTERMOST));
			for (u32 j = 0; j < stack->nr; j++)
				EXPECT_EQ(ADDRESS + j, stack->addresses[j]);
			cut += stack->nr == 5;
			whole += stack->nr == 6;
		}
	}
	stop_beside();
	EXPECT_LE(TICKS, whole);
	EXPECT_LE(TICKS, cut);
}

/*
 * Exec and exit
 */

TEST_F_TIMEOUT(stacks, of_a_task_in_exec_or_exit_are_empty, 150)
{
	const u32 no_pc = PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT;
	unsigned int in_exec = 0, in_exit = 0;
	siginfo_t info = {};
	pid_t child;

	fd = must_enable(must_open(.exec = PROFIL_EXEC_FOLLOW, .nr_records = 16 * RECORDS,
				   .period = 500000, .stack_depth = 10));
	child = SPAWN(({
		MUST(!descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
		exec_again(5);
		1;
	}));
	/* There are more ticks than the ring can hold if the kernel is slow. */
	do {
		ASSERT_EQ(0, read_all());
		ASSERT_EQ(0, waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT));
	} while (!info.si_pid && !poll(NULL, 0, 5));
	EXPECT_EQ(0, status_of(child));
	EXPECT_TRUE(await(read_all() == 1));
	for_each_record(r) {
		ASSERT_TRUE(r->flags & PROFIL_RECORD_STACK);
		in_exec += !!(r->flags & PROFIL_RECORD_EXEC);
		in_exit += !!(r->flags & PROFIL_RECORD_EXIT);
		EXPECT_EQ(!!(r->flags & no_pc),
			  stack_of(r)->end == PROFIL_STACK_NO_REGISTERS);
		if (r->flags & no_pc) {
			EXPECT_EQ(0U, stack_of(r)->nr);
			EXPECT_EQ(0U, stack_of(r)->innermost[0]);
			EXPECT_EQ(0U, stack_of(r)->innermost[1]);
		}
	}
	EXPECT_LT(0U, in_exec);
	EXPECT_LT(0U, in_exit);
}

#if defined(__x86_64__)

#define STACK_TOP	0x7ffffffff000	/* of programs whose addresses are not random */
#define WORDS		1024U		/* in the environment of a program */
#define FAILURES	20U

/*
 * Executes a program for which there is not enough memory: the exec fails when the old program is
 * gone already. Where the old program has its stack pointer and its frame pointer, the new stack
 * has the environment.
 */
static int fail_to_exec(u32 scope)
{
	/* This is enough for the stack, but not for the program. */
	const struct rlimit limit = { 1 << 20, 1 << 20 };
	/* The path has such a length that the words of the environment are aligned. */
	const char *const path = "//proc/self/exe";
	const uintptr_t sp = STACK_TOP - WORDS / 2 * sizeof(u64);
	static char *env[2 * WORDS + 1];
	char *const argv[] = { "again", NULL };
	long result;

	for (unsigned int i = 0; i < WORDS; i++) {
		env[2 * i] = "secret";
		env[2 * i + 1] = "";
	}
	MUST(scope == PROFIL_SCOPE_MACHINE || !descriptor_attach(fd, scope, 0, NULL));
	MUST(personality(ADDR_NO_RANDOMIZE) >= 0 && !setrlimit(RLIMIT_AS, &limit));
	asm volatile("	mov %%rsp, %%r12\n"
		     "	mov %%rbp, %%r13\n"
		     "	mov %[sp], %%rsp\n"
		     "	mov %[sp], %%rbp\n"
		     "	syscall\n"
		     "	mov %%r12, %%rsp\n"
		     "	mov %%r13, %%rbp\n"
		     : "=a"(result)
		     : "a"(SYS_execve), "D"(path), "S"(argv), "d"(env), [sp] "r"(sp)
		     : "rcx", "r11", "r12", "r13", "memory");
	return 40;
}

/* Checks that no record of a task whose exec has failed has words of the new program. */
static void expect_no_secrets(struct __test_metadata *_metadata, u32 scope)
{
	struct profil_query query;
	unsigned int in_exec = 0;

	ASSERT_EQ(0, device_query(&query));
	fd = must_enable(must_open(.exec = PROFIL_EXEC_FOLLOW, .nr_records = RECORDS,
				   .period = query.min_period, .stack_depth = 10));
	if (scope == PROFIL_SCOPE_MACHINE)
		ASSERT_EQ(0, descriptor_attach(fd, scope, 0, NULL));
	for (unsigned int i = 0; i < FAILURES; i++) {
		ASSERT_EQ(128 + SIGSEGV, status_of(SPAWN(fail_to_exec(scope))));
		ASSERT_LE(0, read_all());
	}
	for_each_record(r) {
		const struct profil_stack *stack = stack_of(r);

		ASSERT_TRUE(r->flags & PROFIL_RECORD_STACK);
		in_exec += !!(r->flags & PROFIL_RECORD_EXEC);
		EXPECT_EQ(NULL, memmem(stack, sizeof(*stack) + 8 * stack->nr, "secret", 6)) {
			TH_LOG("flags %x, pc %#llx, %u addresses", r->flags, r->pc, stack->nr);
		}
	}
	EXPECT_LT(0U, in_exec);
}

TEST_F_TIMEOUT(stacks, of_a_task_whose_exec_fails_have_nothing_of_the_new_program, 150)
{
	expect_no_secrets(_metadata, PROFIL_SCOPE_PROCESS);
}

/* In a session of the machine, no record of a task whose exec has failed has a pc. */
TEST_F_TIMEOUT(stacks, of_the_machine_have_nothing_of_a_program_whose_exec_fails, 150)
{
	SKIP_IF(geteuid(), "only root can sample the machine");
	expect_no_secrets(_metadata, PROFIL_SCOPE_MACHINE);
	/* The kernel names a task after its new program before it loads it. */
	for_each_record(r) {
		if (!strcmp(r->comm, "exe"))
			EXPECT_EQ(0ULL, r->pc);
	}
}

#endif

/*
 * Limits, and read()
 */

/* Returns the locked memory of a session with stacks of @depth, or a negative errno. */
static long long locked_by(u32 depth)
{
	u64 before = pinned_bytes(), after;
	int new = descriptor_open_as((struct profil_open){
		.modes = MODES_ALL, .nr_records = RECORDS, .stack_depth = depth,
	});

	if (new < 0)
		return new;
	after = pinned_bytes();
	close(new);
	return await(pinned_bytes() == before) ? (long long)(after - before) : -EBUSY;
}

TEST_F(stacks, are_charged_as_locked_memory)
{
	const long long page = PAGE, without = locked_by(0);

	ASSERT_LT(0, without);
	for (u32 depth = 1; depth <= DEPTH; depth += 21) {
		long long size = RECORDS * (sizeof(struct profil_stack) + 8 * depth);
		long long more = locked_by(depth) - without;

		EXPECT_LT(size - page, more);
		EXPECT_GT(size + page, more);
	}
}

static int exceed_limit(void)
{
	const rlim_t without = locked_by(0);

	become_user(USER);
	limit_memlock(without);
	MUST(locked_by(0) == (long long)without);
	return locked_by(32) == -EPERM && !pinned_bytes() ? 0 : 23;
}

TEST_F_CALL(stacks, are_refused_above_RLIMIT_MEMLOCK, EXPECT_EQ(0, status_of(spawn(exceed_limit))))

TEST_F_TIMEOUT(stacks, are_read_with_their_records_or_not_at_all, 150)
{
	static u64 buffer[8192];
	struct profil_stats s;
	ssize_t n = -1;
	size_t size;

	open_stacks(DEPTH);
	while (stats_now().outside < 3 * TICKS)
		frames_call(recurse, 30);
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	for (unsigned int i = 0; i < 8; i++) {
		for (size = HEADER; size <= sizeof(buffer); size += 8) {
			n = read(fd, buffer, size);
			if (n >= 0)
				break;
			ASSERT_EQ(EINVAL, errno);
		}
		/* The first record is returned as soon as the buffer is large enough. */
		ASSERT_EQ((ssize_t)size, n);
		ASSERT_EQ(1, take(buffer, n));
		/* Read with a buffer for 2.5 such records. The next record may be larger. */
		for (size += size + size / 2; (n = read(fd, buffer, size)) < 0; size *= 2)
			ASSERT_EQ(EINVAL, errno);
		ASSERT_LT(0, take(buffer, n));
	}
	ASSERT_EQ(0, read_all());
	EXPECT_EQ(s.outside, nr);
	EXPECT_STACK(frames_loop_text, callers, 31, PROFIL_STACK_OUTERMOST);
}

#endif /* __arm__ */

TEST_HARNESS_MAIN
