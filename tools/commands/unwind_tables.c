// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * profil unwind-tables: writes the unwind tables of files that are open
 *
 * libprofil-pprof runs this: see userlib/pprof/tables.c, which has the format of the output.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>

#include "commands/command.h"
#include "recording/tables.h"
#include "symbols/unwind_table.h"

/* The caller gives the table to its session. */
static int write_table(void *data, const struct profil_unwind *table)
{
	FILE *out = data;

	if (fwrite(table, sizeof(*table), 1, out) == 1 &&
	    fwrite((void *)(uintptr_t)table->rules, sizeof(struct profil_unwind_rule),
		   table->nr_rules, out) == table->nr_rules &&
	    fwrite((void *)(uintptr_t)table->blocks, sizeof(u32), table->nr_blocks, out) ==
		    table->nr_blocks &&
	    fwrite((void *)(uintptr_t)table->rows, sizeof(u32), table->nr_rows, out) ==
		    table->nr_rows &&
	    !fflush(out))
		return 0;
	errno = EOPNOTSUPP;
	return -1;
}

static int run(int argc, char **argv)
{
	const struct tables_use use = {
		.give = write_table,
		.data = stdout,
		.max_rows = UNWIND_ROWS_MAX,
	};
	int status = command_parse(&command_unwind_tables, argc, argv, NULL);
	struct unwind_table table;
	struct tables *tables;
	sigset_t none;
	u64 fd;

	if (status >= 0)
		return status;
	/* The thread of libprofil-pprof blocks all signals. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	tables = tables_new(&use);
	for (int i = optind; i < argc; i++) {
		if (!strcmp(argv[i], "vdso"))
			tables_add_vdso(tables);
		else if (command_parse_number(argv[i], INT32_MAX, &fd) &&
			 tables_add_file(tables, fd, &table))
			unwind_table_free(&table);
	}
	tables_free(tables);
	return 0;
}

static const struct command_option options[] = { COMMAND_HELP };

const struct command command_unwind_tables = {
	.name = "unwind-tables",
	.usage = "[OPTION...] DESCRIPTOR...",
	.help = "Writes the unwind tables of files that are open. libprofil-pprof runs this.",
	.options = options,
	.run = run,
};
