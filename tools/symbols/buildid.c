// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The recorder looks into each file once, while the program runs: it reads program headers and
 * notes and nothing else. The file may be hostile: every length is checked against what was read.
 */
#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "symbols/buildid.h"

/* Of sane files; what is beyond is not looked at. */
#define HEADERS_MAX	64
#define NOTES_MAX	4096

static bool read_at(int fd, void *to, size_t len, u64 at)
{
	return at <= INT64_MAX - len && pread(fd, to, len, at) == (ssize_t)len;
}

/* Both classes have notes of the same form, aligned to @align. */
static u32 find_note(const u8 *notes, size_t len, size_t align, u8 *id)
{
	const size_t pad = align == 8 ? 7 : 3;
	Elf32_Nhdr note;
	size_t at = 0, name, desc;

	while (len - at >= sizeof(note)) {
		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		if (note.n_namesz > len || note.n_descsz > len)
			return 0;
		desc = (name + note.n_namesz + pad) & ~pad;
		if (desc > len || note.n_descsz > len - desc)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) &&
		    note.n_descsz && note.n_descsz <= FORMAT_BUILD_ID_MAX) {
			memcpy(id, notes + desc, note.n_descsz);
			return note.n_descsz;
		}
		at = (desc + note.n_descsz + pad) & ~pad;
		if (at > len)
			return 0;
	}
	return 0;
}

static u32 look_into(int fd, u64 offset, u64 size, u64 align, u8 *id)
{
	u8 notes[NOTES_MAX];
	ssize_t len;

	if (size > sizeof(notes))
		size = sizeof(notes);
	if (offset > INT64_MAX - sizeof(notes))
		return 0;
	len = pread(fd, notes, size, offset);
	return len > 0 ? find_note(notes, len, align, id) : 0;
}

static u32 of_32(int fd, u8 *id)
{
	Elf32_Phdr header;
	Elf32_Ehdr elf;
	u32 len = 0;

	if (!read_at(fd, &elf, sizeof(elf), 0) || elf.e_phentsize != sizeof(header))
		return 0;
	for (u64 i = 0; i < elf.e_phnum && i < HEADERS_MAX && !len; i++) {
		if (!read_at(fd, &header, sizeof(header), elf.e_phoff + i * sizeof(header)))
			return 0;
		if (header.p_type == PT_NOTE)
			len = look_into(fd, header.p_offset, header.p_filesz, header.p_align, id);
	}
	return len;
}

static u32 of_64(int fd, u8 *id)
{
	Elf64_Phdr header;
	Elf64_Ehdr elf;
	u32 len = 0;

	if (!read_at(fd, &elf, sizeof(elf), 0) || elf.e_phentsize != sizeof(header) ||
	    elf.e_phoff > INT64_MAX / 2)
		return 0;
	for (u64 i = 0; i < elf.e_phnum && i < HEADERS_MAX && !len; i++) {
		if (!read_at(fd, &header, sizeof(header), elf.e_phoff + i * sizeof(header)))
			return 0;
		if (header.p_type == PT_NOTE)
			len = look_into(fd, header.p_offset, header.p_filesz, header.p_align, id);
	}
	return len;
}

u32 buildid_of_fd(int fd, u8 id[FORMAT_BUILD_ID_MAX])
{
	u8 ident[EI_NIDENT];

	memset(id, 0, FORMAT_BUILD_ID_MAX);
	if (!read_at(fd, ident, sizeof(ident), 0) || memcmp(ident, ELFMAG, SELFMAG) ||
	    ident[EI_DATA] != ELFDATA2LSB)
		return 0;
	if (ident[EI_CLASS] == ELFCLASS32)
		return of_32(fd, id);
	if (ident[EI_CLASS] == ELFCLASS64)
		return of_64(fd, id);
	return 0;
}
