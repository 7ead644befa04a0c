// SPDX-License-Identifier: GPL-2.0
/*
 * Random unwind tables: sessions get hundreds of small ones, valid and not, and a walk of a stack
 * uses many of them. A model of the module says whether a table is taken or removed, and which
 * stack a walk finds; both must be the same.
 *
 * PROFIL_FUZZ_TABLES (1000000) is the number of tables of all processes together,
 * PROFIL_FUZZ_SECONDS (60) the time limit, and PROFIL_FUZZ_SEED the seed. There is a process for
 * each CPU, whose decisions depend only on the seed.
 *
 * A process maps a page of each of many files, which contain loops, and has other pages between
 * these. Its stack is an area of random words: addresses of this text, of the stack, and others. It
 * runs some of the loops with random stack and frame pointers, and does not use its memory
 * meanwhile, so the model finds what the kernel has found. If a walk reads other memory of the
 * process than these areas, only the addresses are checked: each must be in an executable mapping.
 */
#include "kselftest_harness.h"

#include "chance.h"
#include "failures.h"
#include "loop.h"
#include "process.h"
#include "record.h"
#include "unwind.h"
#include "usage.h"

#ifdef __x86_64__

#define FILES		250U	/* a debug kernel checks all mappings in each mmap() */
#define FILE_PAGES	4U
#define SLOT		16U	/* bytes of a loop in the text */
#define STACK_PAGES	24U
#define RUNS		96U	/* loops of a session */
#define RECORDS		512U
#define BLOCKS		(FILE_PAGES * 4)
#define CODE_PAGES	2U	/* of no file, at the beginning of the text */
#define ROWS		24U
#define RULES		8U
#define WORKERS		16U
#define LARGE		100000U	/* rows or blocks */
#define FLAG		PROFIL_STACK_BY_TABLE

/* The tables: of each file, of the vDSO, and of made code: that of the text, and others */
enum { VDSO = FILES, CODE, OTHER_SPACE, OTHER_START, OTHER_BOTH, TABLES };

/* The registers that the model knows, as in struct pt_regs: see run_loop() */
#define REGISTER_MIN	12U
#define REGISTER_MAX	14U

struct small_table {
	bool given;
	u32 nr_blocks, nr_rows, nr_rules;
	u32 blocks[BLOCKS];
	u32 rows[ROWS];
	struct profil_unwind_rule rules[RULES];
};

/* A page of text, of a file or of none. Those that are not text have other pages. */
struct page {
	bool is_text;
	int file;		/* index, or -1 */
	u32 offset;		/* in the file */
};

struct run {
	u32 page, slot;
	u64 sp, fp;
};

/* Shared by all processes */
struct shared {
	struct failures failures;
	atomic_ullong tables, taken, refused[136], walked, code_walked, sessions;
	atomic_ullong records, in_loops, same, unknown, frames, by_table;
	atomic_ullong ends[PROFIL_STACK_NULL + 1];
	u64 most, end;
};

static struct shared *shared;
static u32 worker, seed;

#define fail(format, ...)							\
	failures_note(&shared->failures, "process %u, session %u: " format, worker, session,	\
		      ##__VA_ARGS__)

static u32 session;			/* number */
static int files[FILES];
static struct small_table tables[TABLES];
static bool used[TABLES];
static u64 space;			/* the id of this address space */
static struct page pages[2 * FILES];
static u32 nr_pages;
static char *text, *stack;
static char *desk[3];			/* the end of a page, for rules, blocks and rows */
static struct run runs[RUNS];
static u64 burst;

static struct { u64 start, end; } executable[512];
static unsigned int nr_executable;
static u64 vdso, vdso_end;

/* ---- memory ---- */

/* Pages of the stack that are no memory of it: in the same mapping, or in another one */
#define ABSENT_PAGE	20U
#define NO_ACCESS_PAGE	21U

/* The text has loops with a jump behind them: the processor does not use the stack. */
static void write_text(char *page)
{
	static const u8 loop[SLOT] = {
		0xe2, 0xfe,		/* loop to itself */
		0x41, 0xff, 0xe5,	/* jmp *%r13 */
		0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	};

	for (u32 i = 0; i < PAGE / SLOT; i++)
		memcpy(page + i * SLOT, loop, SLOT);
}

/* Maps pages of all files, and pages of none between them. */
static void map_files(struct actor *a)
{
	const size_t size = ARRAY_SIZE(pages) * PAGE, part = PROFIL_UNWIND_CODE_SIZE;
	char *page = map_private(PAGE), *at;
	struct page *p = pages;

	/* The text is at the beginning of a part, so that small tables describe code there. */
	at = mmap(NULL, size + part, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(at != MAP_FAILED);
	text = at + (-addr(at) & (part - 1));
	write_text(page);
	for (u32 i = 0; i < FILES; i++) {
		const bool code = i < CODE_PAGES;	/* text of no file follows */

		*p = (struct page){ true, i, any(a, FILE_PAGES) * PAGE };
		files[i] = memfd_create("walks", MFD_CLOEXEC);
		MUST(pwrite(files[i], page, PAGE, p->offset) == (ssize_t)PAGE);
		at = text + (p - pages) * PAGE;
		MUST(mmap(at, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, files[i],
			  p->offset) == at);
		(void)*(volatile char *)at;
		p++;
		if (!code && !one_in(a, 8))
			continue;
		/* Text of no file, or no text */
		*p = (struct page){ .is_text = code || one_in(a, 2), .file = -1 };
		at += PAGE;
		if (p->is_text) {
			MUST(!mprotect(at, PAGE, PROT_READ | PROT_WRITE));
			write_text(at);
			MUST(!mprotect(at, PAGE, PROT_READ | PROT_EXEC));
		}
		p++;
	}
	nr_pages = p - pages;
	munmap(page, PAGE);
}

static void map_stack(void)
{
	/* Pages without access around them, so that the areas are no parts of other mappings */
	stack = (char *)map_small((STACK_PAGES + 2) * PAGE) + PAGE;
	MUST(!mprotect(stack - PAGE, PAGE, PROT_NONE));
	MUST(!mprotect(stack + STACK_PAGES * PAGE, PAGE, PROT_NONE));
	for (u32 i = 0; i < STACK_PAGES; i++)
		if (i != ABSENT_PAGE)
			memset(stack + i * PAGE, 0, PAGE);
	MUST(!mprotect(stack + NO_ACCESS_PAGE * PAGE, PAGE, PROT_NONE));
	for (unsigned int i = 0; i < ARRAY_SIZE(desk); i++)
		desk[i] = (char *)pages_guarded(1) + PAGE;
}

static void read_maps(void)
{
	FILE *maps = maps_open(getpid());
	struct mapping m;

	while (maps_next(maps, &m)) {
		if (m.access[2] != 'x' || !strcmp(m.path, "[vsyscall]"))
			continue;
		if (!strcmp(m.path, "[vdso]")) {
			vdso = m.start;
			vdso_end = m.end;
		}
		if (m.start - addr(text) < nr_pages * PAGE)
			continue;
		MUST(nr_executable < ARRAY_SIZE(executable));
		executable[nr_executable].start = m.start;
		executable[nr_executable++].end = m.end;
	}
	MUST(vdso);
	fclose(maps);
}

/* Mostly in text: only few pages are not */
static u64 any_text(struct actor *a)
{
	u32 page = any(a, nr_pages);

	if (!pages[page].is_text && !one_in(a, 8))
		page--;
	return addr(text) + page * PAGE + any(a, PAGE);
}

static u64 any_stack(struct actor *a)
{
	u64 p = addr(stack) + 8 * any(a, STACK_PAGES * PAGE / 8);

	return one_in(a, 60) ? p + any(a, 8) : p;
}

static u64 any_odd(struct actor *a)
{
	return ONE_OF(a, u64,
		      0, 1, 8, PAGE, -1, -8, -16, 0x7ffffffff000, 0x7ffffffffff8, 0x800000000000,
		      0xffff888000000000, 0xffffffff81000000, 0xffffffffff600000, 1ULL << 63,
		      INT64_MAX, addr(stack) - 8, addr(stack) + STACK_PAGES * PAGE - 8,
		      addr(stack) + STACK_PAGES * PAGE, addr(stack) + ABSENT_PAGE * PAGE - 8,
		      addr(stack) + NO_ACCESS_PAGE * PAGE - 8, addr(text) - 1,
		      addr(text) + nr_pages * PAGE, addr(loops_text) + 8, addr(&shared));
}

/* @at: where the word is */
static u64 any_word(struct actor *a, const void *at)
{
	switch (any(a, 128)) {
	case 0:
		return any_odd(a);
	case 1:
		return vdso + any(a, vdso_end - vdso);
	case 2:
		return any_stack(a);
	case 3 ... 8:
		return addr(at) + 8 * any(a, 100);
	default:
		return any_text(a);
	}
}

static void fill_stack(struct actor *a)
{
	for (u32 i = 0; i < STACK_PAGES; i++) {
		u64 *words = (u64 *)(stack + i * PAGE);

		if (i == ABSENT_PAGE || i == NO_ACCESS_PAGE)
			continue;
		for (u32 j = 0; j < PAGE / 8; j++)
			words[j] = any_word(a, &words[j]);
	}
}

/* ---- tables ---- */

static int32_t any_distance(struct actor *a)
{
	switch (any(a, 60)) {
	case 0:
		return ONE_OF(a, int32_t, 0, 1, -8, 7, INT32_MAX, INT32_MIN, -1, 4096, 65536,
			      32767, -32768);
	case 1:
		return any(a, 200) - 100;
	default:
		return 8 + 8 * any(a, 8);
	}
}

/* Most rules go on to a caller. */
static struct profil_unwind_rule any_rule(struct actor *a)
{
	struct profil_unwind_rule rule = { .kind = PROFIL_UNWIND_SP, .cfa = any_distance(a) };

	if (one_in(a, 16))
		rule.kind = any(a, PROFIL_UNWIND_REGISTER + 1);
	if (rule.kind == PROFIL_UNWIND_FP_INDIRECT)
		return rule;
	if (rule.kind == PROFIL_UNWIND_REGISTER)
		rule.number = REGISTER_MIN + any(a, REGISTER_MAX - REGISTER_MIN + 1);
	else if (rule.kind == PROFIL_UNWIND_SP_INDIRECT && one_in(a, 2))
		rule.number = any(a, 256);
	if (rule.kind < PROFIL_UNWIND_SP || rule.kind == PROFIL_UNWIND_SIGNAL)
		rule.cfa = 0;
	else if (one_in(a, 5))
		rule.fp = one_in(a, 2) ? -16 : -any_distance(a);
	return rule;
}

static void make_table(struct actor *a, struct small_table *t)
{
	u32 n, offset;

	*t = (struct small_table){ .nr_blocks = 1 + any(a, BLOCKS), .nr_rules = 1 + any(a, RULES) };
	if (!one_in(a, 40))
		t->nr_blocks = BLOCKS;
	for (u32 i = 0; i < t->nr_rules; i++)
		t->rules[i] = any_rule(a);
	for (u32 b = 0; b < t->nr_blocks; b++) {
		t->blocks[b] = t->nr_rows;
		offset = 0;
		/* Mostly from the beginning */
		for (n = b ? any(a, 3) : 1 + any(a, 2); n && t->nr_rows < ROWS; n--) {
			offset += !b && !offset && !one_in(a, 40) ? 0 :
				  any(a, PROFIL_UNWIND_BLOCK / 3);
			t->rows[t->nr_rows++] = offset++ << 16 | any(a, t->nr_rules);
		}
	}
	if (!t->nr_rows)
		t->rows[t->nr_rows++] = 0;
}

static u32 any_number(struct actor *a, u32 right)
{
	switch (any(a, 4)) {
	case 0:
		return right + any(a, 5) - 2;
	case 1:
		return right ^ 1U << any(a, 32);
	case 2:
		return any(a, UINT32_MAX);
	default:
		return ONE_OF(a, u32, 0, 1, 2, 0x7f, 0xff, 0x3ff, 0x400, 0xffff, 0x10000,
			      0x7fffffff, 0xffffffff);
	}
}

/* Changes words of a valid table. It may still be valid. */
static void mutate_table(struct actor *a, struct small_table *t)
{
	u32 *words[] = { t->blocks, t->rows, (u32 *)t->rules }, *word;
	u32 sizes[] = { t->nr_blocks, t->nr_rows, t->nr_rules * 2 }, i, j;

	for (u32 n = 1 + any(a, 3); n; n--) {
		i = any(a, 3);
		j = any(a, sizes[i]);
		word = &words[i][j];
		switch (any(a, 4)) {
		case 0:
			*word = words[i][any(a, sizes[i])];
			break;
		case 1:
			/* Two halves, which are rows or kinds */
			*word = (*word & 0xffff0000) | any_number(a, *word & 0xffff) % 0x10000;
			break;
		default:
			*word = any_number(a, *word);
			break;
		}
	}
}

static bool rule_is_valid(const struct profil_unwind_rule *rule)
{
	switch (rule->kind) {
	case PROFIL_UNWIND_SP_INDIRECT:
		return true;
	case PROFIL_UNWIND_REGISTER:
		return rule->number >= 6 && rule->number <= 14;
	case PROFIL_UNWIND_SP:
	case PROFIL_UNWIND_FP:
		return !rule->number;
	case PROFIL_UNWIND_FP_INDIRECT:
		return !rule->number && !rule->fp;
	case PROFIL_UNWIND_NONE:
	case PROFIL_UNWIND_OUTERMOST:
	case PROFIL_UNWIND_END:
	case PROFIL_UNWIND_SIGNAL:
		return !rule->number && !rule->fp && !rule->cfa;
	default:
		return false;
	}
}

/* What uapi/linux/profil.h says about struct profil_unwind */
static bool table_is_valid(const struct small_table *t)
{
	u32 row = 0, end;

	for (u32 i = 0; i < t->nr_rules; i++)
		if (!rule_is_valid(&t->rules[i]))
			return false;
	if (t->blocks[0])
		return false;
	for (u32 b = 0; b < t->nr_blocks; b++) {
		end = b + 1 < t->nr_blocks ? t->blocks[b + 1] : t->nr_rows;
		if (end < row || end > t->nr_rows)
			return false;
		for (u32 first = row; row < end; row++)
			if ((t->rows[row] & 0xffff) >= t->nr_rules ||
			    t->rows[row] >> 16 >= PROFIL_UNWIND_BLOCK ||
			    (row > first && t->rows[row] >> 16 <= t->rows[row - 1] >> 16))
				return false;
	}
	return true;
}

/* Copies an array to the end of a page. */
static u64 put(unsigned int i, const void *array, size_t size)
{
	return addr(memcpy(desk[i] - size, array, size));
}

static bool is_removal(const struct profil_unwind *arg)
{
	return arg->flags == PROFIL_UNWIND_CODE && !arg->nr_blocks && !arg->nr_rows &&
	       !arg->nr_rules;
}

/* Sets the members that tell what table @i describes. */
static void set_key(struct profil_unwind *arg, u32 i)
{
	arg->flags = i < VDSO ? 0 : i == VDSO ? PROFIL_UNWIND_VDSO : PROFIL_UNWIND_CODE;
	arg->fd = i < VDSO ? files[i] : -1;
	arg->space = i < CODE ? 0 : space;
	arg->start = i < CODE ? 0 : addr(text);
	if (i == OTHER_SPACE || i == OTHER_BOTH)
		arg->space++;
	if (i == OTHER_START || i == OTHER_BOTH)
		arg->start += PROFIL_UNWIND_CODE_SIZE;
}

/* Returns the table that @arg describes; TABLES if there is none. */
static u32 table_of(const struct profil_unwind *arg)
{
	struct profil_unwind other;

	for (u32 i = 0; i < TABLES; i++) {
		set_key(&other, i);
		if (arg->flags == other.flags && arg->fd == other.fd &&
		    arg->space == other.space && arg->start == other.start)
			return i;
	}
	return TABLES;
}

static bool key_is_valid(const struct profil_unwind *arg)
{
	if (arg->flags == PROFIL_UNWIND_CODE)
		return arg->fd == -1 && arg->space && arg->space != UINT64_MAX &&
		       arg->start < 0x7ffffffff000 &&
		       arg->start % PROFIL_UNWIND_CODE_SIZE == 0 &&
		       arg->nr_blocks <= PROFIL_UNWIND_CODE_SIZE / PROFIL_UNWIND_BLOCK;
	return !arg->space && !arg->start &&
	       (!arg->flags || (arg->flags == PROFIL_UNWIND_VDSO && arg->fd == -1));
}

/* @i: the table that @arg describes */
static int expected_error(const struct small_table *t, const struct profil_unwind *arg, u32 i)
{
	if (arg->flags > (PROFIL_UNWIND_VDSO | PROFIL_UNWIND_CODE))
		return EOPNOTSUPP;
	if (((!arg->nr_blocks || !arg->nr_rows || !arg->nr_rules) && !is_removal(arg)) ||
	    arg->nr_blocks > PROFIL_UNWIND_BLOCKS || arg->nr_rules > PROFIL_UNWIND_RULES ||
	    arg->nr_rows > 1U << 24)
		return EINVAL;
	if (!key_is_valid(arg))
		return EINVAL;
	if (!arg->flags && arg->fd == -1)
		return EBADF;
	if (is_removal(arg))
		return tables[i].given ? 0 : ENOENT;
	/* More elements than there are follow the end of a page. */
	if (arg->nr_blocks > t->nr_blocks || arg->nr_rows > t->nr_rows ||
	    arg->nr_rules > t->nr_rules)
		return EFAULT;
	if (!table_is_valid(t))
		return EINVAL;
	return i < CODE && tables[i].given ? EEXIST : 0;
}

/* Changes one of the numbers. Few are so large that the kernel needs time for the memory. */
static void mutate_argument(struct actor *a, struct profil_unwind *arg)
{
	u32 *const numbers[] = { &arg->nr_blocks, &arg->nr_rows, &arg->nr_rules };
	const u32 i = any(a, 8), was = i < 3 ? *numbers[i] : 0;

	switch (i) {
	case 3:
		arg->fd = -1;
		break;
	case 4:
		arg->flags = one_in(a, 2) ? any(a, 4) : any_number(a, 0);
		break;
	case 5:
		arg->space = ONE_OF(a, u64, 0, UINT64_MAX, space, space + 1);
		break;
	case 6:
		arg->start = ONE_OF(a, u64, 1, PAGE, 1ULL << 56, 1ULL << 63,
				    -(u64)PROFIL_UNWIND_CODE_SIZE, UINT64_MAX, addr(text),
				    addr(text) + PAGE, addr(text) + PROFIL_UNWIND_CODE_SIZE);
		break;
	case 7:
		set_key(arg, any(a, TABLES));
		break;
	default:
		*numbers[i] = any_number(a, was);
		if (*numbers[i] > LARGE && *numbers[i] <= 1U << 24 && !one_in(a, 100))
			*numbers[i] = was + 1;
		break;
	}
}

/* Gives a random table @i, or removes that of made code. */
static void give_table(struct actor *a, int fd, u32 i)
{
	struct small_table made;
	struct profil_unwind arg = { .size = sizeof(arg) };
	int err, expected;

	set_key(&arg, i);
	make_table(a, &made);
	if (one_in(a, 6))
		mutate_table(a, &made);
	arg.nr_blocks = made.nr_blocks;
	arg.nr_rows = made.nr_rows;
	arg.nr_rules = made.nr_rules;
	if (i >= CODE && one_in(a, 4)) {
		arg.nr_blocks = 0;
		arg.nr_rows = 0;
		arg.nr_rules = 0;
	}
	if (one_in(a, 20))
		mutate_argument(a, &arg);
	arg.rules = put(0, made.rules, made.nr_rules * sizeof(*made.rules));
	arg.blocks = put(1, made.blocks, made.nr_blocks * sizeof(*made.blocks));
	arg.rows = put(2, made.rows, made.nr_rows * sizeof(*made.rows));
	/* The kernel gets fewer elements than there are. */
	if (arg.nr_blocks && arg.nr_blocks < made.nr_blocks)
		made.nr_blocks = arg.nr_blocks;
	if (arg.nr_rows && arg.nr_rows < made.nr_rows)
		made.nr_rows = arg.nr_rows;
	if (arg.nr_rules && arg.nr_rules < made.nr_rules)
		made.nr_rules = arg.nr_rules;
	i = table_of(&arg);
	expected = expected_error(&made, &arg, i);
	err = -descriptor_ioctl(fd, PROFIL_IOC_UNWIND, &arg);
	shared->tables++;
	if (!err)
		shared->taken++;
	else
		shared->refused[err < 136 ? err : 135]++;
	/* A large number needs more memory than there is, or than a user may have. */
	if (err != expected && ((arg.nr_rows < LARGE && arg.nr_blocks < LARGE) ||
				(err != EPERM && err != ENOMEM)))
		fail("table %u: error %d, not %d (%u, %u, %u, flags %#x, fd %d, code %#llx, %#llx)",
		     i, err, expected, arg.nr_blocks, arg.nr_rows, arg.nr_rules, arg.flags, arg.fd,
		     arg.space, arg.start);
	if (!err && i < TABLES) {
		tables[i] = made;
		tables[i].given = !is_removal(&arg);
	}
}

/* ---- the model of a walk ---- */

enum access { READABLE, UNREADABLE, UNKNOWN };

struct model {
	u64 sp, fp;
	u64 words[2];		/* that were read last */
	bool unknown;		/* a part of what has been read is not known */
	const struct run *run;	/* whose registers are those of the tick; NULL after a signal */
	u32 nr, end;
	u64 innermost[2];	/* words of any kind */
	u64 addresses[128];
};

static enum access access_of(u64 address)
{
	const u64 last = address + 15, in_stack = address - addr(stack);
	u32 first_page, last_page;

	if (last < address || last >= 0x7ffffffff000)
		return UNREADABLE;
	/* Two words, in one mapping: here each page of text is one. */
	if (address - addr(text) < nr_pages * PAGE) {
		const struct page *p = &pages[(address - addr(text)) / PAGE];

		if (address / PAGE != last / PAGE)
			return UNREADABLE;
		return p->is_text ? READABLE : UNREADABLE;
	}
	if (last - addr(text) < 15 || last - addr(stack) < 15)
		return UNREADABLE;
	/* The pages around the stack have no access. */
	if (in_stack - STACK_PAGES * PAGE < PAGE || in_stack + PAGE < PAGE)
		return UNREADABLE;
	if (in_stack >= STACK_PAGES * PAGE)
		return UNKNOWN;
	first_page = in_stack / PAGE;
	last_page = (last - addr(stack)) / PAGE;
	for (u32 i = first_page; i <= last_page; i++)
		if (i == ABSENT_PAGE || i == NO_ACCESS_PAGE || i == STACK_PAGES)
			return UNREADABLE;
	return READABLE;
}

/* Returns false if the words cannot be read, or are not known. */
static bool model_read(struct model *m, u64 address)
{
	const enum access access = access_of(address);

	if (access == READABLE)
		memcpy(m->words, (const void *)address, sizeof(m->words));
	m->unknown |= access == UNKNOWN;
	return access == READABLE;
}

static bool is_text(u64 at)
{
	if (at - addr(text) < nr_pages * PAGE)
		return pages[(at - addr(text)) / PAGE].is_text;
	for (unsigned int i = 0; i < nr_executable; i++)
		if (at - executable[i].start < executable[i].end - executable[i].start)
			return true;
	return false;
}

/* Returns the rule for the byte at @at, which is in text; or NULL. */
static const struct profil_unwind_rule *model_rule(u64 at)
{
	const struct profil_unwind_rule *found = NULL;
	const struct small_table *t = NULL;
	u64 offset = 0;
	u32 row = 0, end;

	if (at - addr(text) < nr_pages * PAGE) {
		const struct page *p = &pages[(at - addr(text)) / PAGE];

		offset = p->file < 0 ? at - addr(text) : p->offset + at % PAGE;
		t = &tables[p->file < 0 ? CODE : p->file];
	} else if (at - vdso < vdso_end - vdso) {
		offset = at - vdso;
		t = &tables[VDSO];
	}
	if (!t || !t->given || offset / PROFIL_UNWIND_BLOCK >= t->nr_blocks)
		return NULL;
	used[t - tables] = true;
	for (u32 b = 0; b <= offset / PROFIL_UNWIND_BLOCK; b++) {
		end = b + 1 < t->nr_blocks ? t->blocks[b + 1] : t->nr_rows;
		for (; row < end; row++)
			if (b * PROFIL_UNWIND_BLOCK + (t->rows[row] >> 16) <= offset)
				found = &t->rules[t->rows[row] & 0xffff];
	}
	return found && found->kind != PROFIL_UNWIND_NONE ? found : NULL;
}

#define CALLER ((u32)-1)

static u64 entry_of(const struct run *run)
{
	return addr(text) + run->page * PAGE + run->slot * SLOT;
}

static u32 model_frame(struct model *m, u64 *at)
{
	if (!m->fp)
		return PROFIL_STACK_OUTERMOST;
	if (m->fp < m->sp)
		return PROFIL_STACK_ORDER;
	if (m->fp % 8)
		return PROFIL_STACK_MISALIGNED;
	if (!model_read(m, m->fp))
		return PROFIL_STACK_UNREADABLE;
	m->sp = m->fp + 16;
	m->fp = m->words[0];
	*at = m->words[1] - 1;
	return CALLER;
}

static u32 model_signal(struct model *m, u64 *at)
{
	u64 fp;

	if (!model_read(m, m->sp + 120))
		return PROFIL_STACK_UNREADABLE;
	fp = m->words[0];
	if (!model_read(m, m->sp + 160))
		return PROFIL_STACK_UNREADABLE;
	m->run = NULL;
	m->sp = m->words[0];
	m->fp = fp;
	*at = m->words[1];
	return CALLER;
}

static u64 model_register(struct model *m, unsigned int number)
{
	const u64 registers[] = { m->run->fp, m->run->sp, entry_of(m->run) };

	if (number < REGISTER_MIN) {
		m->unknown = true;
		return 0;
	}
	return registers[number - REGISTER_MIN];
}

static u32 model_step(struct model *m, const struct profil_unwind_rule *rule, u64 *at)
{
	u64 cfa = m->sp + rule->cfa, fp = m->fp, address;

	switch (rule->kind) {
	case PROFIL_UNWIND_OUTERMOST:
		return PROFIL_STACK_OUTERMOST;
	case PROFIL_UNWIND_END:
		return PROFIL_STACK_NO_RULE;
	case PROFIL_UNWIND_SIGNAL:
		return model_signal(m, at);
	case PROFIL_UNWIND_FP:
		cfa = m->fp + rule->cfa;
		break;
	case PROFIL_UNWIND_SP_INDIRECT:
		if (!model_read(m, cfa))
			return PROFIL_STACK_UNREADABLE;
		cfa = m->words[0] + 8 * (1 + rule->number);
		break;
	case PROFIL_UNWIND_FP_INDIRECT:
		if (!model_read(m, m->fp + rule->cfa))
			return PROFIL_STACK_UNREADABLE;
		cfa = m->words[0];
		break;
	case PROFIL_UNWIND_REGISTER:
		if (!m->run)
			return PROFIL_STACK_NO_RULE;
		cfa = model_register(m, rule->number) + rule->cfa;
		break;
	}
	if (cfa <= m->sp && rule->kind != PROFIL_UNWIND_SP_INDIRECT)
		return PROFIL_STACK_ORDER;
	/* Words next to each other are read at once. */
	if (rule->fp == -16) {
		if (!model_read(m, cfa - 16))
			return PROFIL_STACK_UNREADABLE;
		fp = m->words[0];
		address = m->words[1];
	} else {
		if (!model_read(m, cfa - 8))
			return PROFIL_STACK_UNREADABLE;
		address = m->words[0];
		if (rule->kind == PROFIL_UNWIND_FP_INDIRECT || rule->fp) {
			if (!model_read(m, rule->fp ? cfa + rule->fp : m->fp))
				return PROFIL_STACK_UNREADABLE;
			fp = m->words[0];
		}
	}
	m->fp = fp;
	m->sp = cfa;
	*at = address - 1;
	return CALLER;
}

static void model_walk(struct model *m, u64 pc, const struct run *run, u32 depth)
{
	const struct profil_unwind_rule *rule = model_rule(pc);
	u64 at = pc;

	*m = (struct model){ .sp = run->sp, .fp = run->fp, .run = run };
	if (!rule && model_read(m, m->sp))
		memcpy(m->innermost, m->words, sizeof(m->innermost));
	for (;; rule = model_rule(at)) {
		m->end = rule ? model_step(m, rule, &at) : model_frame(m, &at);
		if (m->end != CALLER)
			return;
		m->end = rule && at + 1 == 0 ? PROFIL_STACK_NULL : PROFIL_STACK_ADDRESS;
		if (!is_text(at))
			return;
		m->end = PROFIL_STACK_DEPTH;
		if (m->nr == depth)
			return;
		m->addresses[m->nr++] = (at + 1) | (rule ? FLAG : 0);
	}
}

/* ---- sessions ---- */

/* Runs a loop with these registers. No signal may come meanwhile. */
static __attribute__((noinline)) void run_loop(const struct run *run)
{
	u64 n = burst;

	asm volatile("lea -128(%%rsp), %%rsp\n"
		     "	push %%rbp\n"
		     "	mov %%rsp, %%r12\n"
		     "	lea 1f(%%rip), %%r13\n"
		     "	mov %1, %%rsp\n"
		     "	mov %2, %%rbp\n"
		     "	jmp *%3\n"
		     "1:	mov %%r12, %%rsp\n"
		     "	pop %%rbp\n"
		     "	lea 128(%%rsp), %%rsp\n"
		     : "+c"(n)
		     : "S"(run->sp), "d"(run->fp), "D"(entry_of(run))
		     : "r12", "r13", "memory", "cc");
}

/* Sets the number of iterations: they take half as long again as @ns, if no other task runs. */
static void calibrate(u64 ns)
{
	u64 least = UINT64_MAX, before, took;
	struct run run = { 0 };

	burst = 1 << 18;
	/* While a tick is late, the clock may stand still. */
	for (int i = 0; i < 8 || least == UINT64_MAX; i++) {
		before = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
		run_loop(&run);
		took = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		if (took && took < least)
			least = took;
	}
	burst = burst * ns * 3 / 2 / least;
}

static void make_runs(struct actor *a)
{
	for (u32 i = 0; i < RUNS; i++) {
		struct run *run = &runs[i];
		bool known = true;

		/* Each loop is in another page, so that a record tells the run. */
		while (known) {
			run->page = any(a, nr_pages);
			known = !pages[run->page].is_text;
			for (u32 j = 0; j < i; j++)
				known |= runs[j].page == run->page;
		}
		run->slot = any(a, PAGE / SLOT);
		/* Mostly far from the end of the stack, and in this order */
		run->sp = one_in(a, 12) ? any_odd(a) : one_in(a, 8) ? any_text(a) :
			  addr(stack) + 8 * any(a, STACK_PAGES * PAGE / 16);
		run->fp = one_in(a, 8) ? any_odd(a) : one_in(a, 8) ? any_text(a) :
			  one_in(a, 4) ? any_stack(a) :
			  addr(stack) + 8 * (STACK_PAGES / 2 * PAGE / 8 + any(a, PAGE));
	}
}

static void show_difference(const struct profil_record *r, const struct profil_stack *s,
			    const struct model *m, const struct run *run)
{
	u32 i = 0;

	while (i < s->nr && i < m->nr && s->addresses[i] == m->addresses[i])
		i++;
	fail("pc %#llx, sp %#lx, fp %#lx, innermost %#llx %#llx, not %#lx %#lx", r->pc, run->sp,
	     run->fp, s->innermost[0], s->innermost[1], m->innermost[0], m->innermost[1]);
	fail("%u addresses, end %u, not %u, end %u; [%u]: %#llx, not %#lx", s->nr, s->end, m->nr,
	     m->end, i, i < s->nr ? s->addresses[i] : 0, i < m->nr ? m->addresses[i] : 0);
}

/* Only words that can be user addresses are stored. The limit of these depends on the machine. */
static bool is_innermost(u64 found, u64 word)
{
	return found == word ? word < 1ULL << 56 : !found && word >= 0x7ffffffff000;
}

static const struct run *run_of(u64 pc)
{
	for (u32 i = 0; i < RUNS; i++)
		if (pc - addr(text) - runs[i].page * PAGE - runs[i].slot * SLOT < SLOT)
			return &runs[i];
	return NULL;
}

static void check_record(const struct profil_record *r, u32 depth)
{
	const struct profil_stack *s = stack_of(r);
	const struct run *run = run_of(r->pc);
	struct model m;

	shared->records++;
	if (!(r->flags & PROFIL_RECORD_STACK) || s->nr > depth || s->end > PROFIL_STACK_NULL) {
		fail("record: flags %#x, %u addresses, end %u", r->flags, s->nr, s->end);
		return;
	}
	shared->ends[s->end]++;
	shared->frames += s->nr;
	for (u32 i = 0; i < s->nr; i++) {
		shared->by_table += s->addresses[i] >> 63;
		if (!is_text((s->addresses[i] & ~FLAG) - 1))
			fail("address %#llx is not in text", s->addresses[i]);
	}
	if (!run || !(r->flags & PROFIL_RECORD_MAPPED) || s->end == PROFIL_STACK_NO_REGISTERS)
		return;
	shared->in_loops++;
	model_walk(&m, r->pc, run, depth);
	if (m.unknown) {
		shared->unknown++;
		return;
	}
	if (s->nr != m.nr || s->end != m.end || !is_innermost(s->innermost[0], m.innermost[0]) ||
	    !is_innermost(s->innermost[1], m.innermost[1]) ||
	    memcmp(s->addresses, m.addresses, m.nr * sizeof(m.addresses[0])))
		show_difference(r, s, &m, run);
	else
		shared->same++;
}

/* Reads all records. */
static void check_records(int fd, u32 depth)
{
	static char buffer[65536] __attribute__((aligned(8)));
	const struct profil_record *r;
	ssize_t n;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0) {
		for (const char *at = buffer; n; n -= r->size, at += r->size) {
			r = (const void *)at;
			if (!well_formed(r, n)) {
				fail("a record of %u bytes is malformed", r->size);
				return;
			}
			check_record(r, depth);
		}
	}
	if (n < 0 && errno != EAGAIN)
		fail("read: errno %d", errno);
}

static void one_session(struct actor *a, u64 period)
{
	/* Few stacks are deeper than eight frames, but some must exceed the depth. */
	const u32 depth = one_in(a, 4) ? 1 + any(a, one_in(a, 2) ? 8 : 127) : 127;
	int fd = must_open(.nr_records = RECORDS, .period = period, .stack_depth = depth);

	MUST(!descriptor_attach(fd, PROFIL_SCOPE_THREAD, 0, &space));
	for (u32 i = 0; i < TABLES; i++)
		tables[i].given = false;
	/* Few files have no table. A table that replaces another one takes long. */
	for (u32 i = 0; i < TABLES; i++)
		for (int tries = 1 + any(a, i < CODE ? 8 : 3);
		     tries && (i >= CODE || !tables[i].given); tries--)
			give_table(a, fd, i);
	fill_stack(a);
	make_runs(a);
	must_enable(fd);
	for (u32 i = 0; i < RUNS; i++)
		run_loop(&runs[i]);
	MUST(!descriptor_disable(fd, NULL));
	memset(used, 0, sizeof(used));
	check_records(fd, depth);
	for (u32 i = 0; i < TABLES; i++)
		shared->walked += used[i];
	shared->code_walked += used[CODE];
	close(fd);
	shared->sessions++;
}

static void work(void)
{
	struct actor a = { .random = ((u64)seed << 8 | worker) * 0x9e3779b97f4a7c15ULL | 1 };
	const u64 period = machine_is_slow() ? 500000 : 200000;

	for (int i = 0; i < 8; i++)
		any(&a, 2);
	map_files(&a);
	map_stack();
	read_maps();
	calibrate(period);
	while (shared->tables < shared->most && !shared->failures.n &&
	       now_ns() < shared->end) {
		session++;
		one_session(&a, period);
	}
}

static void show(struct __test_metadata *_metadata, u64 ns)
{
	TH_LOG("%llu tables in %.1f s: %.0f per second; %llu taken; %llu sessions",
	       shared->tables, ns / 1e9, shared->tables / (ns / 1e9), shared->taken,
	       shared->sessions);
	TH_LOG("%llu tables walked, %llu of made code", shared->walked, shared->code_walked);
	for (unsigned int i = 0; i < ARRAY_SIZE(shared->refused); i++)
		if (shared->refused[i])
			TH_LOG("refused with %s: %llu", strerrorname_np(i), shared->refused[i]);
	TH_LOG("%llu records, %llu in loops, %llu as in the model, %llu not known",
	       shared->records, shared->in_loops, shared->same, shared->unknown);
	TH_LOG("%llu addresses, %llu by tables", shared->frames, shared->by_table);
	for (unsigned int i = 0; i < ARRAY_SIZE(shared->ends); i++)
		TH_LOG("end %u: %llu", i, shared->ends[i]);
}

FIXTURE(walks) {
	struct usage before;
};

FIXTURE_SETUP(walks)
{
	ASSERT_DEVICE();
	shared = map_shared(sizeof(*shared));
	seed = number_from("PROFIL_FUZZ_SEED", now_ns() / 1000);
	shared->most = number_from("PROFIL_FUZZ_TABLES", 1000000);
	shared->end = now_ns() + number_from("PROFIL_FUZZ_SECONDS", 60) * 1000000000ULL;
	self->before = usage();
	self->before.percpu = LLONG_MAX / 2;	/* grows with the number of tasks */
}

FIXTURE_TEARDOWN(walks)
{
	expect_same_usage(_metadata, &self->before);
}

TEST_F_TIMEOUT(walks, use_random_tables_as_in_the_model, 14400)
{
	u32 workers = sysconf(_SC_NPROCESSORS_ONLN);
	const u64 begin = now_ns();
	pid_t pids[WORKERS];

	workers = workers > WORKERS ? WORKERS : workers;
	TH_LOG("PROFIL_FUZZ_SEED=%u PROFIL_FUZZ_TABLES=%lu, %u processes", seed, shared->most,
	       workers);
	for (worker = 0; worker < workers; worker++)
		pids[worker] = FORK(prctl(PR_SET_PDEATHSIG, SIGKILL); work());
	for (u32 i = 0; i < workers; i++)
		EXPECT_EQ(0, status_of(pids[i]));
	show(_metadata, now_ns() - begin);
	EXPECT_NO_FAILURES(&shared->failures);
	EXPECT_LT(0U, shared->same);
	EXPECT_TRUE(shared->code_walked || shared->sessions < 20);
	for (unsigned int i = 0; i < ARRAY_SIZE(shared->ends) && shared->same > 20000; i++)
		if (i != PROFIL_STACK_UNSUPPORTED && i != PROFIL_STACK_NO_REGISTERS)
			EXPECT_LT(0U, shared->ends[i]);
}

#else

TEST(tables_are_only_for_x86_64)
{
	ASSERT_DEVICE();
}

#endif

TEST_HARNESS_MAIN
