// SPDX-License-Identifier: GPL-2.0
/*
 * Unwind tables: the stacks of functions without frame pointers, by tables that this program makes
 * by hand for functions that it has in assembly; and tables that are refused.
 */
#include "kselftest_harness.h"

#include <poll.h>

#include "device.h"

#ifdef __x86_64__

#include "fixture.h"
#include "records.h"
#include "unwind.h"

#define RECORDS		1024U
#define DEPTH		127U
#define TICKS		10U	/* that a test waits for */
#define BURST		0x80000UL	/* iterations of a loop */
#define BIG_FRAME	30000	/* bytes */
#define MUCH		(1UL << 20)	/* bytes: a write of these takes many ticks */
#define REGISTER_MIN	6		/* r11, in struct pt_regs */
#define NR_REGISTERS	9
#define RAX		10

/*
 * unwind_outer calls @callee, which is unwind_middle or calls it by @next, with the frame pointer
 * @fp; that calls unwind_framed, and that unwind_leaf, which has a loop of @n iterations at each
 * distance from its frame.
 */
extern void unwind_outer(unsigned long n, uintptr_t fp, const void *callee, const void *next);
extern const char unwind_outer_return[], unwind_middle_return[], unwind_framed_return[];
extern const char unwind_middle[], unwind_middle_1[], unwind_framed[], unwind_framed_1[];
extern const char unwind_framed_2[], unwind_leaf[], unwind_leaf_1[], unwind_leaf_2[];
extern const char unwind_leaf_3[], unwind_leaf_4[], unwind_restorer[], unwind_handler[];
extern const char unwind_handler_loop[], unwind_end[];
extern const char unwind_step_0[], unwind_step_1[], unwind_step_2[], unwind_step_3[];

asm(".pushsection .text\n"
	"unwind_outer:\n"
	"	push %rbp\n"
	"	mov %rsi, %rbp\n"
	"	call *%rdx\n"
	"unwind_outer_return:\n"
	"	pop %rbp\n"
	"	ret\n"
	"unwind_middle:\n"
	"	sub $30000, %rsp\n"
	"	lea 30000(%rsp), %rax\n"
	"	mov %rax, 8(%rsp)\n"		/* the CFA - 8, at the stack pointer + 8 */
	"	lea 29928(%rsp), %rax\n"
	"	mov %rax, 16(%rsp)\n"		/* the CFA - 80 */
	"	lea unwind_other(%rip), %rax\n"
	"	mov %rax, 24(%rsp)\n"		/* that of another stack - 8 */
	"unwind_middle_1:\n"
	"	call unwind_framed\n"
	"unwind_middle_return:\n"
	"	add $30000, %rsp\n"
	"	ret\n"
	"unwind_framed:\n"
	"	push %rbp\n"
	"unwind_framed_1:\n"
	"	mov %rsp, %rbp\n"
	"	lea 16(%rbp), %rax\n"
	"	push %rax\n"			/* the CFA, at the frame pointer - 8 */
	"	and $-64, %rsp\n"
	"unwind_framed_2:\n"
	"	call unwind_leaf\n"
	"unwind_framed_return:\n"
	"	leave\n"
	"	ret\n"
	"unwind_leaf:\n"
	"	mov %rdi, %rcx\n"
	"unwind_step_0:\n"
	"	loop unwind_step_0\n"
	"	push %rbx\n"
	"unwind_leaf_1:\n"
	"	mov %rdi, %rcx\n"
	"unwind_step_1:\n"
	"	loop unwind_step_1\n"
	"	push %rbp\n"
	"unwind_leaf_2:\n"
	"	mov $0x7654321, %ebp\n"
	"	mov %rdi, %rcx\n"
	"unwind_step_2:\n"
	"	loop unwind_step_2\n"
	"	pop %rbp\n"
	"unwind_leaf_3:\n"
	"	pop %rbx\n"
	"unwind_leaf_4:\n"
	"	mov %rdi, %rcx\n"
	"unwind_step_3:\n"
	"	loop unwind_step_3\n"
	"	ret\n"
	"	nop\n"
	"unwind_restorer:\n"
	"	mov $15, %eax\n"		/* rt_sigreturn() */
	"	syscall\n"
	"unwind_handler:\n"
	"	mov $0x80000, %ecx\n"
	"unwind_handler_loop:\n"
	"	loop unwind_handler_loop\n"
	"	ret\n"
	"unwind_end:\n"
	"	nop\n"
	".popsection\n"
	".pushsection .data\n"
	".balign 8\n"
	"unwind_other:\n"
	"	.quad unwind_outer_return\n"
	".popsection\n");

#define RULE_SP(cfa_, fp_)	{ .kind = PROFIL_UNWIND_SP, .cfa = cfa_, .fp = fp_ }
#define RULE_FP(cfa_, fp_)	{ .kind = PROFIL_UNWIND_FP, .cfa = cfa_, .fp = fp_ }

enum { MIDDLE = 2, FRAMED = 5, LEAF = 6, END = 13 };

/* The rows: from where a rule applies. */
static struct row {
	const char *from;
	struct profil_unwind_rule rule;
} rows[] = {
	{ (const char *)unwind_outer, { .kind = PROFIL_UNWIND_OUTERMOST } },
	{ unwind_middle, RULE_SP(8, 0) },
	[MIDDLE] = { unwind_middle_1, RULE_SP(BIG_FRAME + 8, 0) },
	{ unwind_framed, RULE_SP(8, 0) },
	{ unwind_framed_1, RULE_SP(16, -16) },
	[FRAMED] = { unwind_framed_2, RULE_FP(16, -16) },
	[LEAF] = { unwind_leaf, RULE_SP(8, 0) },
	{ unwind_leaf_1, RULE_SP(16, 0) },
	{ unwind_leaf_2, RULE_SP(24, -24) },
	{ unwind_leaf_3, RULE_SP(16, 0) },
	{ unwind_leaf_4, RULE_SP(8, 0) },
	{ unwind_restorer - 1, { .kind = PROFIL_UNWIND_SIGNAL } },
	{ unwind_handler, RULE_SP(8, 0) },
	[END] = { unwind_end, { .kind = PROFIL_UNWIND_NONE } },
};

#define NR_ROWS	ARRAY_SIZE(rows)

/* The table of this program */
static struct table {
	u32 blocks[16384];
	u32 rows[NR_ROWS];
	struct profil_unwind_rule rules[NR_ROWS];
	struct profil_unwind arg;
} table;

static void make_table(int file)
{
	const u64 bias = text_offset(rows[0].from) - addr(rows[0].from);

	table.arg = (struct profil_unwind) {
		.size = sizeof(table.arg),
		.fd = file,
		.nr_blocks = (addr(unwind_end) + bias) / PROFIL_UNWIND_BLOCK + 1,
		.nr_rows = NR_ROWS,
		.nr_rules = NR_ROWS,
		.blocks = addr(table.blocks),
		.rows = addr(table.rows),
		.rules = addr(table.rules),
	};
	MUST(table.arg.nr_blocks <= ARRAY_SIZE(table.blocks));
	memset(table.blocks, 0, sizeof(table.blocks));
	for (u32 i = 0; i < NR_ROWS; i++) {
		const u64 offset = addr(rows[i].from) + bias;

		table.rows[i] = (offset % PROFIL_UNWIND_BLOCK) << 16 | i;
		table.rules[i] = rows[i].rule;
		for (u32 b = offset / PROFIL_UNWIND_BLOCK + 1; b < table.arg.nr_blocks; b++)
			table.blocks[b] = i + 1;
	}
}

static int give(const struct profil_unwind *arg)
{
	return descriptor_ioctl(fd, PROFIL_IOC_UNWIND, (void *)arg);
}

static int open_stacks(void)
{
	return must_open(.nr_records = RECORDS, .period = 200000, .stack_depth = DEPTH);
}

FIXTURE(unwind) {
	int file;
};

FIXTURE_SETUP(unwind)
{
	sessions_setup(_metadata);
	self->file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->file);
	make_table(self->file);
	fd = must_sample(open_stacks(), PROFIL_SCOPE_THREAD, NULL, 0);
}

FIXTURE_TEARDOWN(unwind)
{
	close(self->file);
	sessions_teardown(_metadata);
}

/* Replaces the session by one with the table. */
static void open_again(struct __test_metadata *_metadata, u32 scope)
{
	close(fd);
	fd = open_stacks();
	ASSERT_EQ(0, give(&table.arg));
	must_sample(fd, scope, NULL, 0);
}

static bool is_at(const struct profil_record *r, const char *text)
{
	return r->pc - addr(text) < 2;
}

/* Calls @callee until @ticks more records are in the loop at @text. */
static bool run_by(const void *callee, uintptr_t fp, const char *text, unsigned int ticks)
{
	unsigned int found = 0, seen = nr;

	return work_until(found >= ticks, {
		unwind_outer(BURST, fp, callee, unwind_middle);
		if (read_all())
			return false;
		for_each_new_record(r, seen)
			found += is_at(r, text);
	});
}

static bool run(uintptr_t fp, const char *text, unsigned int ticks)
{
	return run_by(unwind_middle, fp, text, ticks);
}

/* Returns true if an address is @address, and was found by a table. */
static bool is_by_table(u64 found, const char *address)
{
	return found == (addr(address) | PROFIL_STACK_BY_TABLE);
}

/* Checks that each tick in the loop at @text has the stack, which was found by tables. */
static void expect_stack(struct __test_metadata *_metadata, const char *text,
			 const char *const *addresses, u32 n, u32 end)
{
	for_each_record(r) {
		const struct profil_stack *stack = stack_of(r);
		bool same = stack->nr == n && stack->end == end;

		if (!is_at(r, text))
			continue;
		for (u32 j = 0; j < n && same; j++)
			same = is_by_table(stack->addresses[j], addresses[j]);
		EXPECT_TRUE(same) {
			TH_LOG("%u addresses, end %u, not %u addresses, end %u; the first: %#llx",
			       stack->nr, stack->end, n, end, stack->nr ? stack->addresses[0] : 0);
			return;
		}
	}
}

#define EXPECT_STACK(text, addresses, n, end) expect_stack(_metadata, text, addresses, n, end)

static const char *const callers[] = {
	unwind_framed_return, unwind_middle_return, unwind_outer_return,
};

static const char *const steps[] = { unwind_step_0, unwind_step_1, unwind_step_2, unwind_step_3 };

TEST_F(unwind, finds_the_callers_at_each_instruction)
{
	ASSERT_EQ(0, give(&table.arg));
	for (unsigned int i = 0; i < ARRAY_SIZE(steps); i++) {
		EXPECT_TRUE(run(0x1234567, steps[i], TICKS));
		EXPECT_STACK(steps[i], callers, 3, PROFIL_STACK_OUTERMOST);
	}
	for_each_record(r)
		if (is_at(r, unwind_step_0))
			EXPECT_EQ(0U, stack_of(r)->innermost[0]);
}

TEST_F(unwind, without_a_table_follows_the_frame_pointer)
{
	/* unwind_framed has a frame, but unwind_middle and unwind_outer have none. */
	EXPECT_TRUE(run(0, unwind_step_0, TICKS));
	for_each_record(r) {
		const struct profil_stack *stack = stack_of(r);

		if (!is_at(r, unwind_step_0))
			continue;
		EXPECT_EQ(1U, stack->nr);
		EXPECT_EQ(addr(unwind_middle_return), stack->addresses[0]);
		EXPECT_EQ(addr(unwind_framed_return), stack->innermost[0]);
	}
	/* The table is used from when it is there. */
	ASSERT_EQ(0, read_all());
	ASSERT_EQ(0, give(&table.arg));
	nr = 0;
	EXPECT_TRUE(run(0, unwind_step_0, TICKS));
	EXPECT_STACK(unwind_step_0, callers, 3, PROFIL_STACK_OUTERMOST);
}

/* Gives the table with another @rule for row @i, and expects @n callers of a run with @fp. */
static void expect_with(struct __test_metadata *_metadata, uintptr_t fp, u32 i,
			struct profil_unwind_rule rule, u32 n, u32 end)
{
	table.rules[i] = rule;
	ASSERT_EQ(0, give(&table.arg));
	EXPECT_TRUE(run(fp, unwind_step_0, TICKS));
	EXPECT_STACK(unwind_step_0, callers, n, end);
}

#define TEST_WITH(name, i, rule_, n, end) \
TEST_F(unwind, name) \
{ \
	expect_with(_metadata, 0x1234567, i, (struct profil_unwind_rule)rule_, n, end); \
}

#define BRACES(...) { __VA_ARGS__ }

TEST_WITH(reads_the_CFA_from_the_stack, FRAMED,
	  BRACES(.kind = PROFIL_UNWIND_FP_INDIRECT, .cfa = -8), 3, PROFIL_STACK_OUTERMOST)
TEST_WITH(reads_the_CFA_from_above_the_stack_pointer, MIDDLE,
	  BRACES(.kind = PROFIL_UNWIND_SP_INDIRECT, .cfa = 8), 3, PROFIL_STACK_OUTERMOST)
TEST_WITH(adds_to_the_word_on_the_stack, MIDDLE,
	  BRACES(.kind = PROFIL_UNWIND_SP_INDIRECT, .cfa = 16, .number = 9), 3,
	  PROFIL_STACK_OUTERMOST)
TEST_WITH(goes_to_another_stack, MIDDLE,
	  BRACES(.kind = PROFIL_UNWIND_SP_INDIRECT, .cfa = 24), 3, PROFIL_STACK_OUTERMOST)
TEST_WITH(takes_the_CFA_from_a_register, FRAMED,
	  BRACES(.kind = PROFIL_UNWIND_REGISTER, .number = RAX, .fp = -16), 3,
	  PROFIL_STACK_OUTERMOST)
TEST_WITH(ends_where_the_table_says_so, MIDDLE, BRACES(.kind = PROFIL_UNWIND_END), 2,
	  PROFIL_STACK_NO_RULE)
TEST_WITH(ends_at_the_outermost_function, LEAF, BRACES(.kind = PROFIL_UNWIND_OUTERMOST), 0,
	  PROFIL_STACK_OUTERMOST)
TEST_WITH(follows_the_frame_pointer_without_a_rule, MIDDLE, BRACES(.kind = PROFIL_UNWIND_NONE), 2,
	  PROFIL_STACK_ORDER)
TEST_WITH(ends_where_a_frame_is_not_above_the_previous_one, MIDDLE, RULE_SP(0, 0), 2,
	  PROFIL_STACK_ORDER)
TEST_WITH(ends_where_a_frame_is_below_the_previous_one, MIDDLE, RULE_SP(-64, 0), 2,
	  PROFIL_STACK_ORDER)
TEST_WITH(ends_where_a_frame_is_not_in_user_memory, MIDDLE, RULE_SP(INT32_MAX, 0), 2,
	  PROFIL_STACK_UNREADABLE)
TEST_WITH(ends_where_a_frame_is_nowhere, MIDDLE, RULE_FP(0x50000000, 0), 2, PROFIL_STACK_ORDER)
/* The word at the stack pointer + 8 is an address of the stack: see unwind_middle. */
TEST_WITH(ends_where_the_address_is_not_in_text, MIDDLE, RULE_SP(16, 0), 2, PROFIL_STACK_ADDRESS)

/* The rule takes the frame pointer that unwind_framed has saved for the return address. */
TEST_F_CALL(unwind, ends_at_the_return_address_0,
	    expect_with(_metadata, 0, FRAMED, (struct profil_unwind_rule)RULE_FP(8, 0), 1,
			PROFIL_STACK_NULL))
TEST_F_CALL(unwind, does_not_end_at_the_return_address_1,
	    expect_with(_metadata, 1, FRAMED, (struct profil_unwind_rule)RULE_FP(8, 0), 1,
			PROFIL_STACK_ADDRESS))

/* ---- code that was made at run time ---- */

#define STUB	"\x48\x83\xec\x08\xff\xd1"		/* sub $8,%rsp; call *%rcx */
#define STUB_RETURN	6
#define STUB_END	"\x48\x83\xc4\x08\xc3"		/* add $8,%rsp; ret */
#define OTHER_END	"\x48\x83\xc4\x08\x90\xc3"	/* with a nop */

/* Maps @code at the end of a page, before one that cannot be read. @file: of the mapping, or -1 */
static const char *map_code_of(const char *code, size_t size, int file)
{
	const size_t page = PAGE;
	char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | (file < 0 ? MAP_ANONYMOUS : 0), file, 0);

	MUST(pages != MAP_FAILED);
	memcpy(pages + page - size, code, size);
	MUST(!mprotect(pages, page, PROT_READ | PROT_EXEC));
	MUST(!mprotect(pages + page, page, PROT_NONE));
	return pages + page - size;
}

#define MAP_CODE_OF(code, file)	map_code_of(code, sizeof(code) - 1, file)
#define MAP_CODE(code)		MAP_CODE_OF(code, -1)

/* Expects that the stack of a call through @code has the first @n addresses. */
static void expect_path(struct __test_metadata *_metadata, const char *code,
			const char *const *addresses, u32 n, u32 end)
{
	nr = 0;
	EXPECT_TRUE(run_by(code, 0x1234567, unwind_step_0, TICKS));
	EXPECT_STACK(unwind_step_0, addresses, n, end);
}

/* Returns the callers if unwind_middle is called by @stub. */
static const char *const *callers_by(const char *stub)
{
	static const char *addresses[4] = {
		unwind_framed_return, unwind_middle_return, NULL, unwind_outer_return,
	};

	addresses[2] = stub + STUB_RETURN;
	return addresses;
}

#define EXPECT_CALL(stub, n, end) expect_path(_metadata, stub, callers_by(stub), n, end)

static void expect_by_stub(struct __test_metadata *_metadata, const char *stub, u32 n, u32 end)
{
	ASSERT_EQ(0, give(&table.arg));
	EXPECT_CALL(stub, n, end);
}

TEST_F_CALL(unwind, finds_the_caller_of_made_code_by_the_instructions_after_a_call,
	    expect_by_stub(_metadata, MAP_CODE(STUB STUB_END), 4, PROFIL_STACK_OUTERMOST))
TEST_F_CALL(unwind, follows_the_frame_pointer_in_made_code_with_other_instructions,
	    expect_by_stub(_metadata, MAP_CODE(STUB OTHER_END), 3, PROFIL_STACK_ORDER))
/* pop %rdx; ret */
TEST_F_CALL(unwind, follows_the_frame_pointer_in_made_code_at_the_end_of_a_mapping,
	    expect_by_stub(_metadata, MAP_CODE(STUB "\x5a\xc3"), 3, PROFIL_STACK_ORDER))

/* The last instruction is in another mapping, in which the code also runs. */
TEST_F(unwind, reads_no_instructions_of_the_next_mapping)
{
	const char *stub = MAP_CODE(STUB "\x48\x83\xc4\x08");
	char *next = (char *)((addr(stub) / PAGE + 1) * PAGE);

	ASSERT_EQ(0, mprotect(next, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
	*next = '\xc3';
	expect_by_stub(_metadata, stub, 3, PROFIL_STACK_ORDER);
}

static int file_of_code(void)
{
	int file = memfd_create("code", MFD_CLOEXEC);

	MUST(!ftruncate(file, 2 * PAGE));
	return file;
}

TEST_F_CALL(unwind, follows_the_frame_pointer_in_a_file_without_a_table,
	    expect_by_stub(_metadata, MAP_CODE_OF(STUB STUB_END, file_of_code()), 3,
			   PROFIL_STACK_ORDER))

/* ---- tables of such code ---- */

static const struct profil_unwind_rule rule_stub = RULE_SP(16, 0);	/* after the call */
static const struct profil_unwind_rule rule_none = { .kind = PROFIL_UNWIND_NONE };
static const struct profil_unwind_rule rule_end = { .kind = PROFIL_UNWIND_END };

/* Returns the id of this address space, which a record has. */
static u64 own_space(void)
{
	MUST(run(0, unwind_step_0, 1));
	while (records[nr - 1]->pid != getpid())
		nr--;
	return records[nr - 1]->space;
}

/* Returns the table that has @rule for the block of 1 KiB with @code. */
static struct profil_unwind code_table(u64 space, const char *code,
				       const struct profil_unwind_rule *rule)
{
	static const u32 blocks[PROFIL_UNWIND_CODE_SIZE / PROFIL_UNWIND_BLOCK], row;
	const u64 offset = addr(code) % PROFIL_UNWIND_CODE_SIZE;

	return (struct profil_unwind) {
		.size = sizeof(struct profil_unwind),
		.flags = PROFIL_UNWIND_CODE,
		.fd = -1,
		.nr_blocks = offset / PROFIL_UNWIND_BLOCK + 1,
		.nr_rows = 1,
		.nr_rules = 1,
		.blocks = addr(blocks),
		.rows = addr(&row),
		.rules = addr(rule),
		.space = space,
		.start = addr(code) - offset,
	};
}

static int give_code(u64 space, const char *code, const struct profil_unwind_rule *rule)
{
	const struct profil_unwind arg = code_table(space, code, rule);

	return give(&arg);
}

static int remove_code(u64 space, const char *code)
{
	struct profil_unwind arg = code_table(space, code, NULL);

	arg.nr_blocks = 0;
	arg.nr_rows = 0;
	arg.nr_rules = 0;
	return give(&arg);
}

/* Expects that the stack of a call through @code, with @rule in its table, has @n addresses. */
#define TEST_CODE(name, code, rule, n, end) \
TEST_F(unwind, name) \
{ \
	const char *stub = MAP_CODE(code); \
\
	ASSERT_EQ(0, give_code(own_space(), stub, rule)); \
	expect_by_stub(_metadata, stub, n, end); \
}

TEST_CODE(finds_the_caller_of_made_code_by_its_table, STUB OTHER_END, &rule_stub, 4,
	  PROFIL_STACK_OUTERMOST)
TEST_CODE(ends_where_the_table_of_made_code_says_so, STUB STUB_END, &rule_end, 3,
	  PROFIL_STACK_NO_RULE)
TEST_CODE(finds_the_caller_of_made_code_without_a_rule_by_the_instructions, STUB STUB_END,
	  &rule_none, 4, PROFIL_STACK_OUTERMOST)
TEST_CODE(follows_the_frame_pointer_in_made_code_without_a_rule, STUB OTHER_END, &rule_none, 3,
	  PROFIL_STACK_ORDER)

TEST_F(unwind, uses_no_table_of_other_made_code)
{
	const char *stub = MAP_CODE(STUB OTHER_END);
	const u64 space = own_space();

	ASSERT_EQ(0, give_code(space + 1, stub, &rule_stub));
	ASSERT_EQ(0, give_code(space, stub + PROFIL_UNWIND_CODE_SIZE, &rule_stub));
	ASSERT_EQ(0, give_code(space, stub - PROFIL_UNWIND_CODE_SIZE, &rule_stub));
	expect_by_stub(_metadata, stub, 3, PROFIL_STACK_ORDER);
}

/* @file: of the code */
static void expect_no_table(struct __test_metadata *_metadata, int file)
{
	const char *stub = MAP_CODE_OF(STUB STUB_END, file);

	ASSERT_EQ(0, give_code(own_space(), stub, &rule_stub));
	expect_by_stub(_metadata, stub, 3, PROFIL_STACK_ORDER);
	close(file);
}

TEST_F_CALL(unwind, uses_no_table_of_made_code_in_a_mapping_of_a_file,
	    expect_no_table(_metadata, file_of_code()))
/* The memory is anonymous. */
TEST_F_CALL(unwind, uses_no_table_of_made_code_in_a_mapping_of_the_zero_device,
	    expect_no_table(_metadata, open("/dev/zero", O_RDWR | O_CLOEXEC)))

TEST_F(unwind, replaces_and_removes_the_table_of_made_code)
{
	const char *stub = MAP_CODE(STUB OTHER_END);
	const u64 space = own_space();

	ASSERT_EQ(0, give(&table.arg));
	EXPECT_EQ(-ENOENT, remove_code(space, stub));
	EXPECT_CALL(stub, 3, PROFIL_STACK_ORDER);
	EXPECT_EQ(0, give_code(space, stub, &rule_end));
	EXPECT_CALL(stub, 3, PROFIL_STACK_NO_RULE);
	EXPECT_EQ(0, give_code(space, stub, &rule_stub));
	EXPECT_CALL(stub, 4, PROFIL_STACK_OUTERMOST);
	EXPECT_EQ(0, remove_code(space, stub));
	EXPECT_CALL(stub, 3, PROFIL_STACK_ORDER);
	EXPECT_EQ(-ENOENT, remove_code(space, stub));
	EXPECT_EQ(0, give_code(space, stub, &rule_stub));
	EXPECT_CALL(stub, 4, PROFIL_STACK_OUTERMOST);
}

/* sub $8,%rsp; call; the end */
#define CALL(distance)	"\x48\x83\xec\x08\xe8" distance OTHER_END

/* Two parts of a mapping have a function each that calls one in the other part. */
TEST_F(unwind, finds_callers_in_made_code_by_the_tables_of_two_parts)
{
	static const char code[] = CALL("\x12\x00\x00\x00") STUB OTHER_END
				   STUB OTHER_END CALL("\xdf\xff\xff\xff");
	const u64 space = own_space(), size = PROFIL_UNWIND_CODE_SIZE, half = sizeof(code) / 2;
	char *parts = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *middle = parts + size - addr(parts) % size;
	const char *const up[] = {
		unwind_framed_return, unwind_middle_return, middle + STUB_RETURN, middle - 18,
		unwind_outer_return,
	}, *const down[] = {
		unwind_framed_return, unwind_middle_return, middle - 12 + STUB_RETURN, middle + 21,
		unwind_outer_return,
	};

	ASSERT_NE(MAP_FAILED, (void *)parts);
	ASSERT_EQ(0, mprotect(middle - PAGE, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
	memcpy(middle - half, code, sizeof(code));
	ASSERT_EQ(0, give(&table.arg));
	ASSERT_EQ(0, give_code(space, middle - 1, &rule_stub));
	expect_path(_metadata, middle - half, up, 3, PROFIL_STACK_ORDER);
	ASSERT_EQ(0, give_code(space, middle, &rule_stub));
	expect_path(_metadata, middle - half, up, 5, PROFIL_STACK_OUTERMOST);
	expect_path(_metadata, middle + 12, down, 5, PROFIL_STACK_OUTERMOST);
}

static const char *made;
static u64 made_space;

static void *replace_often(void *errors)
{
	while (!enough) {
		*(int *)errors |= give_code(made_space, made, &rule_stub);
		*(int *)errors |= give_code(made_space, made, &rule_end);
		*(int *)errors |= give_code(made_space, made, &rule_stub);
		*(int *)errors |= remove_code(made_space, made);
	}
	return NULL;
}

TEST_F_TIMEOUT(unwind, uses_a_table_of_made_code_or_none_while_these_change, 150)
{
	unsigned int by_table = 0, by_end = 0, by_frame = 0, other = 0;
	int errors = 0;

	made_space = own_space();
	made = MAP_CODE(STUB OTHER_END);
	ASSERT_EQ(0, give(&table.arg));
	start_beside(replace_often, (uintptr_t)&errors);
	for (nr = 0; !enough;) {
		ASSERT_TRUE(run_by(made, 0x1234567, unwind_step_0, TICKS));
		for (; nr; free(records[--nr])) {
			const struct profil_stack *stack = stack_of(records[nr - 1]);

			if (!is_at(records[nr - 1], unwind_step_0))
				continue;
			if (stack->nr == 4 && stack->end == PROFIL_STACK_OUTERMOST)
				by_table++;
			else if (stack->nr == 3 && stack->end == PROFIL_STACK_NO_RULE)
				by_end++;
			else if (stack->nr == 3 && stack->end == PROFIL_STACK_ORDER)
				by_frame++;
			else
				other++;
		}
		enough = other || (by_table && by_end && by_frame);
	}
	stop_beside();
	EXPECT_EQ(0, errors);
	TH_LOG("%u by the table, %u to its end, %u by the frame pointer", by_table, by_end,
	       by_frame);
	EXPECT_EQ(0U, other);
}

/* ---- memory of devices ---- */

/* In the mapping [vvar], the kernel maps pages that are not memory. */
TEST_F(unwind, reads_no_memory_of_a_device)
{
	struct mapping m;

	SKIP_IF(!find_mapping(getpid(), &m, !strcmp(m.path, "[vvar]")),
		"no mapping is named [vvar]");
	(void)*(volatile u64 *)m.start;	/* makes it present */
	/* unwind_middle has it as its frame pointer. If it were read, there would be no frame. */
	expect_with(_metadata, m.start, MIDDLE,
		    (struct profil_unwind_rule){ .kind = PROFIL_UNWIND_FP_INDIRECT }, 2,
		    PROFIL_STACK_UNREADABLE);
}

/* ---- signals ---- */

struct kernel_sigaction {
	const void *handler;
	unsigned long flags;
	const void *restorer;
	u64 mask;
};

#define SA_RESTORER_	0x04000000

/* Was the tick in the handler of a signal that has interrupted a loop in unwind_leaf? */
static bool handler_interrupts_leaf(const struct profil_record *r)
{
	const struct profil_stack *stack = stack_of(r);
	const u64 address = stack->nr > 1 ? stack->addresses[1] : 0;
	const u64 pc = (address & ~PROFIL_STACK_BY_TABLE) - 1;

	return is_at(r, unwind_handler_loop) &&
	       pc - addr(unwind_leaf) < (u64)(unwind_leaf_4 - unwind_leaf);
}

static void expect_signal(struct __test_metadata *_metadata, unsigned long flags)
{
	const struct kernel_sigaction action = {
		unwind_handler, flags | SA_RESTART | SA_RESTORER_, unwind_restorer, 0,
	};
	const struct itimerspec every = { { 0, 100000000 }, { 0, 100000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	unsigned int found = 0, seen = 0;
	timer_t timer;

	ASSERT_EQ(0, give(&table.arg));
	ASSERT_EQ(0, syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof(action.mask)));
	ASSERT_EQ(0, timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer));
	ASSERT_EQ(0, timer_settime(timer, 0, &every, NULL));
	/* On a busy host, many of the signals come in system calls. */
	for (unsigned int tries = 0; found < TICKS && tries < 100; tries++) {
		ASSERT_TRUE(run(0x1234567, unwind_handler_loop, TICKS));
		for_each_new_record(r, seen) {
			const struct profil_stack *stack = stack_of(r);

			if (!handler_interrupts_leaf(r))
				continue;
			found++;
			EXPECT_TRUE(is_by_table(stack->addresses[0], unwind_restorer));
			EXPECT_EQ(5U, stack->nr);
			EXPECT_EQ((u32)PROFIL_STACK_OUTERMOST, stack->end);
			for (u32 j = 2; j < stack->nr && j < 5; j++)
				EXPECT_TRUE(is_by_table(stack->addresses[j], callers[j - 2]));
		}
	}
	timer_delete(timer);
	EXPECT_LE(TICKS, found);
}

TEST_F_CALL(unwind, finds_the_callers_of_code_that_a_signal_has_interrupted,
	    expect_signal(_metadata, 0))

TEST_F(unwind, finds_them_from_another_stack_too)
{
	const size_t size = 1 << 16;
	const stack_t other = { .ss_sp = map_private(size), .ss_size = size };

	ASSERT_EQ(0, sigaltstack(&other, NULL));
	expect_signal(_metadata, SA_ONSTACK);
}

/* ---- the vDSO ---- */

TEST_F(unwind, takes_one_table_for_the_vDSO)
{
	struct profil_unwind arg = table.arg;

	arg.flags = PROFIL_UNWIND_VDSO;
	EXPECT_EQ(-EINVAL, give(&arg));		/* it has a descriptor, too */
	arg.fd = -1;
	EXPECT_EQ(0, give(&arg));
	EXPECT_EQ(-EEXIST, give(&arg));
	EXPECT_EQ(0, give(&table.arg));
}

/* ---- other processes ---- */

/* Opens a session with the table, which children share. */
static void open_shared(struct __test_metadata *_metadata, u64 period)
{
	close(fd);
	fd = must_open(.fork = PROFIL_FORK_SHARE, .nr_records = RECORDS, .period = period,
		       .stack_depth = DEPTH);
	ASSERT_EQ(0, give(&table.arg));
	must_sample(fd, PROFIL_SCOPE_PROCESS, NULL, 0);
}

static int call_for_ever(const void *callee)
{
	for (;;)
		unwind_outer(BURST, 0x1234567, callee, unwind_middle);
	return 0;
}

/* Reads until there are ticks of @child in the loop at unwind_step_1. */
static bool read_child(pid_t child)
{
	unsigned int found = 0, seen = 0;

	for (nr = 0; found < TICKS && !read_all(); poll(NULL, 0, 5))
		for_each_new_record(r, seen)
			found += r->pid == child && is_at(r, unwind_step_1);
	return found >= TICKS;
}

TEST_F(unwind, is_used_in_each_process)
{
	open_shared(_metadata, 0);
	EXPECT_TRUE(read_child(SPAWN(call_for_ever(unwind_middle))));
	EXPECT_STACK(unwind_step_1, callers, 3, PROFIL_STACK_OUTERMOST);
}

TEST_F(unwind, uses_a_table_of_made_code_in_one_process)
{
	const char *stub = MAP_CODE(STUB OTHER_END);
	pid_t child;

	open_shared(_metadata, 0);
	ASSERT_EQ(0, give_code(own_space(), stub, &rule_stub));
	EXPECT_CALL(stub, 4, PROFIL_STACK_OUTERMOST);
	child = SPAWN(call_for_ever(stub));
	ASSERT_TRUE(read_child(child));
	EXPECT_STACK(unwind_step_1, callers_by(stub), 3, PROFIL_STACK_ORDER);

	/* While the child is stopped, it walks no stack. */
	ASSERT_EQ(0, kill(child, SIGSTOP));
	ASSERT_TRUE(await(task_state(child) == 'T'));
	while (records[nr - 1]->pid != child)
		nr--;
	ASSERT_EQ(0, give_code(records[nr - 1]->space, stub, &rule_stub));
	ASSERT_EQ(0, read_all());
	ASSERT_EQ(0, kill(child, SIGCONT));
	EXPECT_TRUE(read_child(child));
	EXPECT_STACK(unwind_step_1, callers_by(stub), 4, PROFIL_STACK_OUTERMOST);
}

TEST_F(unwind, uses_a_table_of_made_code_in_a_session_of_the_machine)
{
	const char *stub = MAP_CODE(STUB OTHER_END);

	SKIP_IF(geteuid(), "only root can sample the machine");
	open_again(_metadata, PROFIL_SCOPE_MACHINE);
	ASSERT_EQ(0, give_code(own_space(), stub, &rule_stub));
	EXPECT_CALL(stub, 4, PROFIL_STACK_OUTERMOST);
}

/* ---- tasks that are killed ---- */

static char much[2 * MUCH];

/* A child fills the pipe, and waits in the same call, until it is killed: its work is left. */
static void kill_in_call(struct __test_metadata *_metadata)
{
	pid_t child;
	int ends[2];

	ASSERT_EQ(0, pipe2(ends, O_CLOEXEC));
	ASSERT_LE((int)MUCH, fcntl(ends[1], F_SETPIPE_SZ, MUCH));
	child = FORK(_exit(write(ends[1], much, sizeof(much)) < 0));
	EXPECT_TRUE(await(task_state(child) == 'S'));
	kill(child, SIGKILL);
	EXPECT_EQ(child, waitpid(child, NULL, 0));
	close(ends[0]);
	close(ends[1]);
	ASSERT_EQ(0, read_all());
}

/* If walks take longer than the time between two ticks, only this lets a task be killed. */
TEST_F(unwind, is_not_used_for_a_task_that_is_killed)
{
	unsigned int found = 0, walked = 0, seen = 0;

	/* The child has all its pages, and the call is not interrupted. */
	memset(much, 1, sizeof(much));
	open_shared(_metadata, 200000);
	for (unsigned int tries = 0; found < TICKS && tries < 1000; tries++) {
		kill_in_call(_metadata);
		for_each_new_record(r, seen) {
			if (r->pid == getpid() || r->syscall != SYS_write)
				continue;
			found++;
			walked += !(r->flags & PROFIL_RECORD_PENDING) || stack_of(r)->nr ||
				  stack_of(r)->end != PROFIL_STACK_NO_REGISTERS;
		}
	}
	EXPECT_EQ(0U, walked);
	EXPECT_LE(TICKS, found);
}

/* ---- tables that are refused ---- */

#define EXPECT_REFUSED(error, change) do {		\
	struct table good = table;			\
	change;						\
	EXPECT_EQ(-(error), give(&table.arg));		\
	table = good;					\
} while (0)

TEST_F(unwind, refuses_tables_that_are_not_valid)
{
	EXPECT_REFUSED(EINVAL, table.arg.nr_blocks = 0);
	EXPECT_REFUSED(EINVAL, table.arg.nr_blocks = PROFIL_UNWIND_BLOCKS + 1);
	EXPECT_REFUSED(EINVAL, table.arg.nr_rows = 0);
	EXPECT_REFUSED(EINVAL, table.arg.nr_rows = (1U << 24) + 1);
	EXPECT_REFUSED(EINVAL, table.arg.nr_rules = 0);
	EXPECT_REFUSED(EINVAL, table.arg.nr_rules = PROFIL_UNWIND_RULES + 1);
	EXPECT_REFUSED(EINVAL, table.arg.nr_rules--);	/* the last row has the last rule */
	EXPECT_REFUSED(EINVAL, table.rows[1] = table.rows[0]);
	EXPECT_REFUSED(EINVAL, table.rows[NR_ROWS - 1] = 0);
	EXPECT_REFUSED(EINVAL, table.rows[0] |= 0xffff);
	EXPECT_REFUSED(EINVAL, table.rows[NR_ROWS - 1] |= PROFIL_UNWIND_BLOCK << 16);
	EXPECT_REFUSED(EINVAL, table.blocks[0] = 1);
	EXPECT_REFUSED(EINVAL, (table.arg.nr_blocks += 2,
				table.blocks[table.arg.nr_blocks - 1] = NR_ROWS + 1));
	EXPECT_REFUSED(EINVAL, (table.arg.nr_blocks += 2,
				table.blocks[table.arg.nr_blocks - 2] = NR_ROWS,
				table.blocks[table.arg.nr_blocks - 1] = NR_ROWS - 1));
	EXPECT_REFUSED(EINVAL, table.rules[0].kind = PROFIL_UNWIND_REGISTER + 1);
	EXPECT_REFUSED(EINVAL, table.rules[1].number = 1);
	table.rules[1].kind = PROFIL_UNWIND_REGISTER;
	EXPECT_REFUSED(EINVAL, table.rules[1].number = REGISTER_MIN - 1);
	EXPECT_REFUSED(EINVAL, table.rules[1].number = REGISTER_MIN + NR_REGISTERS);
	table.rules[1].kind = PROFIL_UNWIND_SP;
	EXPECT_REFUSED(EINVAL, table.rules[0].kind = 0xff);
	EXPECT_REFUSED(EINVAL, table.rules[0].cfa = 8);
	EXPECT_REFUSED(EINVAL, table.rules[0].kind = PROFIL_UNWIND_FP_INDIRECT;
		       table.rules[0].fp = 8);
	EXPECT_REFUSED(EINVAL, table.rules[END].fp = 8);
	EXPECT_REFUSED(EFAULT, table.arg.blocks = 8);
	EXPECT_REFUSED(EFAULT, table.arg.rows = 8);
	EXPECT_REFUSED(EFAULT, table.arg.rules = 8);
	EXPECT_REFUSED(EFAULT, table.arg.rows = 0xffff888000001000);
	EXPECT_EQ(0, give(&table.arg));
	EXPECT_REFUSED(EEXIST, table.rules[0].kind = PROFIL_UNWIND_END);
}

/* A table that is refused says that the stack ends, and does not replace the one that is there. */
TEST_F(unwind, refuses_tables_of_made_code_that_are_not_valid)
{
	const char *stub = MAP_CODE(STUB OTHER_END);
	const u64 space = own_space();

	table.arg.size = offsetof(struct profil_unwind, space);	/* the first version */
	EXPECT_REFUSED(EINVAL, (table.arg.flags = PROFIL_UNWIND_CODE, table.arg.fd = -1));
	ASSERT_EQ(0, give(&table.arg));
	ASSERT_EQ(0, give_code(space, stub, &rule_stub));

	table.arg.size = sizeof(table.arg);
	EXPECT_REFUSED(EINVAL, table.arg.space = space);
	EXPECT_REFUSED(EINVAL, table.arg.start = PROFIL_UNWIND_CODE_SIZE);

	table.arg = code_table(space, stub, &rule_end);
	EXPECT_REFUSED(EINVAL, table.arg.fd = self->file);
	EXPECT_REFUSED(EINVAL, table.arg.fd = -2);
	EXPECT_REFUSED(EINVAL, table.arg.space = 0);
	EXPECT_REFUSED(EINVAL, table.arg.space = UINT64_MAX);
	EXPECT_REFUSED(EINVAL, table.arg.start += PAGE);
	EXPECT_REFUSED(EINVAL, table.arg.start |= 1ULL << 63);
	EXPECT_REFUSED(EINVAL, table.arg.start = 1ULL << 56);
	EXPECT_REFUSED(EINVAL, table.arg.start = -(u64)PROFIL_UNWIND_CODE_SIZE);
	EXPECT_REFUSED(EINVAL, table.arg.nr_blocks =
			       PROFIL_UNWIND_CODE_SIZE / PROFIL_UNWIND_BLOCK + 1);
	EXPECT_REFUSED(EINVAL, table.arg.flags |= PROFIL_UNWIND_VDSO);
	EXPECT_REFUSED(EOPNOTSUPP, table.arg.flags |= 1U << 2);
	EXPECT_REFUSED(EINVAL, table.arg.nr_blocks = 0);
	EXPECT_REFUSED(EINVAL, table.arg.nr_rows = 0);
	EXPECT_REFUSED(EINVAL, table.arg.nr_rules = 0);
	EXPECT_REFUSED(EINVAL, (table.arg.nr_blocks = 0, table.arg.nr_rows = 0));
	EXPECT_REFUSED(EINVAL, (table.arg.nr_blocks = 0, table.arg.nr_rules = 0));
	EXPECT_REFUSED(EINVAL, (table.arg.nr_rows = 0, table.arg.nr_rules = 0));
	EXPECT_REFUSED(EFAULT, table.arg.rows = 8);
	EXPECT_REFUSED(EINVAL, table.arg.rows = addr(&rule_stub));	/* a row of rule 16 */
	EXPECT_CALL(stub, 4, PROFIL_STACK_OUTERMOST);

	/* Removals */
	table.arg.nr_blocks = 0;
	table.arg.nr_rows = 0;
	table.arg.nr_rules = 0;
	EXPECT_REFUSED(EINVAL, (table.arg.flags = 0, table.arg.fd = self->file,
				table.arg.space = 0, table.arg.start = 0));
	EXPECT_REFUSED(EINVAL, (table.arg.flags = PROFIL_UNWIND_VDSO, table.arg.space = 0,
				table.arg.start = 0));
	EXPECT_REFUSED(EINVAL, table.arg.flags |= PROFIL_UNWIND_VDSO);
	EXPECT_REFUSED(EINVAL, table.arg.fd = 0);
	EXPECT_REFUSED(EINVAL, table.arg.space = 0);
	EXPECT_REFUSED(EINVAL, table.arg.start++);
	EXPECT_REFUSED(ENOENT, table.arg.space++);
	EXPECT_REFUSED(ENOENT, table.arg.start += PROFIL_UNWIND_CODE_SIZE);
	EXPECT_CALL(stub, 4, PROFIL_STACK_OUTERMOST);
	EXPECT_EQ(0, give(&table.arg));
}

TEST_F(unwind, refuses_descriptors_that_are_not_of_readable_files)
{
	int path = open("/proc/self/exe", O_PATH | O_CLOEXEC), directory = open("/", O_RDONLY);
	int memory = memfd_create("unwind", MFD_CLOEXEC), writer;
	char name[64];

	EXPECT_REFUSED(EBADF, table.arg.fd = -1);
	EXPECT_REFUSED(EBADF, table.arg.fd = 12345);
	EXPECT_REFUSED(EBADF, table.arg.fd = path);
	EXPECT_REFUSED(EINVAL, table.arg.fd = directory);
	EXPECT_REFUSED(EINVAL, table.arg.fd = fd);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", memory);
	writer = open(name, O_WRONLY | O_CLOEXEC);
	ASSERT_LE(0, writer);
	EXPECT_REFUSED(EBADF, table.arg.fd = writer);
	close(writer);
	close(path);
	close(directory);
	close(memory);
}

TEST_F(unwind, needs_a_session_with_stacks)
{
	close(fd);
	fd = must_open(.nr_records = 10);
	EXPECT_EQ(-EINVAL, give(&table.arg));
}

TEST_F(unwind, can_only_be_given_by_the_creator)
{
	EXPECT_CHILD({
		MUST(give(&table.arg) == -EPERM);
		MUST(give_code(1, NULL, &rule_end) == -EPERM);
		MUST(remove_code(1, NULL) == -EPERM);
	});
	EXPECT_EQ(0, give(&table.arg));
}

TEST_F(unwind, has_a_limit_for_the_number_of_tables)
{
	u64 space;

	/* Tables of files and of made code count together. */
	for (space = 1; space < 1024; space++)
		ASSERT_EQ(0, give_code(space, NULL, &rule_end));
	EXPECT_EQ(0, give(&table.arg));
	EXPECT_EQ(-ENOSPC, give_code(space, NULL, &rule_end));
	/* A table that replaces another one needs no room. */
	EXPECT_EQ(0, give_code(1, NULL, &rule_stub));
	EXPECT_EQ(-ENOENT, remove_code(space, NULL));
	EXPECT_EQ(-ENOSPC, give_code(space, NULL, &rule_end));
	EXPECT_EQ(0, remove_code(1, NULL));
	table.arg = code_table(0, NULL, &rule_end);
	table.arg.flags = PROFIL_UNWIND_VDSO;
	EXPECT_EQ(0, give(&table.arg));
	table.arg = code_table(space, NULL, &rule_end);
	EXPECT_EQ(-ENOSPC, give(&table.arg));
}

#define LIMIT	"/sys/module/profil/parameters/unwind_mib"

/* Makes the table have @n rows. */
static void make_large(u32 n)
{
	static u32 many[200000];

	MUST(n <= ARRAY_SIZE(many));
	for (u32 i = 0; i < n; i++)
		many[i] = i % PROFIL_UNWIND_BLOCK << 16;
	table.arg.nr_blocks = n / PROFIL_UNWIND_BLOCK + 1;
	for (u32 b = 0; b < table.arg.nr_blocks; b++)
		table.blocks[b] = b * PROFIL_UNWIND_BLOCK;
	table.arg.nr_rows = n;
	table.arg.rows = addr(many);
}

/* As an ordinary user: two sessions cannot both have a table of more than half the limit. */
static int give_two_tables(void)
{
	const int first = open_stacks();

	make_large(200000);
	fd = first;
	MUST(!give(&table.arg));
	fd = open_stacks();
	MUST(give(&table.arg) == -EPERM);
	/* The table of a session that has ended does not count. */
	close(first);
	return !await(!give(&table.arg));
}

/* As an ordinary user: while one table replaces another one, there is memory for both. */
static int replace_tables(void)
{
	fd = open_stacks();
	table.arg.flags = PROFIL_UNWIND_CODE;
	table.arg.fd = -1;
	table.arg.space = 1;
	make_large(200000);
	MUST(await(!give(&table.arg)));	/* when those of other tests are freed */
	MUST(give(&table.arg) == -EPERM);
	MUST(!remove_code(1, NULL));
	MUST(!give(&table.arg));
	MUST(!remove_code(1, NULL));
	/* Tables that were replaced do not count. */
	make_large(100000);
	for (int i = 0; i < 5; i++)
		MUST(!give(&table.arg));
	return 0;
}

/* Gives tables that are refused, as a process that others often preempt. */
static int give_refused(void)
{
	const struct sched_param param = {};

	MUST(!sched_setscheduler(0, SCHED_IDLE, &param));
	fd = open_stacks();
	while (give(&table.arg) == -EPERM)
		;
	return 1;
}

/* As an ordinary user: a table that fits is not refused while others that do not fit are. */
static int give_beside_refused_tables(void)
{
	static const struct profil_unwind_rule invalid = { .kind = 255 };
	pid_t children[3];

	fd = open_stacks();
	make_large(200000);
	MUST(await(!give(&table.arg)));	/* when those of other tests are freed */
	for (int i = 0; i < 3; i++)
		children[i] = spawn(give_refused);
	/* A table is charged before its rules are checked. */
	for (int i = 0; i < 10000; i++)
		MUST(give_code(1, NULL, &invalid) == -EINVAL);
	for (int i = 0; i < 3; i++)
		MUST(killed(children[i]) == 128 + SIGKILL);
	return 0;
}

#define EXPECT_AS_USER(work)	EXPECT_EQ(0, status_in_child((become_user(USER), work())))

TEST_F(unwind, has_a_limit_of_memory_for_a_user)
{
	SKIP_IF(geteuid(), "only root can set the limit");
	ASSERT_EQ(0, file_write(LIMIT, "1"));
	EXPECT_AS_USER(give_two_tables);
	EXPECT_AS_USER(replace_tables);
	EXPECT_AS_USER(give_beside_refused_tables);
	/* The limit is not for root. */
	EXPECT_EQ(0, give(&table.arg));
	ASSERT_EQ(0, file_write(LIMIT, "64"));
}

/* As an ordinary user: each table takes a page or more. */
static int give_small_tables(void)
{
	const u32 most = (1U << 20) / PAGE;
	u32 n = 0;
	int err;

	fd = open_stacks();
	table.arg.nr_blocks = 1;
	table.arg.nr_rows = 1;
	table.arg.nr_rules = 1;
	table.rows[0] = 0;
	do {
		table.arg.fd = memfd_create("unwind", MFD_CLOEXEC);
		MUST(table.arg.fd >= 0);
		err = give(&table.arg);
		close(table.arg.fd);
	} while (!err && ++n <= most);
	dprintf(STDERR_FILENO, "# %u tables, error %d\n", n, -err);
	return err != -EPERM || !n || n > most;
}

TEST_F(unwind, has_a_limit_of_pages_for_small_tables)
{
	SKIP_IF(geteuid(), "only root can set the limit");
	ASSERT_EQ(0, file_write(LIMIT, "1"));
	EXPECT_AS_USER(give_small_tables);
	ASSERT_EQ(0, file_write(LIMIT, "64"));
}

/* ---- hostile tables ---- */

/* Returns true if @address is in an executable mapping, which is mostly that of the last one. */
static bool is_text(u64 address)
{
	static struct mapping m;

	return ((m.start <= address && address < m.end) || mapping_of(address, &m)) &&
	       m.access[2] == 'x';
}

TEST_F_TIMEOUT(unwind, has_only_addresses_of_text_with_any_table, 150)
{
	unsigned int ends[PROFIL_STACK_NULL + 1] = {}, random = 1, seen = 0;

	for (int i = 0; i < 100; i++) {
		make_table(self->file);
		for (u32 r = 0; r < NR_ROWS; r++) {
			struct profil_unwind_rule *rule = &table.rules[r];

			*rule = (struct profil_unwind_rule){
				.kind = rand_r(&random) % (PROFIL_UNWIND_REGISTER + 1),
			};
			if (rule->kind < PROFIL_UNWIND_SP || rule->kind == PROFIL_UNWIND_SIGNAL)
				continue;
			rule->cfa = rand_r(&random) >> (rand_r(&random) % 31);
			if (rule->kind != PROFIL_UNWIND_FP_INDIRECT)
				rule->fp = rand_r(&random) >> (rand_r(&random) % 31);
			if (rule->kind == PROFIL_UNWIND_REGISTER)
				rule->number = REGISTER_MIN + rand_r(&random) % NR_REGISTERS;
			if (rand_r(&random) % 4 == 0)
				rule->cfa = -rule->cfa;
		}
		open_again(_metadata, PROFIL_SCOPE_THREAD);
		unwind_outer(BURST, (uintptr_t)&ends + rand_r(&random) % 4096 * 8, unwind_middle,
			     NULL);
		ASSERT_EQ(0, read_all());
		for_each_new_record(r, seen) {
			const struct profil_stack *stack = stack_of(r);

			ASSERT_GE((u32)PROFIL_STACK_NULL, stack->end);
			ends[stack->end]++;
			for (u32 j = 0; j < stack->nr; j++)
				EXPECT_TRUE(is_text((stack->addresses[j] &
						     ~PROFIL_STACK_BY_TABLE) - 1));
		}
	}
	TH_LOG("outermost %u, order %u, unreadable %u, address %u, no rule %u",
	       ends[PROFIL_STACK_OUTERMOST], ends[PROFIL_STACK_ORDER],
	       ends[PROFIL_STACK_UNREADABLE], ends[PROFIL_STACK_ADDRESS],
	       ends[PROFIL_STACK_NO_RULE]);
	EXPECT_LT(0U, ends[PROFIL_STACK_OUTERMOST]);
	EXPECT_LT(0U, ends[PROFIL_STACK_UNREADABLE]);
	EXPECT_LT(0U, ends[PROFIL_STACK_ADDRESS]);
}

#else

TEST(tables_are_only_for_x86_64)
{
	struct profil_unwind arg = { .size = sizeof(arg) };
	int fd;

	ASSERT_LE(0, device_fd());
	ASSERT_OPEN(fd, 0);
	EXPECT_EQ(-EOPNOTSUPP, descriptor_ioctl(fd, PROFIL_IOC_UNWIND, &arg));
	close(fd);
}

#endif

TEST_HARNESS_MAIN
