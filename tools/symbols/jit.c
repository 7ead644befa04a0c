// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See jit.h. The files belong to the user of the process, root or the effective user, and are not
 * older than the process: another process may have had the same id. A confined process parses them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "symbols/binary.h"
#include "symbols/jit.h"

/* A larger file is not read. */
#define BYTES_MAX	(256LL << 20)
/* Only this many bytes of a name, and of /proc/PID/status, are used. */
#define NAME_BYTES	1024
#define PROC_BYTES	8192

/* The format of a jit-PID.dump, which Linux defines in tools/perf/.../jitdump-specification.txt */
#define DUMP_MAGIC	0x4a695444
#define DUMP_LOAD	0

/* The name follows, and then the code. Records of another type have @id, @size and @time, too. */
struct dump_load {
	u32 id;
	u32 size;
	u64 time;
	u32 pid;
	u32 tid;
	u64 vma;
	u64 address;
	u64 code_size;
	u64 index;
};

#define DUMP_RECORD_SIZE offsetof(struct dump_load, pid)

/**
 * struct jit - A process
 * @directory: Its /tmp.
 * @name: The name of the map in @directory.
 * @dump: Its jit-PID.dump, or -1.
 * @read: The two files when they were read, which own the names.
 * @owner: Its user.
 * @since: Its start, in ns since 1970.
 */
struct jit {
	int directory;
	char name[32];
	int dump;
	struct binary read[2];
	uid_t owner;
	u64 since;
};

/* ---- finding the files ---- */

static bool read_proc(pid_t pid, const char *name, char text[PROC_BYTES])
{
	FILE *file = proc_open(pid, name);
	size_t n = file ? fread(text, 1, PROC_BYTES - 1, file) : 0;

	text[n] = '\0';
	if (file)
		fclose(file);
	return n;
}

/* Reads the user, the id in the innermost PID namespace, and the start. */
static bool read_process(struct jit *jit, pid_t pid)
{
	char text[PROC_BYTES], *uid, *ids, *at;
	u64 ticks;

	if (!read_proc(pid, "status", text))
		return false;
	uid = strstr(text, "\nUid:");
	ids = strstr(text, "\nNSpid:");
	if (!uid || sscanf(uid, " Uid: %u", &jit->owner) != 1 || !ids)
		return false;
	*strchrnul(ids + 1, '\n') = '\0';
	snprintf(jit->name, sizeof(jit->name), "perf-%d.map", atoi(strrchr(ids, '\t')));

	/* The name of the process, in parentheses, may contain blanks. The start is field 22. */
	at = read_proc(pid, "stat", text) ? strrchr(text, ')') : NULL;
	for (int i = 2; at && i < 22; i++)
		at = strchr(at + 1, ' ');
	ticks = at ? strtoull(at, NULL, 10) : 0;
	if (!ticks)
		return false;
	/* The time of the last write of a file can be up to a tick too early. */
	jit->since = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) +
		     (ticks - 1) * (NS_PER_S / sysconf(_SC_CLK_TCK));
	return true;
}

/* Finds the dump, which the process has mapped for this purpose. */
static int open_dump(pid_t pid, int root)
{
	FILE *file = proc_open(pid, "maps");
	char *line = NULL, *path, *name;
	size_t size = 0, len;
	int fd = -1;

	while (fd < 0 && file && getline(&line, &size, file) > 0) {
		path = strchr(line, '/');
		name = path ? strrchr(path, '/') + 1 : "";
		len = strlen(name);
		if (strncmp(name, "jit-", 4) || len < 6 || strcmp(name + len - 6, ".dump\n"))
			continue;
		name[len - 1] = '\0';
		fd = file_open(root, path, O_NOFOLLOW);
	}
	free(line);
	if (file)
		fclose(file);
	return fd;
}

struct jit *jit_open(pid_t pid)
{
	struct jit jit = {};
	char path[64];
	int root;

	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	if (!read_process(&jit, pid))
		return NULL;
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return NULL;
	jit.directory = openat(root, "tmp", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	jit.dump = open_dump(pid, root);
	close(root);
	return xmemdup(&jit, sizeof(jit), sizeof(jit));
}

void jit_close(struct jit *jit)
{
	if (!jit)
		return;
	if (jit->directory >= 0)
		close(jit->directory);
	if (jit->dump >= 0)
		close(jit->dump);
	binary_free(&jit->read[0]);
	binary_free(&jit->read[1]);
	free(jit);
}

/* ---- reading the files ---- */

/* Adds code. Older functions whose start it overwrites do not exist any more. */
static void add_code(struct lookup *lookup, u64 start, u64 size, char *name)
{
	const struct function function = { .start = start, .end = start + size, .name = name };

	if (strlen(name) > NAME_BYTES)
		name[NAME_BYTES] = '\0';
	if (!*name || function.end <= start)
		return;
	lookup_add(lookup, &function);
	for (size_t i = lookup_index(lookup, function.end); i < lookup->nr; i++) {
		struct function *found = &lookup->places[i].found;

		if (!found->name || found->start < start || found->start >= function.end)
			break;
		*found = (struct function){};
	}
}

/* Parses a line: start and length in hexadecimal without 0x, and the name. */
static void parse_line(struct lookup *lookup, char *line)
{
	u64 start = strtoull(line, &line, 16);
	u64 size = strtoull(line, &line, 16);

	if (*line == ' ')
		add_code(lookup, start, size, line + strspn(line, " "));
}

static void parse_map(struct lookup *lookup, char *text, size_t size)
{
	char *next;

	(void)size;
	for (char *line = text; *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		parse_line(lookup, line);
	}
}

/* Compilers that move code do not write this format, so code stays where it was loaded. */
static void parse_dump(struct lookup *lookup, char *text, size_t size)
{
	struct { u32 magic, version, size; } header;
	struct dump_load load;

	if (size < sizeof(header))
		return;
	memcpy(&header, text, sizeof(header));
	if (header.magic != DUMP_MAGIC)
		return;
	for (size_t at = header.size; at < size && size - at > sizeof(load);
	     at += load.size) {
		char *name = text + at + sizeof(load);

		memcpy(&load, text + at, sizeof(load));
		if (load.size < DUMP_RECORD_SIZE || load.size > size - at)
			break;
		if (load.id == DUMP_LOAD && load.size > sizeof(load) &&
		    memchr(name, 0, load.size - sizeof(load)))
			add_code(lookup, load.address, load.code_size, name);
	}
}

/* Returns 1 if the file is too large. Subtracts its size from @left. */
static int read_file(const struct jit *jit, struct binary *binary, off_t *left)
{
	const int fd = binary->fd;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) ||
	    (st.st_uid && st.st_uid != jit->owner && st.st_uid != geteuid()) ||
	    time_ns(st.st_mtim) < jit->since)
		return 0;
	if (st.st_size > BYTES_MAX || st.st_size > *left)
		return 1;
	*left -= st.st_size;
	binary->text_size = st.st_size;
	binary_read(binary);
	return 0;
}

int jit_read(struct jit *jit, struct lookup *lookup, off_t *left)
{
	int map = jit->directory < 0 ? -1 : file_open(jit->directory, jit->name, O_NOFOLLOW);
	int ignored;

	jit->read[0] = (struct binary){ .lookup = lookup, .fd = map, .parse = parse_map };
	jit->read[1] = (struct binary){ .lookup = lookup, .fd = jit->dump, .parse = parse_dump };
	ignored = read_file(jit, &jit->read[0], left) + read_file(jit, &jit->read[1], left);
	if (map >= 0)
		close(map);
	return ignored;
}
