// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil report: a flat profile
 *
 * Each sample becomes a row, rows that do not differ in what is sorted by become one, and those are
 * printed by their ticks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "recording/accounting.h"
#include "commands/command.h"
#include "recording/recording.h"
#include "symbols/symbols.h"
#include "output/escape.h"

#define NS_PER_S 1000000000ULL

/* Columns of names that others follow are not wider than this. */
#define WIDTH_MAX 56
#define COMMAND_MAX 500
/* As many binaries without symbols are named, and why. */
#define REASONS_MAX 5

#define UNKNOWN "[unknown]"
#define JIT "[jit]"
#define KEYS_MAX 5

/**
 * struct binary_info - What became of a file of the recording
 * @state: What it was found to be.
 * @label: Its name in the report.
 * @ticks: Ticks in it.
 */
struct binary_info {
	enum binary_state state;
	const char *label;
	u64 ticks;
};

/* @tried: It was looked for. */
struct jit_info {
	struct jit *jit;
	bool tried;
};

/**
 * struct row - A line of the report
 * @user: User ticks.
 * @system: System ticks.
 * @symbol: The function, or NULL.
 * @file: The file, or NULL if that is not known.
 * @binary: What the binary is called: path of the file, or a name in brackets.
 * @label: What it is called in print.
 * @offset: Without @symbol: where in the file.
 * @process: The process, or thread; NULL if that is not known.
 */
struct row {
	u64 user;
	u64 system;
	const struct symbol *symbol;
	const struct recording_file *file;
	const char *binary;
	const char *label;
	u64 offset;
	const struct recording_process *process;
};

struct report;

/**
 * struct key - What can be sorted by
 * @name: As it is asked for.
 * @title: Of its column.
 * @compare: The order of rows, and whether they are to be one.
 * @print: What stands in the column.
 */
struct key {
	const char *name;
	const char *title;
	int (*compare)(const struct row *a, const struct row *b, const struct report *report);
	void (*print)(FILE *out, const struct row *row);
};

struct report {
	const char *path;
	bool demangle;
	u64 lines;
	const struct key *keys[KEYS_MAX];
	size_t nr_keys;
	bool by_binary;
	bool by_thread;

	struct recording *recording;
	struct symbols *symbols;
	struct binary_info *binaries;	/* one for each file of the recording */
	struct jit_info *jits;		/* one for each process */
	struct row *rows;
	size_t nr_rows;
	u64 ticks;
	u64 user_in_files;
	u64 user_in_code;		/* that a program made, and gave names to */
	u64 user_in_memory;
	u64 user_in_symbols;
};

static int compare_numbers(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

static const char *row_name(const struct row *row)
{
	return row->symbol ? row->symbol->name : NULL;
}

/* Names first, then places in files. */
static int compare_symbol(const struct row *a, const struct row *b, const struct report *report)
{
	const char *name_a = row_name(a), *name_b = row_name(b);
	int order;

	if (!name_a != !name_b)
		return name_a ? -1 : 1;
	order = name_a ? strcmp(name_a, name_b) : strcmp(a->binary, b->binary);
	/* Functions of one binary that have the same name. */
	if (!order && a->symbol && b->symbol && (report->by_binary || !name_a))
		order = compare_numbers(a->symbol->start, b->symbol->start);
	if (!order && !name_a)
		order = !!a->symbol - !!b->symbol;
	if (!order && !name_a && !a->symbol)
		order = compare_numbers(a->offset, b->offset);
	return order;
}

static void print_symbol(FILE *out, const struct row *row)
{
	if (row_name(row)) {
		escape_print(out, row_name(row));
		return;
	}
	escape_print(out, row->label);
	if (row->symbol)
		fprintf(out, "+0x%" PRIx64 "..0x%" PRIx64, row->symbol->start, row->symbol->end);
	else
		fprintf(out, "+0x%" PRIx64, row->offset);
}

static int compare_dso(const struct row *a, const struct row *b, const struct report *report)
{
	(void)report;
	return strcmp(a->binary, b->binary);
}

static void print_dso(FILE *out, const struct row *row)
{
	escape_print(out, row->label);
}

static int compare_ids(const struct recording_process *a, const struct recording_process *b)
{
	return compare_numbers(a ? a->data.id : 0, b ? b->data.id : 0);
}

static const struct recording_process *process_of(const struct row *row)
{
	return row->process ? row->process->process : NULL;
}

static int compare_process(const struct row *a, const struct row *b, const struct report *report)
{
	(void)report;
	return compare_ids(process_of(a), process_of(b));
}

static void print_process(FILE *out, const struct row *row)
{
	const struct recording_process *process = process_of(row);

	escape_print(out, process ? process->data.comm : UNKNOWN);
	if (process)
		fprintf(out, " %d", process->data.pid);
}

static int compare_thread(const struct row *a, const struct row *b, const struct report *report)
{
	(void)report;
	return compare_ids(a->process, b->process);
}

static void print_thread(FILE *out, const struct row *row)
{
	escape_print(out, row->process ? row->process->data.comm : UNKNOWN);
	if (row->process)
		fprintf(out, " %d", row->process->data.tid);
}

static const char *comm_of(const struct row *row)
{
	return row->process ? row->process->data.comm : UNKNOWN;
}

static int compare_comm(const struct row *a, const struct row *b, const struct report *report)
{
	(void)report;
	return strcmp(comm_of(a), comm_of(b));
}

static void print_comm(FILE *out, const struct row *row)
{
	escape_print(out, comm_of(row));
}

static const struct key keys[KEYS_MAX] = {
	{ "symbol", "symbol", compare_symbol, print_symbol },
	{ "dso", "binary", compare_dso, print_dso },
	{ "process", "process", compare_process, print_process },
	{ "thread", "thread", compare_thread, print_thread },
	{ "comm", "command", compare_comm, print_comm },
};

static int compare_rows(const void *a, const void *b, void *data)
{
	const struct report *report = data;
	int order = 0;

	for (size_t i = 0; i < report->nr_keys && !order; i++)
		order = report->keys[i]->compare(a, b, report);
	return order;
}

static u64 row_ticks(const struct row *row)
{
	return ticks_add(row->user, row->system);
}

static int compare_ticks(const void *a, const void *b, void *data)
{
	int order = compare_numbers(row_ticks(b), row_ticks(a));

	return order ? order : compare_rows(a, b, data);
}

/* Options */

static void usage(FILE *out)
{
	fputs("usage: profil report [OPTION...]\n"
	      "\n"
	      "  -i, --input FILE    the recording (" COMMAND_DATA "); - for standard input\n"
	      "  -s, --sort KEYS     a line for each: symbol, dso, process, thread, comm, or\n"
	      "                      several of them with commas between (symbol,dso)\n"
	      "  -n, --lines N       the first N lines\n"
	      "      --no-demangle   names of functions as the linker has them\n"
	      "  -h, --help\n", out);
}

static bool parse_keys(struct report *report, char *names)
{
	char *name;
	size_t i;

	report->nr_keys = 0;
	while ((name = strsep(&names, ","))) {
		for (i = 0; i < KEYS_MAX && strcmp(name, keys[i].name); i++)
			;
		if (i == KEYS_MAX) {
			fprintf(stderr, "profil report: cannot sort by \"%s\"; --help tells\n",
				name);
			return false;
		}
		for (size_t j = 0; j < report->nr_keys; j++) {
			if (report->keys[j] == &keys[i]) {
				fprintf(stderr, "profil report: sort by %s twice?\n", name);
				return false;
			}
		}
		report->keys[report->nr_keys++] = &keys[i];
	}
	return true;
}

static bool parse_lines(struct report *report, const char *text)
{
	char *end;

	errno = 0;
	report->lines = strtoull(text, &end, 10);
	if (errno || *end || end == text || text[0] == '-' || !report->lines) {
		fprintf(stderr, "profil report: -n wants a number of lines, not \"%s\"\n", text);
		return false;
	}
	return true;
}

/* -1 to go on, or the exit status. */
static int parse(struct report *report, int argc, char **argv)
{
	static const struct option options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "sort", required_argument, NULL, 's' },
		{ "lines", required_argument, NULL, 'n' },
		{ "no-demangle", no_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	char name[] = "profil report", sort[] = "symbol,dso";
	int option;

	parse_keys(report, sort);
	/* getopt_long() complains in this name. */
	argv[0] = name;
	optind = 0;
	while ((option = getopt_long(argc, argv, "i:s:n:h", options, NULL)) >= 0) {
		switch (option) {
		case 'i':
			report->path = optarg;
			break;
		case 's':
			if (!parse_keys(report, optarg))
				return COMMAND_USAGE;
			break;
		case 'n':
			if (!parse_lines(report, optarg))
				return COMMAND_USAGE;
			break;
		case 'm':
			report->demangle = false;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return COMMAND_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "profil report: \"%s\": a recording is named by -i\n",
			argv[optind]);
		return COMMAND_USAGE;
	}
	return -1;
}

/* What is looked up */

static int compare_labels(const void *a, const void *b)
{
	const struct recording_file *x = *(struct recording_file *const *)a;
	const struct recording_file *y = *(struct recording_file *const *)b;
	int order = strcmp(basename(x->data.path), basename(y->data.path));

	return order ? order : strcmp(x->data.path, y->data.path);
}

/* The last part of a path, unless another file's is the same. */
static bool name_binaries(struct report *report)
{
	struct recording *recording = report->recording;
	size_t nr = recording->nr_files;
	struct recording_file **files = calloc(nr + 1, sizeof(*files));

	if (!files)
		return false;
	for (size_t i = 0; i < nr; i++)
		files[i] = &recording->files[i];
	qsort(files, nr, sizeof(*files), compare_labels);
	for (size_t i = 0, end; i < nr; i = end) {
		const char *name = basename(files[i]->data.path);
		bool whole = !*name || (files[i]->data.flags & FORMAT_FILE_NONE);

		for (end = i; end < nr && !strcmp(basename(files[end]->data.path), name); end++)
			whole |= strcmp(files[end]->data.path, files[i]->data.path) != 0;
		for (size_t j = i; j < end; j++)
			report->binaries[files[j] - recording->files].label =
				whole ? files[j]->data.path : name;
	}
	free(files);
	return true;
}

static struct binary_info *info_of(const struct report *report, const struct recording_file *file)
{
	return &report->binaries[file - report->recording->files];
}

static u64 start_of(const struct recording *recording)
{
	/* One that was attached may have made its code before. */
	return recording->meta.flags & FORMAT_ATTACHED ? 0 : recording->meta.start_time;
}

static const struct symbol *find_jit(struct report *report, const struct recording_sample *sample)
{
	struct recording *recording = report->recording;
	struct recording_process *process = sample->process;
	struct jit_info *info;
	u64 address = sample->offset;

	if (!process || process->data.pid <= 0)
		return NULL;
	if (sample->file && !(sample->file->data.flags & FORMAT_FILE_NONE)) {
		if (!sample->bias)
			return NULL;
		address += sample->bias;
	}
	process = process->process;
	info = &report->jits[process - recording->processes];
	if (!info->tried) {
		info->tried = true;
		info->jit = jit_open(report->symbols, process->data.pid, recording->owner,
				     start_of(recording));
	}
	return info->jit ? jit_find(info->jit, address) : NULL;
}

/* The vDSO is an image, wherever it lies. */
static bool is_vdso(const struct recording_sample *sample)
{
	return sample->file && sample->file->data.flags & FORMAT_FILE_NONE &&
	       !strcmp(sample->file->data.path, "[vdso]") && sample->bias;
}

static u64 offset_of(const struct recording_sample *sample)
{
	return is_vdso(sample) ? sample->offset - sample->bias : sample->offset;
}

/* The [vdso] of 32-bit programs, which have all addresses below, is not ours. */
static bool is_narrow(const struct recording_sample *sample)
{
	return sample->file && sample->file->data.flags & FORMAT_FILE_NONE &&
	       sample->offset <= UINT32_MAX;
}

static void add_row(struct report *report, const struct recording_sample *sample,
		    struct binary *binary)
{
	struct row *row = &report->rows[report->nr_rows++];

	*row = (struct row){
		.user = sample->user,
		.system = sample->system,
		.file = sample->file,
		.binary = sample->file ? sample->file->data.path : UNKNOWN,
		.label = sample->file ? info_of(report, sample->file)->label : UNKNOWN,
		.offset = offset_of(sample),
		.process = sample->process,
	};
	if (binary && binary_state(binary) == BINARY_FINE && !is_narrow(sample)) {
		row->symbol = binary_find(binary, row->offset);
	} else {
		row->symbol = find_jit(report, sample);
		if (row->symbol) {
			row->binary = JIT;
			row->label = JIT;
		}
	}
	report->ticks = ticks_add(report->ticks, row_ticks(row));
	if (!strcmp(row->binary, JIT))
		report->user_in_code = ticks_add(report->user_in_code, row->user);
	else if (row->file && (!(row->file->data.flags & FORMAT_FILE_NONE) || is_vdso(sample)))
		report->user_in_files = ticks_add(report->user_in_files, row->user);
	else if (row->file)
		report->user_in_memory = ticks_add(report->user_in_memory, row->user);
	if (row_name(row))
		report->user_in_symbols = ticks_add(report->user_in_symbols, row->user);
}

/* Samples are together by file: one binary is open at a time. */
static bool make_rows(struct report *report)
{
	struct recording *recording = report->recording;
	struct binary *binary = NULL;
	struct recording_file *file = NULL;
	struct utsname name;
	bool this_kernel;

	this_kernel = !uname(&name) && !strcmp(name.release, recording->meta.release);
	for (size_t i = 0; i < recording->nr_samples; i++) {
		const struct recording_sample *sample = &recording->samples[i];
		struct binary_info *info;

		if (sample->file != file) {
			binary_close(binary);
			binary = NULL;
			file = sample->file;
			if (file) {
				binary = binary_open(report->symbols, &file->data, this_kernel);
				if (!binary)
					return false;
			}
		}
		add_row(report, sample, binary);
		if (!file)
			continue;
		info = info_of(report, file);
		info->state = binary_state(binary);
		info->ticks = ticks_add(info->ticks, ticks_add(sample->user, sample->system));
	}
	binary_close(binary);
	return true;
}

static void merge_rows(struct report *report)
{
	struct row *to = report->rows;

	if (!report->nr_rows)
		return;
	qsort_r(report->rows, report->nr_rows, sizeof(*report->rows), compare_rows, report);
	for (struct row *from = to + 1; from < report->rows + report->nr_rows; from++) {
		if (compare_rows(to, from, report)) {
			*++to = *from;
			continue;
		}
		to->user = ticks_add(to->user, from->user);
		to->system = ticks_add(to->system, from->system);
	}
	report->nr_rows = to + 1 - report->rows;
	qsort_r(report->rows, report->nr_rows, sizeof(*report->rows), compare_ticks, report);
}

static bool build(struct report *report)
{
	struct recording *recording = report->recording;

	report->symbols = symbols_new(report->demangle);
	report->binaries = calloc(recording->nr_files + 1, sizeof(*report->binaries));
	report->jits = calloc(recording->nr_processes + 1, sizeof(*report->jits));
	report->rows = calloc(recording->nr_samples + 1, sizeof(*report->rows));
	if (!report->symbols || !report->binaries || !report->jits || !report->rows ||
	    !name_binaries(report) || !make_rows(report))
		return false;
	merge_rows(report);
	return true;
}

/* What is printed */

/* As a shell would take it. */
static void print_arg(const char *arg)
{
	bool quote = !*arg || arg[strcspn(arg, " \t\n'\"\\$`&|;<>()*?[]{}#~!")];
	const char *end;
	char *part;

	if (!quote) {
		escape_print(stdout, arg);
		return;
	}
	putchar('\'');
	for (; *arg; arg = *end ? end + 1 : end) {
		end = strchrnul(arg, '\'');
		part = strndup(arg, end - arg);
		if (part)
			escape_print(stdout, part);
		free(part);
		if (*end)
			printf("'\\''");
	}
	putchar('\'');
}

static void print_command(const struct report *report)
{
	const struct format_meta *meta = &report->recording->meta;
	const char *arg = meta->args;
	size_t width = 0;

	printf("command:");
	if (!meta->nr_args)
		printf(" none; a process that ran already");
	for (u32 i = 0; i < meta->nr_args; i++) {
		width += escape_width(arg) + 1;
		if (width > COMMAND_MAX) {
			printf(" ...");
			break;
		}
		putchar(' ');
		print_arg(arg);
		arg += strlen(arg) + 1;
	}
	putchar('\n');
}

static void print_end(const struct recording *recording)
{
	int status = recording->end.status;

	if (!recording->ended) {
		printf(", %s", recording->busy ? "still being recorded" : "recording was cut off");
		return;
	}
	switch (recording->end.reason) {
	case FORMAT_END_COMMAND:
		if (WIFEXITED(status))
			printf(", exit status %d", WEXITSTATUS(status));
		else if (WIFSIGNALED(status))
			printf(", killed by signal %d", WTERMSIG(status));
		break;
	case FORMAT_END_SIGNAL:
		printf(", ended by a signal");
		break;
	case FORMAT_END_DURATION:
		printf(", ended after the duration");
		break;
	case FORMAT_END_TARGETS:
		printf(", ended with the last process");
		break;
	}
}

static void print_circumstances(const struct report *report)
{
	const struct recording *recording = report->recording;
	const struct format_meta *meta = &recording->meta;
	u64 end = recording->ended ? recording->end.time : recording->account.time;
	time_t seconds = meta->start_time / NS_PER_S;
	char when[64];
	struct tm tm;

	printf("on ");
	escape_print(stdout, *meta->hostname ? meta->hostname : UNKNOWN);
	printf(" (Linux ");
	escape_print(stdout, *meta->release ? meta->release : UNKNOWN);
	printf(")");
	if (meta->start_time && localtime_r(&seconds, &tm) &&
	    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
		printf(", %s", when);
	if (end > meta->start_monotonic)
		printf(", %.1f s", (double)(end - meta->start_monotonic) / NS_PER_S);
	if (meta->tick_ns)
		printf(", %.5g Hz", (double)NS_PER_S / meta->tick_ns);
	if (recording->account.peak_locked)
		printf(", %" PRIu64 " KiB locked", recording->account.peak_locked / 1024);
	print_end(recording);
	putchar('\n');
}

static double percent(u64 part, u64 whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static void print_resolved(const struct report *report)
{
	u64 user = report->recording->user;

	if (!user)
		return;
	printf("user ticks: %.2f%% in files, ", percent(report->user_in_files, user));
	if (report->user_in_code)
		printf("%.2f%% in code made at run time, ", percent(report->user_in_code, user));
	printf("%.2f%% in other memory; %.2f%% in functions with a name\n",
	       percent(report->user_in_memory, user), percent(report->user_in_symbols, user));
}

static int compare_infos(const void *a, const void *b)
{
	const struct binary_info *x = *(struct binary_info *const *)a;
	const struct binary_info *y = *(struct binary_info *const *)b;

	return compare_numbers(y->ticks, x->ticks);
}

/* Of binaries that are not what they were: how many, how much, and which most of all. */
static bool print_state(const struct report *report, enum binary_state state, const char *what)
{
	size_t nr = 0, all = report->recording->nr_files;
	struct binary_info **infos = calloc(all + 1, sizeof(*infos));
	u64 ticks = 0;

	if (!infos)
		return false;
	for (size_t i = 0; i < all; i++) {
		struct binary_info *info = &report->binaries[i];

		if (!info->ticks || info->state != state)
			continue;
		infos[nr++] = info;
		ticks = ticks_add(ticks, info->ticks);
	}
	qsort(infos, nr, sizeof(*infos), compare_infos);
	for (size_t i = 0; i < nr && i < REASONS_MAX; i++) {
		printf(i ? ", " : "note: offsets only, %s, %.2f%%: ", what,
		       percent(ticks, report->ticks));
		escape_print(stdout, infos[i]->label);
	}
	if (nr > REASONS_MAX)
		printf(" and %zu more", nr - REASONS_MAX);
	if (nr)
		putchar('\n');
	free(infos);
	return true;
}

static bool print_notes(const struct report *report)
{
	const struct recording *recording = report->recording;
	const struct format_stats *user = &recording->account.user;
	const struct format_stats *system = &recording->account.system;
	u64 counted = ticks_add(user->ticks, system->ticks);

	if (recording->error)
		printf("note: the file ends at byte %" PRIu64 ": %s\n", recording->error_offset,
		       recording->error);
	if (counted > report->ticks)
		printf("note: %" PRIu64 " of %" PRIu64 " ticks have no line below\n",
		       counted - report->ticks, counted);
	else if (counted < report->ticks)
		printf("note: %" PRIu64 " more ticks below than the statistics tell of\n",
		       report->ticks - counted);
	return print_state(report, BINARY_CHANGED, "changed since") &&
	       print_state(report, BINARY_GONE, "gone") &&
	       print_state(report, BINARY_UNREADABLE, "not to be read");
}

/* A column's text; to be freed. */
static char *cell(const struct key *key, const struct row *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	key->print(out, row);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static void pad(size_t width, size_t to)
{
	if (width < to)
		printf("%*s", (int)(to - width), "");
}

static bool print_row(const struct report *report, const struct row *row, const size_t *widths)
{
	u64 ticks = row_ticks(row);
	double share = report->ticks ? (double)ticks / report->ticks : 0;
	double error = report->ticks ? sqrt(share * (1 - share) / report->ticks) : 0;

	printf("%7.2f%% %5.2f%% %9" PRIu64 " %9" PRIu64, 100 * share, 100 * error, row->user,
	       row->system);
	for (size_t i = 0; i < report->nr_keys; i++) {
		char *text = cell(report->keys[i], row);

		if (!text)
			return false;
		/* It has been made fit to be printed. */
		printf("  %s", text);
		if (i + 1 < report->nr_keys)
			pad(escape_width(text), widths[i]);
		free(text);
	}
	putchar('\n');
	return true;
}

static bool print_table(const struct report *report)
{
	size_t nr = report->nr_rows, widths[KEYS_MAX];
	u64 rest = 0;

	if (report->lines && report->lines < nr)
		nr = report->lines;
	for (size_t i = 0; i < report->nr_keys; i++) {
		widths[i] = strlen(report->keys[i]->title);
		for (size_t j = 0; j < nr; j++) {
			char *text = cell(report->keys[i], &report->rows[j]);
			size_t width;

			if (!text)
				return false;
			width = escape_width(text);
			if (width > widths[i])
				widths[i] = width < WIDTH_MAX ? width : WIDTH_MAX;
			free(text);
		}
	}
	printf("\n%8s %6s %9s %9s", "share", "+-", "user", "system");
	for (size_t i = 0; i < report->nr_keys; i++) {
		printf("  %s", report->keys[i]->title);
		if (i + 1 < report->nr_keys)
			pad(strlen(report->keys[i]->title), widths[i]);
	}
	putchar('\n');
	for (size_t i = 0; i < nr; i++)
		if (!print_row(report, &report->rows[i], widths))
			return false;
	for (size_t i = nr; i < report->nr_rows; i++)
		rest = ticks_add(rest, row_ticks(&report->rows[i]));
	if (nr < report->nr_rows)
		printf("%7.2f%%  in %zu more\n", percent(rest, report->ticks),
		       report->nr_rows - nr);
	return true;
}

static bool print(const struct report *report)
{
	accounting_print(stdout, &report->recording->account, report->recording->meta.modes);
	print_command(report);
	print_circumstances(report);
	print_resolved(report);
	return print_notes(report) && print_table(report);
}

static void clean(struct report *report)
{
	for (size_t i = 0; report->jits && i < report->recording->nr_processes; i++)
		jit_close(report->jits[i].jit);
	free(report->jits);
	free(report->rows);
	free(report->binaries);
	symbols_free(report->symbols);
	recording_free(report->recording);
}

int command_report(int argc, char **argv)
{
	struct report report = { .path = COMMAND_DATA, .demangle = true };
	const char *error;
	int status;

	status = parse(&report, argc, argv);
	if (status >= 0)
		return status;
	for (size_t i = 0; i < report.nr_keys; i++) {
		report.by_binary |= !strcmp(report.keys[i]->name, "dso");
		report.by_thread |= !strcmp(report.keys[i]->name, "thread");
	}
	report.recording = recording_read(report.path, &error);
	if (!report.recording) {
		fprintf(stderr, "profil report: %s: %s\n", report.path, error);
		return COMMAND_FAILED;
	}
	if (report.by_thread && !(report.recording->meta.flags & FORMAT_PER_THREAD)) {
		fprintf(stderr, "profil report: %s: recorded without --per-thread\n", report.path);
		status = COMMAND_FAILED;
	} else if (!build(&report) || !print(&report)) {
		fprintf(stderr, "profil report: %s\n", strerror(ENOMEM));
		status = COMMAND_FAILED;
	} else {
		status = 0;
	}
	clean(&report);
	return status;
}
