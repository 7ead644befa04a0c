// SPDX-License-Identifier: GPL-2.0-or-later
/* See cfi.h. */
#include <dwarf.h>

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

bool cfi_find(struct cfi *cfi, Elf *elf, bool ignore_eh)
{
	*cfi = (struct cfi){ .is_eh = !ignore_eh };
	if (cfi->is_eh && find_entries(cfi, elf))
		return true;
	cfi->is_eh = false;
	return find_entries(cfi, elf);
}

struct cfi cfi_open(Elf *elf, bool ignore_eh)
{
	struct cfi cfi;
	Dwarf *dwarf;

	if (!cfi_find(&cfi, elf, ignore_eh))
		return cfi;
	if (cfi.is_eh) {
		cfi.cfi = dwarf_getcfi_elf(elf);
	} else {
		dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
		cfi.cfi = dwarf ? dwarf_getcfi(dwarf) : NULL;
	}
	return cfi;
}

/* ---- entries ---- */

/**
 * struct entries - The entries of a section
 * @address_size: The size of an address in bytes.
 * @encoding: That of the addresses of the entries; DW_EH_PE_omit if it is not known.
 */
struct entries {
	const struct cfi *cfi;
	size_t address_size;
	u8 encoding;
};

/* Reads a number in one of the formats that linkers use. Returns its size; 0 if it is another. */
static size_t read_pointer(const struct entries *entries, const u8 *from, const u8 *limit,
			   u8 encoding, u64 *value)
{
	static const u8 sizes[16] = {
		[DW_EH_PE_udata2] = 2, [DW_EH_PE_udata4] = 4, [DW_EH_PE_udata8] = 8,
		[DW_EH_PE_sdata2] = 2, [DW_EH_PE_sdata4] = 4, [DW_EH_PE_sdata8] = 8,
	};
	const size_t size = encoding & 0xf ? sizes[encoding & 0xf] : entries->address_size;
	const bool is_signed = encoding & DW_EH_PE_signed;

	*value = 0;
	if (!size || (size_t)(limit - from) < size)
		return 0;
	memcpy(value, from, size);
	if (is_signed && size < 8 && *value >> (8 * size - 1))
		*value |= ~0ULL << 8 * size;
	return size;
}

/* Returns the encoding of the addresses of a CIE's entries; DW_EH_PE_omit if it is not known. */
static u8 encoding_of(const struct entries *entries, const Dwarf_CIE *cie)
{
	const u8 *data = cie->augmentation_data, *limit = data + cie->augmentation_data_size;
	u64 unused;
	size_t size;

	for (const char *letter = cie->augmentation; *letter; letter++) {
		switch (*letter) {
		case 'z':	/* There are data, for the letters that need them. */
		case 'S':
		case 'B':
			break;
		case 'R':
			return data < limit ? *data : DW_EH_PE_omit;
		case 'L':
			data++;
			break;
		case 'P':
			size = data < limit ?
			       read_pointer(entries, data + 1, limit, *data, &unused) : 0;
			if (!size)
				return DW_EH_PE_omit;
			data += 1 + size;
			break;
		default:
			return DW_EH_PE_omit;
		}
	}
	return DW_EH_PE_absptr;
}

/* Finds the code of an entry. Returns false if it is not known. */
static bool read_code(const struct entries *entries, const Dwarf_FDE *fde, u64 *start, u64 *end)
{
	const struct cfi *cfi = entries->cfi;
	u64 size;
	size_t n;

	if (entries->encoding == DW_EH_PE_omit)
		return false;
	n = read_pointer(entries, fde->start, fde->end, entries->encoding, start);
	if (!n || !read_pointer(entries, fde->start + n, fde->end, entries->encoding & 7, &size))
		return false;
	switch (entries->encoding & 0xf0) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		*start += cfi->address + (fde->start - (const u8 *)cfi->data->d_buf);
		break;
	default:
		return false;
	}
	if (entries->address_size == 4)
		*start = (u32)*start;
	*end = *start + size < *start ? UINT64_MAX : *start + size;
	/* The linker leaves entries of functions that it has removed, at 0. */
	return *start && *start < *end;
}

void cfi_read_entries(const struct cfi *cfi, Elf *elf,
		      void (*add)(void *data, u64 start, u64 end), void *data)
{
	const u8 *ident = (const u8 *)elf_getident(elf, NULL);
	Dwarf_Off offset = 0, next, unused, cie = -1;
	struct entries entries = {
		.cfi = cfi,
		.address_size = gelf_getclass(elf) == ELFCLASS32 ? 4 : 8,
	};
	Dwarf_CFI_Entry entry, parent;
	u64 start, end;

	for (; !dwarf_next_cfi(ident, cfi->data, cfi->is_eh, offset, &next, &entry);
	     offset = next) {
		if (dwarf_cfi_cie_p(&entry))
			continue;
		if (entry.fde.CIE_pointer != cie) {
			cie = entry.fde.CIE_pointer;
			entries.encoding = DW_EH_PE_omit;
			if (!dwarf_next_cfi(ident, cfi->data, cfi->is_eh, cie, &unused, &parent) &&
			    dwarf_cfi_cie_p(&parent))
				entries.encoding = encoding_of(&entries, &parent.cie);
		}
		if (read_code(&entries, &entry.fde, &start, &end))
			add(data, start, end);
	}
}

bool elf_is_go(Elf *elf)
{
	GElf_Shdr shdr;

	return find_section(elf, ".gopclntab", &shdr);
}
