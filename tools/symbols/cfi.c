// SPDX-License-Identifier: GPL-2.0-or-later
/* See cfi.h. */
#include "symbols/cfi.h"

static Elf_Scn *find_section(Elf *elf, const char *name, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;
	const char *found;

	while ((scn = elf_section_next(elf, scn, shdr, &found)))
		if (found && !strcmp(found, name))
			return scn;
	return NULL;
}

/* Finds the section, and decompresses it. Returns false if it has no entry. */
static bool find_entries(struct cfi *cfi, Elf *elf)
{
	const u8 *ident = (const u8 *)elf_getident(elf, NULL);
	GElf_Shdr shdr;
	Elf_Scn *scn = find_section(elf, cfi->is_eh ? ".eh_frame" : ".debug_frame", &shdr);
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (!scn || ((shdr.sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) <= 0))
		return false;
	cfi->data = elf_section_data(scn);
	cfi->address = shdr.sh_addr;
	return cfi->data && !dwarf_next_cfi(ident, cfi->data, cfi->is_eh, 0, &next, &entry) && next;
}

struct cfi cfi_open(Elf *elf, bool ignore_eh)
{
	struct cfi cfi = { .is_eh = !ignore_eh };
	Dwarf *dwarf;

	if (cfi.is_eh && find_entries(&cfi, elf)) {
		cfi.cfi = dwarf_getcfi_elf(elf);
		return cfi;
	}
	cfi.is_eh = false;
	if (find_entries(&cfi, elf)) {
		dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
		cfi.cfi = dwarf ? dwarf_getcfi(dwarf) : NULL;
	}
	return cfi;
}

bool elf_is_go(Elf *elf)
{
	GElf_Shdr shdr;

	return find_section(elf, ".gopclntab", &shdr);
}
