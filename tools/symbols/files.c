// SPDX-License-Identifier: GPL-2.0-or-later
/* See files.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "symbols/files.h"

/* The headers and the bytes of notes that are read to find a build-id. */
#define HEADERS_MAX	1024
#define NOTES_MAX	(64U << 10)
#define NOTES_ALL_MAX	(1U << 20)

static int path_open(int root, const char *path, int flags)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags, .resolve = RESOLVE_IN_ROOT };

	if (root < 0)
		return open(path, O_PATH | O_CLOEXEC | flags);
	return syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static int open_again(int fd, int flags)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, flags | O_CLOEXEC);
}

int file_open(int root, const char *path, int flags)
{
	/* O_PATH has no effect on a device, and does not wait for the writer of a FIFO. */
	int handle = path_open(root, path, flags), fd = -1;
	struct stat st;

	if (handle < 0)
		return -1;
	errno = ENOEXEC;
	if (!fstat(handle, &st) && S_ISREG(st.st_mode))
		fd = open_again(handle, O_RDONLY | O_NOCTTY | O_NONBLOCK);
	close(handle);
	return fd;
}

int file_handle(int fd)
{
	const int handle = open_again(fd, O_PATH);

	close(fd);
	return handle;
}

int file_of_handle(int handle)
{
	return open_again(handle, O_RDONLY | O_NONBLOCK);
}

/* ---- build-ids ---- */

/* What of an ELF header is needed, for files of 32 and 64 bits */
struct headers {
	bool is_64;
	int machine;
	u64 segments, sections;		/* offsets */
	u64 entry;			/* the address of the first instruction */
	u32 nr_segments, nr_sections;
};

static bool read_all(int fd, void *to, size_t size, u64 offset)
{
	return offset <= INT64_MAX && pread(fd, to, size, offset) == (ssize_t)size;
}

static bool read_headers(int fd, struct headers *headers)
{
	union {
		u8 ident[EI_NIDENT];
		Elf32_Ehdr narrow;
		Elf64_Ehdr wide;
	} file = {};

	if (!read_all(fd, &file.narrow, sizeof(file.narrow), 0) ||
	    memcmp(file.ident, ELFMAG, SELFMAG) || file.ident[EI_DATA] != ELFDATA2LSB ||
	    file.ident[EI_VERSION] != EV_CURRENT)
		return false;
	*headers = (struct headers){ .machine = file.narrow.e_machine };
#define TAKE(from) do { \
	headers->segments = (from).e_phoff; \
	headers->sections = (from).e_shoff; \
	headers->entry = (from).e_entry; \
	headers->nr_segments = (from).e_phnum; \
	headers->nr_sections = (from).e_shnum; \
} while (0)
	if (file.ident[EI_CLASS] == ELFCLASS32) {
		TAKE(file.narrow);
		return true;
	}
	if (file.ident[EI_CLASS] != ELFCLASS64 || !read_all(fd, &file.wide, sizeof(file.wide), 0))
		return false;
	TAKE(file.wide);
#undef TAKE
	headers->is_64 = true;
	return true;
}

bool elf_machine(int fd, int *machine)
{
	struct headers headers;

	if (!read_headers(fd, &headers))
		return false;
	*machine = headers.machine;
	return true;
}

/* Reads program header @i as that of a file of 64 bits. */
static bool read_segment(int fd, const struct headers *headers, u32 i, Elf64_Phdr *segment)
{
	Elf32_Phdr narrow;

	if (headers->is_64)
		return read_all(fd, segment, sizeof(*segment),
				headers->segments + i * sizeof(*segment));
	if (!read_all(fd, &narrow, sizeof(narrow), headers->segments + i * sizeof(narrow)))
		return false;
	*segment = (Elf64_Phdr){
		.p_type = narrow.p_type,
		.p_flags = narrow.p_flags,
		.p_offset = narrow.p_offset,
		.p_vaddr = narrow.p_vaddr,
		.p_filesz = narrow.p_filesz,
		.p_align = narrow.p_align,
	};
	return true;
}

size_t elf_segments(int fd, struct elf_segment *segments, size_t nr_max, u64 *entry)
{
	struct headers headers;
	Elf64_Phdr header;
	size_t nr = 0;

	if (!read_headers(fd, &headers))
		return 0;
	*entry = headers.entry;
	for (u32 i = 0; i < headers.nr_segments && i < HEADERS_MAX && nr < nr_max; i++) {
		if (!read_segment(fd, &headers, i, &header))
			return 0;
		if (header.p_type != PT_LOAD || header.p_filesz > INT64_MAX ||
		    header.p_offset > INT64_MAX)
			continue;
		segments[nr++] = (struct elf_segment){
			.offset = header.p_offset,
			.address = header.p_vaddr,
			.size = header.p_filesz,
			.is_executable = header.p_flags & PF_X,
		};
	}
	return nr;
}

/* Some notes of a file */
struct notes {
	u64 offset;
	u64 size;
	u64 align;
};

/* Returns the notes of segment @i, if it has notes. */
static bool segment_notes(int fd, const struct headers *headers, u32 i, struct notes *notes)
{
	Elf64_Phdr segment;

	if (!read_segment(fd, headers, i, &segment))
		return false;
	*notes = (struct notes){ segment.p_offset, segment.p_filesz, segment.p_align };
	return segment.p_type == PT_NOTE;
}

/* Likewise, of a section. */
static bool section_notes(int fd, const struct headers *headers, u32 i, struct notes *notes)
{
	Elf32_Shdr narrow;
	Elf64_Shdr wide;

	if (headers->is_64) {
		if (!read_all(fd, &wide, sizeof(wide), headers->sections + i * sizeof(wide)))
			return false;
		*notes = (struct notes){ wide.sh_offset, wide.sh_size, wide.sh_addralign };
		return wide.sh_type == SHT_NOTE;
	}
	if (!read_all(fd, &narrow, sizeof(narrow), headers->sections + i * sizeof(narrow)))
		return false;
	*notes = (struct notes){ narrow.sh_offset, narrow.sh_size, narrow.sh_addralign };
	return narrow.sh_type == SHT_NOTE;
}

static u32 find_buildid(const u8 *notes, size_t size, size_t align, u8 id[BUILD_ID_MAX])
{
	const size_t mask = align == 8 ? 7 : 3;
	Elf64_Nhdr note;
	u64 desc, next;

	for (; size >= sizeof(note); notes += next, size -= next) {
		memcpy(&note, notes, sizeof(note));
		desc = (sizeof(note) + note.n_namesz + mask) & ~mask;
		next = (desc + note.n_descsz + mask) & ~mask;
		if (desc + note.n_descsz > size)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(notes + sizeof(note), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) &&
		    note.n_descsz && note.n_descsz <= BUILD_ID_MAX) {
			memcpy(id, notes + desc, note.n_descsz);
			return note.n_descsz;
		}
		if (next > size)
			return 0;
	}
	return 0;
}

static u32 read_buildid(int fd, const struct notes *notes, size_t *left, u8 id[BUILD_ID_MAX])
{
	size_t size = notes->size < NOTES_MAX ? notes->size : NOTES_MAX;
	ssize_t n = 0;
	u32 len = 0;
	u8 *data;

	if (size > *left)
		return 0;
	*left -= size;
	data = xmalloc(size + 1);
	if (notes->offset <= INT64_MAX)
		n = pread(fd, data, size, notes->offset);
	if (n > 0)
		len = find_buildid(data, n, notes->align, id);
	free(data);
	return len;
}

u32 buildid_of_fd(int fd, u8 id[BUILD_ID_MAX])
{
	size_t left = NOTES_ALL_MAX;
	struct headers headers;
	struct notes notes;
	u32 len = 0;

	memset(id, 0, BUILD_ID_MAX);
	if (!read_headers(fd, &headers))
		return 0;
	for (u32 i = 0; !len && i < headers.nr_segments && i < HEADERS_MAX; i++)
		if (segment_notes(fd, &headers, i, &notes))
			len = read_buildid(fd, &notes, &left, id);
	/* The program headers of a debug file may lead to something else. */
	for (u32 i = 0; !len && i < headers.nr_sections && i < HEADERS_MAX; i++)
		if (section_notes(fd, &headers, i, &notes))
			len = read_buildid(fd, &notes, &left, id);
	return len;
}

struct buildid_text buildid_text(const u8 *id, u32 len)
{
	struct buildid_text hex = {};

	for (u32 i = 0; i < len; i++)
		sprintf(hex.text + 2 * i, "%02x", id[i]);
	return hex;
}

/* ---- debug files ---- */

static int open_by_id(int root, const struct file_request *request)
{
	const struct buildid_text hex = buildid_text(request->id, request->len);
	char path[sizeof(DEBUG_DIRECTORY) + sizeof(hex) + 32];

	snprintf(path, sizeof(path), DEBUG_DIRECTORY "/.build-id/%.2s/%s.debug", hex.text,
		 hex.text + 2);
	return file_open(root, path, 0);
}

static int open_by_link(int root, const char *path, const struct file_request *request)
{
	static const struct {
		const char *before, *after;	/* the directory of the file */
	} places[FILE_LINK_PLACES] = { { "", "/" }, { "", "/.debug/" }, { DEBUG_DIRECTORY, "/" } };
	const char *slash = path ? strrchr(path, '/') : NULL, *name = request->name;
	char *link;
	int fd;

	/* A name is enough in a link. With a directory it could lead to any file. */
	if (!slash || !*name || strchr(name, '/') || request->place >= FILE_LINK_PLACES)
		return -1;
	link = xasprintf("%s%.*s%s%s", places[request->place].before, (int)(slash - path), path,
			 places[request->place].after, name);
	fd = file_open(root, link, 0);
	free(link);
	return fd;
}

static int open_common(int root, const char *name)
{
	char path[sizeof(DEBUG_DIRECTORY) + sizeof(((struct file_request *)0)->name)];

	if (strncmp(name, FILE_COMMON_DIRECTORY, strlen(FILE_COMMON_DIRECTORY)) ||
	    strstr(name, ".."))
		return -1;
	snprintf(path, sizeof(path), DEBUG_DIRECTORY "%s", name);
	return file_open(root, path, 0);
}

/*
 * Opens a file of split debug information, at its path or in the directory of the program. The path
 * is from the program, so the file must be what it claims to be, as far as this process can see.
 */
static int open_split(int root, const char *path, const char *name)
{
	static const char end[] = ".dwo";
	const char *slash = path ? strrchr(path, '/') : NULL;
	const size_t len = strlen(name);
	int fd = -1, machine;
	char *near;

	if (len < sizeof(end) || strcmp(name + len - strlen(end), end))
		return -1;
	if (*name == '/')
		fd = file_open(root, name, 0);
	if (fd < 0 && slash) {
		near = xasprintf("%.*s/%s", (int)(slash - path), path, basename(name));
		fd = file_open(root, near, 0);
		free(near);
	}
	if (fd < 0 || elf_machine(fd, &machine))
		return fd;
	close(fd);
	return -1;
}

static int open_package(int root, const char *path)
{
	char *package = path ? xasprintf("%s.dwp", path) : NULL;
	int fd = package ? file_open(root, package, 0) : -1, machine;

	free(package);
	if (fd < 0 || elf_machine(fd, &machine))
		return fd;
	close(fd);
	return -1;
}

int file_request_open(int root, const char *path, const struct file_request *request)
{
	u8 id[BUILD_ID_MAX];
	int fd = -1;

	if (!memchr(request->name, 0, sizeof(request->name)))
		return -1;
	if (request->kind == FILE_SPLIT)
		return open_split(root, path, request->name);
	if (request->kind == FILE_PACKAGE)
		return open_package(root, path);
	if (request->len < 2 || request->len > BUILD_ID_MAX)
		return -1;
	switch (request->kind) {
	case FILE_BY_ID:
		fd = open_by_id(root, request);
		break;
	case FILE_BY_LINK:
		fd = open_by_link(root, path, request);
		break;
	case FILE_DOWNLOAD:
		fd = path ? download_open("debuginfo", request->id, request->len) : -1;
		break;
	case FILE_COMMON:
		fd = open_common(root, request->name);
		break;
	default:
		return -1;
	}
	if (fd < 0 || (buildid_of_fd(fd, id) == request->len &&
		       !memcmp(id, request->id, request->len)))
		return fd;
	close(fd);
	return -1;
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
