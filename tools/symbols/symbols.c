// SPDX-License-Identifier: GPL-2.0-or-later
/* See symbols.h. Confined processes read the binaries: see binary.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>

#include "symbols/binary.h"
#include "symbols/demangle.h"
#include "symbols/symbols.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

#define NOT_ELF	"not a program"
#define CHANGED	"changed since the recording"

/**
 * struct symbols - The owner of names
 * @root: As for file_open().
 * @memory: Names and messages.
 * @binaries: The answers of confined processes, which have further names.
 * @names: The demangled form of each mangled name that is known.
 * @last: The last name that was asked for.
 * @last_path: The last arguments and the last result of symbols_by_address().
 */
struct symbols {
	bool demangle;
	int root;
	struct obstack memory;
	struct binary *binaries;
	size_t nr_binaries;
	htab_t names;
	struct binary_name last;
	const char *last_path;
	const char *last_address;
	const char *last_printed;
};

static hashval_t name_hash(const void *data)
{
	return hash_text(((const struct binary_name *)data)->mangled);
}

static int name_equals(const void *a, const void *b)
{
	return !strcmp(((const struct binary_name *)a)->mangled,
		       ((const struct binary_name *)b)->mangled);
}

struct symbols *symbols_new(bool demangle, const char *symfs)
{
	struct symbols *symbols = xcalloc(1, sizeof(*symbols));

	symbols->root = symfs ? open(symfs, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (symfs && symbols->root < 0) {
		free(symbols);
		return NULL;
	}
	symbols->demangle = demangle;
	symbols->names = htab_create(256, name_hash, name_equals, NULL);
	obstack_init(&symbols->memory);
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	if (symbols->root >= 0)
		close(symbols->root);
	for (size_t i = 0; i < symbols->nr_binaries; i++)
		binary_free(&symbols->binaries[i]);
	free(symbols->binaries);
	htab_delete(symbols->names);
	obstack_free(&symbols->memory, NULL);
	free(symbols);
}

/* ---- names ---- */

/* Keeps the memory of the names in @binary, and the demangled ones. */
static void keep_names(struct symbols *symbols, const struct binary *binary)
{
	void **slot;

	if (!array_grow(&symbols->binaries, symbols->nr_binaries, sizeof(*binary)))
		xmalloc_failed(sizeof(*binary));
	symbols->binaries[symbols->nr_binaries++] = *binary;
	for (size_t i = 0; i < binary->nr_names; i++) {
		slot = htab_find_slot(symbols->names, &binary->names[i], INSERT);
		if (!*slot)
			*slot = &binary->names[i];
	}
}

void symbols_demangle(struct symbols *symbols, const char *const *names, size_t nr)
{
	const char **mangled = xcalloc(nr + 1, sizeof(*mangled));
	struct binary binary = {};
	size_t nr_mangled = 0;

	for (size_t i = 0; symbols->demangle && i < nr; i++) {
		const struct binary_name key = { .mangled = names[i] };

		if (demangle_is_mangled(names[i]) && !htab_find(symbols->names, &key))
			mangled[nr_mangled++] = names[i];
	}
	if (nr_mangled) {
		binary_demangle(&binary, mangled, nr_mangled);
		keep_names(symbols, &binary);
	}
	free(mangled);
}

const char *symbols_name(struct symbols *symbols, const char *name)
{
	const struct binary_name key = { .mangled = name }, *found;

	if (!symbols->demangle || !demangle_is_mangled(name))
		return name;
	/* Samples are sorted, so a sample often has the same name as the previous one. */
	if (name != symbols->last.mangled) {
		found = htab_find(symbols->names, &key);
		symbols->last = (struct binary_name){ name, found ? found->demangled : name };
	}
	return symbols->last.demangled;
}

const char *symbols_by_address(struct symbols *symbols, const char *path, const char *name)
{
	/* Samples are sorted here, too. */
	if (path != symbols->last_path || name != symbols->last_address) {
		obstack_printf(&symbols->memory, "%s%s", basename(path), name);
		obstack_1grow(&symbols->memory, '\0');
		symbols->last_path = path;
		symbols->last_address = name;
		symbols->last_printed = obstack_finish(&symbols->memory);
	}
	return symbols->last_printed;
}

const char *symbols_inlined(struct symbols *symbols, const char *name)
{
	obstack_printf(&symbols->memory, "%s (inlined)", symbols_name(symbols, name));
	obstack_1grow(&symbols->memory, '\0');
	return obstack_finish(&symbols->memory);
}

/* ---- binaries ---- */

static bool is_wanted_file(int fd, const struct stat *st, const struct symbols_file *wanted)
{
	u8 id[BUILD_ID_MAX];

	if (wanted->build_id_len)
		return buildid_of_fd(fd, id) == wanted->build_id_len &&
		       !memcmp(id, wanted->build_id, wanted->build_id_len);
	/* Compare the time, because on overlayfs the inode may differ: see mappings.c. */
	return !wanted->mtime ||
	       (wanted->size == (u64)st->st_size && wanted->mtime == time_ns(st->st_mtim));
}

/* The data to read from a file: functions, or code */
struct request {
	struct lookup *lookup;
	bool lines;
	struct symbols_code *code;
};

/* Returns NULL, or the problem. */
static const char *read_once(struct symbols *symbols, struct binary *binary)
{
	bool done = binary_read(binary);

	keep_names(symbols, binary);
	if (done)
		return binary->is_elf ? NULL : NOT_ELF;
	return obstack_copy0(&symbols->memory, binary->problem, strlen(binary->problem));
}

/* If the debug information or the unwind table cost too much, there are only names. */
static const char *read_functions(struct symbols *symbols, const struct request *request, int fd,
				  const char *path)
{
	struct lookup *lookup = request->lookup;
	struct binary binary = {
		.lookup = lookup,
		.fd = fd,
		.root = symbols->root,
		.path = path,
		.lines = request->lines,
		.demangle = symbols->demangle,
		.by_size = true,
	}, names = binary;
	const char *problem = read_once(symbols, &binary);
	const bool find_callers = lookup->find_callers;

	if (!problem || (!request->lines && !find_callers))
		return problem;
	lookup->only_names = problem;
	lookup->find_callers = false;
	names.lines = false;
	problem = read_once(symbols, &names);
	lookup->find_callers = find_callers;
	return problem;
}

static const char *read_code(struct symbols_code *code, int fd)
{
	return pread(fd, code->bytes, code->size, code->offset) == (ssize_t)code->size ?
	       NULL : "its code is not in the file";
}

static const char *read_contents(struct symbols *symbols, const struct request *request, int fd,
				 const char *path)
{
	int machine;

	if (!elf_machine(fd, &machine))
		return NOT_ELF;
	if (!request->code)
		return read_functions(symbols, request, fd, path);
	request->code->machine = machine;
	return read_code(request->code, fd);
}

/* Reads the file if @fd is the one that is wanted, and closes @fd. */
static const char *read_file(struct symbols *symbols, const struct request *request,
			     const struct symbols_file *wanted, int fd)
{
	const char *problem = CHANGED;
	struct stat st, now;

	if (!fstat(fd, &st) && is_wanted_file(fd, &st, wanted)) {
		problem = read_contents(symbols, request, fd, wanted->path);
		/* While the file was read, another one may have been written. */
		if (fstat(fd, &now) || now.st_size != st.st_size ||
		    time_ns(now.st_mtim) != time_ns(st.st_mtim))
			problem = CHANGED;
	}
	if (problem && request->lookup)
		lookup_clear(request->lookup);
	close(fd);
	return problem;
}

static const char *find_file(struct symbols *symbols, const struct request *request,
			     const struct symbols_file *file)
{
	const char *problem = "not found here; see --symfs";
	int fd;

	if (!file->path)
		return "code made at run time; see --runtimes in profil-record(1)";
	if (file->unknown)
		return file->unknown;
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
