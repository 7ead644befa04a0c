// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See packages.h. The paths come from a recording, so they are arguments of programs, never of a
 * shell, and those that dpkg-query could take for patterns are not asked for.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "profile/buffer.h"
#include "text/packages.h"

/* The time that all programs may take together, and the output of each */
#define TIME_MAX_NS	(10 * NS_PER_S)
#define OUTPUT_MAX	(16U << 20)
#define FILES_MAX	100

/* The architecture of packages that need no name of it */
#if defined(__x86_64__)
#define ARCHITECTURE	"amd64"
#elif defined(__i386__)
#define ARCHITECTURE	"i386"
#elif defined(__aarch64__)
#define ARCHITECTURE	"arm64"
#elif defined(__riscv)
#define ARCHITECTURE	"riscv64"
#else
#define ARCHITECTURE	""
#endif

/* ---- programs ---- */

/* The arguments of a program, which are owned, with NULL behind them */
struct arguments {
	char **list;
	size_t nr;
};

static void argument_add(struct arguments *arguments, const char *text)
{
	arguments->list = xrealloc(arguments->list, (arguments->nr + 2) * sizeof(*arguments->list));
	arguments->list[arguments->nr++] = xstrdup(text);
	arguments->list[arguments->nr] = NULL;
}

static struct arguments arguments_new(const char *program, const char *option)
{
	struct arguments arguments = {};

	argument_add(&arguments, program);
	argument_add(&arguments, option);
	return arguments;
}

/* Starts the program, in a process group of its own. Returns its id; -1 if there is none. */
static pid_t start(char *const *arguments, int output)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	pid_t pid = -1;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	if (posix_spawnp(&pid, *arguments, &actions, &attributes, arguments, environ))
		pid = -1;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* Reads the output. Returns false if it is too large, or has not ended at @end. */
static bool read_output(int fd, struct buffer *buffer, u64 end)
{
	struct pollfd file = { .fd = fd, .events = POLLIN };
	char part[1 << 14];
	size_t size = 0;
	ssize_t n = 1;
	u64 now;

	while (n > 0 && size < OUTPUT_MAX) {
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= end || poll(&file, 1, (end - now) / 1000000 + 1) <= 0)
			return false;
		n = read(fd, part, sizeof(part));
		if (n > 0)
			fwrite(part, 1, n, buffer->out);
		size += n > 0 ? n : 0;
	}
	return !n;
}

/*
 * Runs the program until the time @end, and frees the arguments. Returns what it has printed, which
 * the caller frees; NULL if there is no such program, or if it has not ended.
 */
static char *run(struct arguments *arguments, u64 end)
{
	struct buffer buffer;
	bool done = false;
	char *output;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC)) {
		freeargv(arguments->list);
		return NULL;
	}
	pid = start(arguments->list, fds[1]);
	freeargv(arguments->list);
	close(fds[1]);
	buffer_open(&buffer);
	if (pid > 0) {
		done = read_output(fds[0], &buffer, end);
		kill(-pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	close(fds[0]);
	output = buffer_close(&buffer);
	if (done)
		return output;
	free(output);
	return NULL;
}

/* Returns the next line of the text, and NULL after the last one. */
static char *next_line(char **text)
{
	return *text && **text ? strsep(text, "\n") : NULL;
}

/* ---- dpkg ---- */

/* Returns true if dpkg-query takes the path as it is, and prints it in a line. */
static bool is_plain_path(const char *path)
{
	if (*path != '/')
		return false;
	for (const char *at = path; *at; at++)
		if (iscntrl((unsigned char)*at) || strchr("*?[\\", *at))
			return false;
	return true;
}

/* Returns true if the name is one of a package: letters, digits, "+-.", and an architecture. */
static bool is_package_name(const char *name)
{
	return isalnum((unsigned char)*name) &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+-.:")];
}

/* Directories such as /lib are links to /usr/lib, but dpkg can know the file by the other name. */
static const char *other_name(const char *path)
{
	static const char usr[] = "/usr/";

	return !strncmp(path, usr, strlen(usr)) ? path + strlen(usr) - 1 : NULL;
}

/* Sets the owner of the files in a line such as "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6". */
static void read_owner(char *line, struct packages_file *files, size_t nr)
{
	char *path = strstr(line, ": /"), *comma;
	const char *other;

	if (!path)
		return;
	*path = '\0';
	path += 2;
	comma = strchr(line, ',');
	if (comma)
		*comma = '\0';
	for (size_t i = 0; i < nr && is_package_name(line); i++) {
		other = other_name(files[i].path);
		if (files[i].owner ||
		    (strcmp(files[i].path, path) && (!other || strcmp(other, path))))
			continue;
		files[i].owner = xstrdup(line);
		files[i].answer = PACKAGES_NO_LISTS;
	}
}

/* Finds the packages to which the files belong. Returns false if there is no dpkg. */
static bool find_owners(struct packages_file *files, size_t nr, u64 end)
{
	struct arguments arguments = arguments_new("dpkg-query", "--search");
	char *output, *rest, *line;

	argument_add(&arguments, "--");
	for (size_t i = 0; i < nr; i++) {
		if (!is_plain_path(files[i].path))
			continue;
		argument_add(&arguments, files[i].path);
		if (other_name(files[i].path))
			argument_add(&arguments, other_name(files[i].path));
		files[i].answer = PACKAGES_NO_OWNER;
	}
	output = run(&arguments, end);
	if (!output)
		return false;
	rest = output;
	while ((line = next_line(&rest)))
		read_owner(line, files, nr);
	free(output);
	return true;
}

/* Finds the source packages of the owners. */
static void find_sources(struct packages_file *files, size_t nr, u64 end)
{
	struct arguments arguments = arguments_new("dpkg-query", "--show");
	char *output, *rest, *line, *source;

	argument_add(&arguments, "--showformat=${binary:Package} ${source:Package}\\n");
	argument_add(&arguments, "--");
	for (size_t i = 0; i < nr; i++)
		if (files[i].owner)
			argument_add(&arguments, files[i].owner);
	output = run(&arguments, end);
	rest = output;
	while (output && (line = next_line(&rest))) {
		source = strchr(line, ' ');
		if (!source)
			continue;
		*source++ = '\0';
		for (size_t i = 0; i < nr && is_package_name(source); i++)
			if (files[i].owner && !files[i].source && !strcmp(files[i].owner, line))
				files[i].source = xstrdup(source);
	}
	free(output);
}

/* ---- apt ---- */

/* Adds the names that the package with the debug file of @file can have, if @name is in them. */
static void add_candidates(struct arguments *arguments, const struct packages_file *file,
			   const char *name)
{
	static const char *const suffixes[] = { "-dbgsym", "-dbg", "-debug" };
	const char *colon = strchr(file->owner, ':');
	char *candidate;

	for (size_t i = 0; name && i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		candidate = xasprintf("%.*s%s%s", (int)strcspn(name, ":"), name, suffixes[i],
				      colon && strcmp(colon + 1, ARCHITECTURE) ? colon : "");
		argument_add(arguments, candidate);
		free(candidate);
	}
}

/**
 * struct stanza - A package in apt's lists
 * @name: Its name; NULL if that cannot be one.
 * @first_name: The name of the last package of which a version was found.
 * @first_version: The first version of that package in the lists, which apt installs.
 * @is_listed: A package is in the lists, and not only in dpkg's status, which has no Filename.
 */
struct stanza {
	char *name;
	char *architecture;
	char *version;
	char *first_name;
	char *first_version;
	bool is_listed;
};

static bool has_word(const char *text, const char *word)
{
	const size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += len)
		if ((at == text || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

/* Returns the name of the package for apt. */
static char *stanza_name(const struct stanza *stanza)
{
	const bool is_foreign = ARCHITECTURE[0] != '\0' && stanza->architecture &&
				strcmp(stanza->architecture, "all") &&
				strcmp(stanza->architecture, ARCHITECTURE);
	const bool is_old = strcmp(stanza->first_version, stanza->version);

	return xasprintf("%s%s%s%s%s", stanza->name, is_foreign ? ":" : "",
			 is_foreign ? stanza->architecture : "", is_old ? "=" : "",
			 is_old ? stanza->version : "");
}

/* Uses the build-ids of the package. */
static void read_build_ids(const struct stanza *stanza, const char *ids,
			   struct packages_file *files, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		struct packages_file *file = &files[i];
		const size_t len = file->owner ? strcspn(file->owner, ":") : 0;
		const bool is_found = file->owner && *file->build_id.text &&
				      has_word(ids, file->build_id.text);
		const bool is_candidate = file->owner &&
			((!strncmp(stanza->name, file->owner, len) && stanza->name[len] == '-') ||
			 (file->source && !strncmp(stanza->name, file->source,
						   strlen(file->source))));

		if (file->answer == PACKAGES_FOUND || (!is_found && !is_candidate) ||
		    (!is_found && file->answer == PACKAGES_OTHER))
			continue;
		free(file->package);
		file->package = is_found ? stanza_name(stanza) : xstrdup(stanza->name);
		file->answer = is_found ? PACKAGES_FOUND : PACKAGES_OTHER;
	}
}

/* Reads a field of a package. */
static void read_field(struct stanza *stanza, const char *name, char *value,
		       struct packages_file *files, size_t nr)
{
	if (!strcmp(name, "Package")) {
		stanza->name = is_package_name(value) ? value : NULL;
		stanza->architecture = NULL;
		stanza->version = NULL;
	} else if (!strcmp(name, "Architecture")) {
		stanza->architecture = value;
	} else if (!strcmp(name, "Version") && stanza->name) {
		stanza->version = value;
		if (!stanza->first_name || strcmp(stanza->first_name, stanza->name))
			stanza->first_version = value;
		stanza->first_name = stanza->name;
	} else if (!strcmp(name, "Filename")) {
		stanza->is_listed = true;
	} else if (!strcmp(name, "Build-Ids") && stanza->name && stanza->version) {
		read_build_ids(stanza, value, files, nr);
	}
}

/* Asks which of the possible packages are in the lists, and what they contain. */
static void find_packages(struct packages_file *files, size_t nr, u64 end)
{
	struct arguments arguments = arguments_new("apt-cache", "show");
	char *output, *rest, *line, *value;
	struct stanza stanza = {};

	argument_add(&arguments, "--");
	for (size_t i = 0; i < nr; i++) {
		if (!files[i].owner)
			continue;
		argument_add(&arguments, files[i].owner);
		add_candidates(&arguments, &files[i], files[i].owner);
		add_candidates(&arguments, &files[i], files[i].source);
	}
	output = run(&arguments, end);
	rest = output;
	while (output && (line = next_line(&rest))) {
		value = strstr(line, ": ");
		if (!value)
			continue;
		*value = '\0';
		read_field(&stanza, line, value + 2, files, nr);
	}
	for (size_t i = 0; i < nr; i++) {
		if (files[i].answer != PACKAGES_NO_LISTS)
			continue;
		if (!output)
			files[i].answer = PACKAGES_UNKNOWN;
		else if (stanza.is_listed)
			files[i].answer = PACKAGES_NONE;
	}
	free(output);
}

void packages_find(struct packages_file *files, size_t nr)
{
	const u64 end = clock_ns(CLOCK_MONOTONIC) + TIME_MAX_NS;
	bool has_owner = false;

	nr = nr < FILES_MAX ? nr : FILES_MAX;
	if (!nr)
		return;
	if (!find_owners(files, nr, end)) {
		for (size_t i = 0; i < nr; i++)
			files[i].answer = PACKAGES_UNKNOWN;
		return;
	}
	for (size_t i = 0; i < nr; i++)
		has_owner |= !!files[i].owner;
	if (!has_owner)
		return;
	find_sources(files, nr, end);
	find_packages(files, nr, end);
	for (size_t i = 0; i < nr; i++) {
		free(files[i].source);
		files[i].source = NULL;
	}
}
