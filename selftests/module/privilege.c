// SPDX-License-Identifier: GPL-2.0
/*
 * Information that a session must not disclose: the pcs of a program with more privilege, of
 * another user or of another namespace, and kernel addresses.
 *
 * The tests create a program of one page at a known address, which only runs there. A counter for
 * that page, or a record with a pc in it, shows that an instruction of the program was sampled,
 * even if it is the first one. Every record is also searched for kernel addresses.
 *
 * All work is done in children, some of which change their user.
 */
#include "kselftest_harness.h"

/* The tests create many processes, which takes long on a busy machine. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	120

#include <elf.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/xattr.h>

#ifdef __riscv
#include <asm/ptrace.h>	/* struct user_regs_struct */
#endif

#include "kernel.h"
#include "loop.h"
#include "process.h"
#include "records.h"
#include "send.h"
#include "threads.h"
#include "users.h"

#define OTHER		1001	/* another ordinary user */
#define RECORDS		8192U	/* more than any test leaves unread */
#define ROUNDS		6

/* Parents and children take turns with step. */
static struct shared {
	u64 page[PAGE_MAX / sizeof(u64)];
	atomic_int step;
	atomic_int tid;
	u64 space;
	u64 counter;		/* the program's counter in a descriptor session */
	u64 classic;		/* the program's counter in a classic session */
	struct profil_stats stats;
} *shared;

/*
 * The program, in user code and system calls
 */

#define TEXT	0x10000000UL

#define LABEL(name) extern const char name[] __attribute__((visibility("hidden")))

LABEL(program_text);
LABEL(program_end);
LABEL(program_text_32);
LABEL(program_end_32);

#if defined(__x86_64__)
#define PROGRAM_MACHINE	EM_X86_64
#define PROGRAM_MACHINE_32	EM_386
#define PROGRAM_FLAGS_32	0
asm(".pushsection .rodata\n"
	"program_text:\n"
	"1: mov $10000, %ecx\n"
	"2: loop 2b\n"
	" mov $39, %eax\n"
	" syscall\n"
	" jmp 1b\n"
	"program_end:\n"
	".popsection\n");

asm(".pushsection .rodata\n"
	".code32\n"
	"program_text_32:\n"
	"1: mov $10000, %ecx\n"
	"2: loop 2b\n"
	" mov $20, %eax\n"
	" int $0x80\n"
	" jmp 1b\n"
	"program_end_32:\n"
	".code64\n"
	".popsection\n");
#elif defined(__aarch64__)
#define PROGRAM_MACHINE	EM_AARCH64
asm(".pushsection .rodata\n"
	"program_text:\n"
	"1: mov x1, #10000\n"
	"2: subs x1, x1, #1\n"
	" b.ne 2b\n"
	" mov x8, #172\n"
	" svc #0\n"
	" b 1b\n"
	"program_end:\n"
	".popsection\n");

#define PROGRAM_MACHINE_32	EM_ARM
#define PROGRAM_FLAGS_32	EF_ARM_EABI_VER5
asm(".pushsection .rodata\n"
	"program_text_32:\n"
	" .inst 0xe3021710\n"		/* 1: movw r1, #10000 */
	" .inst 0xe2511001\n"		/* 2: subs r1, r1, #1 */
	" .inst 0x1afffffd\n"		/* bne 2b */
	" .inst 0xe3a07014\n"		/* mov r7, #20 */
	" .inst 0xef000000\n"		/* svc #0 */
	" .inst 0xeafffff9\n"		/* b 1b */
	"program_end_32:\n"
	".popsection\n");
#elif defined(__riscv)
#define PROGRAM_MACHINE	EM_RISCV
asm(".pushsection .rodata\n"
	"program_text:\n"
	"1: li a1, 10000\n"
	"2: addi a1, a1, -1\n"
	" bnez a1, 2b\n"
	" li a7, 172\n"
	" ecall\n"
	" j 1b\n"
	"program_end:\n"
	".popsection\n");
#else
#error "No program for this architecture"
#endif

static char program[64];
static char *const program_argv[] = { program, NULL };
static char *const no_env[] = { NULL };

/* Permits CAP_NET_RAW and makes it effective; in the file's byte order, little-endian. */
static const u8 file_caps[20] = { [0] = 1, [3] = 2, [5] = 1 << (CAP_NET_RAW - 8) };

/* Returns 0; or a negative errno if it cannot be @capable. */
static int program_write(const void *image, size_t size, mode_t mode, bool capable)
{
	int to, err = 0;

	unlink(program);
	to = open(program, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	MUST(to >= 0 && write(to, image, size) == (ssize_t)size);
	MUST((geteuid() || !fchown(to, 0, 0)) && !fchmod(to, mode));
	if (capable && fsetxattr(to, "security.capability", file_caps, sizeof(file_caps), 0))
		err = -errno;
	close(to);
	return err;
}

/* Creates a program of @bits bits with the text from @text_ to @end. */
#define PROGRAM_CREATE(bits, machine, flags, text_, end, mode, capable) ({		\
	struct {									\
		Elf##bits##_Ehdr e;							\
		Elf##bits##_Phdr p;							\
		char text[128];								\
	} image = {									\
		.e = {									\
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,		\
				     ELFCLASS##bits, ELFDATA2LSB, EV_CURRENT },		\
			.e_type = ET_EXEC,						\
			.e_machine = machine,						\
			.e_version = EV_CURRENT,					\
			.e_entry = TEXT + sizeof(image.e) + sizeof(image.p),		\
			.e_phoff = sizeof(image.e),					\
			.e_flags = flags,						\
			.e_ehsize = sizeof(image.e),					\
			.e_phentsize = sizeof(image.p),					\
			.e_phnum = 1,							\
		},									\
		.p = {									\
			.p_type = PT_LOAD,						\
			.p_flags = PF_R | PF_X,						\
			.p_vaddr = TEXT,						\
			.p_filesz = sizeof(image),					\
			.p_memsz = sizeof(image),					\
			.p_align = PAGE,						\
		},									\
	};										\
											\
	memcpy(image.text, text_, (end) - (text_));					\
	program_write(&image, sizeof(image), mode, capable);				\
})

static int program_create(mode_t mode, bool capable)
{
	return PROGRAM_CREATE(64, PROGRAM_MACHINE, 0, program_text, program_end, mode, capable);
}

/* Executes the program, which runs forever. Returns only on an error, with the errno. */
static int program_run(void)
{
	execve(program, program_argv, no_env);
	return errno;
}

static bool program_runs(pid_t pid)
{
	char path[64], line[64];

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	return !strcmp(file_line(path, line, sizeof(line)), program);
}

/*
 * Children
 */

static bool step_is(int step)
{
	return await(shared->step >= step);
}

static int run_for_ever(void)
{
	shared->step++;
	loop_run(0, ~0UL);
	return 1;
}

static void run_until_told(void)
{
	shared->step = 1;
	while (shared->step < 2)
		loop_run(0, LOOP_BURST);
}

/* Like SPAWN(), but waits until the child has set the step. */
#define SPAWN_AND_WAIT(status) ({							\
	pid_t waited_;									\
											\
	shared->step = 0;								\
	waited_ = SPAWN(status);							\
	MUST(step_is(1));								\
	waited_;									\
})

static bool spends(pid_t pid, u64 ticks)
{
	u64 until = cpu_ticks(pid) + ticks;

	return await(cpu_ticks(pid) >= until);
}

/*
 * Sessions
 */

static struct profil_stats stats(void)
{
	struct profil_stats s = stats_now();

	MUST(accounted(&s));
	return s;
}

/* Opens and enables a session without targets. */
static void open_session(u32 on_fork, u32 on_exec)
{
	fd = must_enable(must_open(.fork = on_fork, .exec = on_exec, .nr_records = RECORDS));
}

/* Opens a session that follows forks and execs, as @user. */
static void open_as(uid_t user)
{
	become_user(user);
	open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW);
}

/* With five levels of page tables, as the emulated CPU has, kernel addresses begin here. */
static bool is_kernel_address(u64 word)
{
	return word >> 56 == 0xff;
}

static void must_have_no_kernel_address(const struct profil_record *r)
{
	__u64 word;

	MUST(!(r->pc >> 56));
	for (size_t at = 0; at + sizeof(word) <= r->size; at += sizeof(word)) {
		memcpy(&word, (const char *)r + at, sizeof(word));
		if (is_kernel_address(word))
			dprintf(STDERR_FILENO, "# %#llx at byte %zu of a record\n", word, at);
		MUST(!is_kernel_address(word));
	}
}

/* Reads all records and passes them to @look(). Returns their number. */
static unsigned int records_read(void (*look)(const struct profil_record *r))
{
	const unsigned int before = nr;

	MUST(read_all() >= 0);
	for (unsigned int i = before; i < nr; i++) {
		must_have_no_kernel_address(records[i]);
		look(records[i]);
	}
	return nr - before;
}

static unsigned int of_program, of_system, detached;
static struct profil_record last;

/* Checks that the record contains only facts that the user who executed the program knows. */
static void must_tell_of_program(const struct profil_record *r)
{
	u32 flags = PROFIL_RECORD_DETACHED | PROFIL_RECORD_FILE;

	if (access(program, R_OK))
		flags |= PROFIL_RECORD_UNREADABLE;
	MUST(r->flags == flags && !strcmp(path_of(r), program));
	MUST(!strncmp(r->comm, strrchr(program, '/') + 1, sizeof(r->comm) - 1));
	MUST(r->space == shared->space && r->pid && r->pid == r->tid);
	MUST(!r->pc && !r->start && !r->end && !r->offset && !r->periods);
}

static void note_record(const struct profil_record *r)
{
	if (r->flags & PROFIL_RECORD_DETACHED) {
		must_tell_of_program(r);
		detached++;
		return;
	}
	of_program += r->pc - TEXT < PAGE || r->start == TEXT || !strcmp(path_of(r), program);
	of_system += !!(r->flags & PROFIL_RECORD_SYSTEM);
	last = *r;
}

static void prepare(struct __test_metadata *_metadata)
{
	ASSERT_DEVICE();
	shared = map_shared(sizeof(*shared));
	snprintf(program, sizeof(program), "/tmp/profil-privilege.%d", getpid());
}

FIXTURE(privilege) {
	long long users;
};

FIXTURE_SETUP(privilege)
{
	prepare(_metadata);
	self->users = module_users();
}

FIXTURE_TEARDOWN(privilege)
{
	kill_children();
	unlink(program);
	EXPECT_NO_SESSIONS(self->users, 0);
}

/*
 * Programs with more privilege than the user that executes them: the session's creator and its
 * child belong to an ordinary user
 */

static void count_program(struct profil_range *range, u64 *counter)
{
	*range = range_all(counter, 1, 8);
	range->start = TEXT;
	range->end = TEXT + PAGE;
	range->offset = TEXT;
}

/* Joins a descriptor session, and starts a classic session. */
static int join_and_exec(void)
{
	struct profil_range range;

	count_program(&range, &shared->classic);
	MUST(!descriptor_attach(fd, PROCESS, 0, &shared->space));
	MUST(!session_start(PROCESS, 0, &range, 1));
	shared->step = 1;
	MUST(step_is(2));
	MUST(descriptor_burn(fd, 0, 3));
	return program_run();
}

static pid_t joined_and_execed(void)
{
	struct profil_range range;
	pid_t child;

	count_program(&range, &shared->counter);
	child = SPAWN_AND_WAIT(join_and_exec());
	MUST(!descriptor_add(fd, shared->space, &range, 1));
	shared->step = 2;
	MUST(await(program_runs(child)));
	return child;
}

/* The program in @child is not sampled, and ranges for a guessed id of its space are refused. */
static void must_not_be_sampled(pid_t child)
{
	struct profil_stats before, s;
	struct profil_range range;
	u64 id;

	MUST(await(!stats().targets));
	before = stats();
	MUST(spends(child, 5));
	s = stats();
	MUST(s.ticks + s.unselected == before.ticks + before.unselected && !s.targets);
	count_program(&range, &shared->counter);
	for (id = shared->space; id < shared->space + 16; id++)
		MUST(descriptor_add(fd, id, &range, 1) == -ESRCH);
	MUST(descriptor_attach(fd, PROCESS, child, NULL) == -EPERM);
	MUST(descriptor_attach(fd, THREAD, child, NULL) == -EPERM);
	MUST(killed(child) == 128 + SIGKILL);
	detached = 0;
	records_read(note_record);
	MUST(!of_program && !shared->counter && !shared->classic);
	MUST(detached == 1);
}

/* The program in @child is sampled, and the ranges of the old address space count none of it. */
static void must_be_sampled(pid_t child)
{
	MUST(stats().targets == 1);
	MUST(await((records_read(note_record), of_program >= 10)));
	MUST(last.pc - TEXT < PAGE && last.pid == child && last.space != shared->space);
	MUST(killed(child) == 128 + SIGKILL);
	records_read(note_record);
	/*
	 * Both counters have ranges in the old address space only, so the new program did not
	 * increment them.
	 */
	MUST(!shared->counter && !shared->classic && !detached);
}

static int exec_with_more_rights(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		open_as(USER);
		must_not_be_sampled(joined_and_execed());
		close(fd);
	}
	return 0;
}

/* Shows that the following tests would detect a sampled program. */
TEST_F(privilege, an_exec_without_privilege_is_followed_and_the_program_is_sampled)
{
	ASSERT_EQ(0, program_create(0755, false));
	EXPECT_CHILD({
		open_as(USER);
		must_be_sampled(joined_and_execed());
	});
}

static void expect_not_sampled(struct __test_metadata *_metadata, mode_t mode, bool capable)
{
	int err;

	NEED_ROOT("to become other users");
	err = program_create(mode, capable);
	SKIP_IF(capable && err == -EOPNOTSUPP, "/tmp cannot hold file capabilities");
	ASSERT_EQ(0, err);
	EXPECT_EQ(0, status_in_child(exec_with_more_rights()));
}

TEST_F_CALL(privilege, a_set_user_ID_exec_ends_sampling_before_the_first_instruction,
	    expect_not_sampled(_metadata, 04755, false))
TEST_F_CALL(privilege, a_set_group_ID_exec_ends_sampling_before_the_first_instruction,
	    expect_not_sampled(_metadata, 02755, false))
TEST_F_CALL(privilege, an_exec_with_file_capabilities_ends_sampling_before_the_first_instruction,
	    expect_not_sampled(_metadata, 0755, true))
TEST_F_CALL(privilege, an_exec_of_an_unreadable_file_ends_sampling_before_the_first_instruction,
	    expect_not_sampled(_metadata, 0711, false))

TEST_F(privilege, a_set_user_ID_exec_with_no_new_privs_is_followed)
{
	NEED_ROOT("to become other users");
	ASSERT_EQ(0, program_create(04755, false));
	/* With no_new_privs, the exec of a set-user-ID program gains no privilege. */
	EXPECT_CHILD({
		become_user(USER);
		MUST(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW);
		must_be_sampled(joined_and_execed());
	});
}

/*
 * Changes of credentials without an exec
 */

static int drop_and_exec(void)
{
	MUST(!descriptor_attach(fd, PROCESS, 0, &shared->space));
	become_user(USER);
	MUST(descriptor_burn(fd, 0, 5));
	return program_run();
}

TEST_F(privilege, a_joined_child_that_drops_privilege_is_still_sampled)
{
	NEED_ROOT("to become other users");
	ASSERT_EQ(0, program_create(0755, false));
	EXPECT_CHILD({
		pid_t child;

		open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW);
		child = spawn(drop_and_exec);
		MUST(await(program_runs(child)));
		must_be_sampled(child);
	});
}

/* By joining, the child has agreed to be sampled, but the program that it executes has not. */
static int join_and_gain(void)
{
	MUST(!descriptor_attach(fd, PROCESS, 0, &shared->space));
	MUST(!seteuid(0));
	MUST(descriptor_burn(fd, 0, 5));
	MUST(stats().targets == 1);
	return program_run();
}

TEST_F(privilege, a_joined_child_that_gains_privilege_is_sampled_until_it_execs)
{
	NEED_ROOT("to become other users");
	ASSERT_EQ(0, program_create(0755, false));
	EXPECT_CHILD({
		pid_t child;

		become_user_saving(USER, 0);
		open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW);
		child = spawn(join_and_gain);
		MUST(!setresuid(USER, USER, USER));
		MUST(await(program_runs(child)));
		must_not_be_sampled(child);
	});
}

/*
 * Processes of other users
 */

static pid_t victim;

static int describe(pid_t pid)
{
	struct profil_describe arg = { .size = sizeof(arg), .pid = pid };

	return device_ioctl(PROFIL_IOC_DESCRIBE, &arg);
}

/* Has a session of its own, as user USER. */
static int be_profiled(void)
{
	become_user(USER);
	MUST(!session_start(PROCESS, 0, NULL, 0));
	return run_for_ever();
}

static void must_be_refused(void)
{
	MUST(descriptor_attach(fd, PROCESS, victim, NULL) == -EPERM);
	MUST(descriptor_attach(fd, THREAD, victim, NULL) == -EPERM);
	MUST(spends(victim, 2));
	MUST(!stats().targets && !stats().ticks);
}

static int be_refused_as(uid_t user)
{
	open_as(user);
	must_be_refused();
	return 0;
}

/* A user may describe the user's own processes, as in /proc/PID/maps, but not attach them. */
static int try_as(uid_t user)
{
	be_refused_as(user);
	MUST(describe(victim) == (user == USER ? 0 : -EPERM));
	return 0;
}

TEST_F(privilege, attaching_another_users_process_is_refused)
{
	NEED_ROOT("to become other users");
	victim = SPAWN_AND_WAIT(be_profiled());
	EXPECT_EQ(0, status_in_child(try_as(OTHER)));
	EXPECT_EQ(0, status_in_child(try_as(USER)));
}

/*
 * The parameter attach=user: a user may attach the user's own processes
 */

/* Loads the module with @params. Returns 0 if that succeeds; it is loaded in any case. */
static int module_reload(const char *params)
{
	int number = device_fd(), err;

	device_close();
	MUST(await(!module_users()));
	MUST(!module_unload());
	err = module_load(params);
	if (err)
		MUST(!module_load(""));
	MUST(await(!device_reopen(number)));
	return err;
}

FIXTURE(attach) {
};

FIXTURE_SETUP(attach)
{
	SKIP_SETUP_IF(module_stays(), "%s", module_stays());
	prepare(_metadata);
	ASSERT_EQ(0, module_reload("attach=user"));
}

FIXTURE_TEARDOWN(attach)
{
	kill_children();
	unlink(program);
	EXPECT_EQ(0, module_reload(""));
}

TEST_F(attach, user_lets_a_user_sample_the_users_own_processes)
{
	victim = SPAWN_AND_WAIT(be_profiled());
	EXPECT_CHILD({
		open_as(USER);
		MUST(!descriptor_attach(fd, PROCESS, victim, &shared->space));
		MUST(await((records_read(note_record), stats().outside >= 10)));
		MUST(last.pid == victim && stats().targets == 1);
	});
	EXPECT_CHILD({
		open_as(USER);
		MUST(!descriptor_attach(fd, THREAD, victim, NULL));
		MUST(await(stats().outside >= 5));
	});
	/* Sessions that another process attaches have separate limits. */
	EXPECT_CHILD({
		become_user(USER);
		for (unsigned int i = 0; i < 8; i++)
			MUST(!descriptor_attach(must_open(), PROCESS, victim, NULL));
		MUST(descriptor_attach(must_open(), PROCESS, victim, NULL) == -EBUSY);
	});
	EXPECT_EQ(0, status_in_child(try_as(OTHER)));
}

TEST_F(attach, user_does_not_let_a_user_sample_a_process_with_more_rights)
{
#define EXPECT_REFUSED(...) do {						\
	victim = SPAWN_AND_WAIT((__VA_ARGS__, run_for_ever()));			\
	EXPECT_EQ(0, status_in_child(be_refused_as(USER))) {			\
		TH_LOG("%s", #__VA_ARGS__);					\
	}									\
	EXPECT_EQ(128 + SIGKILL, killed(victim));				\
} while (0)
	EXPECT_REFUSED(become_user(USER), prctl(PR_SET_DUMPABLE, 0));
	EXPECT_REFUSED(become_capable(USER, CAP_NET_RAW));
	EXPECT_REFUSED(become_user(OTHER));
	EXPECT_REFUSED(become_user_saving(USER, OTHER));
#undef EXPECT_REFUSED
}

/* A process of uid 0 can gain capabilities by any exec. */
TEST_F(attach, user_does_not_let_uid_0_sample_processes_of_uid_0)
{
	victim = SPAWN_AND_WAIT((set_cap(CAP_NET_RAW), run_for_ever()));
	EXPECT_CHILD({
		set_cap(CAP_NET_RAW);
		open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW);
		must_be_refused();
	});
}

TEST_F(attach, user_ends_with_an_exec_that_gains_privilege)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, program_create(i % 2 ? 0711 : 04755, false));
		victim = SPAWN_AND_WAIT((become_user(USER), run_until_told(), program_run()));
		/* The attached process executes a program that gains privilege. */
		EXPECT_CHILD({
			struct profil_range range;

			open_as(USER);
			MUST(!descriptor_attach(fd, PROCESS, victim, &shared->space));
			count_program(&range, &shared->counter);
			MUST(!descriptor_add(fd, shared->space, &range, 1));
			shared->step = 2;
			MUST(await(program_runs(victim)));
			MUST(await(!stats().targets));
			MUST(descriptor_attach(fd, PROCESS, victim, NULL) == -EPERM);
			MUST(spends(victim, 5));
			records_read(note_record);
			MUST(!of_program && !shared->counter && detached == 1);
		});
		EXPECT_EQ(128 + SIGKILL, killed(victim));
	}
}

TEST_F(attach, user_lasts_when_the_target_changes_its_user_without_exec)
{
	victim = SPAWN_AND_WAIT(({
		become_capable(USER, CAP_SETUID);
		run_until_told();
		MUST(!setresuid(OTHER, OTHER, OTHER));
		run_for_ever();
	}));
	EXPECT_EQ(0, status_in_child(be_refused_as(USER)));
	/* Only a caller that could become the other user itself can attach such a process. */
	EXPECT_CHILD({
		u64 outside;

		become_capable(USER, CAP_SETUID);
		open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW);
		MUST(!descriptor_attach(fd, PROCESS, victim, NULL));
		shared->step = 2;
		MUST(step_is(3));
		outside = stats().outside;
		MUST(await(stats().outside >= outside + 5));
		MUST(descriptor_attach(fd, THREAD, victim, NULL) == -EPERM);
	});
}

TEST_F(attach, has_two_values)
{
	int log = log_open();

	ASSERT_LE(0, log);
	EXPECT_EQ(-EINVAL, module_reload("attach=root"));
	EXPECT_TRUE(log_has(log, "attach=root: the value must be capable or user"));
	EXPECT_EQ(-EINVAL, module_reload("attach="));
	EXPECT_EQ(0, module_reload("attach=capable"));
	victim = SPAWN_AND_WAIT(be_profiled());
	EXPECT_EQ(0, status_in_child(try_as(USER)));
	close(log);
}

/* Tries to attach the victim, or else the machine, with the capability @cap. Returns the errno. */
static int attach_with(unsigned int cap)
{
	int err;

	become_capable(OTHER, cap);
	open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW);
	err = descriptor_attach(fd, victim ? PROCESS : PROFIL_SCOPE_MACHINE, victim, NULL);
	MUST(stats().targets == !err);
	return -err;
}

/* Tries each capability below CAP_PERFMON in a child, and expects that only @good suffices. */
static void expect_only(struct __test_metadata *_metadata, unsigned int good)
{
	for (unsigned int cap = 0; cap <= CAP_AUDIT_READ; cap++)
		EXPECT_EQ(cap == good ? 0 : EPERM, status_in_child(attach_with(cap)));
	EXPECT_EQ(0, status_in_child(attach_with(CAP_PERFMON)));
}

TEST_F(privilege, CAP_PERFMON_or_CAP_SYS_PTRACE_is_needed_to_attach_others_and_suffices)
{
	NEED_ROOT("to become other users");
	victim = SPAWN_AND_WAIT(be_profiled());
	expect_only(_metadata, CAP_SYS_PTRACE);
}

TEST_F(privilege, CAP_PERFMON_or_CAP_SYS_ADMIN_is_needed_to_sample_the_machine_and_suffices)
{
	NEED_ROOT("to become other users");
	expect_only(_metadata, CAP_SYS_ADMIN);
}

/* Runs in another process at the same addresses as the targets. */
static int run_beside(void)
{
	shared->step++;
	loop_run(5, ~0UL);
	return 1;
}

static pid_t targets[2];

static void must_be_targets(const struct profil_record *r)
{
	MUST(r->pid == targets[0] || r->pid == targets[1]);
	MUST(r->tid == r->pid);
	MUST(strcmp(r->comm, "beside"));
}

static int join_and_run(void)
{
	MUST(!descriptor_attach(fd, PROCESS, 0, &shared->space));
	MUST(descriptor_burn(fd, 1, 30));
	return 0;
}

TEST_F_CHILD(privilege, no_other_processs_pc_is_counted_or_recorded)
{
	struct profil_range range = range_of_loops(shared->page, 8);

	prctl(PR_SET_NAME, "beside");
	for (unsigned int i = 0; i < 3; i++)
		spawn(run_beside);
	prctl(PR_SET_NAME, "target");
	MUST(step_is(3));
	open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF);
	targets[0] = getpid();
	MUST(!descriptor_attach(fd, PROCESS, 0, &shared->space));
	/* The range is in the creator's space only, so the child's ticks leave records. */
	MUST(!descriptor_add(fd, shared->space, &range, 1));
	targets[1] = spawn(join_and_run);
	MUST(!status_of(targets[1]));
	MUST(descriptor_burn(fd, 0, 30));
	MUST(!descriptor_disable(fd, NULL));
	MUST(records_read(must_be_targets) >= 20);
	MUST(counter(shared->page, 8, 0) >= 10);
	MUST(!counter(shared->page, 8, 5));
	return 0;
}

/*
 * User namespaces
 */

static int be_root_in_a_namespace(void)
{
	pid_t outer, child, forked;

	become_user(USER);
	outer = SPAWN_AND_WAIT(be_profiled());
	enter_namespaces(0);
	open_session(PROFIL_FORK_SHARE, PROFIL_EXEC_FOLLOW);

	/* Processes outside the namespace are refused: the user's own, root's, and process 1. */
	victim = outer;
	must_be_refused();
	MUST(describe(outer) == -EPERM);
	MUST(descriptor_attach(fd, PROCESS, getppid(), NULL) == -EPERM);
	MUST(descriptor_attach(fd, PROCESS, 1, NULL) == -EPERM);
	/*
	 * As with ptrace(2), an address space belongs to the namespace in which its program was
	 * exec'd.
	 */
	forked = spawn(run_for_ever);
	victim = forked;
	must_be_refused();
	MUST(killed(forked) == 128 + SIGKILL);

	child = spawn(program_run);
	MUST(await(program_runs(child)));
	MUST(!descriptor_attach(fd, PROCESS, child, NULL));
	must_be_sampled(child);
	return 0;
}

TEST_F(privilege, root_of_a_user_namespace_may_attach_processes_of_it_but_none_outside)
{
	NEED_NAMESPACES();
	ASSERT_EQ(0, program_create(0755, false));
	EXPECT_EQ(0, status_in_child(be_root_in_a_namespace()));
}

TEST_F(privilege, root_of_a_user_namespace_has_the_limits_of_an_ordinary_user)
{
	NEED_NAMESPACES();
	EXPECT_CHILD({
		struct profil_range range = range_of_loops(shared->page, 8);
		struct profil_query outside, inside;

		become_user(USER);
		MUST(!device_query(&outside));
		limit_memlock(PAGE);
		enter_namespaces(0);
		MUST(!device_query(&inside));
		MUST(inside.min_period == outside.min_period && inside.min_period > 10000);
		MUST(clock_start(PROCESS, 0, inside.min_period - 1, NULL, 0) == -EPERM);
		range.start = 0;
		range.offset = 0;
		range.nr_counters = PAGE / 8;
		MUST(!session_start(PROCESS, 0, &range, 1));
		range.buffer += 8;	/* extends into the next page */
		MUST(session_start(PROCESS, PROFIL_START_REPLACE, &range, 1) == -EPERM);
		MUST(descriptor_open(MODES_ALL, 0, 0, 64) == -EPERM);
	});
}

/* Returns an exit status: 0 if the only capability @cap lifts the shortest period, or else 2. */
static int ask_with(unsigned int cap)
{
	struct profil_query query;

	MUST(!prctl(PR_SET_KEEPCAPS, 1));
	become_user(USER);
	MUST(!device_query(&query) && query.min_period > 10000);
	set_cap(cap);
	MUST(!device_query(&query));
	return query.min_period == 10000 ? 0 : 2;
}

TEST_F(privilege, CAP_PERFMON_or_CAP_SYS_ADMIN_is_needed_for_a_shorter_period_and_suffices)
{
	NEED_ROOT("to become other users");
	EXPECT_EQ(0, status_in_child(ask_with(CAP_PERFMON)));
	EXPECT_EQ(0, status_in_child(ask_with(CAP_SYS_ADMIN)));
	EXPECT_EQ(2, status_in_child(ask_with(CAP_SYS_PTRACE)));
}

TEST_F(privilege, nothing_is_described_across_user_namespaces)
{
	NEED_ROOT("to become other users");
	NEED_NAMESPACES();
	victim = SPAWN_AND_WAIT(({
		become_user(USER);
		enter_namespaces(0);
		/* Without an exec, the address space belongs to the namespace outside. */
		MUST(!prctl(PR_SET_DUMPABLE, 1));
		MUST(!session_start(PROCESS, 0, NULL, 0));
		run_for_ever();
	}));
	EXPECT_CHILD({
		become_user(USER);
		MUST(describe(victim) == -EPERM);
	});
	EXPECT_EQ(0, describe(victim)) {
		TH_LOG("root could not");
	}
	killed(victim);

	victim = SPAWN_AND_WAIT(be_profiled());
	EXPECT_CHILD({
		become_user(USER);
		enter_namespaces(0);
		MUST(describe(victim) == -EPERM);
	});
}

/*
 * Containers: the root of a user and pid namespace, with the device
 */

static int ends[2] = { -1, -1 };

static char container[64];

static void container_enter(void)
{
	int device = device_fd(), file;

	MUST(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	MUST(!mount("container", container, "tmpfs", 0, NULL));
	MUST(!chdir(container));
	MUST(!mkdir("dev", 0755));
	file = open("dev/profil", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	MUST(file >= 0);
	close(file);
	MUST(!mount(PROFIL_DEVICE, "dev/profil", NULL, MS_BIND, NULL));
	MUST(!chroot("."));
	device_close();
	MUST(!device_reopen(device));
}

static int join_with_a_thread(void)
{
	MUST(!descriptor_attach(fd, PROCESS, 0, &shared->space));
	start_beside(run_loop, 1);
	MUST(await(thread_id));
	shared->tid = thread_id;
	run_until_told();
	stop_beside();
	return 0;
}

static pid_t seen_pid, seen_tids[2];
static unsigned int by_thread[2];

static void expect_ids(pid_t pid, pid_t first_thread, pid_t second_thread)
{
	seen_pid = pid;
	seen_tids[0] = first_thread;
	seen_tids[1] = second_thread;
}

static void must_have_ids(const struct profil_record *r)
{
	MUST(r->pid == seen_pid && (r->tid == seen_tids[0] || r->tid == seen_tids[1]));
	for (unsigned int i = 0; i < 2; i++) {
		if (in_loop(r, addr(loops_text), i)) {
			MUST(r->tid == seen_tids[i]);
			by_thread[i]++;
		}
	}
}

/* Process 1 of the container. @fd is a session that was opened outside. */
static int be_the_container(void)
{
	int outer = fd;
	pid_t child;

	MUST(getpid() == 1);
	container_enter();
	MUST(!descriptor_attach(outer, PROCESS, 0, NULL));
	MUST(descriptor_burn(outer, 0, 10));

	open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF);
	child = spawn(join_with_a_thread);
	MUST(step_is(1));
	expect_ids(child, child, child + 1);
	MUST(shared->tid == child + 1);
	MUST(await((records_read(must_have_ids), by_thread[0] >= 5 && by_thread[1] >= 5)));
	shared->step = 2;
	MUST(!status_of(child));

	/* Processes outside have no pid in the container. */
	MUST(descriptor_attach(fd, PROCESS, victim, NULL) == -ESRCH);
	MUST(describe(victim) == -ESRCH);
	close(fd);

	/* A session of the container's, which a process outside the container joins. */
	open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF);
	MUST(!send_fd(ends[1], fd));
	MUST(step_is(3));
	return 0;
}

static int run_container(void)
{
	pid_t child;
	int theirs;

	become_user(USER);
	victim = SPAWN_AND_WAIT(be_profiled());
	shared->step = 0;
	MUST(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends));
	open_session(PROFIL_FORK_OFF, PROFIL_EXEC_OFF);
	enter_namespaces(CLONE_NEWNS | CLONE_NEWPID);
	child = spawn(be_the_container);
	theirs = receive_fd(ends[0]);
	MUST(theirs >= 0);

	/*
	 * Process 1 of the container has joined the session outside, where it has the pid that
	 * fork() returned.
	 */
	expect_ids(child, child, child);
	MUST(records_read(must_have_ids) >= 5);

	/* This process joins the session of the container, where it has no pid. */
	fd = theirs;
	expect_ids(0, 0, 0);
	MUST(!descriptor_attach(fd, PROCESS, 0, NULL));
	MUST(descriptor_burn(fd, 0, 10));
	MUST(records_read(must_have_ids) >= 5);
	shared->step = 3;
	MUST(!status_of(child));
	return 0;
}

TEST_F(privilege, in_a_container_ids_are_those_of_its_namespace_and_0_for_others)
{
	NEED_NAMESPACES();
	snprintf(container, sizeof(container), "/tmp/profil-container.%d", getpid());
	ASSERT_EQ(0, mkdir(container, 0755));
	EXPECT_EQ(0, status_in_child(run_container()));
	rmdir(container);
}

/*
 * ptrace
 */

#if defined(__x86_64__)
#define PC_OF(regs)	((regs).rip)
#else
#define PC_OF(regs)	((regs).pc)
#endif

/* @request: PTRACE_GETREGSET or PTRACE_SETREGSET */
static void regs_access(int request, pid_t pid, struct user_regs_struct *regs)
{
	struct iovec iov = { regs, sizeof(*regs) };

	MUST(!ptrace(request, pid, NT_PRSTATUS, &iov));
}

/* Memory that a tracer can write with ptrace(2), although the target cannot. */
static void *spare;

static int join_and_loop(void)
{
	MUST(!descriptor_attach(fd, PROCESS, 0, &shared->space));
	shared->step = 1;
	loop_run(0, ~0UL);
	return 1;
}

static void stop_it(pid_t pid)
{
	struct user_regs_struct regs;
	int status;

	MUST(!ptrace(PTRACE_INTERRUPT, pid, 0, 0));
	MUST(waitpid(pid, &status, 0) == pid);
	MUST(WIFSTOPPED(status));
	/* Waits until the task sleeps; before that, it can still get a tick. */
	regs_access(PTRACE_GETREGSET, pid, &regs);
}

static void go_on(pid_t pid)
{
	MUST(!ptrace(PTRACE_CONT, pid, 0, 0));
}

static bool is_at(pid_t pid, u64 pc)
{
	struct user_regs_struct regs;

	regs_access(PTRACE_GETREGSET, pid, &regs);
	return PC_OF(regs) - pc < LOOP_BLOCK;
}

/* Creates a child that is sampled, traced, and stopped in loop 0. */
static pid_t traced(u32 on_exec, int (*child)(void))
{
	struct profil_range range = range_of_loops(shared->page, 8);
	pid_t pid;

	spare = map_pages(1);
	MUST(!mprotect(spare, PAGE, PROT_READ | PROT_EXEC));
	fd = must_open(.exec = on_exec, .nr_records = RECORDS);
	pid = spawn(child);
	MUST(step_is(1));
	MUST(!descriptor_add(fd, shared->space, &range, 1));
	MUST(!ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC));
	stop_it(pid);
	while (!is_at(pid, loop_at(0))) {
		go_on(pid);
		stop_it(pid);
	}
	MUST(!descriptor_enable(fd));
	return pid;
}

static u64 hits(unsigned int i)
{
	return counter(shared->page, 8, i);
}

TEST_F_CHILD(privilege, a_traced_target_has_no_ticks_while_it_is_stopped)
{
	pid_t child = traced(PROFIL_EXEC_OFF, join_and_loop);
	struct profil_stats before, s;

	for (unsigned int i = 0; i < 3; i++) {
		before = stats();
		/* Other tasks get ticks while the target is stopped. */
		loop_spend(1, 5, tick_ns());
		s = stats();
		MUST(s.ticks == before.ticks && s.missed == before.missed && s.targets == 1);
		go_on(child);
		MUST(await(hits(0) >= before.hit + 5));
		stop_it(child);
	}
	MUST(killed(child) == 128 + SIGKILL);
	MUST(stats().hit == counters_sum(shared->page, 8, LOOPS));
	MUST(!hits(1));
	return 0;
}

TEST_F(privilege, a_single_stepped_target_is_counted_at_its_own_pc)
{
#ifdef __riscv
	SKIP(return, "the kernel does not single-step on riscv");
#endif
	/* All pcs are in the loop, none in the tracer or in the handling of the trap. */
	EXPECT_CHILD({
		pid_t child = traced(PROFIL_EXEC_OFF, join_and_loop);
		unsigned long steps = 0;
		int status;

		while (stats().ticks < 10 && steps < 3000000) {
			for (unsigned int i = 0; i < 100; i++, steps++) {
				MUST(!ptrace(PTRACE_SINGLESTEP, child, 0, 0));
				MUST(waitpid(child, &status, 0) == child);
				MUST(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
			}
			MUST(is_at(child, loop_at(0)));
		}
		MUST(!descriptor_disable(fd, NULL));
		MUST(stats().ticks >= 10 && stats().hit == stats().ticks);
		MUST(hits(0) == stats().hit);
		MUST(killed(child) == 128 + SIGKILL);
	});
}

static unsigned int in_spare;

static void must_be_spare(const struct profil_record *r)
{
	MUST(r->pc - addr(spare) < LOOP_SIZE && r->start == addr(spare) && !path_of(r)[0]);
	in_spare++;
}

TEST_F_CHILD(privilege, a_target_whose_pc_the_tracer_changes_is_counted_at_its_new_pc)
{
	pid_t child = traced(PROFIL_EXEC_OFF, join_and_loop);
	struct user_regs_struct regs;
	unsigned int i;
	u64 before;
	long word;

	regs_access(PTRACE_GETREGSET, child, &regs);
	for (i = 1; i < LOOPS; i++) {
		PC_OF(regs) = loop_at(i);
		before = hits(i - 1);
		regs_access(PTRACE_SETREGSET, child, &regs);
		go_on(child);
		MUST(await(hits(i) >= 3));
		stop_it(child);
		MUST(hits(i - 1) == before);
	}
	MUST(stats().outside == 0);

	/* Writes new code to an address that is in no range. */
	for (i = 0; i < LOOP_SIZE; i += sizeof(word)) {
		memcpy(&word, loops_text + i, sizeof(word));
		MUST(!ptrace(PTRACE_POKETEXT, child, (char *)spare + i, word));
	}
	PC_OF(regs) = addr(spare) + LOOP_BLOCK;
	regs_access(PTRACE_SETREGSET, child, &regs);
	before = counters_sum(shared->page, 8, LOOPS);
	go_on(child);
	MUST(await((records_read(must_be_spare), in_spare >= 5)));
	MUST(killed(child) == 128 + SIGKILL);
	MUST(counters_sum(shared->page, 8, LOOPS) == before && stats().hit == before);
	return 0;
}

static int join_loop_and_exec(void)
{
	MUST(!descriptor_attach(fd, PROCESS, 0, &shared->space));
	run_until_told();
	return program_run();
}

static void let_it_exec(pid_t pid)
{
	int status;

	shared->step = 2;
	go_on(pid);
	MUST(waitpid(pid, &status, 0) == pid);
	MUST(WIFSTOPPED(status) && status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8));
}

TEST_F(privilege, a_traced_exec_is_followed)
{
	ASSERT_EQ(0, program_create(0755, false));
	EXPECT_CHILD({
		pid_t child = traced(PROFIL_EXEC_FOLLOW, join_loop_and_exec);

		let_it_exec(child);
		/* The new program is stopped before its first instruction. */
		records_read(note_record);
		MUST(stats().targets == 1);
		MUST(hits(0) == counters_sum(shared->page, 8, LOOPS));
		go_on(child);
		must_be_sampled(child);
	});
}

/* Traced by an ordinary user, the program gains no privilege; even so it is not followed. */
TEST_F(privilege, a_traced_set_user_ID_exec_is_not_followed)
{
	NEED_ROOT("to become other users");
	ASSERT_EQ(0, program_create(04755, false));
	EXPECT_CHILD({
		pid_t child;

		become_user(USER);
		child = traced(PROFIL_EXEC_FOLLOW, join_loop_and_exec);
		let_it_exec(child);
		MUST(!stats().targets);
		go_on(child);
		must_not_be_sampled(child);
	});
}

TEST_F_CHILD(privilege, a_traced_target_is_sampled_after_detach_until_it_is_killed)
{
	pid_t child = traced(PROFIL_EXEC_OFF, join_and_loop);
	struct profil_stats s;

	MUST(!ptrace(PTRACE_DETACH, child, 0, 0));
	MUST(await(hits(0) >= 5));
	MUST(!ptrace(PTRACE_SEIZE, child, 0, 0));
	MUST(await(hits(0) >= 10));
	stop_it(child);
	MUST(killed(child) == 128 + SIGKILL);
	MUST(await(!stats().targets));
	s = stats();
	MUST(s.hit == counters_sum(shared->page, 8, LOOPS));
	MUST(s.ticks == s.hit + s.outside + s.dropped_exit);
	return 0;
}

/*
 * Kernel addresses
 */

#define SAMPLED_MS	400
#define CLOCK_NS	100000

static const struct profil_range *own_range;	/* a classic session uses it; or NULL */

/*
 * A sampled process that makes system calls, faults, forks and exits, uses the vdso, and then
 * execs.
 */
static int do_everything(void)
{
	u64 until = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) + SAMPLED_MS * 1000000ULL;
	char buffer[4096];
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct timespec t;
	char *p;

	if (own_range)
		MUST(!clock_start(PROCESS, 0, CLOCK_NS, own_range, 1));
	else
		MUST(!descriptor_attach(fd, PROCESS, 0, NULL));
	while (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) < until) {
		for (unsigned int i = 0; i < 200; i++) {
			MUST(read(zero, buffer, sizeof(buffer)) == sizeof(buffer));
			getppid();
			clock_gettime(CLOCK_MONOTONIC, &t);
		}
		p = map_private(64 * PAGE);
		memset(p, 1, 64 * PAGE);
		munmap(p, 64 * PAGE);
		MUST(!status_in_child(0));
	}
	MUST(!session_stats(PROCESS, &shared->stats));
	shared->step = 1;
	return program_run();
}

static pid_t has_done_everything(void)
{
	pid_t child = spawn(do_everything);

	MUST(await(shared->step == 1 && program_runs(child)));
	return child;
}

TEST_F(privilege, no_record_contains_a_kernel_address)
{
	ASSERT_EQ(0, program_create(0755, false));
	EXPECT_CHILD({
		unsigned int n = 0;
		pid_t child;

		fd = must_enable(must_open(.fork = PROFIL_FORK_SHARE, .exec = PROFIL_EXEC_FOLLOW,
					   .nr_records = RECORDS, .period = CLOCK_NS));
		child = spawn(do_everything);
		MUST(await((n += records_read(note_record),
			    shared->step == 1 && program_runs(child))));
		MUST(spends(child, 5));
		n += records_read(note_record);
		MUST(killed(child) == 128 + SIGKILL);
		MUST(n >= 200 && of_system >= 20);
	});
}

#define PCS	16384U

TEST_F(privilege, no_pc_that_PROFIL_RANGE_PCS_stores_is_a_kernel_address)
{
	ASSERT_EQ(0, program_create(0755, false));
	EXPECT_CHILD({
		u64 *pcs = map_shared(PCS * sizeof(*pcs));
		struct profil_range range = range_of(0, UINT64_MAX, pcs, PCS, sizeof(*pcs));
		unsigned int i, n = 0;

		range.flags = PROFIL_RANGE_PCS;
		own_range = &range;
		MUST(killed(has_done_everything()) == 128 + SIGKILL);
		MUST(shared->stats.system >= 20);
		for (i = 0; i < PCS; i++) {
			MUST(!(pcs[i] >> 56));
			n += !!pcs[i];
		}
		if (n < 100)
			dprintf(STDERR_FILENO, "# %u pcs of %llu ticks, %llu hits\n", n,
				shared->stats.ticks, shared->stats.hit);
		MUST(n >= 100);
	});
}

TEST_F(privilege, no_counter_for_kernel_addresses_is_incremented)
{
	ASSERT_EQ(0, program_create(0755, false));
	EXPECT_CHILD({
		struct profil_range range = range_all(&shared->counter, 1, 8);

		/* The range of all kernel addresses. */
		range.start = 1ULL << 63;
		range.offset = range.start;
		own_range = &range;
		MUST(killed(has_done_everything()) == 128 + SIGKILL);
		MUST(shared->stats.system >= 20 && !shared->stats.hit && !shared->counter);
	});
}

#ifdef PROGRAM_MACHINE_32

static int program_create_32(void)
{
	return PROGRAM_CREATE(32, PROGRAM_MACHINE_32, PROGRAM_FLAGS_32, program_text_32,
			      program_end_32, 0755, false);
}

/* After the exec all pcs are in the 32-bit program, in user code and in system calls. */
static void must_be_of_32_bits(const struct profil_record *r)
{
	if (r->space == shared->space || r->flags & PROFIL_RECORD_EXEC)
		return;
	note_record(r);
	MUST(r->pc <= UINT32_MAX && r->pc - TEXT < PAGE);
	MUST(!(r->flags & PROFIL_RECORD_MAPPED) || !strcmp(path_of(r), program));
}

TEST_F(privilege, a_32_bit_task_is_sampled_at_32_bit_addresses)
{
	pid_t child;
	bool runs;

	ASSERT_EQ(0, program_create_32());
	child = spawn(program_run);
	runs = await(program_runs(child) || waitpid(child, NULL, WNOHANG) == child) &&
	       program_runs(child);
	SKIP_IF(!runs, "the kernel has no 32-bit tasks");
	killed(child);
	EXPECT_CHILD({
		pid_t child;

		open_as(USER);
		child = joined_and_execed();
		MUST(await((records_read(must_be_of_32_bits), of_program >= 20 && of_system)));
		MUST(killed(child) == 128 + SIGKILL);
	});
}

#endif

TEST_HARNESS_MAIN
