// SPDX-License-Identifier: GPL-2.0
/*
 * frames PROGRAM...: makes the unwind tables of programs with random call frame information, as the
 * confined process of profil record does. Most of it is generated: entries, encodings, instructions
 * and expressions, of which few are wrong; the rest is that of a PROGRAM (of 64 bits), in which
 * some bytes are changed. A part of the programs is code that a jit-PID.dump describes. It should
 * be built with -fsanitize=address,undefined. Prints TAP. PROFIL_FUZZ_ROUNDS (20000) is the number
 * of tables. With PROFIL_FUZZ_ONLY, a number, it writes that program to the file frames.input, and
 * makes only its table.
 *
 * The module would take each table, and rows next to each other have other rules. The process that
 * makes tables may crash in a library, and it ends at the limits of a table and of its time; then
 * another process continues with the next program.
 */
#define _GNU_SOURCE
#include <dwarf.h>
#include <elf.h>
#include <string.h>
#include <sys/wait.h>

#include <zlib.h>

/* The answer of the confined process stays in this one. */
#define confined_write frames_write
#include "symbols/unwind_table.c"
#include "symbols/code_tables.c"
#undef confined_write

#include "../report/fuzz.h"

#define PROGRAMS_MAX	16
#define BATCH		250	/* programs of one process, which does not free what it allocates */
#define SECONDS_EACH	20	/* for one program */

/* A program that is generated: the headers, the section, other sections, and from TEXT the text */
#define SECTION		0x200
#define SECTION_MAX	0x3000
#define OTHERS		0x3400
#define HEADERS		0x3c00
#define TEXT		0x4000
#define BASE		0x400000

enum { STATUS_DONE, STATUS_LIMIT, STATUS_INVALID };	/* of the process */

/* Shared with the process */
static struct shared {
	u64 next;		/* number of the program */
	u64 tables, parts, none, rows, rows_max, rules_max, slowest_ns, slowest;
	u64 kinds[PROFIL_UNWIND_REGISTER + 1];
	char complaint[200];
} *shared;

static struct bytes programs[PROGRAMS_MAX];
static size_t nr_programs;

/* ---- numbers ---- */

static bool one_in(u64 n)
{
	return !any(n);
}

/* A number below @below, or sometimes another one */
static u64 number(u64 below)
{
	if (one_in(60))
		return odd_number() + (one_in(4) ? any(17) - 8 : 0);
	return any(below);
}

/* ---- bytes ---- */

static void put(struct bytes *to, u64 value, size_t size)
{
	if (to->len + size > SECTION_MAX)
		return;
	memcpy(to->data + to->len, &value, size);
	to->len += size;
}

static void put_leb(struct bytes *to, u64 value)
{
	for (; value > 0x7f; value >>= 7)
		put(to, (value & 0x7f) | 0x80, 1);
	put(to, value, 1);
}

static void put_signed_leb(struct bytes *to, s64 value)
{
	for (; value > 63 || value < -64; value >>= 7)
		put(to, (value & 0x7f) | 0x80, 1);
	put(to, value & 0x7f, 1);
}

static void put_block(struct bytes *to, const void *block, size_t size)
{
	put_leb(to, size);
	for (size_t i = 0; i < size; i++)
		put(to, ((const u8 *)block)[i], 1);
}

/* ---- instructions and expressions ---- */

/* One of @nr operations or instructions from @opcode on, and a letter for each operand */
struct cfi {
	u8 opcode;
	u8 nr;
	const char *operands;
};

static void put_expression(struct bytes *to);

static u64 any_register(void)
{
	static const u8 registers[] = { 6, 7, 16, 6, 7, 16, 3, 12 };

	return one_in(10) ? number(40) : registers[any(sizeof(registers))];
}

/* Puts one of @nr codes. Returns its number. */
static size_t put_one_of(struct bytes *to, const struct cfi *all, size_t nr)
{
	const size_t i = any(nr);

	put(to, all[i].opcode + any(all[i].nr), 1);
	for (const char *operand = all[i].operands; *operand; operand++) {
		switch (*operand) {
		case '1':
			put(to, number(64), 1);
			break;
		case '2':
		case '4':
		case '8':
			put(to, number(0x500), *operand - '0');
			break;
		case '?':	/* of any size */
			put(to, odd_number(), any(9));
			break;
		case 'r':
			put_leb(to, any_register());
			break;
		case 'o':	/* an offset */
			put_leb(to, number(20) * 8);
			break;
		case 'f':	/* a negative one, which is divided by the factor */
			put_signed_leb(to, -number(20));
			break;
		case 'u':
			put_leb(to, number(8));
			break;
		case 's':
			put_signed_leb(to, number(64) - 16);
			break;
		case 'e':
			put_expression(to);
			break;
		}
	}
	return i;
}

#define PUT_ONE_OF(to, all)	put_one_of(to, all, sizeof(all) / sizeof(*(all)))

/* Expressions that rules can describe, some with one byte that is wrong, and others */
static void put_expression(struct bytes *to)
{
	static const struct {
		u8 size;
		u8 bytes[12];
	} known[] = {
		{ 11, { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 } },
		{ 3, { 0x76, 0x78, 0x06 } }, { 2, { 0x76, 0 } }, { 5, { 0x77, 8, 0x06, 0x23, 8 } },
		{ 4, { 0x77, 0xa0, 1, 0x06 } }, { 3, { 0x77, 0xf8, 0 } }, { 3, { 0x77, 0xa0, 1 } },
		{ 3, { 0x77, 0xa8, 1 } }, { 5, { 0x77, 8, 0x80, 0, 0x22 } },
	};
	static const struct cfi operations[] = {
		{ DW_OP_breg6, 2, "s" }, { DW_OP_breg6, 2, "s" }, { DW_OP_breg16, 1, "s" },
		{ DW_OP_breg0, 32, "s" }, { DW_OP_bregx, 1, "rs" }, { DW_OP_lit0, 32, "" },
		{ DW_OP_lit0, 32, "" }, { DW_OP_plus_uconst, 1, "u" }, { DW_OP_const1u, 10, "?" },
		{ DW_OP_plus_uconst, 1, "o" }, { DW_OP_plus, 1, "" }, { DW_OP_and, 1, "" },
		{ DW_OP_ge, 1, "" }, { DW_OP_shl, 1, "" }, { DW_OP_deref, 1, "" },
		{ DW_OP_minus, 1, "" }, { DW_OP_dup, 1, "" }, { DW_OP_drop, 1, "" },
		{ DW_OP_stack_value, 1, "" }, { DW_OP_call_frame_cfa, 1, "" }, { DW_OP_nop, 1, "" },
		{ DW_OP_swap, 1, "" }, { 0, 255, "" },
	};
	u8 bytes[256] = {};
	struct bytes block = { .data = bytes };
	size_t i = any(sizeof(known) / sizeof(*known));

	if (one_in(2)) {
		memcpy(bytes, known[i].bytes, known[i].size);
		block.len = known[i].size;
		if (one_in(4))
			bytes[any(block.len)] = any(256);
	} else if (one_in(8)) {
		/* Operands, and then as many operations as make one of them, or not */
		const u64 n = 2 + any(12);

		for (i = 0; i < n; i++)
			put(&block, DW_OP_lit0 + any(32), 1);
		for (i = n - any(3); i > 1; i--)
			put(&block, one_in(3) ? DW_OP_shl : DW_OP_plus, 1);
	} else {
		for (i = any(one_in(8) ? 20 : 6); i; i--)
			PUT_ONE_OF(&block, operations);
	}
	put_block(to, bytes, one_in(40) ? any(256) : block.len);
}

/* What an interpreter would know: wrong instructions end an entry, so that few should be wrong. */
static bool cfa_is_expression;
static u32 remembered;

static void put_cfa(struct bytes *to)
{
	static const struct cfi all[] = {
		{ DW_CFA_def_cfa_expression, 1, "e" }, { DW_CFA_def_cfa, 1, "ro" },
		{ DW_CFA_def_cfa, 1, "ro" }, { DW_CFA_def_cfa_register, 1, "r" },
		{ DW_CFA_def_cfa_offset, 1, "o" }, { DW_CFA_def_cfa_offset, 1, "o" },
		{ DW_CFA_def_cfa_sf, 1, "rf" }, { DW_CFA_def_cfa_offset_sf, 1, "f" },
	};

	/* Only a whole CFA can replace an expression. */
	if (cfa_is_expression && !one_in(50))
		cfa_is_expression = put_one_of(to, all + 1, 1);
	else
		cfa_is_expression = !PUT_ONE_OF(to, all);
}

static void put_state(struct bytes *to)
{
	if (one_in(2) || (!remembered && !one_in(50))) {
		put(to, DW_CFA_remember_state, 1);
		remembered++;
	} else {
		put(to, DW_CFA_restore_state, 1);
		remembered -= !!remembered;
		cfa_is_expression = true;	/* it may be one */
	}
}

static void put_instruction(struct bytes *to)
{
	static const struct cfi advances[] = {
		{ DW_CFA_advance_loc, 64, "" }, { DW_CFA_advance_loc, 64, "" },
		{ DW_CFA_advance_loc, 64, "" }, { DW_CFA_advance_loc, 64, "" },
		{ DW_CFA_advance_loc, 64, "" }, { DW_CFA_advance_loc1, 1, "1" },
		{ DW_CFA_advance_loc2, 1, "2" }, { DW_CFA_advance_loc4, 1, "4" },
	};
	static const struct cfi registers[] = {
		{ DW_CFA_offset + 6, 2, "u" }, { DW_CFA_offset + 16, 1, "u" },
		{ DW_CFA_offset, 64, "u" }, { DW_CFA_restore + 6, 2, "" },
		{ DW_CFA_restore, 64, "" }, { DW_CFA_undefined, 1, "r" },
		{ DW_CFA_same_value, 1, "r" }, { DW_CFA_restore_extended, 1, "r" },
		{ DW_CFA_register, 1, "rr" }, { DW_CFA_offset_extended, 1, "ru" },
		{ DW_CFA_val_offset, 1, "ru" }, { DW_CFA_offset_extended_sf, 1, "rs" },
		{ DW_CFA_val_offset_sf, 1, "rs" }, { DW_CFA_expression, 1, "re" },
		{ DW_CFA_val_expression, 1, "re" }, { DW_CFA_expression, 1, "re" },
		{ DW_CFA_val_expression, 1, "re" },
	};
	/* The last ones are any, even those of other machines. */
	static const struct cfi others[] = {
		{ DW_CFA_nop, 1, "" }, { DW_CFA_nop, 1, "" }, { DW_CFA_nop, 1, "" },
		{ DW_CFA_GNU_args_size, 1, "o" }, { DW_CFA_GNU_args_size, 1, "o" },
		{ DW_CFA_set_loc, 1, "4" }, { DW_CFA_set_loc, 1, "8" }, { 0, 255, "" },
	};

	switch (any(16)) {
	case 0:
		put_state(to);
		break;
	case 1:
		if (one_in(4))
			PUT_ONE_OF(to, others);
		break;
	case 2 ... 4:
		PUT_ONE_OF(to, registers);
		break;
	case 5 ... 8:
		put_cfa(to);
		break;
	default:
		PUT_ONE_OF(to, advances);
		break;
	}
}

/* Puts instructions that the module knows, which set the CFA by an expression. Few are wrong. */
static void put_known(struct bytes *to, const u8 *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		put(to, one_in(200) ? any(256) : bytes[i], 1);
	cfa_is_expression = true;
}

static void put_instructions(struct bytes *to)
{
	/* Code that changes to the stack of the interrupted code */
	static const u8 in_signal[] = {
		0x0f, 4, 0x77, 0xa0, 1, 0x06, 0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 7, 3, 0x77, 0xa0, 1,
		0x10, 16, 3, 0x77, 0xa8, 1,
	};
	/* A function that aligns its stack: the CFA is saved below the frame pointer. */
	static const u8 aligned[] = { 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0 };
	u64 n = any(one_in(20) ? 200 : 12);

	cfa_is_expression = false;
	remembered = 0;
	if (one_in(12))
		put_known(to, in_signal, sizeof(in_signal));
	else if (one_in(12))
		put_known(to, aligned, sizeof(aligned));
	while (n--)
		put_instruction(to);
}

/* ---- entries ---- */

/* What entries of a CIE have in common */
struct parent {
	size_t at;
	bool has_data;		/* augmentation data */
	bool has_lsda;
	u8 encoding;
};

struct section {
	struct bytes bytes;
	bool is_eh;
	u64 address;		/* of the section */
	struct parent parents[4];
	size_t nr_parents;
	u64 code;		/* where the next entry begins */
};

/* Begins an entry. Returns where its length is. */
static size_t begin_entry(struct section *s)
{
	const size_t at = s->bytes.len;

	if (one_in(40)) {
		put(&s->bytes, 0xffffffff, 4);
		put(&s->bytes, 0, 8);
	} else {
		put(&s->bytes, 0, 4);
	}
	return at;
}

/* Returns the size of the length and of the pointer to a CIE. */
static size_t pointer_size(const struct section *s, size_t at)
{
	u32 length;

	memcpy(&length, s->bytes.data + at, 4);
	return length == 0xffffffff ? 8 : 4;
}

static void end_entry(struct section *s, size_t at)
{
	u8 *data = s->bytes.data + at;
	const size_t size = pointer_size(s, at), skipped = size == 8 ? 4 : 0;
	u64 length;

	while (s->bytes.len % 8)
		put(&s->bytes, DW_CFA_nop, 1);
	length = s->bytes.len - at - skipped - size;
	if (one_in(100))
		length = one_in(2) ? odd_number() : length + any(17) - 8;
	if (at + 12 <= SECTION_MAX)
		memcpy(data + skipped, &length, size);
}

static u8 any_encoding(void)
{
	static const u8 encodings[] = {
		0x1b, 0x1b, 0x1b, 0x00, 0x03, 0x0b, 0x1c, 0x0c, 0x04, 0x10, 0x1a, 0x0a, 0x02, 0x13,
		0x3b, 0x9b, 0x50, 0xff, 0x01, 0x09, 0x2b, 0x4b, 0x08,
	};

	return one_in(40) ? any(256) : encodings[any(one_in(4) ? sizeof(encodings) : 9)];
}

static void put_parent(struct section *s)
{
	static const char *const augmentations[] = {
		"zR", "zR", "zR", "zRS", "zPLR", "zRSB", "zLR", "z", "", "", "zX", "R", "zSR", "eh",
		"zPR", "zRRR",
	};
	struct parent *p = &s->parents[s->nr_parents++];
	const size_t usual = sizeof(augmentations) / sizeof(*augmentations) - 9;
	const char *letters = augmentations[any(one_in(8) ? usual + 9 : usual)];
	u8 letters_data[300];
	struct bytes *to = &s->bytes, data = { .data = letters_data };
	const u8 version = one_in(20) ? any(6) : one_in(3) ? 3 : s->is_eh ? 1 : 4;

	if (!s->is_eh && one_in(2))
		letters = "";
	*p = (struct parent){ .at = begin_entry(s), .has_data = *letters == 'z' };
	put(to, s->is_eh ? 0 : -1, pointer_size(s, p->at));
	put(to, version, 1);
	for (const char *letter = letters; ; letter++) {
		put(to, *letter, 1);
		if (!*letter)
			break;
		if (*letter == 'R') {
			p->encoding = any_encoding();
			put(&data, p->encoding, 1);
		} else if (*letter == 'L') {
			p->has_lsda = true;
			put(&data, 0x1b, 1);
		} else if (*letter == 'P') {
			put(&data, one_in(8) ? any(256) : 0x9b, 1);
			put(&data, any(1 << 16), one_in(20) ? any(9) : 4);
		}
	}
	if (version == 4) {
		put(to, one_in(20) ? any(256) : 8, 1);
		put(to, one_in(20) ? any(256) : 0, 1);
	}
	put_leb(to, one_in(20) ? number(9) : 1);
	put_signed_leb(to, one_in(20) ? (s64)number(9) : -8);
	if (version == 1)
		put(to, one_in(20) ? number(40) : 16, 1);
	else
		put_leb(to, one_in(20) ? number(40) ^ -one_in(2) : 16);
	if (p->has_data)
		put_block(to, data.data, one_in(60) ? any(256) : data.len);
	/* rsp + 8, with the return address below */
	if (!one_in(10)) {
		put(to, DW_CFA_def_cfa, 1);
		put_leb(to, 7);
		put_leb(to, 8);
		put(to, DW_CFA_offset | 16, 1);
		put_leb(to, 1);
	}
	if (one_in(4))
		put_instructions(to);
	end_entry(s, p->at);
}

static size_t size_of_encoding(u8 encoding)
{
	static const u8 sizes[8] = { 8, 2, 2, 4, 8, 2, 8, 8 };

	return sizes[encoding & 7];
}

static void put_child(struct section *s)
{
	const struct parent *p = &s->parents[any(s->nr_parents)];
	struct bytes *to = &s->bytes;
	const size_t at = begin_entry(s), size = size_of_encoding(p->encoding);
	u64 start = s->code, length = one_in(12) ? number(0x3000) : 1 + any(300);
	size_t block;

	put(to, (s->is_eh ? to->len - p->at : p->at) + (one_in(60) ? any(65) - 32 : 0),
	    pointer_size(s, at));
	if (one_in(30))
		start = one_in(2) ? 0 : BASE + TEXT + number(0x10000);
	else if (one_in(30))
		start -= any(400);
	s->code = start + length + (one_in(3) ? any(64) : 0);
	if ((p->encoding & 0x70) == DW_EH_PE_pcrel)
		start -= s->address + to->len;
	put(to, start, size);
	put(to, length, size);
	if (p->has_data) {
		block = p->has_lsda ? 4 : 0;
		put_leb(to, one_in(60) ? number(300) : block);
		put(to, 0, block);
	}
	put_instructions(to);
	end_entry(s, at);
}

static void put_entries(struct section *s)
{
	u64 n = 1 + any(one_in(20) ? 60 : 8);

	put_parent(s);
	while (n--) {
		if (s->nr_parents < sizeof(s->parents) / sizeof(*s->parents) && one_in(4))
			put_parent(s);
		put_child(s);
		if (one_in(80))
			put(&s->bytes, 0, 4);
	}
	if (!one_in(4))
		put(&s->bytes, 0, 4);
}

/* Changes some of the @size bytes at @data. */
static void change(u8 *data, size_t size)
{
	u64 n = 1 + any(4), value;
	size_t at, len;

	while (size && n--) {
		at = any(size);
		switch (any(5)) {
		case 0:
			data[at] = any(256);
			break;
		case 1:
			data[at] ^= 1 << any(8);
			break;
		case 2:
			value = odd_number();
			len = 1 << any(4);
			memcpy(data + at, &value, len < size - at ? len : 1);
			break;
		case 3:
			len = any(size - at < 64 ? size - at : 64);
			memmove(data + at, data + any(size - len), len);
			break;
		case 4:
			/* A number that does not end */
			memset(data + at, 0x80 | any(128), any(size - at < 16 ? size - at : 16));
			break;
		}
	}
}

/* ---- programs ---- */

static const char names[] = "\0.eh_frame\0.debug_frame\0.shstrtab\0.gopclntab\0.symtab\0.strtab\0"
			    "runtime.goexit\0runtime.mcall.abi0\0runtime.systemstack\0";

static u32 name_at(const char *name)
{
	return (const char *)memmem(names, sizeof(names), name, strlen(name) + 1) - names;
}

static void compress_section(struct bytes *bytes, Elf64_Shdr *shdr)
{
	Elf64_Chdr header = { .ch_type = ELFCOMPRESS_ZLIB, .ch_addralign = 1 };
	static u8 packed[2 * SECTION_MAX];
	uLongf len = sizeof(packed);

	header.ch_size = one_in(8) ? odd_number() % (64 << 20) : shdr->sh_size;
	if (compress(packed, &len, bytes->data + SECTION, shdr->sh_size) ||
	    len + sizeof(header) > SECTION_MAX)
		return;
	if (one_in(4))
		change(packed, len);
	memcpy(bytes->data + SECTION, &header, sizeof(header));
	memcpy(bytes->data + SECTION + sizeof(header), packed, len);
	shdr->sh_flags |= SHF_COMPRESSED;
	shdr->sh_size = sizeof(header) + len;
}

/* Symbols for functions of Go */
static size_t put_symbols(u8 *to)
{
	static const char *const of_go[] = {
		"runtime.goexit", "runtime.mcall.abi0", "runtime.systemstack",
	};
	Elf64_Sym symbols[4] = {};

	for (int i = 0; i < 3; i++) {
		symbols[i + 1].st_name = name_at(of_go[i]);
		symbols[i + 1].st_info = STT_FUNC;
		symbols[i + 1].st_value = BASE + TEXT + number(0x1000);
		symbols[i + 1].st_size = number(100);
	}
	memcpy(to, symbols, sizeof(symbols));
	return sizeof(symbols);
}

static void put_segments(struct bytes *bytes, Elf64_Ehdr *ehdr)
{
	Elf64_Phdr *phdrs = (void *)(bytes->data + ehdr->e_phoff);

	for (int i = 0; i < ehdr->e_phnum; i++) {
		phdrs[i] = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = PF_R | (i && one_in(4) ? 0 : PF_X),
			.p_offset = TEXT + i * 0x1800,
			.p_vaddr = BASE + TEXT + i * 0x1800,
			.p_filesz = one_in(3) ? number(0x10000) : 0x1800,
		};
		if (one_in(60))
			phdrs[i].p_offset = odd_number();
		if (one_in(60))
			phdrs[i].p_vaddr = odd_number();
		if (one_in(200))
			phdrs[i].p_filesz = odd_number();
	}
}

static void generate(struct bytes *bytes)
{
	const bool is_go = one_in(8), is_eh = one_in(20) || (!is_go && !one_in(3));
	struct section s = {
		.bytes = { .data = bytes->data + SECTION },
		.is_eh = is_eh,
		.address = BASE + SECTION,
		.code = BASE + TEXT + (one_in(3) ? any(100) : 0),
	};
	Elf64_Ehdr *ehdr = (void *)bytes->data;
	Elf64_Shdr *shdrs = (void *)(bytes->data + HEADERS);

	memset(bytes->data, 0, TEXT);
	bytes->len = TEXT;
	put_entries(&s);
	if (one_in(4))
		change(s.bytes.data, s.bytes.len);
	*ehdr = (Elf64_Ehdr){
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = one_in(2) ? ET_EXEC : ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(*ehdr),
		.e_shoff = HEADERS,
		.e_ehsize = sizeof(*ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1 + (one_in(3) ? any(4) : 0),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = is_go ? 6 : 3,
		.e_shstrndx = 2,
	};
	put_segments(bytes, ehdr);
	memcpy(bytes->data + OTHERS, names, sizeof(names));
	shdrs[1] = (Elf64_Shdr){
		.sh_name = name_at(is_eh ? ".eh_frame" : ".debug_frame"),
		.sh_type = SHT_PROGBITS,
		.sh_addr = s.address,
		.sh_offset = SECTION,
		.sh_size = one_in(40) ? any(s.bytes.len + 1) : s.bytes.len,
		.sh_addralign = 8,
	};
	shdrs[2] = (Elf64_Shdr){
		.sh_name = name_at(".shstrtab"),
		.sh_type = SHT_STRTAB,
		.sh_offset = OTHERS,
		.sh_size = sizeof(names),
	};
	if (is_go) {
		shdrs[3] = (Elf64_Shdr){
			.sh_name = name_at(".gopclntab"),
			.sh_type = SHT_PROGBITS,
		};
		shdrs[4] = (Elf64_Shdr){
			.sh_name = name_at(".symtab"),
			.sh_type = SHT_SYMTAB,
			.sh_link = 2,
			.sh_offset = OTHERS + 0x200,
			.sh_size = put_symbols(bytes->data + OTHERS + 0x200),
			.sh_entsize = sizeof(Elf64_Sym),
		};
	}
	if (one_in(20))
		compress_section(bytes, &shdrs[1]);
	if (one_in(100))
		change((u8 *)&shdrs[1], sizeof(shdrs[1]));
}

/* Copies a program, and changes its section. */
static void copy_changed(struct bytes *bytes, const struct bytes *program)
{
	const Elf64_Ehdr *ehdr = (const void *)program->data;
	const Elf64_Shdr *shdrs = (const void *)(program->data + ehdr->e_shoff);
	const char *strings = (const char *)program->data + shdrs[ehdr->e_shstrndx].sh_offset;

	memcpy(bytes->data, program->data, program->len);
	bytes->len = program->len;
	for (int i = 1; i < ehdr->e_shnum; i++) {
		const char *name = strings + shdrs[i].sh_name;

		if (!strcmp(name, ".eh_frame") || !strcmp(name, ".debug_frame"))
			change(bytes->data + shdrs[i].sh_offset, shdrs[i].sh_size);
	}
}

/* Puts a record of a dump, whose contents are in @body. */
static void put_record(struct bytes *to, enum jitdump_id id, const struct bytes *body)
{
	put(to, one_in(60) ? odd_number() : id, 4);
	put(to, sizeof(struct jitdump_record) + (one_in(100) ? odd_number() : body->len), 4);
	put(to, 0, 8);
	for (size_t i = 0; i < body->len; i++)
		put(to, body->data[i], 1);
}

/* Code in one or two parts of memory that tables describe, at times over other code */
static void generate_dump(struct bytes *bytes)
{
	static u8 frames[SECTION_MAX], body[SECTION_MAX];
	const u64 first = one_in(20) ? odd_number() : 4 * PROFIL_UNWIND_CODE_SIZE - any(0x2000);
	u64 n = 1 + any(10);

	bytes->len = 0;
	put(bytes, one_in(100) ? any(256) : JITDUMP_MAGIC, 4);
	put(bytes, 1, 4);
	put(bytes, one_in(100) ? odd_number() : 40, 4);
	put(bytes, one_in(100) ? odd_number() : EM_X86_64, 4);
	for (int i = 0; i < 3; i++)
		put(bytes, 0, 8);
	while (n--) {
		const u64 size = number(one_in(20) ? 1 << 25 : 0x800);
		const u64 code = first + number(0x4000);
		struct section s = {
			.bytes = { .data = frames },
			.is_eh = true,
			.code = code,
			.address = code + (size + 7) / 8 * 8,
		};
		struct bytes record = { .data = body };

		put_entries(&s);
		put(&record, s.bytes.len + number(40), 8);
		put(&record, number(40), 8);
		put(&record, 0, 8);
		for (size_t i = 0; i < s.bytes.len; i++)
			put(&record, frames[i], 1);
		if (!one_in(10))
			put_record(bytes, JITDUMP_UNWINDING, &record);
		record.len = 0;
		put(&record, 0, 8);
		put(&record, code, 8);
		put(&record, code, 8);
		put(&record, size, 8);
		put(&record, 0, 8);
		put(&record, 'a', 2);
		put_record(bytes, JITDUMP_LOAD, &record);
	}
	if (one_in(4))
		change(bytes->data, bytes->len);
}

/* Makes program @i, which depends on the seed. */
static void make_program(struct bytes *bytes, u64 seed, u64 i)
{
	state = (seed * 0x9e3779b97f4a7c15ULL ^ i * 0xd1342543de82ef95ULL) | 1;
	for (int j = 0; j < 4; j++)
		any(1);
	if (one_in(5))
		generate_dump(bytes);
	else if (nr_programs && one_in(4))
		copy_changed(bytes, &programs[any(nr_programs)]);
	else
		generate(bytes);
}

/* ---- tables ---- */

static struct bytes answer;

void frames_write(const struct confined *confined, const void *data, size_t size)
{
	answer.data = realloc(answer.data, answer.len + size);
	if (!answer.data && answer.len + size)
		_exit(STATUS_LIMIT);
	if (size)
		memcpy(answer.data + answer.len, data, size);
	answer.len += size;
	(void)confined;
}

static void complain(const char *what)
{
	snprintf(shared->complaint, sizeof(shared->complaint), "%s", what);
	_exit(STATUS_INVALID);
}

/* Checks what the module checks, and that no row is superfluous. */
static void check_table(const struct unwind_table *t)
{
	u32 last = UINT32_MAX;

	if (!t->nr_blocks || t->nr_blocks > PROFIL_UNWIND_BLOCKS || !t->nr_rows ||
	    t->nr_rows > UNWIND_ROWS_MAX || !t->nr_rules || t->nr_rules > PROFIL_UNWIND_RULES)
		complain("the size of the table");
	for (u32 i = 0; i < t->nr_rules; i++) {
		const struct profil_unwind_rule *rule = &t->rules[i];

		if (!rule_is_valid(rule))
			complain("a rule");
		shared->kinds[rule->kind]++;
	}
	for (u32 b = 0; b < t->nr_blocks; b++) {
		const u32 end = b + 1 < t->nr_blocks ? t->blocks[b + 1] : t->nr_rows;

		if ((!b && t->blocks[b]) || end < t->blocks[b] || end > t->nr_rows)
			complain("a block");
		for (u32 i = t->blocks[b]; i < end; i++) {
			const u32 rule = t->rows[i] & 0xffff, offset = t->rows[i] >> 16;

			if (rule >= t->nr_rules || offset >= PROFIL_UNWIND_BLOCK ||
			    (i > t->blocks[b] && offset <= t->rows[i - 1] >> 16))
				complain("a row");
			if (rule == last)
				complain("a row with the rule of the row before it");
			last = rule;
		}
	}
	shared->tables++;
	shared->rows += t->nr_rows;
	if (t->nr_rows > shared->rows_max)
		shared->rows_max = t->nr_rows;
	if (t->nr_rules > shared->rules_max)
		shared->rules_max = t->nr_rules;
}

/* Takes the tables of a dump. */
static void check_parts(void)
{
	const struct confined confined = { .answer = answer.data, .size = answer.len };
	struct unwind_table table;
	u64 nr = 0, last = 0;
	struct part part;
	size_t at = 0;

	for (; at < answer.len; last = part.start) {
		at = take_part(&confined, at, &part, &table);
		if (!at)
			complain("a table is refused");
		if (nr++ && part.start <= last)
			complain("the order of the tables");
		if (table.nr_blocks > PROFIL_UNWIND_CODE_SIZE / PROFIL_UNWIND_BLOCK)
			complain("a table is too large");
		check_table(&table);
		unwind_table_free(&table);
	}
	if (nr > PARTS_MAX)
		complain("the number of tables");
	shared->parts += nr;
	free(answer.data);
}

static void make_table(const struct bytes *bytes, int fd)
{
	const bool is_dump = bytes->len < TEXT && *(u32 *)bytes->data == JITDUMP_MAGIC;
	const struct confined confined = { .fd = fd };
	const u64 start = clock_ns(CLOCK_MONOTONIC);
	struct unwind_table table;
	u64 ns;

	if (ftruncate(fd, bytes->len) ||
	    pwrite(fd, bytes->data, bytes->len, 0) != (ssize_t)bytes->len)
		err(99, "memfd");
	answer = (struct bytes){};
	alarm(SECONDS_EACH);
	(is_dump ? work_make_codes : work_make)(&confined);
	alarm(0);
	ns = clock_ns(CLOCK_MONOTONIC) - start;
	if (ns > shared->slowest_ns) {
		shared->slowest_ns = ns;
		shared->slowest = shared->next;
	}
	if (!answer.len) {
		shared->none++;
		return;
	}
	if (is_dump) {
		check_parts();
		return;
	}
	if (!unwind_table_take(&table, answer.data, answer.len))
		complain("the table is refused");
	check_table(&table);
	unwind_table_free(&table);
}

/* Makes tables up to @end, in a process. Returns its status. */
static int make_some(struct bytes *bytes, u64 seed, u64 end)
{
	int fd, status;
	pid_t child = fork();

	if (!child) {
		fd = memfd_create("frames", MFD_CLOEXEC);
		if (fd < 0)
			err(99, "memfd");
		for (; shared->next < end; shared->next++) {
			make_program(bytes, seed, shared->next);
			make_table(bytes, fd);
		}
		_exit(STATUS_DONE);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		err(1, "fork");
	return status;
}

static void write_program(const struct bytes *bytes)
{
	FILE *file = fopen("frames.input", "w");

	if (!file || fwrite(bytes->data, bytes->len, 1, file) != 1 || fclose(file))
		err(1, "frames.input");
}

int main(int argc, char **argv)
{
	u64 nr = 20000, end, limited = 0, slow = 0, nr_failed = 0, invalid = 0, said = 0;
	const u64 seed = fuzz_begin(stdout, 1, &nr);
	const u64 only = from_environment("PROFIL_FUZZ_ONLY", UINT64_MAX);
	struct bytes bytes = { .data = malloc(BYTES_MAX) };
	bool fine;
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED || !bytes.data)
		err(1, "memory");
	for (int i = 1; i < argc && i <= PROGRAMS_MAX; i++)
		programs[nr_programs++] = load(argv[i], BYTES_MAX);
	if (only != UINT64_MAX) {
		make_program(&bytes, seed, only);
		write_program(&bytes);
		shared->next = only;
		nr = only + 1;
	}
	while (shared->next < nr) {
		end = shared->next + BATCH;
		status = make_some(&bytes, seed, nr < end ? nr : end);
		if (status) {
			limited += status == W_EXITCODE(STATUS_LIMIT, 0);
			invalid += status == W_EXITCODE(STATUS_INVALID, 0);
			slow += status == SIGALRM;
			nr_failed++;
			printf("# program %" PRIu64 ": status %#x %s\n", shared->next, status,
			       shared->complaint);
			shared->complaint[0] = '\0';
			shared->next++;
		}
		if (shared->next - said >= 100000) {
			said = shared->next;
			printf("# %" PRIu64 " programs\n", said);
		}
		fflush(stdout);
	}
	printf("# %" PRIu64 " tables, %" PRIu64 " of dumps, %" PRIu64 " without, %" PRIu64
	       " invalid\n", shared->tables, shared->parts, shared->none, invalid);
	printf("# %" PRIu64 " over a limit, %" PRIu64 " slow, %" PRIu64 " crashed\n", limited, slow,
	       nr_failed - limited - slow - invalid);
	printf("# %" PRIu64 " rows, at most %" PRIu64 " in a table; at most %" PRIu64
	       " rules in a table\n", shared->rows, shared->rows_max, shared->rules_max);
	printf("# the slowest, program %" PRIu64 ": %.1f ms\n", shared->slowest,
	       shared->slowest_ns / 1e6);
	fine = !invalid && (shared->parts || nr < 10000);
	printf("# rules by kind:");
	for (size_t i = 0; i < sizeof(shared->kinds) / sizeof(*shared->kinds); i++) {
		printf(" %" PRIu64, shared->kinds[i]);
		fine &= shared->kinds[i] || nr < 10000;
	}
	printf("\n%sok 1 tables of random call frame information\n", fine ? "" : "not ");
	return !fine;
}
