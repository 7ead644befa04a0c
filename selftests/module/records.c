// SPDX-License-Identifier: GPL-2.0
/*
 * Records: the data that read() on a descriptor returns about ticks outside every range, and
 * whether it describes the state at the time of the tick.
 *
 * Unless noted, the sessions here have no ranges, so that each tick leaves a record. The tests
 * compare records with /proc/PID/maps at a time when the mapping exists.
 */
#include "fixture.h"

#include <poll.h>
#include <setjmp.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/vfs.h>

#include <linux/io_uring.h>

#include "fuse.h"
#include "held.h"
#include "maps.h"
#include "program.h"
#include "records.h"

#define OVERLAY_MAGIC	0x794c7630
#define ENOUGH		10000	/* records: more than any test has ticks */

FIXTURE(records) {
};

FIXTURE_OF_SESSIONS(records)

/*
 * The program that a child executes: a copy of this program
 */

static char program[64];

static void program_create(void)
{
	snprintf(program, sizeof(program), "/tmp/profil-new.%d", getpid());
	copy_program(program, 0755);
}

/* Waits until @pid runs the program. Returns the address of its loops, which are in @m. */
static u64 text_of_program(pid_t pid, struct mapping *m)
{
	struct mapping own;

	MUST(mapping_of(addr(loops_text), &own));
	MUST(await(find_mapping(pid, m, m->offset == own.offset && !strcmp(m->path, program))));
	return m->start + addr(loops_text) - own.start;
}

/* Returns true if @r describes the mapping @m of its pc, with this path; @file: and with a file. */
static bool describes_as(const struct profil_record *r, const struct mapping *m, bool file,
			 const char *path)
{
	return r->flags & PROFIL_RECORD_MAPPED && !!(r->flags & PROFIL_RECORD_FILE) == file &&
	       r->start == m->start && r->end == m->end &&
	       (!file || r->offset == m->offset + (r->pc - m->start)) &&
	       r->ino == m->ino && r->major == m->major && r->minor == m->minor &&
	       !strcmp(path_of(r), path);
}

static bool describes(const struct profil_record *r, const struct mapping *m)
{
	return describes_as(r, m, m->path[0] == '/', m->path);
}

static void log_record(struct __test_metadata *_metadata, const struct profil_record *r)
{
	TH_LOG("pc %llx flags %x pid %d tid %d comm %s: %llx-%llx offset %llx %x:%x %llu '%s'",
	       (unsigned long long)r->pc, r->flags, r->pid, r->tid, r->comm,
	       (unsigned long long)r->start, (unsigned long long)r->end,
	       (unsigned long long)r->offset, r->major, r->minor, (unsigned long long)r->ino,
	       path_of(r));
}

static void expect_describes(struct __test_metadata *_metadata, const struct profil_record *r,
			     const struct mapping *m)
{
	EXPECT_TRUE(describes(r, m)) {
		log_record(_metadata, r);
	}
}

#define EXPECT_DESCRIBES(r, m) expect_describes(_metadata, r, m)

/* Opens a session of this process or thread with room for @n records, and does not enable it. */
static void open_disabled(u32 scope, u32 modes, u32 n)
{
	fd = must_open(.modes = modes, .nr_records = n);
	MUST(!descriptor_attach(fd, scope, 0, &shared->space));
}

static void open_session(u32 scope, u32 modes, u32 n)
{
	open_disabled(scope, modes, n);
	must_enable(fd);
}

/* Stops the session, and reads the rest of its records: one of each tick outside every range. */
static struct profil_stats expect_all_read(struct __test_metadata *_metadata)
{
	struct profil_stats s = {};

	EXPECT_EQ(0, descriptor_disable(fd, &s));
	EXPECT_TRUE(accounted(&s));
	/* Without a target, this is the end. */
	EXPECT_EQ(!s.targets, read_all());
	EXPECT_EQ(s.outside, nr);
	return s;
}

#define EXPECT_ALL_READ()	expect_all_read(_metadata)

/* Reads the rest of the records after the last target is gone. */
static void expect_end(struct __test_metadata *_metadata)
{
	EXPECT_TRUE(await(!stats_now().targets));
	EXPECT_EQ(1, read_all());
}

/* Checks that the records are of the only thread of process @pid. */
static void expect_ids(struct __test_metadata *_metadata, pid_t pid)
{
	for_each_record(r) {
		EXPECT_EQ(pid, r->pid);
		EXPECT_EQ(pid, r->tid);
	}
}

/* Checks the records with a pc in loop @i at @text, of which there must be at least @n. */
static void expect_described(struct __test_metadata *_metadata, u64 text, unsigned int i,
			     const struct mapping *m, unsigned int n)
{
	for_each_record(r)
		if (in_loop(r, text, i))
			EXPECT_DESCRIBES(r, m);
	EXPECT_LE(n, records_where(r, in_loop(r, text, i)));
}

/*
 * The fields of a record
 */

TEST_F(records, describe_a_tick)
{
	u64 last = now_ns();
	char path[PATH_MAX] = "";
	struct profil_stats s;
	struct mapping m;
	struct statfs fs;
	struct stat st;

	ASSERT_LT(0, readlink(SELF, path, sizeof(path) - 1));
	ASSERT_EQ(0, stat(path, &st));
	ASSERT_EQ(0, statfs(path, &fs));
	ASSERT_TRUE(mapping_of(loop_at(3), &m));
	EXPECT_EQ(0, strcmp(path, m.path));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "a looping task"));

	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	EXPECT_TRUE(loop_until(3, stats_now().outside >= 20));
	s = EXPECT_ALL_READ();

	EXPECT_EQ(s.ticks, s.outside);
	for_each_record(r) {
		EXPECT_EQ(getpid(), r->pid);
		EXPECT_EQ(gettid(), r->tid);
		EXPECT_EQ(0, strcmp("a looping task", r->comm));
		EXPECT_EQ(shared->space, r->space);
		EXPECT_EQ(0U, r->flags & PROFIL_RECORD_SYSTEM);
		EXPECT_LE(last, r->time);
		last = r->time;
		if (!in_loop(r, addr(loops_text), 3))
			continue;
		EXPECT_EQ((u32)(PROFIL_RECORD_MAPPED | PROFIL_RECORD_FILE), r->flags);
		EXPECT_DESCRIBES(r, &m);
		/* On an overlay, the inode numbers of maps and stat() may differ. */
		if (fs.f_type != OVERLAY_MAGIC)
			EXPECT_EQ(st.st_ino, r->ino);
	}
	EXPECT_LE(last, now_ns());
	EXPECT_LE(10U, records_where(r, in_loop(r, addr(loops_text), 3)));
	/* Each record is read only once. */
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(s.outside, nr);
}

TEST_F(records, are_left_only_by_ticks_outside_every_range)
{
	struct profil_range range = range_of_loops(page, 4);
	struct profil_stats s;

	/* Loops 4 to 7 are in the range, but have no counters, so their ticks are outside. */
	range.nr_counters = 4;
	fd = must_sample(must_open(.nr_records = ENOUGH), PROFIL_SCOPE_PROCESS, &range, 1);
	EXPECT_TRUE(loop_until(0, count_of(0) >= 10));
	EXPECT_TRUE(descriptor_burn(fd, 4, 10));
	s = EXPECT_ALL_READ();
	EXPECT_EQ(s.hit, counters_sum(page, 4, LOOPS));
	EXPECT_LE(10U, s.hit);
	for_each_record(r)
		EXPECT_FALSE(in_loop(r, addr(loops_text), 0));
}

TEST_F(records, have_the_CPU_of_the_tick)
{
	unsigned int cpus = 0;
	cpu_set_t all;

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
	open_session(PROFIL_SCOPE_PROCESS, MODES_ALL, ENOUGH);
	for (int cpu = 0; cpu < CPU_SETSIZE && cpus < 4; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		cpus++;
		run_on_cpu(cpu);
		EXPECT_EQ(0, read_all());
		nr = 0;
		EXPECT_TRUE(descriptor_burn(fd, 0, 10));
		EXPECT_EQ(0, read_all());
		EXPECT_LE(10U, nr);
		EXPECT_EQ(nr, records_where(r, r->cpu == (u32)cpu));
	}
}

/* Like EXPECT_ALL_READ(): there is a record of each tick, and for each missed tick. */
static struct profil_stats expect_all_periods(struct __test_metadata *_metadata)
{
	struct profil_stats s = EXPECT_ALL_READ();
	u64 periods = 0;

	for_each_record(r)
		periods += r->periods;
	EXPECT_EQ(s.ticks, s.outside);
	EXPECT_EQ(s.ticks + s.missed, periods);
	return s;
}

TEST_F(records, of_ticks_of_the_scheduler_stand_for_the_missed_ticks_before)
{
	struct profil_stats s;

	open_session(PROFIL_SCOPE_PROCESS, MODES_ALL, ENOUGH);
	EXPECT_TRUE(descriptor_burn(fd, 0, 100));
	s = expect_all_periods(_metadata);
	TH_LOG("%llu ticks, %llu missed", (unsigned long long)s.ticks,
	       (unsigned long long)s.missed);
}

TEST_F(records, of_a_clock_stand_for_the_missed_periods_before)
{
	u64 longer = 0, missed = 0;
	struct profil_query query;

	ASSERT_EQ(0, device_query(&query));
	for (unsigned int i = 0; i < 20 && (i < 2 || !missed); i++) {
		nr = 0;
		/* With the shortest period, the samples take so long that periods are missed. */
		fd = must_sample(must_open(.nr_records = ENOUGH, .period = query.min_period,
					   .flags = i % 2 ? PROFIL_OPEN_JITTER : 0),
				 PROFIL_SCOPE_PROCESS, NULL, 0);
		EXPECT_TRUE(descriptor_burn(fd, 0, 500));
		missed += expect_all_periods(_metadata).missed;
		EXPECT_EQ(0U, records_where(r, !r->periods));
		longer += records_where(r, r->periods > 1);
		close_session();
	}
	/* An ordinary user's shortest period is so long that perhaps none is missed. */
	if (!geteuid())
		EXPECT_LT(0U, missed);
	EXPECT_EQ(!missed, !longer);
}

static unsigned int count_records(u64 text, unsigned int loop)
{
	return records_where(r, in_loop(r, text, loop));
}

TEST_F(records, have_the_id_of_their_thread)
{
	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	prctl(PR_SET_NAME, "another");
	start_beside(run_loop, 1);
	prctl(PR_SET_NAME, "the first");
	EXPECT_TRUE(loop_until(0, read_all() ||
			       (count_records(addr(loops_text), 0) >= 10 &&
				count_records(addr(loops_text), 1) >= 10)));
	stop_beside();
	EXPECT_ALL_READ();
	for_each_record(r) {
		EXPECT_EQ(getpid(), r->pid);
		if (in_loop(r, addr(loops_text), 0))
			EXPECT_EQ(gettid(), r->tid);
		if (in_loop(r, addr(loops_text), 1)) {
			EXPECT_EQ(thread_id, r->tid);
			EXPECT_EQ(0, strcmp("another", r->comm));
		}
	}
}

TEST_F(records, have_the_mode_of_their_tick)
{
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	static char zeros[8 << 20];
	unsigned int system = 0, in_loops = 0;
	struct profil_stats s;
	struct mapping m;

	open_session(PROFIL_SCOPE_THREAD, MODES_ALL, ENOUGH);
	EXPECT_TRUE(loop_until(0, ({
		ASSERT_EQ((ssize_t)sizeof(zeros), read(zero, zeros, sizeof(zeros)));
		s = stats_now();
		s.system >= 10 && s.user >= 10;
	})));
	s = EXPECT_ALL_READ();
	EXPECT_LE(10U, s.system);
	EXPECT_LE(10U, s.user);
	for_each_record(r) {
		/* In system mode, too, the pc is the user pc, and its mapping still exists. */
		EXPECT_TRUE(mapping_of(r->pc, &m));
		EXPECT_DESCRIBES(r, &m);
		if (!(r->flags & PROFIL_RECORD_SYSTEM))
			continue;
		system++;
		in_loops += in_loop(r, addr(loops_text), 0);
	}
	EXPECT_EQ(s.system, system);
	/* Few system ticks are in the loop: those in interrupts of the loop. */
	EXPECT_LE(2 * in_loops, system);
	close(zero);
}

/*
 * The mapping of a pc at the time of the tick
 */

static char file[64];		/* a file of code, with the loops on its second page */

static int code;		/* its descriptor */

/* Maps the loops of a new file. Returns NULL if there can be no code in /tmp. */
static void *map_code(const char *name)
{
	static char bytes[2 * PAGE_MAX];
	void *text;

	snprintf(file, sizeof(file), "/tmp/profil-%s.%d", name, getpid());
	memcpy(bytes + PAGE, loops_text, LOOPS * LOOP_SIZE);
	unlink(file);
	code = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	MUST(code >= 0 && write(code, bytes, 2 * PAGE) == (ssize_t)(2 * PAGE));
	text = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, code, PAGE);
	if (text != MAP_FAILED)
		return text;
	unlink(file);
	close(code);
	return NULL;
}

#define NEED_CODE(text) \
	SKIP_IF(!(text), "no code can be mapped from /tmp: %s", strerror(errno))

static void run_at(void *text, unsigned int i)
{
	((void (*)(unsigned long))((uintptr_t)text + LOOP_SIZE * i))(LOOP_BURST);
}

/* Runs a loop at @text until there are @n more records. */
static bool run_until(void *text, unsigned int i, u64 n)
{
	u64 until = stats_now().outside + n;

	return work_until(stats_now().outside >= until, run_at(text, i));
}

TEST_F(records, name_the_file_of_a_mapping_that_was_unmapped_before_the_read)
{
	void *text = map_code("code");
	struct profil_stats s;
	struct mapping m;

	NEED_CODE(text);
	ASSERT_TRUE(mapping_of(addr(text), &m));
	EXPECT_EQ(0, strcmp(file, m.path));
	EXPECT_EQ(PAGE, m.offset);

	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	EXPECT_TRUE(run_until(text, 5, 20));
	ASSERT_EQ(0, descriptor_disable(fd, &s));
	ASSERT_EQ(0, munmap(text, PAGE));
	close(code);
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(s.outside, nr);
	expect_described(_metadata, addr(text), 5, &m, 10);
	unlink(file);
}

TEST_F(records, name_the_right_one_of_two_files_mapped_at_the_same_address)
{
	void *text = map_private(PAGE);
	unsigned int count[2] = {};
	char files[2][64];
	struct mapping m[2];
	u64 changed = 0;

	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	for (unsigned int i = 0; i < 2; i++) {
		void *new = map_code(i ? "second" : "first");

		NEED_CODE(new);
		close(code);
		strcpy(files[i], file);
		changed = now_ns();
		ASSERT_EQ(text, mremap(new, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, text));
		ASSERT_TRUE(mapping_of(addr(text), &m[i]));
		EXPECT_TRUE(run_until(text, 5, 20));
	}
	EXPECT_ALL_READ();
	for_each_record(r) {
		bool later = r->time > changed;

		if (!in_loop(r, addr(text), 5))
			continue;
		count[later]++;
		EXPECT_DESCRIBES(r, &m[later]);
	}
	EXPECT_NE(m[0].ino, m[1].ino);
	EXPECT_LE(10U, count[0]);
	EXPECT_LE(10U, count[1]);
	unlink(files[0]);
	unlink(files[1]);
}

/*
 * The files that records keep in use
 */

/* Returns the number of lines in the fdinfo of the session that begin with @start. */
static unsigned int fdinfo_lines(const char *start)
{
	char path[64], line[PATH_MAX + 64];
	unsigned int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	MUST(f);
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, start, strlen(start));
	fclose(f);
	return n;
}

#define LISTED		"profil-file:\t"

/* Leaves records of a tick in a new file, which is unmapped and deleted then. */
static bool tick_in_new_file(const char *name)
{
	void *text = map_code(name);
	bool came;

	if (!text)
		return false;
	unlink(file);
	close(code);
	came = run_until(text, 5, 2);
	munmap(text, PAGE);
	return came;
}

TEST_F(records, keep_files_in_use_that_fdinfo_lists)
{
	char line[128];

	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	/* A file has one line even with several records, and its name cannot forge another line. */
	ASSERT_TRUE(tick_in_new_file("two\n" LISTED "lines"));
	ASSERT_EQ(0, descriptor_disable(fd, NULL));
	snprintf(line, sizeof(line),
		 LISTED "/tmp/profil-two\\012profil-file:\tlines.%d (deleted)\n", getpid());
	EXPECT_EQ(1U, fdinfo_lines(line));
	EXPECT_EQ(0U, fdinfo_lines(LISTED "lines"));
	EXPECT_EQ(0U, fdinfo_lines("profil-files:"));
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(0U, fdinfo_lines(LISTED));
}

TEST_F_TIMEOUT(records, have_at_most_64_files_in_fdinfo, 150)
{
	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	for (unsigned int i = 0; i < 66; i++)
		ASSERT_TRUE(tick_in_new_file("many"));
	ASSERT_EQ(0, descriptor_disable(fd, NULL));
	EXPECT_EQ(64U, fdinfo_lines(LISTED));
}

TEST_F(records, keep_the_lock_of_a_file_until_the_close)
{
	void *text = map_code("locked");
	int again;

	NEED_CODE(text);
	again = open(file, O_RDONLY | O_CLOEXEC);
	unlink(file);
	ASSERT_LE(0, again);
	ASSERT_EQ(0, flock(code, LOCK_EX));
	close(code);
	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	EXPECT_TRUE(run_until(text, 5, 2));
	munmap(text, PAGE);
	EXPECT_EQ(-1, flock(again, LOCK_EX | LOCK_NB));
	close_session();
	EXPECT_EQ(0, flock(again, LOCK_EX | LOCK_NB));
	close(again);
}

static struct held held;

static int run_in_fuse(const char *path, uid_t user)
{
	void *text;

	MUST(!setresuid(user, user, user));
	code = open(path, O_RDONLY | O_CLOEXEC);
	MUST(code >= 0);
	text = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, code, 0);
	MUST(text != MAP_FAILED);
	close(code);
	memcpy(text, loops_text, LOOPS * LOOP_SIZE);
	__builtin___clear_cache(text, (char *)text + PAGE);
	for (;;)
		run_at(text, 5);
	return 0;
}

/* The file system is one that an ordinary user has mounted in a user namespace. */
static int run_in_own_fuse(const char *dir)
{
	become_user(USER);
	enter_namespaces(CLONE_NEWNS);
	MUST(fuse_start(dir, 1) > 0 && !chdir(dir));
	return run_in_fuse(FUSE_FILE, 0);
}

static unsigned int nr_with_path(const char *path)
{
	return records_where(r, !strcmp(path_of(r), path));
}

/* A session samples the process until it has some records. */
static bool samples(pid_t pid)
{
	nr = 0;
	fd = must_enable(must_open(.modes = PROFIL_MODE_USER, .nr_records = ENOUGH));
	return !descriptor_attach(fd, PROFIL_SCOPE_PROCESS, pid, NULL) &&
	       await(stats_now().outside >= 50) && !descriptor_disable(fd, NULL);
}

/* Whoever closes such a file last may wait for the server. The creator of the session is root. */
TEST_F(records, name_a_file_of_FUSE_and_keep_it_if_the_user_is_the_same)
{
	char path[64], line[128];
	pid_t child;

	NEED_HELD(&held, HELD_FUSE, PAGE);
	chmod(held.dir, 0755);
	snprintf(path, sizeof(path), "%s/" FUSE_FILE, held.dir);
	snprintf(line, sizeof(line), LISTED "%s\n", path);
	for (unsigned int user = 0; user <= USER; user += USER) {
		child = SPAWN(run_in_fuse(path, user));
		EXPECT_TRUE(samples(child));
		EXPECT_EQ(user ? 0U : 1U, fdinfo_lines(line));
		EXPECT_EQ(0, read_all());
		EXPECT_LE(5U, nr_with_path(user ? FUSE_FILE : path));
		EXPECT_EQ(0U, nr_with_path(user ? path : FUSE_FILE));
		close_session();
		EXPECT_EQ(128 + SIGKILL, killed(child));
	}
	held_unmap(&held);
}

/* It can have data to write, for which the last close of the file waits. */
TEST_F(records, name_a_file_of_FUSE_in_a_user_namespace)
{
	char dir[] = "/tmp/profil-XXXXXX";
	pid_t child;

	SKIP_IF(geteuid(), "only root is another user");
	NEED_NAMESPACES();
	SKIP_IF(chmod("/dev/fuse", 0666), "no FUSE here: %s", strerror(errno));
	ASSERT_NE(NULL, mkdtemp(dir));
	ASSERT_EQ(0, chown(dir, USER, USER));
	child = SPAWN(run_in_own_fuse(dir));
	EXPECT_TRUE(samples(child));
	EXPECT_EQ(0, read_all());
	EXPECT_LE(5U, nr_with_path(FUSE_FILE));
	close_session();
	EXPECT_EQ(128 + SIGKILL, killed(child));
	rmdir(dir);
}

static void *read_into_held(void *unused)
{
	MUST(read(fd, held.memory, PAGE) > 0);
	return unused;
}

/* A reader may wait for user space for ever. Then fdinfo does not wait for the reader. */
TEST_F(records, are_not_listed_by_fdinfo_while_they_are_read)
{
	NEED_HELD(&held, HELD_FUSE, PAGE);
	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	EXPECT_TRUE(tick_in_new_file("read"));
	ASSERT_EQ(0, descriptor_disable(fd, NULL));
	ASSERT_EQ(0, held_back(&held));
	start_beside(read_into_held, 0);
	EXPECT_TRUE(await(held_asked(&held)));
	EXPECT_EQ(1U, fdinfo_lines("profil-files:\tbeing read\n"));
	EXPECT_EQ(0U, fdinfo_lines(LISTED));
	held_release(&held);
	stop_beside();
	held_unmap(&held);
}

TEST_F(records, have_an_empty_path_for_one_longer_than_PATH_MAX)
{
	char top[] = "/tmp/profil-long.XXXXXX", name[NAME_MAX + 1] = "";
	const unsigned int depth = PATH_MAX / NAME_MAX + 1;
	void *text = map_code("deep");

	NEED_CODE(text);
	close(code);
	memset(name, 'd', NAME_MAX);
	ASSERT_NE(NULL, mkdtemp(top));
	ASSERT_EQ(0, chdir(top));
	for (unsigned int i = 0; i < depth; i++)
		ASSERT_EQ(0, mkdir(name, 0700) || chdir(name));
	ASSERT_EQ(0, rename(file, "code"));

	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	EXPECT_TRUE(run_until(text, 5, 20));
	EXPECT_EQ(0, read_all());
	for_each_record(r) {
		if (!in_loop(r, addr(text), 5))
			continue;
		EXPECT_NE(0U, r->flags & PROFIL_RECORD_FILE);
		EXPECT_EQ(addr(text), r->start);
		EXPECT_NE(0U, r->ino);
		EXPECT_EQ(0, strcmp("", path_of(r)));
	}
	EXPECT_LE(10U, count_records(addr(text), 5));

	EXPECT_EQ(0, unlink("code"));
	for (unsigned int i = 0; i < depth; i++)
		EXPECT_EQ(0, chdir("..") || rmdir(name));
	EXPECT_EQ(0, rmdir(top));
}

TEST_F(records, have_no_file_for_anonymous_memory)
{
	void *text = map_private(PAGE);
	struct mapping m;

	memcpy(text, loops_text, LOOPS * LOOP_SIZE);
	ASSERT_EQ(0, mprotect(text, PAGE, PROT_READ | PROT_EXEC));
	ASSERT_TRUE(mapping_of(addr(text), &m));
	EXPECT_EQ(0, m.path[0]);

	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	EXPECT_TRUE(run_until(text, 6, 20));
	EXPECT_ALL_READ();
	expect_described(_metadata, addr(text), 6, &m, 10);
}

TEST_F(records, name_the_vdso)
{
	unsigned int in_vdso = 0, seen = 0, cpu;
	struct profil_stats s;
	struct timespec t;
	struct mapping m;

	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	loop_until(0, ({
		for (unsigned int i = 0; i < 200000; i++) {
			getcpu(&cpu, NULL);
			clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
		}
		ASSERT_EQ(0, read_all());
		for_each_new_record(r, seen) {
			if (!mapping_of(r->pc, &m) || strcmp(m.path, "[vdso]"))
				continue;
			in_vdso++;
			EXPECT_DESCRIBES(r, &m);
		}
		in_vdso;
	}));
	ASSERT_DISABLE(fd, &s);
	EXPECT_LT(0U, nr);
	SKIP_IF(!in_vdso, "no tick of %u found the vdso running", nr);
}

static void *map_and_unmap(void *unused)
{
	while (!enough) {
		char *p = map_private(2 * PAGE);

		*(volatile char *)p = 1;
		mprotect(p, PAGE, PROT_READ);
		munmap(p, 2 * PAGE);
	}
	return unused;
}

TEST_F(records, have_the_right_mapping_while_mappings_change)
{
	struct mapping m;

	ASSERT_TRUE(mapping_of(loop_at(2), &m));
	start_beside(map_and_unmap, 0);
	open_session(PROFIL_SCOPE_THREAD, PROFIL_MODE_USER, ENOUGH);
	EXPECT_TRUE(loop_until(2, stats_now().outside >= 100));
	EXPECT_ALL_READ();
	stop_beside();
	expect_described(_metadata, addr(loops_text), 2, &m, 50);
}

/*
 * Files that a record names without holding a reference
 */

/* Returns true if @r has the fields of @m, but only the last part of its path. */
static bool has_file_name(const struct profil_record *r, const struct mapping *m)
{
	const char *name = strpbrk(m->path, "/[") ? m->path + strlen(m->path) : "";

	while (name > m->path && *name != '[' && name[-1] != '/')
		name--;
	return describes_as(r, m, true, name);
}

TEST_F(records, name_a_device_without_its_path)
{
	int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	struct mapping m;
	void *text;

	text = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
	ASSERT_NE(MAP_FAILED, text);
	close(zero);
	memcpy(text, loops_text, LOOPS * LOOP_SIZE);
	SKIP_IF(mprotect(text, PAGE, PROT_READ | PROT_EXEC),
		"no code can be mapped from /dev: %s", strerror(errno));
	ASSERT_TRUE(mapping_of(addr(text), &m));
	EXPECT_EQ(0, strcmp("/dev/zero", m.path));

	open_session(PROFIL_SCOPE_PROCESS, PROFIL_MODE_USER, ENOUGH);
	EXPECT_TRUE(run_until(text, 6, 20));
	EXPECT_ALL_READ();
	for_each_record(r) {
		EXPECT_TRUE(!in_loop(r, addr(text), 6) || has_file_name(r, &m)) {
			log_record(_metadata, r);
		}
	}
	EXPECT_LE(10U, count_records(addr(text), 6));
}

static sigjmp_buf before_fault;

static void leave_fault(int signal)
{
	(void)signal;
	siglongjmp(before_fault, 1);
}

/* Jumps to @text, which is not executable. A tick can occur in the fault, with @text as its pc. */
static void fault_at(void *text)
{
	if (!sigsetjmp(before_fault, 0))
		((void (*)(void))(uintptr_t)text)();
}

static int io_uring_new(void)
{
	struct io_uring_params params = {};

	return syscall(SYS_io_uring_setup, 1, &params);
}

/*
 * Exits with an unread record of a tick in the mapping of an io_uring, in which the session of
 * that record is registered. A second session shows that such a tick occurred.
 */
static int leave_a_record_of_an_io_uring(void)
{
	const struct sigaction action = { .sa_handler = leave_fault, .sa_flags = SA_NODEFER };
	int left = must_open(.nr_records = ENOUGH), ring = io_uring_new();
	struct mapping m;
	void *text;

	MUST(!descriptor_attach(left, PROFIL_SCOPE_PROCESS, 0, NULL));
	MUST(!syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &left, 1));
	text = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	MUST(text != MAP_FAILED && mapping_of(addr(text), &m));
	MUST(!sigaction(SIGSEGV, &action, NULL));
	MUST(!descriptor_enable(left));
	open_session(PROFIL_SCOPE_PROCESS, MODES_ALL, ENOUGH);
	MUST(loop_until(0, ({
		for (unsigned int i = 0; i < 4000; i++)
			fault_at(text);
		MUST(!read_all());
		records_where(r, r->pc == addr(text)) >= 5;
	})));
	for_each_record(r)
		MUST(r->pc != addr(text) || has_file_name(r, &m));
	return 0;
}

TEST_F_TIMEOUT(records, do_not_pin_an_io_uring_that_holds_the_session, 150)
{
	int ring = io_uring_new();

	SKIP_IF(ring < 0, "no io_uring: %s", strerror(errno));
	close(ring);
	/* The fixture checks that the module has as many users as before. */
	EXPECT_EQ(0, status_of(spawn(leave_a_record_of_an_io_uring)));
}

/*
 * Limits
 */

TEST_F(records, that_find_the_ring_full_are_counted_as_dropped)
{
	struct profil_stats s;

	open_session(PROFIL_SCOPE_PROCESS, MODES_ALL, 16);
	EXPECT_TRUE(descriptor_burn(fd, 0, 50));
	ASSERT_DISABLE(fd, &s);
	EXPECT_LE(50U, s.ticks);
	EXPECT_EQ(16U, s.outside);
	EXPECT_EQ(s.ticks, s.outside + s.dropped_record);
	EXPECT_EQ(s.dropped, s.dropped_record);
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(16U, nr);

	/* After a read there is room again. */
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_ALL_READ();
	EXPECT_LT(16U, nr);
}

TEST_F(records, are_not_dropped_if_they_are_read_in_time)
{
	open_session(PROFIL_SCOPE_PROCESS, MODES_ALL, 64);
	EXPECT_TRUE(loop_until(0, read_all() || nr >= 200));
	EXPECT_EQ(0U, EXPECT_ALL_READ().dropped);
	EXPECT_LE(200U, nr);
}

TEST_F(records, are_charged_as_pinned_memory)
{
	static const u32 nr_records[] = { 16, ENOUGH };

	for (unsigned int i = 0; i < ARRAY_SIZE(nr_records); i++) {
		ASSERT_OPEN(fd, nr_records[i]);
		EXPECT_LE(8 * nr_records[i], stats_now().locked);
		EXPECT_EQ(locked + stats_now().locked, pinned_bytes());
		EXPECT_EQ(0U, mlocked_bytes());
		close_session();
		EXPECT_TRUE(await(pinned_bytes() == locked));
	}
}

TEST_F_CHILD(records, are_refused_above_RLIMIT_MEMLOCK)
{
	become_user(USER);
	limit_memlock(PAGE);
	MUST(descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, ENOUGH) == -EPERM);
	return pinned_bytes() ? 23 : 0;
}

TEST_F(records, have_a_limit_that_does_not_include_mlocked_memory)
{
	u64 bytes;

	ASSERT_OPEN(fd, ENOUGH);
	bytes = stats_now().locked;
	/* The memory of mlock() leaves no less room for records. */
	EXPECT_CHILD({
		close(fd);
		become_user(USER);
		limit_memlock(bytes);
		MUST(!mlock(page, PAGE));
		fd = must_open(.nr_records = ENOUGH);
		MUST(pinned_bytes() == bytes && mlocked_bytes() == PAGE);
		MUST(descriptor_open(MODES_ALL, PROFIL_FORK_OFF, PROFIL_EXEC_OFF, 1) == -EPERM);
		close(fd);
		MUST(await(!pinned_bytes()) && mlocked_bytes() == PAGE);
	});
}

/*
 * read() and poll()
 */

static short polled(int timeout)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout) < 0 ? -1 : p.revents;
}

/* A thread that makes one call, in which it waits */
static struct reader {
	ssize_t (*call)(void);
	atomic_int tid;
	atomic_bool done;	/* the call has returned */
	ssize_t result;
	int error;
	u64 buffer[8192];
} reader;

static ssize_t read_once(void)
{
	return read(fd, reader.buffer, sizeof(reader.buffer));
}

static ssize_t poll_once(void)
{
	return polled(-1);
}

static void *reader_run(void *unused)
{
	reader.tid = gettid();
	reader.result = reader.call();
	reader.error = errno;
	reader.done = true;
	return unused;
}

/* Starts the thread. Returns true if it waits in the call. */
static bool reader_waits(ssize_t (*call)(void))
{
	reader.call = call;
	start_beside(reader_run, 0);
	return await(reader.tid && task_state(reader.tid) == 'S') && !reader.done;
}

/* Has a thread wait in the call for the first record of the session. Returns the result. */
static ssize_t woken(struct __test_metadata *_metadata, ssize_t (*call)(void))
{
	/* The session samples only this thread, so that the reader leaves no record. */
	open_disabled(PROFIL_SCOPE_THREAD, MODES_ALL, ENOUGH);
	EXPECT_EQ(0, polled(0));
	EXPECT_TRUE(reader_waits(call));
	must_enable(fd);
	EXPECT_TRUE(loop_until(0, reader.done));
	stop_beside();
	return reader.result;
}

/* Checks that a thread which waits in read() finds the end. */
static void expect_reader_ends(struct __test_metadata *_metadata)
{
	EXPECT_TRUE(await(reader.done));
	stop_beside();
	EXPECT_EQ(0, reader.result);
	EXPECT_EQ(POLLHUP, polled(0));
}

/* A read that polls all the time gets one record or none. */
TEST_F_TIMEOUT(records, are_read_one_by_one_while_new_ones_arrive, 150)
{
	unsigned int found = 0;
	char record[4096];
	pid_t child;
	ssize_t n;

	fd = must_enable(must_open(.nr_records = ENOUGH, .period = 50000));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	child = SPAWN(descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL) ||
		      !loop_for_ever((void *)0));
	while (found < 500) {
		n = read(fd, record, sizeof(record));
		if (n < 0 && errno != EAGAIN)
			break;
		found += n > 0;
	}
	EXPECT_EQ(500U, found) {
		TH_LOG("errno %d", errno);
	}
	killed(child);
}

static void *read_for_ever(void *buffer)
{
	const struct sched_param none = {};

	sched_setscheduler(0, SCHED_IDLE, &none);
	while (read(fd, buffer, 4096) > 0)
		;
	return NULL;
}

/* Exits while the reader, which rarely gets the CPU, has been woken to read. */
static int exit_before_reading(void)
{
	run_on_cpu(sched_getcpu());
	open_session(PROFIL_SCOPE_PROCESS, MODES_ALL, ENOUGH);
	start_beside(read_for_ever, (uintptr_t)reader.buffer);
	return loop_until(0, stats_now().outside >= 5) ? 0 : 4;
}

TEST_F(records, do_not_keep_a_reader_from_exiting)
{
	for (int i = 0; i < 15; i++) {
		int status = -1;
		pid_t child = spawn(exit_before_reading);

		ASSERT_TRUE(await(waitpid(child, &status, WNOHANG) == child));
		ASSERT_EQ(0, status);
	}
}

TEST_F(records, wake_a_waiting_read)
{
	ASSERT_LT(0, woken(_metadata, read_once));
	EXPECT_LE(1, take(reader.buffer, reader.result));
	EXPECT_ALL_READ();
}

TEST_F(records, wake_a_waiting_poll)
{
	EXPECT_EQ(POLLIN, woken(_metadata, poll_once));
	ASSERT_EQ(0, descriptor_disable(fd, NULL));
	EXPECT_EQ(POLLIN, polled(0));
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(0, polled(0));
}

TEST_F(records, wake_all_waiting_epoll_instances)
{
	struct epoll_event event = { .events = EPOLLIN };
	int waiting[500];

	open_disabled(PROFIL_SCOPE_THREAD, MODES_ALL, ENOUGH);
	for (unsigned int i = 0; i < ARRAY_SIZE(waiting); i++) {
		waiting[i] = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_LE(0, waiting[i]);
		ASSERT_EQ(0, epoll_ctl(waiting[i], EPOLL_CTL_ADD, fd, &event));
		EXPECT_EQ(0, epoll_wait(waiting[i], &event, 1, 0));
	}
	ASSERT_EQ(0, descriptor_enable(fd));
	EXPECT_TRUE(descriptor_burn(fd, 0, 1));
	/* An epoll instance that has not been woken does not poll the file. */
	for (unsigned int i = 0; i < ARRAY_SIZE(waiting); i++)
		EXPECT_EQ(1, epoll_wait(waiting[i], &event, 1, 20000));
}

static void no_op(int signal)
{
	(void)signal;
}

TEST_F(records, are_waited_for_until_a_signal_interrupts_the_read)
{
	const struct sigaction action = { .sa_handler = no_op };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_OPEN(fd, 16);
	ASSERT_TRUE(reader_waits(read_once));
	EXPECT_TRUE(await(pthread_kill(beside[0], SIGUSR1) || reader.done));
	stop_beside();
	EXPECT_EQ(-1, reader.result);
	EXPECT_EQ(EINTR, reader.error);
}

TEST_F(records, are_not_waited_for_with_O_NONBLOCK)
{
	struct profil_record r;

	ASSERT_OPEN(fd, 16);
	/* There are no targets yet, so this is not the end. */
	EXPECT_EQ(0, polled(0));
	EXPECT_EQ(0, read_all());
	ASSERT_EQ(0, fcntl(fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERROR(EAGAIN, read(fd, &r, sizeof(r)));
	EXPECT_EQ(-1, write(fd, &r, sizeof(r)));
	EXPECT_EQ(0U, nr);
}

/* Leaves a record of each of @n ticks at least, for read() calls that do not wait. */
static struct profil_stats leave_records(unsigned int n)
{
	struct profil_stats s;

	open_session(PROFIL_SCOPE_PROCESS, MODES_ALL, ENOUGH);
	MUST(descriptor_burn(fd, 0, n) && !descriptor_disable(fd, &s));
	MUST(!fcntl(fd, F_SETFL, O_NONBLOCK));
	return s;
}

TEST_F(records, are_read_whole_and_as_many_as_fit)
{
	struct profil_stats s = leave_records(50);
	unsigned int all;
	ssize_t size, n;

	for (unsigned int i = 0; i < 8; i++) {
		/* The buffer is too small for any record. */
		for (size = 1; size <= (ssize_t)HEADER; size += 13)
			EXPECT_ERROR(EINVAL, read(fd, reader.buffer, size));
		/* The first record is returned as soon as the buffer is large enough. */
		for (size = HEADER + 1; (n = read(fd, reader.buffer, size)) < 0; size++) {
			ASSERT_EQ(EINVAL, errno);
			ASSERT_GT((ssize_t)sizeof(reader.buffer), size);
		}
		EXPECT_EQ(size, n);
		EXPECT_EQ(1, take(reader.buffer, n));
		/* With a larger buffer, read() returns as many whole records as fit. */
		if (i % 2) {
			n = read(fd, reader.buffer, 3 * size + size / 2);
			EXPECT_LT(0, n);
			EXPECT_LT(0, take(reader.buffer, n));
		}
	}
	all = nr;
	EXPECT_EQ(0, read_all());
	EXPECT_LT(all, nr);
	EXPECT_EQ(s.outside, nr);
}

TEST_F(records, cannot_be_read_into_unmapped_memory)
{
	struct profil_stats s = leave_records(10);
	void *volatile nowhere = (void *)8;

	EXPECT_ERROR(EFAULT, read(fd, nowhere, 4096));
	/* No record is lost. */
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(s.outside, nr);
}

TEST_F(records, are_read_whole_up_to_memory_that_is_not_mapped)
{
	struct profil_stats s = leave_records(50);
	char *pages = map_private(2 * PAGE);
	ssize_t n;

	ASSERT_EQ(0, munmap(pages + PAGE, PAGE));
	for (size_t room = 8; nr < s.outside && room <= PAGE; room += 8) {
		n = read(fd, pages + PAGE - room, PAGE);
		if (n == -1) {
			ASSERT_EQ(EFAULT, errno);
			continue;
		}
		ASSERT_LT(0, n);
		EXPECT_GE((ssize_t)room, n);
		ASSERT_LT(0, take(pages + PAGE - room, n));
	}
	EXPECT_EQ(s.outside, nr);
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(s.outside, nr);
}

static int tick_in_child(void)
{
	prctl(PR_SET_NAME, "a child");
	return burn_outside(4, 10) ? 0 : 31;
}

static int join_and_tick(void)
{
	MUST(!descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space));
	return tick_in_child();
}

TEST_F(records, end_after_the_last_target_has_been_reaped)
{
	siginfo_t info;
	pid_t child;

	fd = must_enable(must_open(.nr_records = ENOUGH));
	child = spawn(join_and_tick);
	ASSERT_EQ(0, waitid(P_PID, child, &info, WEXITED | WNOWAIT));
	EXPECT_EQ(POLLIN, polled(0));
	EXPECT_EQ(1U, stats_now().targets);
	EXPECT_EQ(0, read_all());
	EXPECT_EQ(0, polled(0) & POLLHUP);
	EXPECT_EQ(0, status_of(child));

	/* Ticks can come until the very end of the exit, after the child has been reaped. */
	EXPECT_TRUE(await(read_all() == 1));
	EXPECT_EQ(POLLHUP, polled(0));
	EXPECT_EQ(0, read(fd, reader.buffer, sizeof(reader.buffer)));
	EXPECT_EQ(0U, EXPECT_ALL_READ().targets);
	EXPECT_LE(5U, count_records(addr(loops_text), 4));
	expect_ids(_metadata, child);
	for_each_record(r)
		EXPECT_EQ(shared->space, r->space);
	EXPECT_EQ(0, strcmp("a child", records[nr - 1]->comm));
}

TEST_F(records, are_all_returned_before_the_end_of_file)
{
	fd = must_enable(must_open(.nr_records = ENOUGH));
	EXPECT_EQ(0, status_of(spawn(join_and_tick)));
	EXPECT_TRUE(await(!stats_now().targets));
	EXPECT_EQ(POLLIN, polled(0) & POLLIN);
	EXPECT_EQ(1, read_all());
	EXPECT_EQ(stats_now().outside, nr);
	EXPECT_LE(10U, nr);
	EXPECT_EQ(POLLHUP, polled(0));

	/* With a new target there may be more records. */
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	EXPECT_EQ(0, read_all());
	EXPECT_TRUE(descriptor_burn(fd, 0, 5));
	EXPECT_EQ(POLLIN, polled(0));
}

TEST_F(records, are_not_waited_for_after_the_last_target_has_exited)
{
	pid_t child;

	/* The child is a target, but leaves no records, because the session is disabled. */
	ASSERT_OPEN(fd, ENOUGH);
	child = SPAWN((join_session(PROFIL_SCOPE_PROCESS), 0));
	ASSERT_TRUE(step_is(1));
	ASSERT_TRUE(reader_waits(read_once));
	shared->step = 2;
	EXPECT_EQ(0, status_of(child));
	expect_reader_ends(_metadata);
}

/* A child creates the session, which ends when the child exits. */
static void outlive_creator(struct __test_metadata *_metadata, pid_t creator)
{
	shared->step = 1;
	EXPECT_EQ(0, status_of(creator));
	EXPECT_TRUE(await(stats_now().state == PROFIL_STATE_ENDED));
}

static const struct profil_open with_records = { .nr_records = ENOUGH };

TEST_F(records, can_be_read_after_the_session_has_ended)
{
	pid_t creator = spawn_creator(with_records);
	struct profil_stats s;
	struct mapping m;

	ASSERT_TRUE(mapping_of(loop_at(0), &m));
	must_sample(fd, PROFIL_SCOPE_PROCESS, NULL, 0);
	EXPECT_TRUE(descriptor_burn(fd, 0, 20));
	outlive_creator(_metadata, creator);
	s = stats_now();
	EXPECT_EQ((u32)PROFIL_END_CREATOR, s.end);
	EXPECT_TRUE(accounted(&s));
	EXPECT_EQ(POLLIN, polled(0) & POLLIN);
	EXPECT_EQ(1, read_all());
	EXPECT_EQ(POLLHUP, polled(0));
	EXPECT_EQ(s.outside, nr);
	EXPECT_LE(20U, nr);
	expect_described(_metadata, addr(loops_text), 0, &m, 1);
}

TEST_F(records, are_not_waited_for_after_the_end_of_the_session)
{
	pid_t creator = spawn_creator(with_records);

	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, NULL));
	ASSERT_TRUE(reader_waits(read_once));
	outlive_creator(_metadata, creator);
	expect_reader_ends(_metadata);
}

TEST_F(records, are_not_left_if_nr_records_is_0)
{
	struct profil_stats s;

	open_session(PROFIL_SCOPE_PROCESS, MODES_ALL, 0);
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	EXPECT_EQ(0, polled(0) & POLLIN);
	ASSERT_DISABLE(fd, &s);
	EXPECT_LE(10U, s.outside);
	EXPECT_EQ(0U, s.dropped_record);
}

/*
 * Processes that exec, exit and fork
 */

static int tick_and_exec(void)
{
	MUST(!join_and_tick());
	return execve(program, new_argv, new_envp);
}

TEST_F(records, describe_a_process_that_has_execed_and_exited_since)
{
	unsigned int old = 0, new = 0;
	u64 new_space = 0, text;
	struct mapping m, new_m;
	pid_t child;

	program_create();
	ASSERT_TRUE(mapping_of(loop_at(4), &m));
	fd = must_enable(must_open(.modes = PROFIL_MODE_USER, .exec = PROFIL_EXEC_FOLLOW,
				   .nr_records = ENOUGH));
	child = spawn(tick_and_exec);
	text = text_of_program(child, &new_m);
	EXPECT_TRUE(await(read_all() || count_records(text, NEW_LOOP) >= 10));
	EXPECT_EQ(128 + SIGKILL, killed(child));
	expect_end(_metadata);
	EXPECT_ALL_READ();
	expect_ids(_metadata, child);
	for_each_record(r) {
		if (r->space == shared->space && in_loop(r, addr(loops_text), 4)) {
			old++;
			EXPECT_EQ(0, strcmp("a child", r->comm));
			EXPECT_DESCRIBES(r, &m);
		} else if (r->space != shared->space) {
			/* All these records are of the same address space. */
			EXPECT_TRUE(!new_space || new_space == r->space);
			new_space = r->space;
			if (!in_loop(r, text, NEW_LOOP))
				continue;
			new++;
			EXPECT_EQ(0, strncmp(strrchr(program, '/') + 1, r->comm, 15));
			EXPECT_DESCRIBES(r, &new_m);
		}
	}
	EXPECT_LE(5U, old);
	EXPECT_LE(5U, new);
	unlink(program);
}

#define CLOCK_NS	100000

/*
 * Checks the records of children that exec or exit: those with a flag have no pc, and all others
 * have one. Returns the number of those with @flag.
 */
static unsigned int count_without_pc(struct __test_metadata *_metadata, u32 flag)
{
	const u32 no_pc = PROFIL_RECORD_EXEC | PROFIL_RECORD_EXIT;
	unsigned int n = 0, unmapped = 0;

	for_each_record(r) {
		n += !!(r->flags & flag);
		if (!(r->flags & no_pc)) {
			EXPECT_NE(0U, r->pc);
			unmapped += !(r->flags & PROFIL_RECORD_MAPPED);
			continue;
		}
		EXPECT_NE(no_pc, r->flags & no_pc);
		EXPECT_EQ((u32)PROFIL_RECORD_SYSTEM, r->flags & ~no_pc);
		EXPECT_EQ(0U, r->pc + r->start + r->end + r->offset + r->ino);
		EXPECT_EQ(0, strcmp("", path_of(r)));
		EXPECT_NE(0U, r->space);
		EXPECT_LE(1U, r->periods);
		EXPECT_EQ(-1, r->syscall);
		EXPECT_EQ(0U, r->arch);
	}
	/* While a task changes its own mappings, they cannot be looked up at the tick. */
	TH_LOG("%u records, %u with the flag, %u without mapping", nr, n, unmapped);
	if (!preempt_rt())
		EXPECT_GE(nr / 4, unmapped);
	return n;
}

static int join_and_exec_often(void)
{
	MUST(!descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space));
	exec_again(4);
	return 40;
}

/* Reads the records of @child until it exits, so that there is always room. */
static void read_until_exit(struct __test_metadata *_metadata, pid_t child)
{
	while (task_state(child) != 'Z' && polled(20000) == POLLIN) {
		ASSERT_LE(0, read_all());
		usleep(20000);
	}
	EXPECT_EQ(0, status_of(child));
}

TEST_F_TIMEOUT(records, are_left_by_ticks_in_exec, 150)
{
	unsigned int old = 0;
	pid_t child;

	fd = must_enable(must_open(.exec = PROFIL_EXEC_FOLLOW, .nr_records = ENOUGH,
				   .period = CLOCK_NS));
	child = spawn(join_and_exec_often);
	read_until_exit(_metadata, child);
	expect_end(_metadata);
	expect_all_periods(_metadata);
	EXPECT_LE(20U, count_without_pc(_metadata, PROFIL_RECORD_EXEC));
	for_each_record(r) {
		EXPECT_EQ(child, r->pid);
		old += r->flags & PROFIL_RECORD_EXEC && r->space == shared->space;
	}
	/* The first exec frees memory after the change to the new address space. */
	EXPECT_LT(0U, old);
}

static int join_grow_and_exit(void)
{
	MUST(!descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space));
	grow(64);
	return 0;
}

TEST_F_TIMEOUT(records, are_left_by_ticks_in_exit, 150)
{
	unsigned int seen = 0, exiting;
	pid_t child;

	/* Growing takes long on a slow host. */
	fd = must_enable(must_open(.nr_records = ENOUGH, .period = 10 * CLOCK_NS));
	for (unsigned int round = 0; round < 2; round++) {
		exiting = 0;
		child = spawn(join_grow_and_exit);
		read_until_exit(_metadata, child);
		expect_end(_metadata);
		for_each_new_record(r, seen) {
			EXPECT_EQ(child, r->pid);
			EXPECT_EQ(child, r->tid);
			EXPECT_EQ(shared->space, r->space);
			exiting += !!(r->flags & PROFIL_RECORD_EXIT);
		}
		EXPECT_LE(10U, exiting);
	}
	expect_all_periods(_metadata);
	EXPECT_LE(20U, count_without_pc(_metadata, PROFIL_RECORD_EXIT));
	EXPECT_EQ(0U, count_without_pc(_metadata, PROFIL_RECORD_EXEC));
}

TEST_F_TIMEOUT(records, are_dropped_in_exec_and_exit_if_there_is_no_room, 150)
{
	struct profil_stats s;

	fd = must_enable(must_open(.exec = PROFIL_EXEC_FOLLOW, .nr_records = 1,
				   .period = CLOCK_NS));
	EXPECT_EQ(0, status_of(spawn(join_and_exec_often)));
	EXPECT_TRUE(await(!stats_now().targets));
	ASSERT_DISABLE(fd, &s);
	EXPECT_EQ(1U, s.outside);
	EXPECT_EQ(s.dropped, s.dropped_record);
	EXPECT_LE(20U, s.dropped);
}

TEST_F_TIMEOUT(records, are_not_left_in_exec_and_exit_by_a_session_without_records, 150)
{
	struct profil_stats s;

	fd = must_enable(must_open(.exec = PROFIL_EXEC_FOLLOW, .period = CLOCK_NS));
	EXPECT_EQ(0, status_of(spawn(join_and_exec_often)));
	EXPECT_TRUE(await(!stats_now().targets));
	EXPECT_EQ(0, status_of(spawn(join_grow_and_exit)));
	expect_end(_metadata);
	ASSERT_DISABLE(fd, &s);
	EXPECT_EQ(0U, nr);
	EXPECT_LE(20U, s.dropped_exec);
	EXPECT_LE(10U, s.dropped_exit);
	EXPECT_EQ(s.dropped, s.dropped_exec + s.dropped_exit);
}

TEST_F(records, name_the_address_space_to_which_ranges_can_be_added)
{
	struct profil_range range = range_of_loops(page, 4);
	u64 space = 0, moved, text;
	struct mapping m;
	pid_t child;

	program_create();
	fd = must_enable(must_open(.exec = PROFIL_EXEC_FOLLOW, .nr_records = ENOUGH));
	child = spawn(tick_and_exec);
	text = text_of_program(child, &m);
	moved = text - addr(loops_text);
	ASSERT_TRUE(await(read_all() ||
			  records_where(r, in_loop(r, text, NEW_LOOP) &&
					r->space != shared->space && (space = r->space))));
	range.start += moved;
	range.end += moved;
	range.offset += moved;
	ASSERT_EQ(0, descriptor_add(fd, space, &range, 1));
	EXPECT_TRUE(await(count_of(NEW_LOOP) >= 10));
	EXPECT_EQ(128 + SIGKILL, killed(child));
	EXPECT_TRUE(await(!stats_now().targets));
	EXPECT_EQ(EXPECT_ALL_READ().hit, counters_sum(page, 4, LOOPS));
	unlink(program);
}

TEST_F(records, of_forked_children_have_the_ids_of_the_children)
{
	pid_t child;

	fd = must_open(.modes = PROFIL_MODE_USER, .fork = PROFIL_FORK_SHARE, .nr_records = ENOUGH);
	ASSERT_EQ(0, descriptor_attach(fd, PROFIL_SCOPE_PROCESS, 0, &shared->space));
	must_enable(fd);
	child = spawn(tick_in_child);
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	EXPECT_EQ(0, status_of(child));
	EXPECT_ALL_READ();
	EXPECT_LT(0U, count_records(addr(loops_text), 4));
	for_each_record(r) {
		if (in_loop(r, addr(loops_text), 4)) {
			EXPECT_EQ(child, r->pid);
			EXPECT_EQ(child, r->tid);
			EXPECT_EQ(0, strcmp("a child", r->comm));
		} else if (in_loop(r, addr(loops_text), 0)) {
			EXPECT_EQ(getpid(), r->pid);
		}
		EXPECT_EQ(r->pid == getpid(), r->space == shared->space);
	}
}

/*
 * Time namespaces
 */

static bool times_are_between(u64 first, u64 last)
{
	return !records_where(r, r->time < first || r->time > last);
}

TEST_F(records, have_the_time_of_the_readers_time_namespace)
{
	u64 before = now_ns();

	SKIP_IF(unshare(CLONE_NEWUSER | CLONE_NEWTIME), "no time namespace: %s", strerror(errno));
	ASSERT_EQ(0, file_write("/proc/self/timens_offsets", "monotonic 1000000 0"));
	fd = must_enable(must_open(.nr_records = ENOUGH));
	/* The child's monotonic clock is ahead of this process's. It leaves records to this one. */
	EXPECT_CHILD({
		before = now_ns();
		MUST(!join_and_tick());
		MUST(take(reader.buffer, read(fd, reader.buffer, 1024)) >= 5);
		MUST(times_are_between(before, now_ns()));
	});
	expect_end(_metadata);
	EXPECT_LE(1U, nr);
	EXPECT_TRUE(times_are_between(before, now_ns()));
}

/*
 * pid namespaces
 */

TEST_F(records, have_the_ids_of_the_creators_pid_namespace)
{
	pid_t child;

	SKIP_IF(geteuid(), "only root can make a pid namespace");
	fd = must_enable(must_open(.nr_records = ENOUGH));
	/* The child is process 1 of the new namespace. */
	ASSERT_EQ(0, unshare(CLONE_NEWPID));
	child = spawn(join_and_tick);
	ASSERT_LT(1, child);
	EXPECT_EQ(0, status_of(child));
	expect_end(_metadata);
	EXPECT_LE(10U, nr);
	expect_ids(_metadata, child);
}

TEST_F(records, have_id_0_if_the_creator_cannot_see_the_process)
{
	pid_t child;

	SKIP_IF(geteuid(), "only root can make a pid namespace");
	ASSERT_EQ(0, unshare(CLONE_NEWPID));
	child = spawn_creator(with_records);
	must_sample(fd, PROFIL_SCOPE_PROCESS, NULL, 0);
	EXPECT_TRUE(descriptor_burn(fd, 0, 10));
	EXPECT_EQ(0, read_all());
	shared->step = 1;
	EXPECT_EQ(0, status_of(child));
	EXPECT_LE(5U, nr);
	expect_ids(_metadata, 0);
}

TEST_HARNESS_MAIN
