// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * gmon.out, which gprof reads: counters for the addresses of one program or library, the one with
 * the most ticks
 *
 * There is a histogram for each page that has ticks. A counter has 16 bits. Larger numbers are
 * written in several histograms of a page, which gprof adds up.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/gmon_out.h>

#include <libiberty/libiberty.h>

#include "export/export.h"

#define PAGE 4096
/* As in glibc, there is one counter for two bytes, which is gprof's unit. */
#define BIN 2
#define BINS (PAGE / BIN)
/* The maximum of a counter, several days. */
#define TICKS_MAX (4096ULL * UINT16_MAX)
/*
 * The maximum number of histograms, besides two for each page: a few samples of a hostile recording
 * could make a file of gigabytes.
 */
#define PARTS_MAX 16384

struct counter {
	u64 address;
	u64 ticks;
};

/**
 * struct histogram - A page
 * @rate: Ticks per second; 0 if it is not known.
 * @address_size: The size of an address of the program in bytes.
 * @low: The first address.
 * @ticks: The ticks that remain to be written.
 */
struct histogram {
	u32 rate;
	size_t address_size;
	u64 low;
	u64 ticks[BINS];
};

static int compare_counters(const void *a, const void *b)
{
	const struct counter *x = a, *y = b;

	return compare_u64(x->address, y->address);
}

/* Writes a number of @size bytes. Programs are little-endian: see elf_file_open(). */
static void write_number(FILE *out, u64 number, size_t size)
{
	for (size_t i = 0; i < size; i++)
		putc(number >> 8 * i & 0xff, out);
}

static void write_header(FILE *out)
{
	const struct gmon_hdr spare = {};

	fputs(GMON_MAGIC, out);
	write_number(out, GMON_VERSION, sizeof(spare.version));
	fwrite(spare.spare, 1, sizeof(spare.spare), out);
}

/* Writes at most UINT16_MAX ticks of each counter. Returns false when none remains. */
static bool write_part(FILE *out, struct histogram *histogram)
{
	struct gmon_hist_hdr header = { .dimen = "seconds", .dimen_abbrev = 's' };
	bool remains = false;

	putc(GMON_TAG_TIME_HIST, out);
	write_number(out, histogram->low, histogram->address_size);
	write_number(out, histogram->low + PAGE, histogram->address_size);
	write_number(out, BINS, sizeof(header.hist_size));
	write_number(out, histogram->rate, sizeof(header.prof_rate));
	fwrite(header.dimen, 1, sizeof(header.dimen) + sizeof(header.dimen_abbrev), out);
	for (size_t i = 0; i < BINS; i++) {
		u64 *ticks = &histogram->ticks[i];
		u64 part = *ticks < UINT16_MAX ? *ticks : UINT16_MAX;

		write_number(out, part, BIN);
		*ticks -= part;
		remains |= *ticks;
	}
	return remains;
}

static void write_page(FILE *out, struct histogram *histogram)
{
	while (write_part(out, histogram) && !ferror(out))
		;
}

/* Writes the counters, which are sorted. */
static void write_counters(FILE *out, struct histogram *histogram, const struct counter *counters,
			   size_t nr)
{
	for (size_t i = 0, end; i < nr; i = end) {
		histogram->low = counters[i].address / PAGE * PAGE;
		memset(histogram->ticks, 0, sizeof(histogram->ticks));
		for (end = i; end < nr && counters[end].address - histogram->low < PAGE; end++) {
			u64 *ticks = &histogram->ticks[counters[end].address % PAGE / BIN];

			*ticks = ticks_add(*ticks, counters[end].ticks);
			if (*ticks > TICKS_MAX)
				*ticks = TICKS_MAX;
		}
		write_page(out, histogram);
	}
}

/* Returns true if the counters, which are sorted, need too many histograms. */
static bool is_too_large(const struct counter *counters, size_t nr)
{
	u64 most = 0, ticks = 0, parts = 0, pages = 0;

	for (size_t i = 0; i < nr; i++) {
		const u64 address = counters[i].address, before = i ? counters[i - 1].address : 0;

		if (!i || address / PAGE != before / PAGE) {
			parts += most / UINT16_MAX + 1;
			pages++;
			most = 0;
		}
		if (!i || address / BIN != before / BIN)
			ticks = 0;
		ticks = ticks_add(ticks, counters[i].ticks);
		if (ticks > most)
			most = ticks < TICKS_MAX ? ticks : TICKS_MAX;
	}
	return parts + most / UINT16_MAX > PARTS_MAX + 2 * pages;
}

static const char *write_gmon(FILE *out, const struct rows *rows)
{
	const u64 tick_ns = rows->recording->meta.tick_ns;
	const struct recording_file *file = rows_hottest_file(rows);
	const struct profile_binary *binary;
	struct histogram *histogram;
	struct counter *counters;
	size_t nr = 0;

	if (!file)
		return "no tick is in a program";
	binary = binary_of(&rows->binaries, file);
	if (binary->problem)
		return "the program cannot be read; profil report says why";
	counters = xcalloc(rows->nr, sizeof(*counters));
	for (size_t i = 0; i < rows->nr; i++) {
		const struct row *row = &rows->rows[i];

		if (row->sample->file == file)
			counters[nr++] = (struct counter){ row->place.address, row_ticks(row) };
	}
	qsort(counters, nr, sizeof(*counters), compare_counters);
	if (is_too_large(counters, nr)) {
		free(counters);
		return "there are too many ticks for the counters of gprof, which have 16 bits";
	}
	histogram = xcalloc(1, sizeof(*histogram));
	histogram->rate = tick_ns ? (NS_PER_S + tick_ns / 2) / tick_ns : 0;
	histogram->address_size = binary->address_size;
	write_header(out);
	write_counters(out, histogram, counters, nr);
	free(histogram);
	free(counters);
	return NULL;
}

const struct export_format export_gmon = {
	.name = "gmon",
	.about = "gprof: the program with the most ticks, or the one of --dso",
	.is_binary = true,
	.write = write_gmon,
};
