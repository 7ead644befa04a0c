// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See plt.h. There are many kinds of tables: lazy or not, with a special first entry or not, with
 * branch protection or not. So the address of the slot is read from the instructions of each stub.
 */
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/plt.h"

/* The size of a stub in bytes if the sh_entsize of the section is wrong, as on i386. */
#define STUB_SIZE	16
#define STUB_MIN	8
#define STUB_MAX	64

struct slot {
	u64 address;
	const char *name;
};

struct slots {
	struct slot *slots;
	size_t nr;
};

static void slot_add(struct slots *slots, u64 address, const char *name)
{
	if (array_grow(&slots->slots, slots->nr, sizeof(*slots->slots)))
		slots->slots[slots->nr++] = (struct slot){ address, name };
}

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return compare_u64(x->address, y->address);
}

/* Reads the relocations of a section that have a symbol. */
static void read_relocations(Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr, struct slots *slots)
{
	Elf_Scn *symbols = elf_getscn(elf, shdr->sh_link);
	Elf_Data *symbol_data, *data;
	GElf_Shdr symbol_shdr;
	const char *name;
	GElf_Rela rela;
	GElf_Rel rel;
	GElf_Sym sym;

	if (!symbols || !gelf_getshdr(symbols, &symbol_shdr) || symbol_shdr.sh_type != SHT_DYNSYM)
		return;
	symbol_data = elf_getdata(symbols, NULL);
	data = elf_getdata(scn, NULL);
	for (int i = 0; symbol_data && data; i++) {
		if (shdr->sh_type == SHT_RELA) {
			if (!gelf_getrela(data, i, &rela))
				break;
			rel = (GElf_Rel){ rela.r_offset, rela.r_info };
		} else if (!gelf_getrel(data, i, &rel)) {
			break;
		}
		if (!GELF_R_SYM(rel.r_info) ||
		    !gelf_getsym(symbol_data, GELF_R_SYM(rel.r_info), &sym))
			continue;
		name = elf_strptr(elf, symbol_shdr.sh_link, sym.st_name);
		if (name && *name)
			slot_add(slots, rel.r_offset, name);
	}
}

static u32 word_at(const u8 *bytes)
{
	return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (u32)bytes[3] << 24;
}

/*
 * Finds the instruction jmp *slot in the stub, at any offset: other instructions of stubs do not
 * contain these bytes. Returns the address of the slot.
 */
static u64 slot_x86(const u8 *stub, size_t size, u64 address, bool wide, u64 got)
{
	for (size_t at = 0; at + 6 <= size; at++) {
		u32 operand = word_at(stub + at + 2);

		if (stub[at] != 0xff)
			continue;
		if (stub[at + 1] == 0x25)
			return wide ? address + at + 6 + (s32)operand : operand;
		if (stub[at + 1] == 0xa3 && !wide)
			return (u32)(got + operand);
	}
	return 0;
}

/* The instructions are adrp x16, page of the slot; ldr x17, [x16, offset in the page]. */
static u64 slot_arm64(const u8 *stub, size_t size, u64 address)
{
	for (size_t at = 0; at + 8 <= size; at += 4) {
		u32 adrp = word_at(stub + at), ldr = word_at(stub + at + 4);
		s32 pages;

		if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
			continue;
		pages = (s32)((adrp >> 5 & 0x7ffff) << 13) >> 11 | (adrp >> 29 & 3);
		return ((address + at) & ~0xfffULL) + ((int64_t)pages << 12) +
		       (ldr >> 10 & 0xfff) * 8;
	}
	return 0;
}

struct reader {
	GElf_Ehdr ehdr;
	u64 got;
	struct slots slots;
	void (*found)(void *data, u64 start, u64 end, const char *name);
	void *data;
};

static void read_stubs(const struct reader *reader, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	const struct slots *slots = &reader->slots;
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t size = shdr->sh_entsize;

	if (size < STUB_MIN || size > STUB_MAX)
		size = STUB_SIZE;
	if (!data || !data->d_buf || shdr->sh_addr + data->d_size < shdr->sh_addr)
		return;
	for (size_t at = 0; at + size <= data->d_size; at += size) {
		const u8 *stub = (const u8 *)data->d_buf + at;
		struct slot *slot, key = {};
		u64 start = shdr->sh_addr + at;

		switch (reader->ehdr.e_machine) {
		case EM_X86_64:
		case EM_386:
			key.address = slot_x86(stub, size, start,
					       reader->ehdr.e_machine == EM_X86_64, reader->got);
			break;
		case EM_AARCH64:
			key.address = slot_arm64(stub, size, start);
			break;
		}
		slot = key.address ? bsearch(&key, slots->slots, slots->nr, sizeof(key),
					     compare_slots) : NULL;
		if (slot)
			reader->found(reader->data, start, start + size, slot->name);
	}
}

void plt_read(Elf *elf, void (*found)(void *data, u64 start, u64 end, const char *name),
	      void *data)
{
	struct reader reader = { .found = found, .data = data };
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	const char *name;
	size_t strings;

	if (!gelf_getehdr(elf, &reader.ehdr) || elf_getshdrstrndx(elf, &strings))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr))
			continue;
		if (shdr.sh_type == SHT_RELA || shdr.sh_type == SHT_REL)
			read_relocations(elf, scn, &shdr, &reader.slots);
		name = elf_strptr(elf, strings, shdr.sh_name);
		if (name && !strcmp(name, ".got.plt"))
			reader.got = shdr.sh_addr;
	}
	if (reader.slots.nr)
		qsort(reader.slots.slots, reader.slots.nr, sizeof(*reader.slots.slots),
		      compare_slots);
	while (reader.slots.nr && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_PROGBITS)
			continue;
		name = elf_strptr(elf, strings, shdr.sh_name);
		if (name && !strncmp(name, ".plt", 4) && shdr.sh_flags & SHF_EXECINSTR)
			read_stubs(&reader, scn, &shdr);
	}
	free(reader.slots.slots);
}
