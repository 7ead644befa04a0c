// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See symbols.h. extract.c reads the functions of binaries.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <unistd.h>

#include <gelf.h>
#include <libiberty/demangle.h>
#include <libiberty/libiberty.h>

#include "symbols/extract.h"
#include "symbols/symbols.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/*
 * The demangled name can be exponentially longer than the mangled one, which may be hostile. So
 * these limit both lengths, and for D the number of references to earlier parts.
 */
#define MANGLED_MAX	8192
#define DEMANGLED_MAX	(64U << 10)
#define REFERENCES_MAX	24

#define NOT_ELF	"not a program"

/**
 * struct symbols - The owner of names
 * @root: As for file_open().
 * @memory: The names.
 * @mangled: The last name that was demangled; @demangled is the result.
 * @too_long: Where demangling continues if the result would be too long.
 */
struct symbols {
	bool demangle;
	int root;
	struct obstack memory;
	const char *mangled;
	const char *demangled;
	jmp_buf too_long;
};

struct symbols *symbols_new(bool demangle, const char *symfs)
{
	struct symbols *symbols = xcalloc(1, sizeof(*symbols));

	symbols->root = symfs ? open(symfs, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (symfs && symbols->root < 0) {
		free(symbols);
		return NULL;
	}
	symbols->demangle = demangle;
	obstack_init(&symbols->memory);
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	if (symbols->root >= 0)
		close(symbols->root);
	obstack_free(&symbols->memory, NULL);
	free(symbols);
}

/* Appends a part of a demangled name to the result. */
static void add_part(const char *part, size_t length, void *data)
{
	struct symbols *symbols = data;

	obstack_grow(&symbols->memory, part, length);
	if (obstack_object_size(&symbols->memory) > DEMANGLED_MAX)
		longjmp(symbols->too_long, 1);
}

static bool demangle_cxx_or_rust(struct symbols *symbols, const char *name)
{
	return !setjmp(symbols->too_long) &&
	       (rust_demangle_callback(name, DMGL_PARAMS, add_part, symbols) ||
		cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, add_part, symbols));
}

/*
 * Appends the demangled name. Returns false if the result is too long, or @name is not mangled, as
 * in C and Go. Ada mangles other names than _ada_*, too, but they could be names of C.
 */
static bool demangle(struct symbols *symbols, const char *name)
{
	size_t references = 0;
	char *demangled = NULL;

	if (strlen(name) > MANGLED_MAX)
		return false;
	if (!strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) || !strncmp(name, "__Z", 3))
		return demangle_cxx_or_rust(symbols, name);
	for (const char *at = name; (at = strchr(at, 'Q')); at++)
		references++;
	if (!strncmp(name, "_D", 2) && references <= REFERENCES_MAX)
		demangled = dlang_demangle(name, 0);
	else if (!strncmp(name, "_ada_", 5))
		demangled = ada_demangle(name, 0);
	if (demangled)
		obstack_grow(&symbols->memory, demangled, strlen(demangled));
	free(demangled);
	return demangled;
}

const char *symbols_name(struct symbols *symbols, const char *name)
{
	bool is_mangled;
	char *text;

	if (!symbols->demangle)
		return name;
	/* Samples are sorted, so a sample often has the same name as the previous one. */
	if (name != symbols->mangled) {
		is_mangled = demangle(symbols, name);
		obstack_1grow(&symbols->memory, '\0');
		text = obstack_finish(&symbols->memory);
		if (!is_mangled)
			obstack_free(&symbols->memory, text);
		symbols->mangled = name;
		symbols->demangled = is_mangled ? text : name;
	}
	return symbols->demangled;
}

const char *symbols_inlined(struct symbols *symbols, const char *name)
{
	obstack_printf(&symbols->memory, "%s (inlined)", symbols_name(symbols, name));
	obstack_1grow(&symbols->memory, '\0');
	return obstack_finish(&symbols->memory);
}

/* ---- binaries ---- */

static bool is_wanted_file(const struct elf_file *file, const struct symbols_file *wanted)
{
	const struct stat *st = &file->st;
	u8 id[BUILD_ID_MAX];

	if (wanted->build_id_len)
		return buildid_of_fd(file->fd, id) == wanted->build_id_len &&
		       !memcmp(id, wanted->build_id, wanted->build_id_len);
	/* Compare the time, because on overlayfs the inode may differ: see mappings.c. */
	if (!wanted->mtime)
		return !wanted->ino;
	return wanted->size == (u64)st->st_size && wanted->mtime == time_ns(st->st_mtim);
}

/* The data to read from a file: functions, or code */
struct request {
	struct lookup *lookup;
	bool lines;
	struct symbols_code *code;
};

static void read_functions(struct symbols *symbols, const struct request *request,
			   const struct elf_file *file, const char *path)
{
	request->lookup->address_size = gelf_getclass(file->elf) == ELFCLASS32 ? 4 : 8;
	extract_functions(request->lookup, file, symbols->root, path, &symbols->memory);
	if (request->lookup->find_callers)
		unwind_read(request->lookup, file);
	if (request->lines)
		lines_read(request->lookup, file, symbols->root, path, &symbols->memory);
}

static const char *read_code(struct symbols_code *code, const struct elf_file *file)
{
	GElf_Ehdr ehdr;

	gelf_getehdr(file->elf, &ehdr);
	code->machine = ehdr.e_machine;
	return pread(file->fd, code->bytes, code->size, code->offset) == (ssize_t)code->size ?
	       NULL : "its code is not in the file";
}

/* Reads the file if @fd is the one that is wanted, and closes @fd. */
static const char *read_file(struct symbols *symbols, const struct request *request,
			     const struct symbols_file *wanted, int fd)
{
	const char *problem = NOT_ELF;
	struct elf_file file;

	if (elf_file_open(&file, fd)) {
		problem = NULL;
		if (request->code)
			problem = read_code(request->code, &file);
		else
			read_functions(symbols, request, &file, wanted->path);
	}
	/* While the file was read, another one may have been written. */
	if (!is_wanted_file(&file, wanted) || !elf_file_unchanged(&file)) {
		problem = "changed since the recording";
		if (request->lookup)
			lookup_clear(request->lookup);
	}
	elf_file_close(&file);
	return problem;
}

static const char *find_file(struct symbols *symbols, const struct request *request,
			     const struct symbols_file *file)
{
	const char *problem = "not found here; see --symfs";
	int fd;

	if (!file->path)
		return "code made at run time; profil-report(1) says how it gets names";
	fd = file_open(symbols->root, file->path, 0);
	if (fd >= 0)
		problem = read_file(symbols, request, file, fd);
	else if (errno == ENOEXEC)
		problem = NOT_ELF;
	else if (errno == EACCES || errno == EPERM)
		problem = "not readable";
	if (!problem)
		return NULL;
	fd = download_open("executable", file->build_id, file->build_id_len);
	return fd >= 0 && !read_file(symbols, request, file, fd) ? NULL : problem;
}

const char *symbols_read(struct symbols *symbols, struct lookup *lookup,
			 const struct symbols_file *file, bool lines)
{
	return find_file(symbols, &(struct request){ .lookup = lookup, .lines = lines }, file);
}

const char *symbols_read_code(struct symbols *symbols, struct symbols_code *code,
			      const struct symbols_file *file)
{
	return find_file(symbols, &(struct request){ .code = code }, file);
}

FILE *symbols_open_source(const struct symbols *symbols, const char *path, struct stat *st)
{
	int fd = *path == '/' ? file_open(symbols->root, path, 0) : -1;
	FILE *file = fd >= 0 && !fstat(fd, st) ? fdopen(fd, "re") : NULL;

	if (fd >= 0 && !file)
		close(fd);
	return file;
}
