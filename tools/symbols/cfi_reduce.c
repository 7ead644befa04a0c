// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See cfi_reduce.h. Only a 64-bit file of x86-64 has a table: other machines keep frame pointers.
 *
 * The entries of the section say which code has call frame information. libdw interprets it, row by
 * row. A row that no rule can describe becomes PROFIL_UNWIND_END.
 */
#define _GNU_SOURCE
#include <dwarf.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "symbols/cfi.h"
#include "symbols/cfi_reduce.h"

/* The registers, as DWARF numbers them */
#define FRAME		6
#define STACK		7
#define RETURN		16

/* The text that a table can describe */
#define TEXT_MAX	((u64)PROFIL_UNWIND_BLOCK * PROFIL_UNWIND_BLOCKS)
/* An expression with the pc is computed for each byte. This is for a linkage table. */
#define STUBS_MAX	(1U << 20)
#define OPERANDS_MAX	8
/* Twice as many as rules, and a power of two */
#define SLOTS		(2 * PROFIL_UNWIND_RULES)

/* The registers of the interrupted code in struct ucontext, to which the stack pointer points */
#define SIGNAL_FRAME	120
#define SIGNAL_STACK	160
#define SIGNAL_PC	168

/* The bytes of the instruction syscall, and the one behind it: in the call, the pc is there. */
#define PAST_SYSTEM_CALL 3

/* What is read of the code of a child: it may align the stack before the call. */
#define CHILD_CODE	11

static const u8 system_call[] = { 0x0f, 0x05 };
/* mov %r8, %rdi; call *%rdx */
static const u8 child_call[] = { 0x4c, 0x89, 0xc7, 0xff, 0xd2 };

/* Addresses, or offsets in the file */
struct range {
	u64 start;
	u64 end;
};

/* Functions of Go's runtime at which a stack begins, or which change to another stack */
static const struct {
	const char *name;
	enum profil_unwind_kind kind;
} go_names[] = {
	{ "runtime.goexit", PROFIL_UNWIND_OUTERMOST },
	{ "runtime.mstart", PROFIL_UNWIND_OUTERMOST },
	{ "runtime.rt0_go", PROFIL_UNWIND_OUTERMOST },
	{ "runtime.mcall", PROFIL_UNWIND_OUTERMOST },
	{ "runtime.morestack", PROFIL_UNWIND_OUTERMOST },
	{ "runtime.systemstack", PROFIL_UNWIND_NONE },
	{ "runtime.asmcgocall", PROFIL_UNWIND_NONE },
};

#define GO_FUNCTIONS (sizeof(go_names) / sizeof(*go_names))

struct go_function {
	struct range code;
	enum profil_unwind_kind kind;
};

/**
 * struct reducer - The work
 * @reduced: The result.
 * @cfi: The call frame information.
 * @entries: The code that has it, sorted.
 * @is_go: Go compiled the file: see go_rule().
 * @go: The functions of Go with other rules, if there is one.
 * @bias: The offset of an address is the address plus this.
 * @fd: The file.
 */
struct reducer {
	struct reduced *reduced;
	struct cfi cfi;
	struct range *entries;
	size_t nr_entries;
	bool is_go;
	struct go_function go[GO_FUNCTIONS];
	u64 bias;
	int fd;
};

static const struct profil_unwind_rule none = { .kind = PROFIL_UNWIND_NONE };
static const struct profil_unwind_rule end = { .kind = PROFIL_UNWIND_END };

/* ---- rules ---- */

enum place { UNCHANGED, LOST, AT_CFA, IS_CFA, AT_STACK, AT_FRAME, ELSEWHERE };

/* Finds where a register of the caller is. @distance: from the CFA, or from that register. */
static enum place place_of(Dwarf_Frame *frame, int number, s64 *distance)
{
	Dwarf_Op memory[3], *ops;
	size_t nr, i = 1;

	*distance = 0;
	if (dwarf_frame_register(frame, number, memory, &ops, &nr))
		return ELSEWHERE;
	/* Without operations, the register is unchanged if there is no pointer, else it is lost. */
	if (!nr)
		return ops ? LOST : UNCHANGED;
	if (ops->atom != DW_OP_call_frame_cfa)
		return ELSEWHERE;
	if (nr == 2 && ops[1].atom == DW_OP_breg0 + STACK) {
		*distance = ops[1].number;
		return AT_STACK;
	}
	if (nr == 2 && ops[1].atom == DW_OP_breg0 + FRAME) {
		*distance = ops[1].number;
		return AT_FRAME;
	}
	if (nr > i && ops[i].atom == DW_OP_plus_uconst)
		*distance = ops[i++].number;
	if (nr == i)
		return AT_CFA;
	return nr == i + 1 && ops[i].atom == DW_OP_stack_value ? IS_CFA : ELSEWHERE;
}

static bool is_at(Dwarf_Frame *frame, int number, enum place place, s64 distance)
{
	s64 found;

	return place_of(frame, number, &found) == place && found == distance;
}

/* Returns true if the caller's registers are in the struct ucontext at the stack pointer. */
static bool is_signal_frame(Dwarf_Frame *frame, const Dwarf_Op *ops, size_t nr)
{
	return nr == 2 && ops[0].atom == DW_OP_breg0 + STACK && ops[0].number == SIGNAL_STACK &&
	       ops[1].atom == DW_OP_deref && is_at(frame, RETURN, AT_STACK, SIGNAL_PC) &&
	       is_at(frame, FRAME, AT_STACK, SIGNAL_FRAME) &&
	       (is_at(frame, STACK, IS_CFA, 0) || is_at(frame, STACK, AT_STACK, SIGNAL_STACK));
}

/* Completes a rule with a CFA. Returns end if the other registers are not where rules have them. */
static struct profil_unwind_rule complete(Dwarf_Frame *frame, struct profil_unwind_rule rule)
{
	s64 distance;

	if (!is_at(frame, RETURN, AT_CFA, -8) || !is_at(frame, STACK, IS_CFA, 0))
		return end;
	if (rule.kind == PROFIL_UNWIND_FP_INDIRECT)
		return is_at(frame, FRAME, AT_FRAME, 0) ? rule : end;
	switch (place_of(frame, FRAME, &distance)) {
	case UNCHANGED:
		return rule;
	case AT_CFA:
		rule.fp = distance;
		return distance && rule.fp == distance ? rule : end;
	default:
		return end;
	}
}

/*
 * Returns the index in struct pt_regs of the register that DWARF calls @number; 0 if calls preserve
 * it: then the function can have a callee that has saved it and changed it.
 */
static u8 register_index(u32 number)
{
	static const u8 indexes[] = {
		[0] = 10, [1] = 12, [2] = 11, [4] = 13, [5] = 14,
		[8] = 9, [9] = 8, [10] = 7, [11] = 6,
	};

	return number < sizeof(indexes) ? indexes[number] : 0;
}

/* Returns the rule whose CFA is the value of @ops, without its distance. */
static struct profil_unwind_rule kind_of(const Dwarf_Op *ops, size_t nr, s64 *distance)
{
	u32 number = ops->atom - DW_OP_breg0;

	*distance = ops->number;
	if (ops->atom == DW_OP_bregx) {
		number = ops->number;
		*distance = ops->number2;
	}
	if (nr == 1 && number == STACK)
		return (struct profil_unwind_rule){ .kind = PROFIL_UNWIND_SP };
	if (nr == 1 && number == FRAME)
		return (struct profil_unwind_rule){ .kind = PROFIL_UNWIND_FP };
	if (nr == 1 && register_index(number))
		return (struct profil_unwind_rule){
			.kind = PROFIL_UNWIND_REGISTER,
			.number = register_index(number),
		};
	if (nr == 2 && number == FRAME && ops[1].atom == DW_OP_deref)
		return (struct profil_unwind_rule){ .kind = PROFIL_UNWIND_FP_INDIRECT };
	if (nr == 3 && number == STACK && ops[1].atom == DW_OP_deref &&
	    ops[2].atom == DW_OP_plus_uconst && ops[2].number % 8 == 0 &&
	    ops[2].number / 8 - 1 <= UINT8_MAX)
		return (struct profil_unwind_rule){
			.kind = PROFIL_UNWIND_SP_INDIRECT,
			.number = ops[2].number / 8 - 1,
		};
	return end;
}

static struct profil_unwind_rule rule_of(Dwarf_Frame *frame, const Dwarf_Op *ops, size_t nr)
{
	s64 distance;
	struct profil_unwind_rule rule = kind_of(ops, nr, &distance);

	rule.cfa = distance;
	if (rule.kind == PROFIL_UNWIND_END || rule.cfa != distance)
		return end;
	return complete(frame, rule);
}

/* ---- rows ---- */

/* Returns the index of a rule. When there are too many, the others become the rule end. */
static u32 rule_index(struct reduced *reduced, struct profil_unwind_rule rule)
{
	const u64 word = (u64)rule.cfa << 32 | (u64)(uint16_t)rule.fp << 16 | rule.number << 8 |
			 rule.kind;
	struct profil_unwind_rule *known;
	u32 slot = hash_words(&word, 1);

	for (;; slot++) {
		const u32 index = reduced->slots[slot % SLOTS];

		if (!index)
			break;
		known = &reduced->rules[index - 1];
		if (known->cfa == rule.cfa && known->fp == rule.fp && known->kind == rule.kind &&
		    known->number == rule.number)
			return index - 1;
	}
	if (reduced->nr_rules == PROFIL_UNWIND_RULES)
		return rule_index(reduced, end);
	if (!array_grow(&reduced->rules, reduced->nr_rules, sizeof(rule)))
		xmalloc_failed(sizeof(rule));
	reduced->rules[reduced->nr_rules++] = rule;
	reduced->slots[slot % SLOTS] = reduced->nr_rules;
	return reduced->nr_rules - 1;
}

/* Adds a row at @address, which is not before the last row. */
static void row_add(struct reducer *r, u64 address, struct profil_unwind_rule rule)
{
	struct reduced *reduced = r->reduced;
	const struct reduced_row row = {
		.offset = address + r->bias,
		.rule = rule_index(reduced, rule),
	};

	if (address + r->bias >= TEXT_MAX)
		return;
	if (reduced->nr_rows && reduced->rows[reduced->nr_rows - 1].offset == row.offset)
		reduced->nr_rows--;
	if (reduced->nr_rows && reduced->rows[reduced->nr_rows - 1].rule == row.rule)
		return;
	if (!array_grow(&reduced->rows, reduced->nr_rows, sizeof(row)))
		xmalloc_failed(sizeof(row));
	reduced->rows[reduced->nr_rows++] = row;
}

/* An operand in an expression: a number, or the stack pointer plus a number */
struct operand {
	bool is_stack;
	u64 number;
};

/* Returns false if the operation is not an operand. */
static bool operand_of(const Dwarf_Op *op, u64 pc, struct operand *operand)
{
	operand->is_stack = op->atom == DW_OP_breg0 + STACK;
	operand->number = op->number;
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		operand->number = op->atom - DW_OP_lit0;
	else if (op->atom == DW_OP_breg0 + RETURN)
		operand->number += pc;
	else
		return operand->is_stack;
	return true;
}

/* Applies an operation to two operands, and stores the result in the first one. */
static bool apply(unsigned int atom, struct operand *a, const struct operand *b)
{
	if (atom == DW_OP_plus) {
		*a = (struct operand){ a->is_stack || b->is_stack, a->number + b->number };
		return !(a->is_stack && b->is_stack);
	}
	if (a->is_stack || b->is_stack)
		return false;
	if (atom == DW_OP_and)
		a->number &= b->number;
	else if (atom == DW_OP_ge)
		a->number = (s64)a->number >= (s64)b->number;
	else if (atom == DW_OP_shl)
		a->number = b->number < 64 ? a->number << b->number : 0;
	else
		return false;
	return true;
}

/*
 * Computes an expression as in a linkage table, where the CFA depends on the pc. Returns false if
 * it is not the stack pointer and a distance.
 */
static bool evaluate(const Dwarf_Op *ops, size_t nr, u64 pc, s64 *distance)
{
	struct operand stack[OPERANDS_MAX];
	size_t depth = 0;

	for (const Dwarf_Op *op = ops; op < ops + nr; op++) {
		struct operand *top = &stack[depth];

		if (depth == OPERANDS_MAX)
			return false;
		if (operand_of(op, pc, top))
			depth++;
		else if (depth >= 2 && apply(op->atom, top - 2, top - 1))
			depth--;
		else
			return false;
	}
	*distance = depth ? stack[0].number : 0;
	return depth == 1 && stack[0].is_stack;
}

/* Adds rows for code whose CFA depends on the pc. Returns false if there is no rule for it. */
static bool add_stubs(struct reducer *r, const struct range *code, Dwarf_Frame *frame,
		      const Dwarf_Op *ops, size_t nr)
{
	struct profil_unwind_rule rule = { .kind = PROFIL_UNWIND_SP };
	s64 distance, last = 0;

	if (code->end - code->start > STUBS_MAX)
		return false;
	for (u64 pc = code->start; pc < code->end; pc++) {
		if (!evaluate(ops, nr, pc, &distance))
			return false;
		rule.cfa = distance;
		if (pc == code->start || distance != last)
			row_add(r, pc, rule.cfa == distance ? complete(frame, rule) : end);
		last = distance;
	}
	return true;
}

/*
 * The frame of a function of Go contains the frame pointer, once it has been made, but the call
 * frame information does not tell. Nor does it tell where stacks begin.
 */
static struct profil_unwind_rule go_rule(const struct reducer *r, u64 address,
					 struct profil_unwind_rule rule)
{
	for (size_t i = 0; i < GO_FUNCTIONS; i++)
		if (address >= r->go[i].code.start && address < r->go[i].code.end)
			return (struct profil_unwind_rule){ .kind = r->go[i].kind };
	if (rule.kind == PROFIL_UNWIND_SP && rule.cfa > 8 && !rule.fp)
		rule.fp = -16;
	return rule;
}

/* Returns the index of a name in go_names, or -1. Some versions add the ABI to the names. */
static int go_index(const char *name)
{
	for (size_t i = 0; i < GO_FUNCTIONS; i++) {
		const size_t len = strlen(go_names[i].name);

		if (!strncmp(name, go_names[i].name, len) &&
		    (!name[len] || !strcmp(name + len, ".abi0")))
			return i;
	}
	return -1;
}

static void read_go_functions(struct reducer *r, Elf *elf)
{
	Elf_Data *data = NULL;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr = {};
	const char *name;
	GElf_Sym sym;
	int index;

	while (!data && (scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_SYMTAB)
			data = elf_section_data(scn);
	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC)
			continue;
		name = elf_strptr(elf, shdr.sh_link, sym.st_name);
		index = name ? go_index(name) : -1;
		if (index >= 0)
			r->go[index] = (struct go_function){
				.code = { sym.st_value, sym.st_value + sym.st_size },
				.kind = go_names[index].kind,
			};
	}
}

/* Adds the row, or rows, for @code, which has one row of call frame information. */
static void add_code(struct reducer *r, const struct range *code, Dwarf_Frame *frame,
		     bool is_signal)
{
	struct profil_unwind_rule rule = end;
	Dwarf_Op *ops;
	size_t nr;
	s64 unused;

	if (place_of(frame, RETURN, &unused) == LOST) {
		rule.kind = PROFIL_UNWIND_OUTERMOST;
	} else if (!dwarf_frame_cfa(frame, &ops, &nr) && nr) {
		/* The runtime of OCaml marks code that switches stacks as that of a signal, too. */
		rule = rule_of(frame, ops, nr);
		if (is_signal && is_signal_frame(frame, ops, nr))
			rule.kind = PROFIL_UNWIND_SIGNAL;
		else if (nr > 2 && add_stubs(r, code, frame, ops, nr))
			return;
	}
	row_add(r, code->start, r->is_go ? go_rule(r, code->start, rule) : rule);
}

/* ---- code ---- */

/* Adds the rows for @code, which one entry describes. */
static void add_entry(struct reducer *r, struct range code)
{
	struct range row;
	bool is_signal = false;
	Dwarf_Frame *frame;

	for (; code.start < code.end; code.start = row.end) {
		if (dwarf_cfi_addrframe(r->cfi.cfi, code.start, &frame)) {
			row_add(r, code.start, none);
			return;
		}
		row = code;
		/* The result is the register of the return address. A file can make it negative. */
		dwarf_frame_info(frame, NULL, &row.end, &is_signal);
		if (row.end <= code.start || row.end > code.end)
			row.end = code.end;
		add_code(r, &row, frame, is_signal);
		free(frame);
		if (r->reduced->nr_rows > UNWIND_ROWS_MAX)
			_exit(1);
	}
}

/* Returns true if the code in this range is the end of the parent in glibc's clone3(). */
static bool is_clone3(const struct reducer *r, const struct range *code)
{
	u8 call[sizeof(system_call)], child[CHILD_CODE];

	return pread(r->fd, call, sizeof(call), code->start + r->bias) == sizeof(call) &&
	       !memcmp(call, system_call, sizeof(call)) &&
	       pread(r->fd, child, sizeof(child), code->end + r->bias) == sizeof(child) &&
	       memmem(child, sizeof(child), child_call, sizeof(child_call));
}

/*
 * Adds the rows for code before an entry. @is_first: there is no entry before it.
 *
 * The entry of glibc's clone3() ends at the system call, for the child continues there on a stack
 * of its own. The caller of the parent is found as before. In the child this finds no code, in the
 * word above its stack. But for clone() this word is a function, which would be a false caller.
 */
static void add_gap(struct reducer *r, struct range code, bool is_first)
{
	if (!is_first && is_clone3(r, &code))
		code.start += PAST_SYSTEM_CALL;
	if (code.start < code.end)
		row_add(r, code.start, none);
}

/* Adds the rows for the text at these addresses. */
static void add_text(struct reducer *r, struct range text)
{
	const u64 first = text.start;

	for (size_t i = 0; i < r->nr_entries && text.start < text.end; i++) {
		struct range code = r->entries[i];

		if (code.end <= text.start || code.start >= text.end)
			continue;
		if (code.start > text.start)
			add_gap(r, (struct range){ text.start, code.start }, text.start == first);
		else
			code.start = text.start;
		if (code.end > text.end)
			code.end = text.end;
		add_entry(r, code);
		text.start = code.end;
	}
	if (text.start < text.end)
		row_add(r, text.start, none);
	row_add(r, text.end, none);
}

/* Adds the rows for the text of a segment. Those of the segments before it have been added. */
static void add_segment(struct reducer *r, const GElf_Phdr *segment)
{
	struct range text = { .start = segment->p_offset };

	text.end = segment->p_filesz < TEXT_MAX ? segment->p_filesz : TEXT_MAX;
	text.end = text.start < TEXT_MAX - text.end ? text.start + text.end : TEXT_MAX;
	if (text.start < r->reduced->end)
		text.start = r->reduced->end;
	if (text.start >= text.end)
		return;
	r->reduced->end = text.end;
	r->bias = segment->p_offset - segment->p_vaddr;
	text.start -= r->bias;
	text.end -= r->bias;
	add_text(r, text);
}

static int compare_segments(const void *a, const void *b)
{
	return compare_u64(((const GElf_Phdr *)a)->p_offset, ((const GElf_Phdr *)b)->p_offset);
}

static void add_segments(struct reducer *r, Elf *elf)
{
	GElf_Phdr *segments = NULL, segment;
	size_t nr = 0;

	for (int i = 0; gelf_getphdr(elf, i, &segment); i++) {
		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
			continue;
		if (!array_grow(&segments, nr, sizeof(segment)))
			xmalloc_failed(sizeof(segment));
		segments[nr++] = segment;
	}
	if (nr)
		qsort(segments, nr, sizeof(segment), compare_segments);
	for (size_t i = 0; i < nr; i++)
		add_segment(r, &segments[i]);
	free(segments);
}

/* ---- entries ---- */

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return compare_u64(x->start, y->start) ?: compare_u64(x->end, y->end);
}

static void entry_add(void *data, u64 start, u64 end)
{
	const struct range range = { start, end };
	struct reducer *r = data;

	if (!array_grow(&r->entries, r->nr_entries, sizeof(range)))
		xmalloc_failed(sizeof(range));
	r->entries[r->nr_entries++] = range;
}

/* Finds the code that has call frame information. */
static void read_entries(struct reducer *r, Elf *elf)
{
	cfi_read_entries(&r->cfi, elf, entry_add, r);
	if (r->nr_entries)
		qsort(r->entries, r->nr_entries, sizeof(struct range), compare_ranges);
}

/* ---- tables ---- */

void reduce_begin(struct reduced *reduced)
{
	free(reduced->rows);
	free(reduced->rules);
	free(reduced->slots);
	*reduced = (struct reduced){ .slots = xcalloc(SLOTS, sizeof(*reduced->slots)) };
	rule_index(reduced, end);
}

bool reduce_end(struct reduced *reduced)
{
	/* If the text ends with a block, the row of its end would be in a further one. */
	if (reduced->nr_rows && reduced->end % PROFIL_UNWIND_BLOCK == 0 &&
	    reduced->rows[reduced->nr_rows - 1].offset == reduced->end)
		reduced->nr_rows--;
	return reduced->nr_rows > 1;
}

void reduce_code(struct reduced *reduced, Elf *elf, u64 start, u64 end, u64 base)
{
	struct reducer r = { .reduced = reduced, .bias = -base, .fd = -1 };

	r.cfi = cfi_open(elf, false);
	if (r.cfi.cfi)
		read_entries(&r, elf);
	add_text(&r, (struct range){ start, end });
	reduced->end = end - base;
	free(r.entries);
	dwarf_cfi_end(r.cfi.cfi);
}

bool reduce_file(struct reduced *reduced, const struct elf_file *file)
{
	struct reducer r = {
		.reduced = reduced,
		.is_go = elf_is_go(file->elf),
		.fd = file->fd,
	};
	GElf_Ehdr ehdr;

	if (!gelf_getehdr(file->elf, &ehdr) || ehdr.e_machine != EM_X86_64 ||
	    ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN))
		return false;
	r.cfi = cfi_open(file->elf, r.is_go);
	if (!r.cfi.cfi)
		return false;
	reduce_begin(reduced);
	if (r.is_go)
		read_go_functions(&r, file->elf);
	read_entries(&r, file->elf);
	add_segments(&r, file->elf);
	free(r.entries);
	return reduce_end(reduced);
}
