// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See jit.h. A file that another user could have written is not used: it must belong to the user of
 * the process, to root or to the effective user. Nor is one of an earlier process with the same id:
 * it must not be older than the process, or else describe the memory of the process, since the
 * clock can have been set meanwhile. A confined process parses the files.
 *
 * The directory is /tmp below the root directory of the process. If the file is not there, or the
 * recorder may not look there, this tries the /tmp of the recorder, where the id belongs to this
 * process only if both are in the same PID namespace. If the process has ended, this takes only a
 * file of root or of the effective user that was written during the recording.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "symbols/binary.h"
#include "symbols/jit.h"
#include "symbols/jitdump.h"

/* A larger file is not read. */
#define BYTES_MAX	(256LL << 20)
/* Only this many bytes of a name, and of a file in /proc/PID, are used. */
#define NAME_BYTES	1024
#define PROC_BYTES	8192
/* The maximum number of ancestors, of processes whose files are read, and of ranges of memory. */
#define ANCESTORS_MAX	4
#define PROCESSES_MAX	32
#define RANGES_MAX	512
/* Of /proc/PID/stat behind the name: the parent, the flags and the start, fields 4, 9 and 22 */
#define STAT_FORMAT \
	") %*c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64
/* A flag there: the process has not called exec since its fork. */
#define FORKED_NO_EXEC	0x40

/**
 * struct process - A process whose files can have names
 * @pid: Its id.
 * @id: Its id in the innermost PID namespace.
 * @is_inner: That is not the PID namespace of /proc.
 * @owner: Its user.
 * @start: Its start, in ns of CLOCK_BOOTTIME.
 * @directory: Its /tmp; or -1. Several processes can have one descriptor.
 * @dump: Its jit-PID.dump, which it has mapped; or -1.
 * @parent: The id of its parent.
 * @is_forked: It has not called exec since its fork.
 */
struct process {
	pid_t pid;
	pid_t id;
	bool is_inner;
	uid_t owner;
	u64 start;
	int directory;
	int dump;
	pid_t parent;
	bool is_forked;
};

struct range {
	u64 start;
	u64 end;
};

struct ranges {
	size_t nr;
	struct range all[RANGES_MAX];
};

/**
 * struct jit - A process, its ancestors and its relatives
 * @processes: The process, then the ancestors from which it was forked, then the others.
 * @nr_processes: Their number.
 * @nr_ancestors: The number of ancestors.
 * @plain: In jit_read(), the /tmp of the recorder; or -1.
 * @has_ended: There was no such process.
 * @is_hidden: The recorder may not look into the process.
 * @clock: The time in ns since 1970 at which CLOCK_BOOTTIME was 0, by the clock at jit_open().
 * @code: The memory in which the process has code that is not a program's.
 * @shared: The memory that it shares with others.
 * @read: The files that were read, which own the names.
 * @nr_read: Their number.
 */
struct jit {
	struct process processes[PROCESSES_MAX];
	size_t nr_processes;
	size_t nr_ancestors;
	int plain;
	bool has_ended;
	bool is_hidden;
	u64 clock;
	struct ranges code;
	struct ranges shared;
	struct binary *read;
	size_t nr_read;
};

/* ---- the process ---- */

static bool read_proc(pid_t pid, const char *name, char text[PROC_BYTES])
{
	FILE *file = proc_open(pid, name);
	size_t n = file ? fread(text, 1, PROC_BYTES - 1, file) : 0;

	text[n] = '\0';
	if (file)
		fclose(file);
	return n;
}

/* Reads what everyone may know about the process. Returns false if it does not exist. */
static bool read_process(struct process *process, pid_t pid)
{
	char text[PROC_BYTES], *uid, *ids, *at;
	unsigned int flags;
	u64 ticks;

	*process = (struct process){ .pid = pid, .directory = -1, .dump = -1 };
	if (pid <= 0 || !read_proc(pid, "status", text))
		return false;
	uid = strstr(text, "\nUid:");
	ids = strstr(text, "\nNSpid:");
	if (!uid || sscanf(uid, " Uid: %u", &process->owner) != 1 || !ids)
		return false;
	*strchrnul(ids + 1, '\n') = '\0';
	process->id = atoi(strrchr(ids, '\t'));
	process->is_inner = strchr(ids, '\t') != strrchr(ids, '\t');

	/* The name of the process, in parentheses, may contain blanks. */
	at = read_proc(pid, "stat", text) ? strrchr(text, ')') : NULL;
	if (!at || sscanf(at, STAT_FORMAT, &process->parent, &flags, &ticks) != 3 || !ticks)
		return false;
	process->is_forked = flags & FORKED_NO_EXEC;
	process->start = ticks * (NS_PER_S / sysconf(_SC_CLK_TCK));
	return true;
}

static void add_range(struct ranges *ranges, u64 start, u64 end)
{
	if (ranges->nr && ranges->all[ranges->nr - 1].end == start)
		ranges->all[ranges->nr - 1].end = end;
	else if (ranges->nr < RANGES_MAX)
		ranges->all[ranges->nr++] = (struct range){ start, end };
}

static bool has_address(const struct ranges *ranges, u64 address)
{
	for (size_t i = 0; i < ranges->nr; i++)
		if (address >= ranges->all[i].start && address < ranges->all[i].end)
			return true;
	return false;
}

/* Opens the dump, which the process has mapped for this purpose. Changes the path. */
static int open_dump(char *path, int root)
{
	char *name = strrchr(path, '/') + 1;
	const size_t len = strlen(name);

	if (strncmp(name, "jit-", 4) || len < 5 || strcmp(name + len - 5, ".dump"))
		return -1;
	return file_open(root, path, O_NOFOLLOW);
}

/* Finds the dump, and with @code the memory that has code but no program. */
static void read_maps(struct process *process, int root, struct ranges *code)
{
	static const char deleted[] = " (deleted)";
	FILE *file = proc_open(process->pid, "maps");
	char *line = NULL, *path, *end, permissions[5];
	u64 first, last;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		path = strchr(line, '/');
		if (path && process->dump < 0)
			process->dump = open_dump(path, root);
		end = line + strlen(line) - strlen(deleted);
		if (code && (!path || !strncmp(path, "/memfd:", 7) ||
			     !strncmp(path, "/dev/zero", 9) || !strcmp(end, deleted)) &&
		    sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &first, &last, permissions) == 3 &&
		    permissions[2] == 'x')
			add_range(code, first, last);
	}
	free(line);
	if (file)
		fclose(file);
}

/* Opens the /tmp and the dump of the process. Returns false if the recorder may not look there. */
static bool open_files(struct process *process, struct ranges *code)
{
	char path[64];
	int root;

	snprintf(path, sizeof(path), "/proc/%d/root", process->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return false;
	process->directory = openat(root, "tmp", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	read_maps(process, root, code);
	close(root);
	return true;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* ---- its ancestors and relatives ---- */

/* Returns false if the processes execute different programs. */
static bool may_be_same_program(const struct process *a, const struct process *b)
{
	char path[32];
	struct stat x, y;

	snprintf(path, sizeof(path), "/proc/%d/exe", a->pid);
	if (stat(path, &x))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/exe", b->pid);
	return stat(path, &y) || (x.st_dev == y.st_dev && x.st_ino == y.st_ino);
}

/* Adds a process that has the program of @of by fork. Returns NULL if it does not. */
static struct process *add_process(struct jit *jit, pid_t pid, const struct process *of)
{
	struct process *process = &jit->processes[jit->nr_processes];

	if (jit->nr_processes == PROCESSES_MAX || !read_process(process, pid) ||
	    !may_be_same_program(process, of))
		return NULL;
	process->directory = jit->processes->directory;
	jit->nr_processes++;
	return process;
}

/* In general, ancestors have the same /tmp, and then one descriptor is enough. */
static void open_files_of_ancestor(const struct jit *jit, struct process *process)
{
	struct stat own, its;

	open_files(process, NULL);
	if (process->directory < 0 || jit->processes->directory < 0 ||
	    fstat(process->directory, &its) || fstat(jit->processes->directory, &own) ||
	    own.st_dev != its.st_dev || own.st_ino != its.st_ino)
		return;
	close(process->directory);
	process->directory = jit->processes->directory;
}

/* After the end of a parent, a process has another one, with another program in general. */
static void add_ancestors(struct jit *jit)
{
	struct process *process = jit->processes;

	while (process && process->is_forked && jit->nr_ancestors < ANCESTORS_MAX) {
		process = add_process(jit, process->parent, process);
		if (!process)
			return;
		process->directory = -1;
		open_files_of_ancestor(jit, process);
		jit->nr_ancestors++;
	}
}

static bool is_known(const struct jit *jit, pid_t pid)
{
	for (size_t i = 0; i < jit->nr_processes; i++)
		if (jit->processes[i].pid == pid)
			return true;
	return false;
}

/* Adds the children of @pid that have the program of the process by fork. */
static void add_children(struct jit *jit, pid_t pid)
{
	char name[64], text[PROC_BYTES], *at = text, *end;
	const struct process *process;
	pid_t child;

	snprintf(name, sizeof(name), "task/%d/children", pid);
	read_proc(pid, name, text);
	for (; (child = strtol(at, &end, 10)) > 0; at = end) {
		process = is_known(jit, child) ? NULL : add_process(jit, child, jit->processes);
		if (process && !process->is_forked)
			jit->nr_processes--;
	}
}

/* After the end of a process, its id may be that of another one, and its user is not known. */
static void use_own_directory(struct jit *jit, pid_t pid, u64 recording_start)
{
	jit->processes[0] = (struct process){
		.pid = pid, .id = pid, .owner = geteuid(), .start = recording_start,
		.directory = -1, .dump = -1,
	};
	jit->nr_processes = pid > 0;
}

struct jit *jit_open(pid_t pid, u64 recording_start)
{
	struct jit *jit = xcalloc(1, sizeof(*jit));
	struct process *process = jit->processes;

	jit->clock = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
	if (!read_process(process, pid)) {
		jit->has_ended = pid <= 0 || (kill(pid, 0) && errno == ESRCH);
		jit->is_hidden = !jit->has_ended;
		if (jit->has_ended)
			use_own_directory(jit, pid, recording_start);
		return jit;
	}
	jit->nr_processes = 1;
	jit->is_hidden = !open_files(process, &jit->code);
	add_ancestors(jit);
	return jit;
}

void jit_add_shared(struct jit *jit, u64 start, u64 end)
{
	if (jit->has_ended || !jit->nr_processes || has_address(&jit->shared, start))
		return;
	/* The others are found while all exist. */
	if (!jit->shared.nr) {
		add_children(jit, jit->processes->pid);
		for (size_t i = 0; i < jit->nr_ancestors; i++)
			add_children(jit, jit->processes[1 + i].pid);
	}
	add_range(&jit->shared, start, end);
}

void jit_close(struct jit *jit)
{
	if (!jit)
		return;
	for (size_t i = 0; i <= jit->nr_ancestors; i++) {
		if (!i || jit->processes[i].directory != jit->processes->directory)
			close_if_open(jit->processes[i].directory);
		close_if_open(jit->processes[i].dump);
	}
	for (size_t i = 0; i < jit->nr_read; i++)
		binary_free(&jit->read[i]);
	free(jit->read);
	free(jit);
}

/* ---- parsing the files ---- */

/* In the confined process: the memory that most functions of a map must be in; or NULL. */
static const struct ranges *expected;

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

/* Returns true if most functions are in the memory that is expected. */
static bool is_of_process(const char *text)
{
	size_t nr = 0, nr_inside = 0;

	for (const char *line = text; *line; line += *line == '\n') {
		nr_inside += has_address(expected, strtoull(line, NULL, 16));
		nr++;
		line = strchrnul(line, '\n');
	}
	return nr_inside > nr / 2;
}

static void parse_map(struct lookup *lookup, char *text, size_t size)
{
	char *next;

	(void)size;
	if (expected && !is_of_process(text))
		return;
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
	struct jitdump_header header;
	struct jitdump_load load;

	if (size < sizeof(header))
		return;
	memcpy(&header, text, sizeof(header));
	if (header.magic != JITDUMP_MAGIC)
		return;
	for (size_t at = header.size; at < size && size - at > sizeof(load);
	     at += load.record.size) {
		char *name = text + at + sizeof(load);

		memcpy(&load, text + at, sizeof(load));
		if (load.record.size < sizeof(load.record) || load.record.size > size - at)
			break;
		if (load.record.id == JITDUMP_LOAD && load.record.size > sizeof(load) &&
		    memchr(name, 0, load.record.size - sizeof(load)))
			add_code(lookup, load.address, load.code_size, name);
	}
}

/* ---- reading the files ---- */

/**
 * struct names_file - A file with names
 * @fd: The file; or -1.
 * @error: Why it is not open: an errno.
 * @parse: As in struct binary.
 * @is_mapped: The process has mapped it.
 */
struct names_file {
	int fd;
	int error;
	void (*parse)(struct lookup *lookup, char *text, size_t size);
	bool is_mapped;
};

/**
 * struct reading - What jit_read() does
 * @lookup: The addresses.
 * @left: As in jit_read().
 * @nr_large: The number of files that are too large.
 * @why: As in jit_read().
 */
struct reading {
	struct lookup *lookup;
	off_t *left;
	int nr_large;
	struct format_nameless *why;
};

/* Returns a reason not to read the file; or 0. */
static u32 check_file(const struct jit *jit, const struct process *process,
		      const struct names_file *file, const struct stat *st, off_t left)
{
	const uid_t owner = jit->processes->owner;
	const u64 clock = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
	const u64 tick = NS_PER_S / sysconf(_SC_CLK_TCK);
	const u64 start = process->start + (clock < jit->clock ? clock : jit->clock);

	if (st->st_uid && st->st_uid != owner && st->st_uid != geteuid())
		return FORMAT_NAMELESS_OWNER;
	if (st->st_size > BYTES_MAX || st->st_size > left)
		return FORMAT_NAMELESS_LARGE;
	/* The time of the last write of a file can be up to a tick too early. */
	if (file->is_mapped || time_ns(st->st_mtim) >= start - tick)
		return 0;
	return FORMAT_NAMELESS_OLD;
}

/* Reads an open file. Returns the reason why functions that were not found have no names. */
static u32 read_open(struct jit *jit, const struct process *process, const struct names_file *file,
		     struct reading *reading)
{
	struct binary binary = {
		.lookup = reading->lookup, .fd = file->fd, .parse = file->parse,
	};
	struct stat st;
	u32 reason;
	bool done;

	if (fstat(file->fd, &st))
		return FORMAT_NAMELESS_DENIED;
	reason = check_file(jit, process, file, &st, *reading->left);
	reading->nr_large += reason == FORMAT_NAMELESS_LARGE;
	if (reason && (reason != FORMAT_NAMELESS_OLD || !jit->code.nr || file->parse != parse_map))
		return reason;
	*reading->left -= st.st_size;
	binary.text_size = st.st_size;
	expected = reason ? &jit->code : NULL;
	done = binary_read(&binary);
	if (!array_grow(&jit->read, jit->nr_read, sizeof(binary)))
		xmalloc_failed(sizeof(binary));
	jit->read[jit->nr_read++] = binary;
	return reason ?: done ? FORMAT_NAMELESS_OTHER : FORMAT_NAMELESS_COSTLY;
}

/* Opens the map or the dump of the process. */
static struct names_file open_names(const struct jit *jit, const struct process *process,
				    bool is_dump)
{
	struct names_file file = {
		.fd = -1,
		.error = ENOENT,
		.parse = is_dump ? parse_dump : parse_map,
		.is_mapped = is_dump && process->dump >= 0,
	};
	const int directories[] = { process->directory, process->is_inner ? -1 : jit->plain };
	char name[32];

	if (file.is_mapped) {
		file.fd = fcntl(process->dump, F_DUPFD_CLOEXEC, 0);
		return file;
	}
	snprintf(name, sizeof(name), is_dump ? "jit-%d.dump" : "perf-%d.map", process->id);
	for (int i = 0; i < 2 && file.fd < 0 && file.error == ENOENT; i++) {
		/* Without its mapping, the dump may be only in the /tmp that can be seen. */
		if (directories[i] < 0 || (is_dump && process->directory >= 0))
			continue;
		file.fd = file_open(directories[i], name, O_NOFOLLOW);
		file.error = errno;
	}
	return file;
}

/* Reads the files of a process. */
static void read_files(struct jit *jit, const struct process *process, struct reading *reading)
{
	for (int is_dump = 0; is_dump <= 1; is_dump++) {
		const struct names_file file = open_names(jit, process, is_dump);
		u32 reason = file.error == ENOENT ? 0 :
			     file.error == ENOEXEC || file.error == ELOOP ?
			     FORMAT_NAMELESS_IRREGULAR : FORMAT_NAMELESS_DENIED;

		if (file.fd >= 0) {
			reason = read_open(jit, process, &file, reading);
			close(file.fd);
		}
		/* The last reason is that of the process itself. */
		if (reason)
			*reading->why = (struct format_nameless){
				.reason = reason, .pid = process->id, .is_dump = is_dump,
			};
	}
}

/* Reads the files of relatives, for the functions in shared memory that have no names yet. */
static void read_shared(struct jit *jit, struct reading *reading)
{
	struct lookup *lookup = reading->lookup, shared;
	u64 *places = xcalloc(lookup->nr + 1, sizeof(*places));
	struct format_nameless ignored;
	struct reading other = { &shared, reading->left, 0, &ignored };
	size_t nr = 0;

	for (size_t i = 0; i < lookup->nr; i++)
		if (!lookup->places[i].found.name &&
		    has_address(&jit->shared, lookup->places[i].where))
			places[nr++] = lookup->places[i].where;
	lookup_init(&shared, places, nr);
	for (size_t i = 1 + jit->nr_ancestors; nr && i < jit->nr_processes; i++)
		read_files(jit, &jit->processes[i], &other);
	for (size_t i = 0; i < shared.nr; i++)
		if (shared.places[i].found.name)
			*lookup_place(lookup, shared.places[i].where) = shared.places[i];
	reading->nr_large += other.nr_large;
	lookup_free(&shared);
	free(places);
}

int jit_read(struct jit *jit, struct lookup *lookup, off_t *left, struct format_nameless *why)
{
	struct reading reading = { lookup, left, 0, why };

	*why = (struct format_nameless){
		.reason = jit->has_ended ? FORMAT_NAMELESS_ENDED :
			  jit->is_hidden ? FORMAT_NAMELESS_HIDDEN : FORMAT_NAMELESS_NONE,
		.pid = jit->processes->id,
	};
	/* The code of a process is newer than that which it has from its ancestors. */
	jit->plain = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	for (size_t i = jit->nr_processes ? jit->nr_ancestors + 1 : 0; i-- > 0;)
		read_files(jit, &jit->processes[i], &reading);
	read_shared(jit, &reading);
	close_if_open(jit->plain);
	return reading.nr_large;
}
