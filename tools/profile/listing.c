// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See listing.h. The binary is read several times: for the extent of the function, its code and its
 * source lines. Each time, symbols.c checks that this is the recorded binary.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/listing.h"
#include "symbols/disassemble.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/* The code of a larger function is not read. */
#define CODE_MAX	(1U << 20)

/* Finds the extent in the binary; or in the recording, if the binary has lost its names. */
static const char *find_extent(struct listing *listing)
{
	const struct recording_file *file = listing->row->sample->file;
	const struct symbols_file wanted = binary_file(file);
	u64 offset = listing->row->sample->offset;
	struct lookup lookup;
	const char *problem;
	struct place place;

	lookup_init(&lookup, &offset, 1);
	problem = symbols_read(listing->symbols, &lookup, &wanted, false);
	place = *lookup.places;
	lookup_free(&lookup);
	if (problem)
		return problem;
	for (size_t i = 0; !place.found.name && i < file->nr_symbols; i++)
		if (file->symbols[i].start <= offset && offset < file->symbols[i].end)
			place.found = (struct function){
				.start = file->symbols[i].start,
				.end = file->symbols[i].end,
				.name = "",
			};
	if (!place.found.name || place.address == UINT64_MAX)
		return "it is not in the code of the file";
	listing->start = place.found.start;
	listing->size = place.found.end - place.found.start;
	listing->bias = place.address - place.where;
	return listing->size > CODE_MAX ? "its code has more than 1 MiB" : NULL;
}

static void add_line(struct listing *listing, u64 where, const char *text)
{
	struct listing_line line = {
		.where = where,
		.address = where + listing->bias,
	};

	if (text)
		line.text = obstack_copy0(&listing->texts, text, strlen(text));
	if (!array_grow(&listing->lines, listing->nr, sizeof(line)))
		xmalloc_failed(sizeof(line));
	listing->lines[listing->nr++] = line;
}

/* Returns the next sample from index *@i on in the function, or NULL. Samples are sorted. */
static const struct recording_sample *next_sample(const struct listing *listing, size_t *i)
{
	const struct recording *recording = listing->rows->recording;
	const struct recording_sample *sample;

	while (*i < recording->nr_samples) {
		sample = &recording->samples[(*i)++];
		if (sample->file == listing->row->sample->file &&
		    sample->offset - listing->start < listing->size)
			return sample;
	}
	return NULL;
}

/* Adds all instructions; if they cannot be read, only the places that have samples. */
static void add_lines(struct listing *listing, const struct symbols_code *code)
{
	const u64 address = listing->start + listing->bias;
	struct disassembler *disassembler = disassembler_new(code, address, &listing->note);
	const struct instruction *instruction;
	const struct recording_sample *sample;

	while (disassembler && (instruction = disassemble(disassembler)))
		add_line(listing, instruction->address - listing->bias, instruction->text);
	for (size_t i = 0; !disassembler && (sample = next_sample(listing, &i));)
		if (!listing->nr || listing->lines[listing->nr - 1].where != sample->offset)
			add_line(listing, sample->offset, NULL);
	disassembler_free(disassembler);
}

/* A sample can be inside an instruction, if the disassembler is wrong. */
static void add_ticks(struct listing *listing)
{
	const struct recording_sample *sample;

	for (size_t i = 0; (sample = next_sample(listing, &i));) {
		size_t at = array_index(&listing->lines->where, listing->nr,
					sizeof(*listing->lines), sample->offset);
		u64 ticks = ticks_add(sample->user, sample->system);

		if (at == listing->nr || listing->lines[at].where != sample->offset)
			at--;
		listing->lines[at].ticks = ticks_add(listing->lines[at].ticks, ticks);
		listing->ticks = ticks_add(listing->ticks, ticks);
	}
}

static const char *find_sources(struct listing *listing)
{
	const struct symbols_file wanted = binary_file(listing->row->sample->file);
	u64 *offsets = xcalloc(listing->nr, sizeof(*offsets));
	struct lookup lookup;
	const char *problem;

	for (size_t i = 0; i < listing->nr; i++)
		offsets[i] = listing->lines[i].where;
	lookup_init(&lookup, offsets, listing->nr);
	free(offsets);
	problem = symbols_read(listing->symbols, &lookup, &wanted, true);
	for (size_t i = 0; i < listing->nr; i++) {
		const struct place *place = lookup_place(&lookup, listing->lines[i].where);

		listing->lines[i].source = place->source;
		listing->lines[i].number = place->line;
		listing->lines[i].inlined = place_inlined(place);
	}
	lookup_free(&lookup);
	return problem;
}

/* The function itself comes first, then inlined functions, and then code without a line. */
static int compare_lines(const void *a, const void *b, void *data)
{
	const struct listing_line *x = a, *y = b;
	const char *own = data;

	return !x->source - !y->source ?: !!x->inlined - !!y->inlined ?:
	       !!strcmp(x->source ?: "", own) - !!strcmp(y->source ?: "", own) ?:
	       strcmp(x->source ?: "", y->source ?: "") ?:
	       strcmp(x->inlined ?: "", y->inlined ?: "") ?: compare_u64(x->number, y->number) ?:
	       compare_u64(x->where, y->where);
}

static void sort_lines(struct listing *listing)
{
	const char *own = "";

	for (size_t i = listing->nr; i--;)
		if (listing->lines[i].source && !listing->lines[i].inlined)
			own = listing->lines[i].source;
	qsort_r(listing->lines, listing->nr, sizeof(*listing->lines), compare_lines, (char *)own);
}

const char *listing_make(struct listing *listing)
{
	const struct symbols_file wanted = binary_file(listing->row->sample->file);
	struct symbols_code code = {};
	const char *problem;

	obstack_init(&listing->texts);
	listing->is_made = true;
	problem = find_extent(listing);
	if (problem)
		return problem;
	code.offset = listing->start;
	code.size = listing->size;
	code.bytes = xmalloc(code.size);
	problem = symbols_read_code(listing->symbols, &code, &wanted);
	if (!problem)
		add_lines(listing, &code);
	free(code.bytes);
	if (!problem)
		problem = find_sources(listing);
	if (problem)
		return problem;
	add_ticks(listing);
	sort_lines(listing);
	return NULL;
}

void listing_keep(struct listing *listing, const char *name)
{
	const struct listing_line *line, *end = listing->lines + listing->nr;
	const char *inlined = NULL;
	bool is_kept = false;

	listing->inlined = name;
	listing->nr = 0;
	listing->ticks = 0;
	for (line = listing->lines; line < end; line++) {
		if (line->inlined != inlined) {
			inlined = line->inlined;
			is_kept = inlined &&
				  !strcmp(symbols_inlined(listing->symbols, inlined), name);
		}
		if (!is_kept)
			continue;
		listing->ticks = ticks_add(listing->ticks, line->ticks);
		listing->lines[listing->nr++] = *line;
	}
}

void listing_free(struct listing *listing)
{
	if (listing->is_made)
		obstack_free(&listing->texts, NULL);
	free(listing->lines);
}
