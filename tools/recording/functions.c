// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See functions.h. This keeps little for each sample, and reads no file before the end of the
 * recording.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "recording/functions.h"
#include "symbols/binary.h"
#include "symbols/files.h"
#include "symbols/jit.h"

/* The maximum number of open files, and the maximum number of processes. */
#define SOURCES_MAX	64
/* The maximum number of samples that are noted for a file or a process. */
#define PLACES_MAX	(1U << 18)
#define RECENT		64U
/* The files of JIT compilers are not read further than to this size, all processes together. */
#define JIT_BYTES_MAX	(1LL << 30)
/* The names that are written for a file or a process. A function can have a long one. */
#define NAMES_BYTES_MAX	(16U << 20)
/* The processes of which is remembered that their functions are not noted. */
#define IGNORED_MAX	1024

/* A file, or a process with a JIT compiler. */
struct source {
	u32 file;		/* as in struct format_symbol */
	u64 space;		/* the address space of the process; 0 for a file */
	int handle;		/* of the file: see file_handle() */
	struct stat st;		/* of the file when it was opened */
	struct jit *jit;
	u64 *places;		/* offsets in the file, or addresses, of samples */
	size_t nr;
	size_t size;		/* of the array */
	bool full;		/* there is no room for more places */
	u64 recent[RECENT];	/* the last places; most samples are at one of them */
};

struct functions {
	struct source sources[2 * SOURCES_MAX];
	size_t nr;
	size_t nr_processes;	/* of these */
	u64 start;		/* CLOCK_BOOTTIME in ns */
	u64 ignored[IGNORED_MAX];	/* the spaces of processes for which there was no room */
	u32 ignored_threads[IGNORED_MAX];
	size_t nr_ignored;
};

struct functions *functions_new(void)
{
	struct functions *functions = xmalloc(sizeof(*functions));

	/* The sources are large, so each one is cleared at its first use. */
	functions->nr = 0;
	functions->nr_processes = 0;
	functions->nr_ignored = 0;
	functions->start = clock_ns(CLOCK_BOOTTIME);
	return functions;
}

void functions_free(struct functions *functions)
{
	for (size_t i = 0; i < functions->nr; i++) {
		struct source *source = &functions->sources[i];

		if (source->handle >= 0)
			close(source->handle);
		jit_close(source->jit);
		free(source->places);
	}
	free(functions);
}

struct source *functions_file(struct functions *functions, u32 file, int fd)
{
	struct source *source = &functions->sources[functions->nr];
	struct stat st;

	if (fd < 0)
		return NULL;
	if (functions->nr - functions->nr_processes == SOURCES_MAX || fstat(fd, &st)) {
		close(fd);
		return NULL;
	}
	functions->nr++;
	*source = (struct source){ .file = file, .handle = file_handle(fd), .st = st };
	return source;
}

static void source_add(struct source *source, u64 place)
{
	u64 *recent = &source->recent[(place ^ place >> 6) % RECENT];

	if (source->full || *recent == place)
		return;
	*recent = place;
	if (source->nr == source->size) {
		source->nr = lookup_sort(source->places, source->nr);
		if (source->nr >= source->size / 2) {
			source->full = source->size == PLACES_MAX;
			if (source->full)
				return;
			source->size = source->size ? 2 * source->size : 64;
			source->places = xrealloc(source->places, source->size * sizeof(u64));
		}
	}
	source->places[source->nr++] = place;
}

void functions_sample(struct source *source, u64 offset)
{
	if (source)
		source_add(source, offset);
}

/* Remembers a process for which there is no room. */
static void ignore(struct functions *functions, u32 thread, u64 space)
{
	size_t i = functions->nr_ignored;

	while (i > 0 && functions->ignored[i - 1] != space)
		i--;
	if (i || functions->nr_ignored == IGNORED_MAX)
		return;
	functions->ignored[functions->nr_ignored] = space;
	functions->ignored_threads[functions->nr_ignored++] = thread;
}

void functions_address(struct functions *functions, u32 thread, const struct profil_record *record)
{
	struct source *source = functions->sources;

	if (!record->space)
		return;
	while (source < functions->sources + functions->nr && source->space != record->space)
		source++;
	if (source == functions->sources + functions->nr) {
		if (functions->nr_processes == SOURCES_MAX) {
			ignore(functions, thread, record->space);
			return;
		}
		functions->nr_processes++;
		functions->nr++;
		*source = (struct source){
			.file = thread | FORMAT_SYMBOL_JIT,
			.space = record->space,
			.handle = -1,
			.jit = jit_open(record->pid, functions->start),
		};
	}
	if (record->flags & PROFIL_RECORD_FILE)
		jit_add_shared(source->jit, record->start, record->end);
	source_add(source, record->pc);
}

/* ---- the end of the recording ---- */

/*
 * Writes a function once for adjacent places in it. A function of a process ends with the last of
 * these places, because older code in the process may overlap the function.
 */
static void write_functions(const struct source *source, const struct lookup *lookup,
			    struct format_writer *writer)
{
	struct format_symbol symbol = { .file = source->file };
	const struct function *last = NULL;
	size_t bytes = 0;

	for (size_t i = 0; i < lookup->nr && bytes < NAMES_BYTES_MAX; i++) {
		const u64 where = lookup->places[i].where;
		const struct function *function = &lookup->places[i].found;
		const bool is_new = !last || function->start != last->start ||
				    function->name != last->name;

		if (!function->end)
			continue;
		if (last && is_new)
			format_write(writer, FORMAT_SYMBOL, &symbol);
		if (is_new)
			symbol.start = source->jit ? where : function->start;
		symbol.end = source->jit ? where + 1 : function->end;
		symbol.name = function->name ?: "";
		bytes += is_new ? strlen(symbol.name) : 0;
		last = function;
	}
	if (last)
		format_write(writer, FORMAT_SYMBOL, &symbol);
}

/* A file that cannot be read has no names. */
static void read_file(const struct source *source, struct binary *binary)
{
	struct lookup *lookup = binary->lookup;
	struct stat st;

	binary->fd = file_of_handle(source->handle);
	if (binary->fd < 0)
		return;
	binary_read(binary);
	if (fstat(binary->fd, &st) || st.st_size != source->st.st_size ||
	    time_ns(st.st_mtim) != time_ns(source->st.st_mtim))
		lookup_clear(lookup);
	close(binary->fd);
}

/* Reads the files of the process. Writes why functions have no names. Returns as jit_read(). */
static int read_process(struct source *source, struct lookup *lookup, off_t *left,
			struct format_writer *writer)
{
	struct format_nameless why;
	const int ignored = jit_read(source->jit, lookup, left, &why);
	bool is_whole = true;

	for (size_t i = 0; i < lookup->nr; i++)
		is_whole &= !!lookup->places[i].found.name;
	why.thread = source->file & ~FORMAT_SYMBOL_JIT;
	if (!is_whole)
		format_write(writer, FORMAT_NAMELESS, &why);
	return ignored;
}

int functions_write(struct functions *functions, struct format_writer *writer)
{
	struct format_nameless why = { .reason = FORMAT_NAMELESS_MANY, .pid = SOURCES_MAX };
	off_t jit_bytes = JIT_BYTES_MAX;
	int ignored = 0;

	for (size_t i = 0; i < functions->nr; i++) {
		struct source *source = &functions->sources[i];
		struct lookup lookup;
		struct binary binary = { .lookup = &lookup, .root = -1 };

		if (!source->nr)
			continue;
		lookup_init(&lookup, source->places, source->nr);
		if (source->jit)
			ignored += read_process(source, &lookup, &jit_bytes, writer);
		else
			read_file(source, &binary);
		write_functions(source, &lookup, writer);
		lookup_free(&lookup);
		binary_free(&binary);
	}
	for (size_t i = 0; i < functions->nr_ignored; i++) {
		why.thread = functions->ignored_threads[i];
		format_write(writer, FORMAT_NAMELESS, &why);
	}
	return ignored;
}
