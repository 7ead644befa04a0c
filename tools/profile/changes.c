// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See changes.h. Suppose that a function has n ticks in the two recordings together, and that it
 * has not changed. Then chance decides how many of these ticks are in the second recording. For CPU
 * times, this number has a binomial distribution. For shares, where the totals of the recordings
 * are given, it has a hypergeometric distribution. Both are exact for few ticks, too, and for
 * different frequencies.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "profile/chains.h"
#include "profile/changes.h"
#include "profile/intern.h"

/* Terms that are smaller than their sum multiplied by this are left out. */
#define PRECISION (1 / 1e17)
/* The search for a number of ticks ends here. */
#define TICKS_MAX 0x1p32

/* ---- the test of one function ---- */

/**
 * struct test - The test of a function
 * @ticks: Its ticks in each recording; weighted ticks are replaced by equal ones with this error.
 * @unit: The CPU time in s, or the share, of one of these ticks.
 * @all: For shares, the number of all ticks of each recording, in the same unit.
 */
struct test {
	double ticks[2];
	double unit[2];
	double all[2];
	bool shares;
};

/* Without libm, the command starts faster. */
static double round_down(double value)
{
	return value < 0x1p62 ? (double)(u64)value : value;
}

/* Returns a weight: equal ticks of this weight have the same sum and the same error. */
static double mean_weight(u64 ticks, double squares)
{
	return ticks && squares > 0 ? squares / ticks : 1;
}

static struct test make_test(const struct changes *changes, const struct change *change)
{
	struct test test = { .shares = changes->shares };

	for (int i = 0; i < 2; i++) {
		const struct rows *rows = changes->rows[i];
		double weight = mean_weight(change->ticks[i], change->squares[i]);
		double others = mean_weight(rows->ticks - change->ticks[i],
					    rows->squares - change->squares[i]);

		/* The error of a share includes the error of the other ticks. */
		if (!change->ticks[i] || (test.shares && weight < others))
			weight = others;
		test.ticks[i] = round_down(change->ticks[i] / weight + 0.5);
		test.all[i] = round_down(rows->ticks / weight + 0.5);
		test.unit[i] = test.shares ? 1 / test.all[i] :
			       weight * rows->recording->meta.tick_ns / NS_PER_S;
	}
	return test;
}

/* Returns the probability of k + 1 ticks in the second recording, divided by that of k ticks. */
static double ratio(const struct test *test, double k)
{
	double nr = test->ticks[0] + test->ticks[1], odds = test->unit[0] / test->unit[1];

	if (test->shares)
		odds = (test->all[1] - k) / (test->all[0] - nr + k + 1);
	return (nr - k) / (k + 1) * odds;
}

/*
 * Returns the probability of more ticks in the second recording (@step is 1), or of fewer ticks
 * (@step is -1), divided by the probability of its actual number. Only the terms within a few
 * standard deviations are added: as many as the square root of the number of ticks.
 */
static double sum_terms(const struct test *test, int step)
{
	double sum = 0, term = 1;

	for (double k = test->ticks[1]; sum <= __DBL_MAX__; k += step) {
		term *= step > 0 ? ratio(test, k) : 1 / ratio(test, k - 1);
		if (!(term > sum * PRECISION))
			break;
		sum += term;
	}
	return sum;
}

/* Returns the probability of a difference of at least this size, of any sign. */
static double chance_of(const struct test *test)
{
	double more = sum_terms(test, 1), fewer = sum_terms(test, -1);
	double chance = 2 * (1 + (more < fewer ? more : fewer)) / (1 + more + fewer);

	return chance < 1 ? chance : 1;
}

/* ---- all functions ---- */

static int compare_names(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return strcmp(x->row.function.label, y->row.function.label) ?:
	       strcmp(x->row.function.name, y->row.function.name);
}

static int compare_chances(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return (x->chance > y->chance) - (x->chance < y->chance);
}

static double size_of(const struct change *change)
{
	return change->difference < 0 ? -change->difference : change->difference;
}

static int compare_sizes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return (x->chance > CHANGES_CHANCE) - (y->chance > CHANGES_CHANCE) ?:
	       (size_of(x) < size_of(y)) - (size_of(x) > size_of(y)) ?: compare_names(a, b);
}

/* Adds a function without ticks. */
static struct change *add_function(struct changes *changes, const struct row *row)
{
	struct change *change = &changes->changes[changes->nr++];

	*change = (struct change){ .row = *row };
	/* A program that was built anew may be in another directory. */
	if (*change->row.function.label == '/' && *basename(change->row.function.label))
		change->row.function.label = basename(change->row.function.label);
	return change;
}

static void count_row(struct change *change, int side, const struct row *row)
{
	change->ticks[side] = ticks_add(change->ticks[side], row_ticks(row));
	change->squares[side] += row->squares;
}

/*
 * Sets, for each of @nr functions, the index of the first one with the same names. @first: the
 * change of function 0
 */
static void find_same(size_t *same, const struct change *first, size_t nr)
{
	struct intern names = {};
	size_t *first_of = xcalloc(nr + 1, sizeof(*first_of)), name;

	for (size_t i = 0; i < nr; i++) {
		const struct profile_function *function = &first[i].row.function;

		name = intern_format(&names, "%s\n%s", function->label, function->name);
		if (!first_of[name])
			first_of[name] = i + 1;
		same[i] = first_of[name] - 1;
	}
	free(first_of);
	intern_free(&names);
}

/* Adds the functions of all chains. A chain can contain a function more than once. */
static void add_chains(struct changes *changes, int side)
{
	const struct rows *rows = changes->rows[side];
	const struct chains *chains = rows_chains(rows);
	struct change *first = &changes->changes[changes->nr];
	size_t *same = xcalloc(chains->nr_functions + 1, sizeof(*same));
	size_t *last = xcalloc(chains->nr_functions + 1, sizeof(*last));

	for (size_t i = 0; i < chains->nr_functions; i++)
		add_function(changes, &(struct row){ .function = *chains->functions[i] });
	find_same(same, first, chains->nr_functions);
	for (size_t i = 0; i < rows->nr_parts; i++) {
		const struct chain *chain = rows->parts[i].chain;

		for (size_t j = 0; j < chain->nr; j++) {
			const size_t function = same[chain->frames[j]->function->index];

			if (last[function] != i + 1)
				count_row(&first[function], side, &rows->parts[i]);
			last[function] = i + 1;
		}
	}
	free(same);
	free(last);
}

static void add_functions(struct changes *changes, int side)
{
	const struct rows *rows = changes->rows[side];

	if (changes->with_callees) {
		add_chains(changes, side);
		return;
	}
	for (size_t i = 0; i < rows->nr; i++)
		count_row(add_function(changes, &rows->rows[i]), side, &rows->rows[i]);
}

static size_t nr_functions(const struct changes *changes, int side)
{
	const struct rows *rows = changes->rows[side];

	return changes->with_callees ? rows_chains(rows)->nr_functions : rows->nr;
}

/* Adds up the functions with the same names. */
static void merge_functions(struct changes *changes)
{
	struct change *to = changes->changes, *end = to + changes->nr;

	qsort(to, changes->nr, sizeof(*to), compare_names);
	for (struct change *from = to + 1; from < end; from++) {
		if (compare_names(to, from)) {
			*++to = *from;
			continue;
		}
		for (int i = 0; i < 2; i++) {
			to->ticks[i] = ticks_add(to->ticks[i], from->ticks[i]);
			to->squares[i] += from->squares[i];
		}
	}
	changes->nr = to + 1 - changes->changes;
}

static void compute(const struct changes *changes, struct change *change)
{
	struct test test = make_test(changes, change);
	double variance = 0, error;

	for (int i = 0; i < 2; i++) {
		const struct rows *rows = changes->rows[i];
		double tick_s = (double)rows->recording->meta.tick_ns / NS_PER_S;

		if (changes->shares) {
			change->value[i] = share_of(rows, change->ticks[i]);
			error = share_error(rows, change->ticks[i]);
			variance += error * error;
		} else {
			change->value[i] = change->ticks[i] * tick_s;
			variance += change->squares[i] * tick_s * tick_s;
		}
	}
	change->difference = change->value[1] - change->value[0];
	change->error = sqrt(variance);
	change->chance = chance_of(&test);
}

/* Corrects the probabilities for the number of functions, by the method of Holm. */
static void correct(struct changes *changes)
{
	double least = 0;

	qsort(changes->changes, changes->nr, sizeof(*changes->changes), compare_chances);
	for (size_t i = 0; i < changes->nr; i++) {
		struct change *change = &changes->changes[i];

		change->chance *= changes->nr - i;
		if (change->chance < least)
			change->chance = least;
		if (change->chance > 1)
			change->chance = 1;
		least = change->chance;
		changes->nr_significant += change->chance <= CHANGES_CHANCE;
	}
}

void changes_make(struct changes *changes)
{
	const size_t nr = nr_functions(changes, 0) + nr_functions(changes, 1);

	changes->changes = xcalloc(nr + 1, sizeof(*changes->changes));
	changes->names = xcalloc(nr + 1, sizeof(*changes->names));
	if (!nr)
		return;
	add_functions(changes, 0);
	add_functions(changes, 1);
	merge_functions(changes);
	for (size_t i = 0; i < changes->nr; i++)
		compute(changes, &changes->changes[i]);
	correct(changes);
	qsort(changes->changes, changes->nr, sizeof(*changes->changes), compare_sizes);
	for (size_t i = 0; i < changes->nr; i++)
		changes->names[i] = changes->changes[i].row;
}

void changes_free(struct changes *changes)
{
	free(changes->changes);
	free(changes->names);
}

size_t changes_sensitivity(const struct changes *changes, double *value)
{
	double chance = CHANGES_CHANCE / changes->nr, low, high, max;
	size_t hottest = 0;
	struct test test;

	for (size_t i = 1; i < changes->nr; i++)
		if (changes->changes[i].value[0] + changes->changes[i].value[1] >
		    changes->changes[hottest].value[0] + changes->changes[hottest].value[1])
			hottest = i;
	test = make_test(changes, &changes->changes[hottest]);
	low = round_down(test.ticks[0] * test.unit[0] / test.unit[1]);
	max = changes->shares ? test.all[1] : TICKS_MAX;
	for (high = low + 1; high < max; high += high - low) {
		test.ticks[1] = high;
		if (chance_of(&test) <= chance)
			break;
	}
	high = high < max ? high : max;
	while (high - low > 1) {
		test.ticks[1] = round_down((low + high) / 2);
		*(chance_of(&test) <= chance ? &high : &low) = test.ticks[1];
	}
	test.ticks[1] = high;
	*value = high > low && chance_of(&test) <= chance ? high * test.unit[1] : NAN;
	return hottest;
}
