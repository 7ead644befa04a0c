// SPDX-License-Identifier: GPL-2.0-or-later
/* See html_parts.h: the ticks by address. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "export/html_parts.h"

/* Parts of rows that are equal in some respect */
struct group {
	const struct row **parts;
	size_t nr;
	u64 ticks;
};

/**
 * struct groups - Groups of parts
 * @compare: Sorts the parts.
 * @differ: Returns 0 if two parts are of the same group.
 * @has: Returns true if a part is in a group.
 * @parts: The parts, sorted.
 * @groups: The groups; those with the most ticks first.
 */
struct groups {
	int (*compare)(const void *a, const void *b);
	int (*differ)(const struct row *a, const struct row *b);
	bool (*has)(const struct row *part);

	const struct row **parts;
	struct group *groups;
	size_t nr;
};

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return compare_u64(y->ticks, x->ticks) ?: compare_u64((uintptr_t)x->parts,
							       (uintptr_t)y->parts);
}

static void make_groups(struct groups *groups, const struct rows *rows)
{
	struct group *group = NULL;
	size_t nr_parts = 0;

	groups->parts = xcalloc(rows->nr_parts + 1, sizeof(*groups->parts));
	groups->groups = xcalloc(rows->nr_parts + 1, sizeof(*groups->groups));
	for (size_t i = 0; i < rows->nr_parts; i++)
		if (groups->has(&rows->parts[i]))
			groups->parts[nr_parts++] = &rows->parts[i];
	qsort(groups->parts, nr_parts, sizeof(*groups->parts), groups->compare);
	for (size_t i = 0; i < nr_parts; i++) {
		if (!group || groups->differ(*group->parts, groups->parts[i])) {
			group = &groups->groups[groups->nr++];
			group->parts = &groups->parts[i];
		}
		group->ticks = ticks_add(group->ticks, row_ticks(groups->parts[i]));
		group->nr++;
	}
	qsort(groups->groups, groups->nr, sizeof(*groups->groups), compare_groups);
}

static void free_groups(struct groups *groups)
{
	free(groups->parts);
	free(groups->groups);
}

static bool has_address(const struct row *part)
{
	return part->sample->file && !(part->sample->flags & (FORMAT_SAMPLE_EXEC |
							      FORMAT_SAMPLE_EXIT));
}

static int differ_in_file(const struct row *a, const struct row *b)
{
	return compare_u64((uintptr_t)a->sample->file, (uintptr_t)b->sample->file);
}

static int compare_addresses(const void *a, const void *b)
{
	const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;

	return differ_in_file(x, y) ?: compare_u64(x->place.address, y->place.address) ?:
	       strcmp(x->function.name, y->function.name);
}

/* Returns the name with the most ticks of @nr parts, which are sorted by address. */
static const char *hottest_name(const struct row **parts, size_t nr)
{
	const char *hottest = NULL;
	u64 most = 0;

	for (size_t i = 0, end; i < nr; i = end) {
		const char *name = parts[i]->function.name;
		u64 ticks = 0;

		for (end = i; end < nr && !strcmp(parts[end]->function.name, name); end++)
			ticks = ticks_add(ticks, row_ticks(parts[end]));
		if (!hottest || ticks > most) {
			hottest = name;
			most = ticks;
		}
	}
	return hottest;
}

/* Writes the bars: for each one its index, its ticks and the index of a name. */
static void write_bars(struct json *json, const struct group *group, u64 start,
		       unsigned int shift, struct intern *names)
{
	json_array(json, "bars", 0);
	for (size_t i = 0, end; i < group->nr; i = end) {
		const u64 bar = (group->parts[i]->place.address - start) >> shift;
		u64 ticks = 0;

		for (end = i; end < group->nr; end++) {
			if ((group->parts[end]->place.address - start) >> shift != bar)
				break;
			ticks = ticks_add(ticks, row_ticks(group->parts[end]));
		}
		json_number(json, NULL, bar);
		json_number(json, NULL, ticks);
		json_number(json, NULL, intern(names, hottest_name(&group->parts[i], end - i)));
	}
	json_end(json);
}

/* Writes a histogram by address. Each bar is for the same number of bytes, a power of two. */
static void write_binary(struct json *json, const struct rows *rows, const struct group *group,
			 struct intern *names)
{
	const struct recording_file *file = group->parts[0]->sample->file;
	const struct profile_binary *binary = binary_of(&rows->binaries, file);
	const u64 low = group->parts[0]->place.address;
	const u64 high = group->parts[group->nr - 1]->place.address;
	unsigned int shift = 0;
	u64 start = low;

	while ((high - start) >> shift >= BARS_MAX) {
		shift++;
		start = low >> shift << shift;
	}
	json_object(json, NULL);
	html_write_name(json, "name", binary->label);
	html_write_name(json, "path", file->data.path);
	json_number(json, "ticks", group->ticks);
	json_bool(json, "offsets", binary->problem && !(file->data.flags & FORMAT_FILE_NONE));
	json_format(json, "start", "\"0x%" PRIx64 "\"", start);
	json_number(json, "shift", shift);
	write_bars(json, group, start, shift, names);
	json_end(json);
}

void html_write_binaries(struct json *json, const struct rows *rows)
{
	struct groups groups = {
		.compare = compare_addresses,
		.differ = differ_in_file,
		.has = has_address,
	};
	struct intern names = {};

	make_groups(&groups, rows);
	json_line(json);
	json_array(json, "binaries", '\n');
	for (size_t i = 0; i < groups.nr && i < BINARIES_MAX; i++)
		write_binary(json, rows, &groups.groups[i], &names);
	json_end(json);
	html_write_names(json, "names", &names);
	intern_free(&names);
	free_groups(&groups);
}
