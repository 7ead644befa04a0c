// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See files.h. elfutils can find debug files, too, but it opens and maps every file that a binary
 * names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <libiberty/libiberty.h>

#include "symbols/files.h"

#define NOTES_MAX	(1U << 20)

static int path_open(int root, const char *path, int flags)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags, .resolve = RESOLVE_IN_ROOT };

	if (root < 0)
		return open(path, O_PATH | O_CLOEXEC | flags);
	return syscall(SYS_openat2, root, path, &how, sizeof(how));
}

int file_open(int root, const char *path, int flags)
{
	/* O_PATH has no effect on a device, and does not wait for the writer of a FIFO. */
	int handle = path_open(root, path, flags), fd = -1;
	char self[32];
	struct stat st;

	if (handle < 0)
		return -1;
	errno = ENOEXEC;
	if (!fstat(handle, &st) && S_ISREG(st.st_mode)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	}
	close(handle);
	return fd;
}

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

Elf_Data *elf_section_data(Elf_Scn *scn, u64 max)
{
	GElf_Shdr shdr;
	Elf_Data *data;

	if (!scn || !gelf_getshdr(scn, &shdr) || shdr.sh_size > max)
		return NULL;
	data = elf_getdata(scn, NULL);
	return data && data->d_buf && data->d_size ? data : NULL;
}

static u32 buildid_of_notes(Elf_Data *data, u8 id[BUILD_ID_MAX])
{
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote(data, at, &note, &name, &desc))) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
		    memcmp(data->d_buf + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) ||
		    note.n_descsz > BUILD_ID_MAX)
			continue;
		memcpy(id, data->d_buf + desc, note.n_descsz);
		return note.n_descsz;
	}
	return 0;
}

/*
 * The recorder calls this while the program runs: libelf reads only the headers and the notes.
 * libdwelf has such a function, too, but it reads notes of any size.
 */
u32 buildid_of_fd(int fd, u8 id[BUILD_ID_MAX])
{
	Elf_Scn *scn = NULL;
	GElf_Phdr phdr;
	GElf_Shdr shdr;
	u32 len = 0;
	Elf *elf;

	memset(id, 0, BUILD_ID_MAX);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	for (int i = 0; !len && gelf_getphdr(elf, i, &phdr); i++)
		if (phdr.p_type == PT_NOTE && phdr.p_filesz <= NOTES_MAX)
			len = buildid_of_notes(elf_getdata_rawchunk(elf, phdr.p_offset,
								    phdr.p_filesz,
								    phdr.p_align == 8 ?
								    ELF_T_NHDR8 : ELF_T_NHDR), id);
	/* The program headers of a debug file may lead to something else. */
	while (!len && (scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_NOTE)
			len = buildid_of_notes(elf_section_data(scn, NOTES_MAX), id);
	elf_end(elf);
	return len;
}

/* ---- debug files ---- */

/* Takes @fd if it is a file with the build-id. */
static bool debug_accept(struct elf_file *debug, int fd, const u8 *id, u32 len)
{
	u8 found[BUILD_ID_MAX];

	if (fd < 0)
		return false;
	if (elf_file_open(debug, fd) && buildid_of_fd(fd, found) == len &&
	    !memcmp(found, id, len))
		return true;
	elf_file_close(debug);
	return false;
}

bool debug_file_try(struct elf_file *debug, int root, char *path, const u8 *id, u32 len)
{
	bool found = debug_accept(debug, file_open(root, path, 0), id, len);

	free(path);
	return found;
}

struct buildid_text buildid_text(const u8 *id, u32 len)
{
	struct buildid_text hex = {};

	for (u32 i = 0; i < len; i++)
		sprintf(hex.text + 2 * i, "%02x", id[i]);
	return hex;
}

static char *id_path(const u8 *id, u32 len)
{
	const struct buildid_text hex = buildid_text(id, len);

	return xasprintf(DEBUG_DIRECTORY "/.build-id/%.2s/%s.debug", hex.text, hex.text + 2);
}

bool debug_file_open(struct elf_file *debug, const struct elf_file *file, int root,
		     const char *path)
{
	static const struct {
		const char *before, *after;	/* the directory of the file */
	} places[] = { { "", "/" }, { "", "/.debug/" }, { DEBUG_DIRECTORY, "/" } };
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(file->elf, &crc);
	u8 id[BUILD_ID_MAX];
	u32 len = buildid_of_fd(file->fd, id);
	int dir = path && strrchr(path, '/') ? strrchr(path, '/') - path : -1;

	*debug = (struct elf_file){ .fd = -1 };
	if (len < 2)
		return false;
	if (debug_file_try(debug, root, id_path(id, len), id, len))
		return true;
	/* A name is enough in a link. With a directory it could lead to any file. */
	for (int i = 0; i < 3 && name && *name && !strchr(name, '/') && dir >= 0; i++)
		if (debug_file_try(debug, root, xasprintf("%s%.*s%s%s", places[i].before, dir, path,
							  places[i].after, name), id, len))
			return true;
	return path && debug_accept(debug, download_open("debuginfo", id, len), id, len);
}

int download_open(const char *kind, const u8 *id, u32 len)
{
	int (*find)(void *client, const unsigned char *id, int len, char **path);
	const char *urls = getenv("DEBUGINFOD_URLS");
	void *library, *(*begin)(void), *client;
	void (*end)(void *client);
	char name[64];
	int fd;

	/* This library loads others, for HTTP, which takes a while: load it only if needed. */
	library = urls && *urls && len ? dlopen("libdebuginfod.so.1", RTLD_NOW) : NULL;
	if (!library)
		return -1;
	snprintf(name, sizeof(name), "debuginfod_find_%s", kind);
	begin = dlsym(library, "debuginfod_begin");
	find = dlsym(library, name);
	end = dlsym(library, "debuginfod_end");
	client = begin();
	fd = client ? find(client, id, len, NULL) : -1;
	end(client);
	return fd;
}
