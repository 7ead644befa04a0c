// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See tables.h: the files of a program that will be executed.
 *
 * This looks for libraries as the dynamic loader does, but in fewer places. It need not find the
 * same files: a file that the program has not mapped costs memory, and one that is missing here is
 * found when the program has mapped it.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "recording/tables.h"
#include "symbols/files.h"

/* The maximum number of files of a program */
#define FILES_MAX	128
/* The kernel reads so much of the first line of a script. */
#define LINE_MAX_BYTES	256

static const char *const directories[] = {
	"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib",
	"/usr/lib",
};

/* The files that were found, of which the first ones were handled */
struct program {
	struct tables *tables;
	char *paths[FILES_MAX];
	size_t nr;
};

/* Adds a file. @path belongs to the program from then on. Returns false if it does not exist. */
static bool add_path(struct program *program, char *path)
{
	if (!path || program->nr == FILES_MAX || access(path, R_OK)) {
		free(path);
		return false;
	}
	for (size_t i = 0; i < program->nr; i++)
		if (!strcmp(program->paths[i], path)) {
			free(path);
			return true;
		}
	program->paths[program->nr++] = path;
	return true;
}

/* Looks for a library in a list of directories. @origin: the path of the file that has the list. */
static bool add_from_list(struct program *program, const char *name, const char *list,
			  const char *origin)
{
	const char *end, *slash = strrchr(origin, '/');
	const int origin_len = slash ? slash - origin : 0;
	bool found = false;

	for (; list && *list && !found; list = *end ? end + 1 : end) {
		const char *rest = list;

		end = strchrnul(list, ':');
		if (!strncmp(list, "$ORIGIN", 7))
			rest += 7;
		else if (!strncmp(list, "${ORIGIN}", 9))
			rest += 9;
		found = add_path(program, xasprintf("%.*s%.*s/%s", rest > list ? origin_len : 0,
						    origin, (int)(end - rest), rest, name));
	}
	return found;
}

static void add_library(struct program *program, const char *name, const char *run_path,
			const char *origin)
{
	if (strchr(name, '/')) {
		add_path(program, xstrdup(name));
		return;
	}
	if (add_from_list(program, name, run_path, origin) ||
	    add_from_list(program, name, getenv("LD_LIBRARY_PATH"), origin))
		return;
	for (size_t i = 0; i < sizeof(directories) / sizeof(*directories); i++)
		if (add_path(program, xasprintf("%s/%s", directories[i], name)))
			return;
}

/* Adds the files whose names are in a table. @path: the file of the table. */
static void add_names(struct program *program, const struct unwind_table *table, const char *path)
{
	const char *name = NULL, *run_path = NULL;

	while ((name = unwind_table_name(table, name)))
		if (*name == UNWIND_RUN_PATH)
			run_path = name + 1;
	while ((name = unwind_table_name(table, name)))
		if (*name == UNWIND_INTERPRETER)
			add_path(program, xstrdup(name + 1));
		else if (*name == UNWIND_LIBRARY)
			add_library(program, name + 1, run_path, path);
}

/* Adds the interpreter of a script, and the one that env runs. */
static void add_interpreter(struct program *program, int fd)
{
	char line[LINE_MAX_BYTES + 1] = {}, *interpreter, *argument, *save;

	if (pread(fd, line, LINE_MAX_BYTES, 0) < 3 || line[0] != '#' || line[1] != '!')
		return;
	line[strcspn(line, "\n")] = '\0';
	interpreter = strtok_r(line + 2, " \t", &save);
	argument = interpreter ? strtok_r(NULL, " \t", &save) : NULL;
	if (!interpreter)
		return;
	if (argument && !strcmp(basename(interpreter), "env"))
		add_path(program, program_find(argument));
	add_path(program, xstrdup(interpreter));
}

void tables_add_program(struct tables *tables, const char *path)
{
	struct program program = { .tables = tables };

	if (!tables)
		return;
	add_path(&program, xstrdup(path));
	for (size_t i = 0; i < program.nr; i++) {
		const int fd = file_open(-1, program.paths[i], 0);
		struct unwind_table table;

		if (fd < 0)
			continue;
		add_interpreter(&program, fd);
		if (tables_add_file(tables, fd, &table)) {
			add_names(&program, &table, program.paths[i]);
			unwind_table_free(&table);
		}
		close(fd);
	}
	while (program.nr)
		free(program.paths[--program.nr]);
}

char *program_find(const char *name)
{
	const char *path = getenv("PATH") ?: "/bin:/usr/bin", *end;
	char *file = NULL;

	if (strchr(name, '/'))
		return access(name, F_OK) ? NULL : xstrdup(name);
	for (; *path && !file; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		file = xasprintf("%.*s/%s", (int)(end - path), path, name);
		if (access(file, F_OK)) {
			free(file);
			file = NULL;
		}
	}
	return file;
}
