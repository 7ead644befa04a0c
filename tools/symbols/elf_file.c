// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See elf_file.h. elfutils can find debug files, too, but it opens and maps every file that a
 * binary names.
 */
#include <elfutils/libdwelf.h>
#include <unistd.h>

#include "symbols/elf_file.h"

bool elf_file_open(struct elf_file *file, int fd)
{
	GElf_Ehdr ehdr;

	*file = (struct elf_file){ .fd = fd };
	if (fstat(fd, &file->st))
		return false;
	elf_version(EV_CURRENT);
	file->elf = elf_begin(fd, ELF_C_READ, NULL);
	return gelf_getehdr(file->elf, &ehdr) && ehdr.e_ident[EI_DATA] == ELFDATA2LSB;
}

bool elf_file_unchanged(const struct elf_file *file)
{
	struct stat st;

	return !fstat(file->fd, &st) && st.st_size == file->st.st_size &&
	       time_ns(st.st_mtim) == time_ns(file->st.st_mtim);
}

void elf_file_close(struct elf_file *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct elf_file){ .fd = -1 };
}

Elf_Scn *elf_section_next(Elf *elf, Elf_Scn *scn, GElf_Shdr *shdr, const char **name)
{
	size_t strings;

	scn = elf_getshdrstrndx(elf, &strings) ? NULL : elf_nextscn(elf, scn);
	if (scn)
		*name = gelf_getshdr(scn, shdr) ? elf_strptr(elf, strings, shdr->sh_name) : NULL;
	return scn;
}

Elf_Data *elf_section_data(Elf_Scn *scn)
{
	Elf_Data *data;

	data = elf_getdata(scn, NULL);
	return data && data->d_buf && data->d_size ? data : NULL;
}

/* ---- debug files ---- */

static bool debug_ask(struct elf_file *debug, const struct file_request *request,
		      const struct confined *confined)
{
	int fd = confined_ask(confined, request);

	*debug = (struct elf_file){ .fd = -1 };
	if (fd >= 0 && elf_file_open(debug, fd))
		return true;
	elf_file_close(debug);
	return false;
}

/* Asks for the debug file with this name, in the places where links lead. */
static bool debug_ask_link(struct elf_file *debug, struct file_request *request, const char *name,
			   const struct confined *confined)
{
	if (!name || !*name || strlen(name) >= sizeof(request->name))
		return false;
	request->kind = FILE_BY_LINK;
	strcpy(request->name, name);
	for (; request->place < FILE_LINK_PLACES; request->place++)
		if (debug_ask(debug, request, confined))
			return true;
	return false;
}

bool debug_common_open(struct elf_file *debug, const char *name, const u8 *id, u32 len,
		       const struct confined *confined)
{
	struct file_request request = { .kind = FILE_BY_ID, .len = len };
	const char *common = strstr(name, FILE_COMMON_DIRECTORY), *slash = strrchr(name, '/');

	if (len < 2 || len > BUILD_ID_MAX || strlen(name) >= sizeof(request.name))
		return false;
	memcpy(request.id, id, len);
	if (debug_ask(debug, &request, confined))
		return true;
	if (common) {
		request.kind = FILE_COMMON;
		strcpy(request.name, common);
		if (debug_ask(debug, &request, confined))
			return true;
	}
	return debug_ask_link(debug, &request, slash ? slash + 1 : name, confined);
}

bool debug_file_open(struct elf_file *debug, const struct elf_file *file,
		     const struct confined *confined)
{
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(file->elf, &crc);
	struct file_request request = {};

	request.len = buildid_of_fd(file->fd, request.id);
	*debug = (struct elf_file){ .fd = -1 };
	if (request.len < 2)
		return false;
	if (debug_ask(debug, &request, confined))
		return true;
	if (debug_ask_link(debug, &request, name, confined))
		return true;
	request.kind = FILE_DOWNLOAD;
	return debug_ask(debug, &request, confined);
}
