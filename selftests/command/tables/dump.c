// SPDX-License-Identifier: GPL-2.0
/*
 * dump FILE: prints the unwind table of a file: the names of other files, and the rows as offset,
 * kind, cfa and fp; and its size on standard error.
 * dump -r FILE OFFSET...: prints the rules at these offsets.
 * dump -p PROGRAM: prints for each table that profil record gives before it executes the program
 * the path of the file, or vdso. The session answers with the error $GIVE_ERRNO.
 * dump -m PID: the same, for the tables that it gives after the first record of a process, twice.
 * dump -c BYTES FILE...: takes the tables from a cache of this size, or makes and adds them.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "recording/spaces.h"
#include "recording/table_cache.h"
#include "recording/tables.h"

static const char *const kinds[] = { "none", "outermost", "end", "sp", "fp", "indirect_sp",
	"indirect", "signal", "register"
};

static void print_rule(const struct profil_unwind_rule *rule)
{
	fputs(kinds[rule->kind], stdout);
	if (rule->number)
		printf("%u", rule->number);
	printf(" %d %d\n", rule->cfa, rule->fp);
}

/* Prints the path of the file, instead of giving its table to a session. */
static int print_given(void *data, const struct profil_unwind *table)
{
	char self[32], path[PATH_MAX] = "vdso";
	const char *number = getenv("GIVE_ERRNO");
	ssize_t len;

	if (!(table->flags & PROFIL_UNWIND_VDSO)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", table->fd);
		len = readlink(self, path, sizeof(path) - 1);
		if (len < 0)
			err(1, "readlink");
		path[len] = '\0';
	}
	puts(path);
	(void)data;
	errno = number ? atoi(number) : 0;
	return errno ? -1 : 0;
}

static const struct tables_use use = { .give = print_given, .max_rows = UNWIND_ROWS_MAX };

/* Sets the record of a tick in the first executable mapping of the process. */
static void make_record(struct profil_record *record, pid_t pid)
{
	unsigned long long start, end, offset, ino;
	FILE *maps = proc_open(pid, "maps");
	char *line = NULL;
	size_t size = 0;

	while (maps && getline(&line, &size, maps) > 0 &&
	       sscanf(line, "%llx-%llx r-x%*c %llx %x:%x %llu", &start, &end, &offset,
		      &record->major, &record->minor, &ino) != 6)
		;
	if (!maps)
		err(1, "%d", pid);
	fclose(maps);
	free(line);
	record->flags = PROFIL_RECORD_MAPPED | PROFIL_RECORD_FILE;
	record->time = clock_ns(CLOCK_MONOTONIC);
	record->pid = pid;
	record->space = 1;
	record->pc = start;
	record->start = start;
	record->end = end;
	record->offset = offset;
	record->ino = ino;
	record->generation = 7;
}

static void print_process(pid_t pid)
{
	struct tables *tables = tables_new(&use);
	struct spaces *spaces = spaces_new();
	struct profil_record record = {};
	struct space *space;

	make_record(&record, pid);
	space = spaces_get(spaces, &record);
	space_read(spaces, space, &record);
	if (!space->nr)
		errx(1, "no mapping");
	tables_add_space(tables, space);
	tables_add_space(tables, space);
	/* Another file has got the number of the inode. */
	puts("again");
	space->mappings[0]->generation = 8;
	tables_add_mapped(tables, space->mappings[0], -1);
	tables_add_mapped(tables, space->mappings[0], -1);
	spaces_free(spaces);
	tables_free(tables);
}

static void print_program(const char *program)
{
	struct tables *tables = tables_new(&use);
	struct tables_stats stats;

	tables_add_vdso(tables);
	tables_add_program(tables, program);
	/* All files are known now. */
	tables_add_program(tables, program);
	stats = tables_stats(tables);
	printf("given %llu, refused %llu, late %llu\n", (unsigned long long)stats.given,
	       (unsigned long long)stats.refused, (unsigned long long)stats.late);
	tables_free(tables);
}

static void print_table(const struct unwind_table *table)
{
	const char *name = NULL;
	u32 row = 0;

	while ((name = unwind_table_name(table, name)))
		printf("name %s\n", name);
	for (u32 block = 0; block < table->nr_blocks; block++) {
		const u32 end = block + 1 < table->nr_blocks ? table->blocks[block + 1] :
				table->nr_rows;

		for (; row < end; row++) {
			printf("%x ", block * PROFIL_UNWIND_BLOCK + (table->rows[row] >> 16));
			print_rule(&table->rules[table->rows[row] & 0xffff]);
		}
	}
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static void print_cached(const char *path, struct table_cache *cache)
{
	struct unwind_table table;
	struct table_key key;
	int fd = open_file(path);

	if (!cache || !table_key_of_file(&key, fd)) {
		puts("not cached");
	} else if (table_cache_get(cache, &key, &table)) {
		printf("found %u rows\n", table.nr_rows);
		unwind_table_free(&table);
	} else if (unwind_table_make(&table, fd)) {
		table_cache_put(cache, &key, &table);
		printf("made %u rows\n", table.nr_rows);
		unwind_table_free(&table);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	struct profil_unwind_rule rule;
	struct table_cache *cache;
	struct unwind_table table;
	u64 start;

	if (argc == 3 && !strcmp(argv[1], "-p")) {
		print_program(argv[2]);
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "-m")) {
		print_process(atoi(argv[2]));
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "-c")) {
		cache = table_cache_open(strtoull(argv[2], NULL, 0));
		for (int i = 3; i < argc; i++)
			print_cached(argv[i], cache);
		table_cache_close(cache);
		return 0;
	}
	if (argc != 2 && (argc < 3 || strcmp(argv[1], "-r")))
		errx(2, "usage: dump FILE | -r FILE OFFSET... | -p PROGRAM | -m PID |\n"
			"       -c BYTES FILE...");
	start = clock_ns(CLOCK_MONOTONIC);
	if (!unwind_table_make(&table, open_file(argv[argc > 2 ? 2 : 1])))
		errx(1, "no table");
	if (argc == 2) {
		print_table(&table);
		fprintf(stderr, "%u rows, %u rules, %zu bytes, %.1f ms\n", table.nr_rows,
			table.nr_rules, table.size, (clock_ns(CLOCK_MONOTONIC) - start) / 1e6);
	}
	for (int i = 3; i < argc; i++) {
		rule = unwind_table_rule(&table, strtoull(argv[i], NULL, 0));
		print_rule(&rule);
	}
	unwind_table_free(&table);
	return 0;
}
