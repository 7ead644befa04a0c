// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See stubs.h. Linkers differ in the order and the size of stubs, so this looks for the instruction
 * that reads the slot.
 */
#include <gelf.h>

#include <libiberty/libiberty.h>

#include "symbols/stubs.h"

/* A stub without a following one ends after this number of bytes. */
#define STUB_MAX	24

/* A linkage table, and what is needed to find the slots of its stubs */
struct table {
	Elf *elf;
	int machine;
	const u8 *data;
	size_t size;
	u64 address;
	u64 got;			/* the base of slots in position-independent code of i386 */
	const Elf_Data *lazy;		/* the relocations to which stubs refer by number */
	size_t lazy_size;		/* of one, on i386 */
};

/* ---- instructions ---- */

static u32 word_at(const u8 *bytes)
{
	u32 word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/*
 * Each of the following functions returns true if an instruction at @at uses a slot. It sets @slot
 * to the address of the slot, and @start to the offset of the stub in the table.
 */

/* With branch tracking, a stub can push the number of its relocation, and another one jumps. */
static bool find_push_x86(const struct table *table, size_t at, u64 *slot)
{
	static const u8 landing[] = { 0xf3, 0x0f, 0x1e };
	const u8 *bytes = table->data + at;
	size_t number;
	GElf_Rela rela;
	GElf_Rel rel;

	if (at % 16 || table->size - at < 9 || memcmp(bytes, landing, sizeof(landing)) ||
	    bytes[4] != 0x68 || !table->lazy || !table->lazy->d_size)
		return false;
	number = word_at(bytes + 5) / table->lazy_size;
	if (number > INT32_MAX)
		return false;
	if (table->lazy->d_type == ELF_T_RELA &&
	    gelf_getrela((Elf_Data *)table->lazy, number, &rela))
		*slot = rela.r_offset;
	else if (table->lazy->d_type == ELF_T_REL &&
		 gelf_getrel((Elf_Data *)table->lazy, number, &rel))
		*slot = rel.r_offset;
	else
		return false;
	return true;
}

static bool find_x86(const struct table *table, size_t at, u64 *slot, size_t *start)
{
	const u8 *bytes = table->data + at;
	s32 distance;

	*start = at % 8 ? at / 16 * 16 : at;
	if (find_push_x86(table, at, slot))
		return true;
	if (table->size - at < 6 || bytes[0] != 0xff)
		return false;
	distance = word_at(bytes + 2);
	if (table->machine == EM_X86_64)
		*slot = table->address + at + 6 + distance;
	else
		*slot = (u32)(bytes[1] == 0x25 ? (u64)distance : table->got + distance);
	return bytes[1] == 0x25 || (bytes[1] == 0xa3 && table->machine == EM_386);
}

static bool find_arm64(const struct table *table, size_t at, u64 *slot, size_t *start)
{
	const u8 *bytes = table->data + at;
	u32 adrp, load;
	s64 pages;

	if (at % 4 || table->size - at < 8)
		return false;
	adrp = word_at(bytes);
	load = word_at(bytes + 4);
	/* adrp x16, PAGES; ldr x17, [x16, OFFSET] */
	if ((adrp & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
		return false;
	pages = (s32)((adrp >> 5 & 0x7ffff) << 13) >> 11 | (adrp >> 29 & 3);
	*slot = ((table->address + at) & ~0xfffULL) + pages * 4096 + (load >> 10 & 0xfff) * 8;
	/* bti c */
	*start = at >= 4 && word_at(bytes - 4) == 0xd503245f ? at - 4 : at;
	return true;
}

static bool find_riscv(const struct table *table, size_t at, u64 *slot, size_t *start)
{
	const u8 *bytes = table->data + at;
	u32 auipc, load;

	if (at % 4 || table->size - at < 8)
		return false;
	auipc = word_at(bytes);
	load = word_at(bytes + 4);
	/* auipc t3, HIGH; ld or lw t3, LOW(t3) */
	if ((auipc & 0xfff) != 0xe17 || (load & 0xfefff) != 0xe2e03)
		return false;
	*slot = table->address + at + (s64)(s32)(auipc & ~0xfffU) + ((s32)load >> 20);
	*start = at;
	return true;
}

static bool find_slot(const struct table *table, size_t at, u64 *slot, size_t *start)
{
	switch (table->machine) {
	case EM_X86_64:
	case EM_386:
		return find_x86(table, at, slot, start);
	case EM_AARCH64:
		return find_arm64(table, at, slot, start);
	case EM_RISCV:
		return find_riscv(table, at, slot, start);
	default:
		return false;
	}
}

/* ---- tables ---- */

/* Adds the stub if it contains a place, and begins another one at @slot and @start. */
static void stub_end(struct stubs *stubs, const struct lookup *lookup, struct stub *stub, u64 start,
		     u64 slot)
{
	size_t i = lookup_index(lookup, stub->start);

	if (stub->end > start)
		stub->end = start;
	if (stub->start < stub->end && i < lookup->nr && lookup->places[i].address < stub->end) {
		if (!array_grow(&stubs->stubs, stubs->nr, sizeof(*stub)))
			xmalloc_failed(sizeof(*stub));
		stubs->stubs[stubs->nr++] = *stub;
	}
	*stub = (struct stub){ .start = start, .end = start + STUB_MAX, .slot = slot };
}

static void read_table(struct stubs *stubs, const struct lookup *lookup, const struct table *table)
{
	struct stub stub = {};
	size_t start;
	u64 slot;

	for (size_t at = 0; at < table->size; at++)
		if (find_slot(table, at, &slot, &start))
			stub_end(stubs, lookup, &stub, table->address + start, slot);
	stub_end(stubs, lookup, &stub, table->address + table->size, 0);
}

/* Linkers use names such as .plt, .plt.sec and .iplt. */
static bool is_table(const GElf_Shdr *shdr, const char *name)
{
	return name && (!strncmp(name, ".plt", 4) || !strncmp(name, ".iplt", 5)) &&
	       shdr->sh_type == SHT_PROGBITS && shdr->sh_flags & SHF_EXECINSTR;
}

/* Finds what the stubs of the file need besides their table. */
static bool open_tables(struct table *table, Elf *elf)
{
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Ehdr ehdr;
	GElf_Shdr shdr;
	bool found = false;

	if (!gelf_getehdr(elf, &ehdr))
		return false;
	*table = (struct table){ .elf = elf, .machine = ehdr.e_machine, .lazy_size = 1 };
	while ((scn = elf_section_next(elf, scn, &shdr, &name))) {
		found |= is_table(&shdr, name);
		if (name && !strcmp(name, ".got.plt"))
			table->got = shdr.sh_addr;
		else if (name && !strcmp(name, ".got") && !table->got)
			table->got = shdr.sh_addr;
		else if (name && (!strcmp(name, ".rela.plt") || !strcmp(name, ".rel.plt")))
			table->lazy = elf_section_data(scn);
	}
	/* A push of i386 has an offset instead of a number. */
	if (table->machine == EM_386)
		table->lazy_size = sizeof(Elf32_Rel);
	return found;
}

/* ---- relocations ---- */

static int compare_slots(const void *a, const void *b)
{
	const struct stub *x = a, *y = b;

	return compare_u64(x->slot, y->slot);
}

/* A relocation of one of both formats */
struct relocation {
	u64 slot;
	u64 info;
	u64 addend;
};

static bool read_relocation(Elf_Data *data, bool has_addend, int i, struct relocation *relocation)
{
	GElf_Rela rela;
	GElf_Rel rel;

	if (has_addend && gelf_getrela(data, i, &rela)) {
		*relocation = (struct relocation){ rela.r_offset, rela.r_info, rela.r_addend };
		return true;
	}
	if (!has_addend && gelf_getrel(data, i, &rel)) {
		*relocation = (struct relocation){ rel.r_offset, rel.r_info, 0 };
		return true;
	}
	return false;
}

/* Names the stubs of the slot. @symbols: the symbol table, of which @strings has the names. */
static void name_stubs(struct stubs *stubs, Elf *elf, const struct relocation *relocation,
		       Elf_Data *symbols, size_t strings)
{
	size_t i = array_index(&stubs->stubs->slot, stubs->nr, sizeof(*stubs->stubs),
			       relocation->slot);
	const char *name = NULL;
	GElf_Sym sym;

	if (i == stubs->nr || stubs->stubs[i].slot != relocation->slot)
		return;
	if (symbols && GELF_R_SYM(relocation->info) &&
	    gelf_getsym(symbols, GELF_R_SYM(relocation->info), &sym))
		name = elf_strptr(elf, strings, sym.st_name);
	for (; i < stubs->nr && stubs->stubs[i].slot == relocation->slot; i++) {
		if (name && *name)
			stubs->stubs[i].name = name;
		else if (!GELF_R_SYM(relocation->info))
			stubs->stubs[i].target = relocation->addend;
	}
}

static void read_relocations(struct stubs *stubs, Elf *elf)
{
	Elf_Scn *scn = NULL, *table;
	struct relocation relocation;
	Elf_Data *data, *symbols;
	GElf_Shdr shdr, linked;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) ||
		    (shdr.sh_type != SHT_RELA && shdr.sh_type != SHT_REL) ||
		    !(shdr.sh_flags & SHF_ALLOC))
			continue;
		data = elf_section_data(scn);
		table = shdr.sh_link ? elf_getscn(elf, shdr.sh_link) : NULL;
		symbols = table && gelf_getshdr(table, &linked) ? elf_section_data(table) : NULL;
		if (symbols && !elf_section_data(elf_getscn(elf, linked.sh_link)))
			symbols = NULL;
		for (int i = 0; data && read_relocation(data, shdr.sh_type == SHT_RELA, i,
							&relocation); i++)
			name_stubs(stubs, elf, &relocation, symbols, symbols ? linked.sh_link : 0);
	}
}

/* Lists the functions for which a symbol is needed. */
static void list_targets(struct stubs *stubs)
{
	u64 *targets = xcalloc(stubs->nr + 1, sizeof(*targets));
	size_t nr = 0;

	for (size_t i = 0; i < stubs->nr; i++)
		if (!stubs->stubs[i].name && stubs->stubs[i].target)
			targets[nr++] = stubs->stubs[i].target;
	lookup_init(&stubs->targets, targets, nr);
	free(targets);
}

void stubs_find(struct stubs *stubs, struct lookup *lookup, Elf *elf)
{
	struct table table;
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr shdr;
	Elf_Data *data;

	*stubs = (struct stubs){};
	if (!open_tables(&table, elf))
		return;
	while ((scn = elf_section_next(elf, scn, &shdr, &name))) {
		const size_t i = lookup_index(lookup, shdr.sh_addr);

		if (!is_table(&shdr, name) || i == lookup->nr ||
		    lookup->places[i].address - shdr.sh_addr >= shdr.sh_size)
			continue;
		lookup_add(lookup, &(struct function){
			.start = shdr.sh_addr,
			.end = shdr.sh_addr + shdr.sh_size,
			.name = concat("[", name + 1, "]", NULL),
		});
		data = elf_section_data(scn);
		table.data = data ? data->d_buf : NULL;
		table.size = data ? data->d_size : 0;
		table.address = shdr.sh_addr;
		read_table(stubs, lookup, &table);
	}
	if (!stubs->nr)
		return;
	qsort(stubs->stubs, stubs->nr, sizeof(*stubs->stubs), compare_slots);
	read_relocations(stubs, elf);
	list_targets(stubs);
}

void stubs_add(struct stubs *stubs, struct lookup *lookup)
{
	for (size_t i = 0; i < stubs->nr; i++) {
		const struct stub *stub = &stubs->stubs[i];
		struct function function = { .start = stub->start, .end = stub->end };
		const char *name = stub->name;

		if (!name && stub->target)
			name = lookup_place(&stubs->targets, stub->target)->found.name;
		if (name)
			function.name = concat(name, FUNCTION_STUB, NULL);
		else if (stub->target)
			function.name = xasprintf(FUNCTION_BY_ADDRESS FUNCTION_STUB,
						  (unsigned long long)stub->target);
		if (function.name)
			lookup_add(lookup, &function);
	}
	free(stubs->stubs);
	lookup_free(&stubs->targets);
}
