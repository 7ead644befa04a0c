// SPDX-License-Identifier: GPL-2.0
/*
 * The system call of a record: its number and its ABI, as in struct seccomp_data, for ticks in the
 * kernel; and none for faults, interrupts, and ticks in user mode.
 *
 * Also built as a 32-bit program (syscalls_32), whose calls have another ABI.
 */
#include "kselftest_harness.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "records.h"

#if defined(__x86_64__)
#define ARCH	AUDIT_ARCH_X86_64
#elif defined(__i386__)
#define ARCH	AUDIT_ARCH_I386
#elif defined(__aarch64__)
#define ARCH	AUDIT_ARCH_AARCH64
#elif defined(__arm__)
#define ARCH	AUDIT_ARCH_ARM
#elif defined(__riscv)
#define ARCH	AUDIT_ARCH_RISCV64
#endif

#define PERIOD_NS	400000
#define RECORDS		16384
#define TICKS		100	/* in the kernel */
#define NO_CALL		-1

/* Opens and enables a session, and samples the calling thread if @attach is true. */
static void open_session(bool attach)
{
	fd = must_open(.nr_records = RECORDS, .period = PERIOD_NS);
	MUST(!attach || !descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	must_enable(fd);
}

/* Calls @work() until there are TICKS ticks in the kernel. Then reads the records. */
static bool sample(void (*work)(void))
{
	open_session(true);
	work_until(stats_now().system >= TICKS, work());
	return !descriptor_disable(fd, NULL) && !read_all() && nr >= TICKS;
}

static bool in_kernel(const struct profil_record *r)
{
	return r->flags & PROFIL_RECORD_SYSTEM;
}

static unsigned int count_calls(int call)
{
	return records_where(r, in_kernel(r) && r->syscall == call);
}

/* The calls of sample() itself */
static const int own_calls[] = {
	SYS_ioctl,
#ifdef SYS_clock_gettime
	SYS_clock_gettime,
#endif
#ifdef SYS_clock_gettime64
	SYS_clock_gettime64,
#endif
};

static bool has_call(const int *calls, size_t n, int call)
{
	while (n && calls[n - 1] != call)
		n--;
	return n;
}

/*
 * Checks that all ticks in the kernel were in one of the @n @calls, in sample(), or in no call; and
 * that those in user mode and in softirqs were in no call.
 */
static void expect_only(struct __test_metadata *_metadata, const int *calls, size_t n)
{
	unsigned int others = 0;

	for_each_record(r) {
		if (r->syscall == NO_CALL) {
			EXPECT_EQ(0U, r->arch);
			continue;
		}
		EXPECT_TRUE(in_kernel(r));
		EXPECT_EQ((u32)ARCH, r->arch);
		EXPECT_EQ(0U, r->flags & PROFIL_RECORD_SOFTIRQ);
		if (has_call(calls, n, r->syscall) ||
		    has_call(own_calls, ARRAY_SIZE(own_calls), r->syscall))
			continue;
		others++;
		TH_LOG("call %d at %llx", r->syscall, r->pc);
	}
	EXPECT_EQ(0U, others);
}

#define EXPECT_ONLY(...) do {							\
	const int calls_[] = { __VA_ARGS__ };					\
										\
	expect_only(_metadata, calls_, ARRAY_SIZE(calls_));			\
} while (0)

/* Samples @work(), which mostly makes the call @call, and no other. */
static void expect_call(struct __test_metadata *_metadata, void (*work)(void), int call)
{
	ASSERT_TRUE(sample(work));
	EXPECT_LE(TICKS / 4U, count_calls(call));
	expect_only(_metadata, &call, 1);
}

FIXTURE(syscalls) {
};

FIXTURE_SETUP(syscalls)
{
	ASSERT_DEVICE();
}

FIXTURE_TEARDOWN(syscalls)
{
	kill_children();
	if (fd >= 0)
		close(fd);
}

/*
 * Calls
 */

static char bytes[1 << 18];
static int zero;

/* The calls of sample() take longer than one read on a debug kernel, and would have all ticks. */
static void read_zeros(void)
{
	for (unsigned int i = 0; i < 64; i++)
		MUST(read(zero, bytes, sizeof(bytes)) == sizeof(bytes));
}

TEST_F(syscalls, of_ticks_in_a_read_are_read)
{
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, zero);
	expect_call(_metadata, read_zeros, SYS_read);
}

static void get_random(void)
{
	MUST(syscall(SYS_getrandom, bytes, sizeof(bytes), 0) > 0);
}

TEST_F_CALL(syscalls, of_ticks_in_getrandom_are_getrandom,
	    expect_call(_metadata, get_random, SYS_getrandom))

static void get_parent(void)
{
	for (unsigned int i = 0; i < 1000; i++)
		syscall(SYS_getppid);
}

/* The interrupt of a tick often waits while the kernel is entered. */
TEST_F_CALL(syscalls, of_ticks_in_short_calls_have_their_number,
	    expect_call(_metadata, get_parent, SYS_getppid))

#ifdef __x86_64__
#define GETRANDOM_32	355

static char *low;	/* memory below 4 GiB */

static long call_32(long call, void *buffer, size_t size)
{
	asm volatile("int $0x80"
		     : "+a"(call) : "b"(buffer), "c"(size), "d"(0)
		     : "r8", "r9", "r10", "r11", "memory");
	return call;
}

static void get_random_32(void)
{
	MUST(call_32(GETRANDOM_32, low, PAGE) == (long)PAGE);
}

TEST_F(syscalls, of_a_32_bit_ABI_in_a_64_bit_program_have_that_ABI)
{
	unsigned int n = 0;

	low = map_new(PAGE, MAP_PRIVATE | MAP_32BIT);
	SKIP_IF(status_in_child(call_32(GETRANDOM_32, low, 1) != 1),
		"this kernel does not take 32-bit system calls");
	ASSERT_TRUE(sample(get_random_32));
	for_each_record(r) {
		if (r->arch != AUDIT_ARCH_I386)
			continue;
		EXPECT_EQ(GETRANDOM_32, r->syscall);
		n++;
		/* expect_only() shall see only the other calls. */
		r->syscall = NO_CALL;
		r->arch = 0;
	}
	EXPECT_LE(TICKS / 2U, n);
	EXPECT_ONLY(SYS_ioctl);
}
#endif

/*
 * Calls that do not take place, that are interrupted and that are restarted
 */

#define FILTER_LENGTH	4000	/* instructions, so that a call takes long */

/* Writes a filter of @length + 1 instructions. */
static void fill_filter(struct sock_filter *filter, unsigned int length, u32 result)
{
	for (; length; length--)
		*filter++ = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, length);
	*filter = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result);
}

/* Makes the kernel do @action instead of getppid(), after @length more instructions. */
static int filter_getppid(u32 action, unsigned int length)
{
	static struct sock_filter filter[FILTER_LENGTH + 4] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = length + 4, .filter = filter };

	fill_filter(filter + 3, length, action);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ?:
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* Sets a handler that returns with rt_sigreturn() on each architecture. */
static int handle(int number, void (*handler)(int), int flags)
{
	const struct sigaction action = {
		.sa_handler = handler,
		.sa_flags = flags | SA_SIGINFO,
	};

	return sigaction(number, &action, NULL);
}

static void take_signal(int number)
{
	(void)number;
}

FIXTURE(filtered) {
};

FIXTURE_VARIANT(filtered) {
	u32 action;
};

FIXTURE_VARIANT_ADD(filtered, with_an_error) { SECCOMP_RET_ERRNO | EPERM };
FIXTURE_VARIANT_ADD(filtered, with_a_signal) { SECCOMP_RET_TRAP };
FIXTURE_VARIANT_ADD(filtered, for_a_tracer) { SECCOMP_RET_TRACE };

FIXTURE_SETUP(filtered)
{
	ASSERT_DEVICE();
}

FIXTURE_TEARDOWN(filtered)
{
	if (fd >= 0)
		close(fd);
}

TEST_F(filtered, calls_have_their_number)
{
	ASSERT_EQ(0, handle(SIGSYS, take_signal, 0));
	ASSERT_EQ(0, filter_getppid(variant->action, FILTER_LENGTH));
	ASSERT_TRUE(sample(get_parent));
	/* On a debug kernel, most of the time is the signal's, or the interrupts'. */
	EXPECT_LE(TICKS / 10U, count_calls(SYS_getppid));
	EXPECT_ONLY(SYS_getppid, SYS_rt_sigreturn);
}

#if defined(__x86_64__) || defined(__i386__)
#define STACK_SIZE	(2UL << 20)	/* a huge page */

static char *stack;			/* of the handler */

/* The kernel takes long to write the frame of the handler to an empty page. */
static void get_parent_with_signal(void)
{
	madvise(stack, STACK_SIZE, MADV_DONTNEED);
	syscall(SYS_getppid);
}

/* After a filter has raised a signal, the registers are as those of a call that is restarted. */
TEST_F(syscalls, that_look_like_restarted_ones_keep_their_number_on_x86)
{
	stack_t alternative = { .ss_size = STACK_SIZE };

	stack = map_private(2 * STACK_SIZE);
	stack += -addr(stack) % STACK_SIZE;
	/* With small pages the test is weaker. */
	madvise(stack, STACK_SIZE, MADV_HUGEPAGE);
	alternative.ss_sp = stack;
	ASSERT_EQ(0, sigaltstack(&alternative, NULL));
	ASSERT_EQ(0, handle(SIGSYS, take_signal, SA_ONSTACK));
	ASSERT_EQ(0, filter_getppid(SECCOMP_RET_TRAP, 0));
	ASSERT_TRUE(sample(get_parent_with_signal));
	EXPECT_LE(TICKS / 4U, count_calls(SYS_getppid));
	EXPECT_ONLY(SYS_getppid, SYS_rt_sigreturn, SYS_madvise);
}
#endif

static int ends[2];		/* of a pipe */

/* Writes the byte that ends the read after enough ticks. */
static void end_read(int number)
{
	static unsigned int signals;

	(void)number;
	if (fd >= 0 && ++signals % 10 == 0 &&
	    (stats_now().system >= 2 * TICKS || signals > 100000))
		MUST(write(ends[1], "", 1) == 1);
}

static int interrupt_parent(void)
{
	/* Without a pause, the parent might not get to the call. */
	while (!kill(getppid(), SIGUSR1))
		usleep(500);
	return 1;
}

TEST_F(syscalls, of_ticks_in_a_read_that_is_restarted_are_read)
{
	char byte;

	ASSERT_EQ(0, pipe(ends));
	ASSERT_EQ(0, handle(SIGUSR1, end_read, SA_RESTART));
	ASSERT_LT(0, spawn(interrupt_parent));
	open_session(true);
	EXPECT_EQ(1, read(ends[0], &byte, 1));
	EXPECT_EQ(0, descriptor_disable(fd, NULL));
	kill_children();
	EXPECT_EQ(0, read_all());
	EXPECT_LE(10U, count_calls(SYS_read));
	EXPECT_ONLY(SYS_read, SYS_write, SYS_rt_sigreturn);
}

static int sleep_for_ever(void)
{
	const long duration[2] = { 1000 };	/* seconds, and nanoseconds */

	MUST(!descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, NULL));
	for (;;)
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, duration, NULL);
}

/* A child that has stopped continues its call with another one. */
TEST_F_TIMEOUT(syscalls, of_ticks_in_a_sleep_that_is_continued_are_restart_syscall, 150)
{
	int status;
	pid_t child;

	open_session(false);
	child = spawn(sleep_for_ever);
	EXPECT_TRUE(await(stats_now().targets && task_state(child) == 'S'));
	for (unsigned int i = 0; i < 20000 && count_calls(SYS_restart_syscall) < 10; i++) {
		ASSERT_EQ(0, kill(child, SIGSTOP));
		ASSERT_EQ(child, waitpid(child, &status, WUNTRACED));
		ASSERT_TRUE(WIFSTOPPED(status));
		ASSERT_EQ(0, kill(child, SIGCONT));
		for (unsigned int j = 0; j < 1000 && task_state(child) != 'S'; j++)
			sched_yield();
		ASSERT_EQ(0, read_all());
	}
	EXPECT_LE(10U, count_calls(SYS_restart_syscall));
	EXPECT_ONLY(SYS_restart_syscall, SYS_clock_nanosleep);
}

/*
 * No calls
 */

/* The code of this section touches memory, and does nothing else. */
#define TOUCHING	__attribute__((noinline, section("touching")))

extern const char __start_touching[], __stop_touching[];

#ifdef SYS_mmap2
#define NR_MMAP	SYS_mmap2
#else
#define NR_MMAP	SYS_mmap
#endif

static TOUCHING void touch(volatile char *from, const volatile char *to)
{
	for (; from < to; from += 4096)
		*from = 1;
}

static bool is_fault(const struct profil_record *r)
{
	return in_kernel(r) && r->pc >= addr(__start_touching) && r->pc < addr(__stop_touching);
}

/* The kernel takes long to make the pages, first in the call and then in faults. */
static void map_and_touch(void)
{
	const size_t size = 4 << 20;
	char *p = map_new(size, MAP_PRIVATE | MAP_POPULATE);

	MUST(!madvise(p, size, MADV_DONTNEED));
	touch(p, p + size);
	MUST(!munmap(p, size));
}

TEST_F(syscalls, are_none_for_ticks_in_a_page_fault)
{
	/* Huge pages take less time, in the call and in faults. */
	ASSERT_EQ(0, prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	ASSERT_TRUE(sample(map_and_touch));
	EXPECT_LE(TICKS / 20U, records_where(r, is_fault(r)));
	EXPECT_EQ(0U, records_where(r, is_fault(r) && r->syscall != NO_CALL));
	EXPECT_LE(TICKS / 20U, count_calls(NR_MMAP));
	EXPECT_ONLY(NR_MMAP, SYS_munmap, SYS_madvise);
}

TEST_F(syscalls, are_none_for_ticks_in_user_mode)
{
	open_session(true);
	EXPECT_TRUE(descriptor_burn(fd, 0, TICKS));
	ASSERT_EQ(0, descriptor_disable(fd, NULL));
	EXPECT_EQ(0, read_all());
	EXPECT_LE(TICKS / 2U, records_where(r, !in_kernel(r)));
	EXPECT_EQ(0U, records_where(r, !in_kernel(r) && r->flags & PROFIL_RECORD_SOFTIRQ));
	EXPECT_ONLY(SYS_ioctl);
}

#define RPS_CPUS	"/sys/class/net/lo/queues/rx-0/rps_cpus"
#define OPTMEM_MAX	"/proc/sys/net/core/optmem_max"	/* bytes of a filter */

/*
 * Sends packets from CPU 1, for ever. CPU 0 receives them: it runs a long filter in the softirq of
 * an interrupt. If there were many packets at a time, a thread of the kernel would do that.
 */
static int send_packets(void)
{
	static struct sock_filter filter[FILTER_LENGTH + 1];
	const struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(to);

	run_on_cpu(1);
	fill_filter(filter, FILTER_LENGTH, 0);
	MUST(!setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
	MUST(!bind(s, (const void *)&to, sizeof(to)));
	MUST(!getsockname(s, (void *)&to, &size));
	for (;;) {
		sendto(s, bytes, 64, 0, (const void *)&to, sizeof(to));
		usleep(200);
	}
}

static bool loopback_is_up(void)
{
	struct ifreq lo = { .ifr_name = "lo" };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_up;

	is_up = !ioctl(s, SIOCGIFFLAGS, &lo) && (lo.ifr_flags |= IFF_UP, true) &&
		!ioctl(s, SIOCSIFFLAGS, &lo);
	close(s);
	return is_up;
}

static void loop(void)
{
	loop_run(0, LOOP_BURST);
}

/* The sender has its turn rarely on a slow machine: there are rounds without a packet. */
#define SOFTIRQ_ROUNDS	20

TEST_F(syscalls, are_none_for_ticks_in_a_softirq_and_have_a_flag)
{
	unsigned int n = 0, rounds = 0;
	char before[64], optmem[64];
	bool sampled;

	SKIP_IF(sysconf(_SC_NPROCESSORS_ONLN) < 2, "one CPU");
	SKIP_IF(preempt_rt(), "with PREEMPT_RT, threads of the kernel serve softirqs");
	SKIP_IF(geteuid() || !loopback_is_up() ||
		file_exchange(RPS_CPUS, "1", before, sizeof(before)) ||
		file_exchange(OPTMEM_MAX, "1048576", optmem, sizeof(optmem)),
		"packets cannot be received on another CPU");
	run_on_cpu(0);
	spawn(send_packets);
	do {
		if (rounds)
			close(fd);
		sampled = sample(loop);
		n = records_where(r, r->flags & PROFIL_RECORD_SOFTIRQ);
	} while (sampled && n < TICKS / 20 && ++rounds < SOFTIRQ_ROUNDS);
	file_write(RPS_CPUS, before);
	file_write(OPTMEM_MAX, optmem);
	ASSERT_TRUE(sampled);
	TH_LOG("%u of %u ticks in a softirq", n, nr);
	EXPECT_LE(TICKS / 20U, n);
	EXPECT_EQ(0U, records_where(r, r->flags & PROFIL_RECORD_SOFTIRQ && !in_kernel(r)));
	EXPECT_ONLY(SYS_ioctl);
}

TEST_HARNESS_MAIN
