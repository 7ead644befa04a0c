// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See binary.h. The answer of the process has a header, places, frames, pairs of names, and text.
 * All names are offsets in the text, which ends with a NUL; 0 stands for no name.
 */
#include <gelf.h>
#include <unistd.h>

#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>

#include "symbols/binary.h"
#include "symbols/debugdata.h"
#include "symbols/demangle.h"
#include "symbols/extract.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/* The memory for a place; with lines, it has frames, too. Most places have a few. */
#define PLACE_BYTES	256
#define LINES_BYTES	1024
#define FAILURES_MAX	64

struct answer_header {
	u64 nr_places;
	u64 nr_frames;
	u64 nr_names;
	u64 text_bytes;
	u64 address_size;	/* 0 if the file is not a program */
	u64 symtab;
};

struct answer_place {
	u64 address;
	u64 start, end, name, local;
	u64 source;
	s32 line;
	u32 caller;
	u64 lack;
	u64 nr_frames;
};

struct answer_frame {
	u64 name, source;
	s32 start, line;
	u64 discriminator;
};

struct answer_name {
	u64 mangled, demangled;
};

/* ---- in the confined process ---- */

/* A text in the answer */
struct text {
	const char *text;
	u64 offset;
};

/* The texts of an answer, each once */
struct texts {
	htab_t table;
	struct obstack memory;
	struct answer_name *names;
	size_t nr_names;
	u64 bytes;
	char *all;
};

static hashval_t text_hash(const void *data)
{
	return hash_text(((const struct text *)data)->text);
}

static int text_equals(const void *a, const void *b)
{
	return !strcmp(((const struct text *)a)->text, ((const struct text *)b)->text);
}

static u64 text_append(struct texts *texts, const char *text)
{
	const size_t size = strlen(text) + 1;
	const u64 offset = texts->bytes;

	texts->all = xrealloc(texts->all, texts->bytes + size);
	memcpy(texts->all + offset, text, size);
	texts->bytes += size;
	return offset;
}

/* Returns the offset of a text; 0 for NULL. With @demangle, adds its demangled form. */
static u64 text_add(struct texts *texts, const char *text, bool demangle)
{
	struct text key = { .text = text }, *entry;
	const char *demangled;
	void **slot;

	if (!text)
		return 0;
	slot = htab_find_slot(texts->table, &key, INSERT);
	if (*slot)
		return ((struct text *)*slot)->offset;
	entry = obstack_alloc(&texts->memory, sizeof(*entry));
	*entry = (struct text){ .text = text, .offset = text_append(texts, text) };
	*slot = entry;
	demangled = demangle ? demangle_name(&texts->memory, text) : NULL;
	if (!demangled)
		return entry->offset;
	if (!array_grow(&texts->names, texts->nr_names, sizeof(*texts->names)))
		xmalloc_failed(sizeof(*texts->names));
	texts->names[texts->nr_names++] = (struct answer_name){
		.mangled = entry->offset, .demangled = text_append(texts, demangled),
	};
	return entry->offset;
}

static void texts_init(struct texts *texts)
{
	*texts = (struct texts){ .table = htab_create(256, text_hash, text_equals, NULL) };
	obstack_init(&texts->memory);
	text_append(texts, "");
}

static void texts_write(const struct texts *texts, const struct confined *confined)
{
	confined_write(confined, texts->names, texts->nr_names * sizeof(*texts->names));
	confined_write(confined, texts->all, texts->bytes);
}

static void write_results(const struct confined *confined, const struct binary *binary,
			  bool is_elf)
{
	const struct lookup *lookup = binary->lookup;
	struct answer_header header = {
		.nr_places = lookup->nr, .address_size = is_elf ? lookup->address_size : 0,
		.symtab = lookup->symtab,
	};
	struct answer_place *places = xcalloc(lookup->nr + 1, sizeof(*places));
	struct answer_frame *frames;
	struct texts texts;
	size_t nr = 0;

	texts_init(&texts);
	for (size_t i = 0; i < lookup->nr; i++)
		header.nr_frames += lookup->places[i].nr_frames;
	frames = xcalloc(header.nr_frames + 1, sizeof(*frames));
	for (size_t i = 0; i < lookup->nr; i++) {
		const struct place *place = &lookup->places[i];

		places[i] = (struct answer_place){
			.address = place->address,
			.start = place->found.start,
			.end = place->found.end,
			.name = text_add(&texts, place->found.name, binary->demangle),
			.local = place->found.local,
			.source = text_add(&texts, place->source, false),
			.line = place->line,
			.caller = place->caller,
			.lack = place->lack,
			.nr_frames = place->nr_frames,
		};
		for (size_t j = 0; j < place->nr_frames; j++)
			frames[nr++] = (struct answer_frame){
				.name = text_add(&texts, place->frames[j].name, binary->demangle),
				.source = text_add(&texts, place->frames[j].source, false),
				.start = place->frames[j].start,
				.line = place->frames[j].line,
				.discriminator = place->frames[j].discriminator,
			};
	}
	header.nr_names = texts.nr_names;
	header.text_bytes = texts.bytes;
	confined_write(confined, &header, sizeof(header));
	confined_write(confined, places, lookup->nr * sizeof(*places));
	confined_write(confined, frames, nr * sizeof(*frames));
	texts_write(&texts, confined);
}

/* Reads the file of a JIT compiler, which may be growing. */
static void read_text(const struct binary *binary)
{
	char *text = xmalloc(binary->text_size + 1);
	size_t done = 0;
	ssize_t n = 1;

	while (n > 0 && done < binary->text_size) {
		n = pread(binary->fd, text + done, binary->text_size - done, done);
		done += n > 0 ? n : 0;
	}
	text[done] = '\0';
	binary->parse(binary->lookup, text, done);
}

static void read_elf(const struct binary *binary, struct elf_file *file,
		     const struct confined *confined)
{
	struct lookup *lookup = binary->lookup;

	lookup->address_size = gelf_getclass(file->elf) == ELFCLASS32 ? 4 : 8;
	extract_functions(lookup, file, confined);
	if (lookup->find_callers)
		callers_read(lookup, file);
	if (binary->lines)
		lines_read(lookup, file, confined);
}

static void work_read(const struct confined *confined)
{
	const struct binary *binary = confined->data;
	struct elf_file file;
	const bool is_elf = !binary->parse && elf_file_open(&file, confined->fd);

	if (binary->parse)
		read_text(binary);
	else if (is_elf)
		read_elf(binary, &file, confined);
	write_results(confined, binary, is_elf);
}

/* ---- in the parent ---- */

/* An answer whose parts have been found, but not checked */
struct answer {
	struct answer_header header;
	const struct answer_place *places;
	const struct answer_frame *frames;
	const struct answer_name *names;
	const char *text;
	bool is_wrong;
};

/* Returns the next @nr elements of the answer, or NULL if there are fewer. */
static const void *take(const u8 **at, size_t *left, u64 nr, size_t size)
{
	const void *taken = *at;

	if (nr > *left / size)
		return NULL;
	*at += nr * size;
	*left -= nr * size;
	return taken;
}

static bool answer_parse(struct answer *answer, const u8 *data, size_t size, size_t nr_places)
{
	const struct answer_header *header = take(&data, &size, 1, sizeof(*header));

	if (!header)
		return false;
	answer->header = *header;
	answer->places = take(&data, &size, header->nr_places, sizeof(*answer->places));
	answer->frames = answer->places ? take(&data, &size, header->nr_frames,
					       sizeof(*answer->frames)) : NULL;
	answer->names = answer->frames ? take(&data, &size, header->nr_names,
					      sizeof(*answer->names)) : NULL;
	answer->text = (const char *)data;
	return answer->names && header->nr_places == nr_places && size == header->text_bytes &&
	       size && !answer->text[size - 1];
}

static const char *answer_text(struct answer *answer, u64 offset)
{
	/* A text begins where another one ends, so all together are not longer than the answer. */
	answer->is_wrong |= offset >= answer->header.text_bytes ||
			    (offset && answer->text[offset - 1]);
	return offset && !answer->is_wrong ? answer->text + offset : NULL;
}

static void take_frames(struct answer *answer, struct frame *frames)
{
	for (size_t i = 0; i < answer->header.nr_frames; i++) {
		const struct answer_frame *from = &answer->frames[i];

		frames[i] = (struct frame){
			.name = answer_text(answer, from->name),
			.start = from->start,
			.source = answer_text(answer, from->source),
			.line = from->line,
			.discriminator = from->discriminator,
		};
	}
}

static void take_places(struct answer *answer, struct lookup *lookup, const struct frame *frames)
{
	size_t left = answer->header.nr_frames;

	for (size_t i = 0; i < lookup->nr; i++) {
		const struct answer_place *from = &answer->places[i];
		struct place *place = &lookup->places[i];

		answer->is_wrong |= from->caller > PLACE_CALLER_LOST ||
				    from->lack >= PLACE_LACKS || from->nr_frames > left;
		if (answer->is_wrong)
			return;
		*place = (struct place){
			.where = place->where,
			.address = from->address,
			.found = {
				.start = from->start,
				.end = from->end,
				.name = answer_text(answer, from->name),
				.local = from->local,
			},
			.source = answer_text(answer, from->source),
			.line = from->line,
			.frames = from->nr_frames ? frames : NULL,
			.nr_frames = from->nr_frames,
			.caller = from->caller,
			.lack = from->lack,
		};
		frames += from->nr_frames;
		left -= from->nr_frames;
	}
}

static void take_names(struct answer *answer, struct binary *binary)
{
	binary->names = xcalloc(answer->header.nr_names + 1, sizeof(*binary->names));
	for (size_t i = 0; i < answer->header.nr_names; i++) {
		struct binary_name *name = &binary->names[i];

		name->mangled = answer_text(answer, answer->names[i].mangled);
		name->demangled = answer_text(answer, answer->names[i].demangled);
		answer->is_wrong |= !name->mangled || !name->demangled;
	}
	binary->nr_names = answer->is_wrong ? 0 : answer->header.nr_names;
}

static bool take_answer(struct binary *binary, size_t size)
{
	struct lookup *lookup = binary->lookup;
	struct answer answer = {};

	if (!answer_parse(&answer, binary->data, size, lookup->nr))
		return false;
	binary->is_elf = answer.header.address_size;
	lookup->address_size = answer.header.address_size == 4 ? 4 : 8;
	lookup->symtab = answer.header.symtab <= SYMTAB_COMPRESSED ? answer.header.symtab :
								     SYMTAB_NONE;
	binary->frames = xcalloc(answer.header.nr_frames + 1, sizeof(*binary->frames));
	take_frames(&answer, binary->frames);
	take_places(&answer, lookup, binary->frames);
	take_names(&answer, binary);
	return !answer.is_wrong;
}

/* ---- files that could not be read ---- */

/**
 * struct failure - A file that exceeded the limits
 * @st: Its state.
 * @kind: What was read.
 * @problem: The message for the user.
 */
struct failure {
	struct stat st;
	unsigned int kind;
	char problem[CONFINED_PROBLEM];
};

/* The last ones. A recorder would read them in each of its files, and diff in both recordings. */
static struct failure failures[FAILURES_MAX];
static size_t nr_failures;

static unsigned int kind_of(const struct binary *binary)
{
	return binary->lines | binary->lookup->find_callers << 1 | binary->by_size << 2;
}

/* Returns true, with the message, if the file has failed before. */
static bool has_failed(struct binary *binary)
{
	const size_t nr = nr_failures < FAILURES_MAX ? nr_failures : FAILURES_MAX;
	struct stat st;

	for (size_t i = 0; i < nr && !fstat(binary->fd, &st); i++) {
		const struct failure *failure = &failures[i];

		if (failure->kind != kind_of(binary) || failure->st.st_dev != st.st_dev ||
		    failure->st.st_ino != st.st_ino || failure->st.st_size != st.st_size ||
		    time_ns(failure->st.st_ctim) != time_ns(st.st_ctim))
			continue;
		strcpy(binary->problem, failure->problem);
		return true;
	}
	return false;
}

static void remember_failure(const struct binary *binary)
{
	struct failure *failure = &failures[nr_failures % FAILURES_MAX];

	if (fstat(binary->fd, &failure->st))
		return;
	failure->kind = kind_of(binary);
	strcpy(failure->problem, binary->problem);
	nr_failures++;
}

/* Returns false, with the message, if there is no answer. */
static bool run(struct binary *binary, struct confined *confined)
{
	if (has_failed(binary))
		return false;
	if (confined_run(confined)) {
		binary->data = confined->answer;
		return true;
	}
	strcpy(binary->problem, confined->problem);
	if (confined->exceeded)
		remember_failure(binary);
	return false;
}

bool binary_read(struct binary *binary)
{
	struct confined confined = {
		.work = work_read,
		.data = binary,
		.fd = binary->fd,
		.root = binary->root,
		.path = binary->path,
		.may_ask = !binary->parse,
		.by_size = binary->by_size,
		.subject = binary->lines ? "its debug information" :
			   binary->lookup->find_callers ? "its unwind tables" :
			   "its symbol tables",
		.bytes = binary->lookup->nr * (binary->lines ? LINES_BYTES : PLACE_BYTES) +
			 binary->text_size,
	};
	bool done;

	debugdata_load();
	done = run(binary, &confined);
	if (done && !take_answer(binary, confined.size)) {
		strcpy(binary->problem, "its symbol tables are damaged");
		lookup_clear(binary->lookup);
		return false;
	}
	/* Another file of the JIT compiler may have given names. */
	if (!done && !binary->parse)
		lookup_clear(binary->lookup);
	return done;
}

void binary_free(struct binary *binary)
{
	free(binary->data);
	free(binary->frames);
	free(binary->names);
}

/* ---- demangling ---- */

struct demangling {
	const char *const *names;
	size_t nr;
};

/* Writes each result as soon as it is known: a later name may end the process. */
static void work_demangle(const struct confined *confined)
{
	const struct demangling *demangling = confined->data;
	struct obstack memory;
	const char *name;

	obstack_init(&memory);
	for (size_t i = 0; i < demangling->nr; i++) {
		name = demangle_name(&memory, demangling->names[i]) ?: "";
		confined_write(confined, name, strlen(name) + 1);
	}
}

void binary_demangle(struct binary *binary, const char *const *names, size_t nr)
{
	struct demangling demangling = { .names = names, .nr = nr };
	struct confined confined = { .work = work_demangle, .data = &demangling, .fd = -1,
				     .subject = "its names" };
	const char *at, *end;

	if (!confined_run(&confined))
		return;
	binary->data = confined.answer;
	binary->names = xcalloc(nr + 1, sizeof(*binary->names));
	at = (const char *)confined.answer;
	end = at + confined.size;
	for (size_t i = 0; i < nr && at < end && memchr(at, 0, end - at); i++) {
		if (*at)
			binary->names[binary->nr_names++] = (struct binary_name){ names[i], at };
		at += strlen(at) + 1;
	}
}
