// SPDX-License-Identifier: GPL-2.0
/*
 * Programs compiled with gcc -pg (gmon_work.c): compares their gmon.out with the kernel's
 * statistics, and with the file that the C library writes without the library.
 *
 * The programs are built as PIE and non-PIE, with and without the library, and with the shared and
 * the static library.
 */
#include "kselftest_harness.h"

#include <math.h>
#include <stdarg.h>
#include <sys/gmon_out.h>
#include <sys/mount.h>

#include "kernel.h"
#include "loop.h"
#include "old.h"

#define LIBRARY		"libprofil.so.1"
#define USER		1000
#define MOST_CPU	400		/* limit of CPU time, in seconds */

static char dir[64];		/* directory for the files of a test; the working directory */

/*
 * Running a program
 */

/* How to run a program, and its process. */
static struct run {
	const char *program;
	const char *task;
	const char *preload;
	const char *rate;
	const char *prefix;
	long memlock;		/* RLIMIT_MEMLOCK, as an ordinary user; or 0 */
	bool no_device;
	pid_t pid;
} run;

#define NO_MEMLOCK	1	/* less than a page: nothing can be locked */

static void prepare(void)
{
	MUST(device_fd() >= 0);
	strcpy(dir, "/tmp/gmon-XXXXXX");
	MUST(mkdtemp(dir) && !chmod(dir, 0777) && !chdir(dir));
}

static void clean(void)
{
	char command[sizeof(dir) + 16];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	MUST(!system(command));
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/*
 * In the child: redirects the output to files, sets up the environment as @run says, and executes.
 */
static void exec_work(void)
{
	const struct rlimit cpu = { MOST_CPU, MOST_CPU };
	const char *path = path_beside(run.program);

	unlink("output");
	unlink("errors");
	MUST(freopen("output", "w", stdout) && freopen("errors", "w", stderr));
	if (run.no_device)
		MUST(!unshare(CLONE_NEWNS) &&
		     !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
		     !mount("none", "/dev", "tmpfs", 0, "mode=755"));
	MUST(!setrlimit(RLIMIT_CPU, &cpu));
	if (run.memlock) {
		limit_memlock(run.memlock);
		MUST(geteuid() || !setresuid(USER, USER, USER));
	}
	set("LD_PRELOAD", run.preload);
	set("PROFIL_GMON_RATE", run.rate);
	set("GMON_OUT_PREFIX", run.prefix);
	execl(path, path, run.task, NULL);
	_exit(127);
}

static int work(struct run how)
{
	run = how;
	run.pid = FORK(exec_work());
	return status_of(run.pid);
}

/* Returns the number that the program printed for @key; the largest one if it printed none. */
static u64 said(const char *key)
{
	char start[32];

	snprintf(start, sizeof(start), "%s ", key);
	return file_number("output", start);
}

/* Has it printed a message with these words, or, if @of is NULL, any? */
static bool complained(const char *of)
{
	struct stat st;

	return of ? file_has("errors", of, NULL, 0) : stat("errors", &st) || st.st_size;
}

/*
 * gmon.out
 */

struct profile {
	u64 size;
	u64 records;		/* number of histogram records */
	u64 rate;
	u64 low, high;
	double bin;		/* bytes of text for a bin */
	u64 hits;
	u64 loops[LOOPS];	/* hits of each loop */
	u64 calls;		/* calls of leaf() */
	u64 arcs;		/* offset of the first record that is not a histogram */
	u8 bytes[4 << 20];
};

static struct profile profile, other;

static void load_hist(struct profile *p, const struct gmon_hist_hdr *hdr, const u8 *bins)
{
	uintptr_t low, high;
	int32_t size, rate;
	u64 loops = said("loops"), pc;
	u16 n;
	int i;

	memcpy(&low, hdr->low_pc, sizeof(low));
	memcpy(&high, hdr->high_pc, sizeof(high));
	memcpy(&size, hdr->hist_size, sizeof(size));
	memcpy(&rate, hdr->prof_rate, sizeof(rate));

	if (!p->records++ || low < p->low)
		p->low = low;
	if (high > p->high)
		p->high = high;
	p->rate = rate;
	p->bin = (double)(high - low) / size;
	for (i = 0; i < size; i++) {
		memcpy(&n, bins + i * sizeof(n), sizeof(n));
		p->hits += n;
		pc = low + i * p->bin;
		if (pc >= loops && pc < loops + LOOPS * LOOP_SIZE)
			p->loops[(pc - loops) / LOOP_SIZE] += n;
	}
}

static void load_arc(struct profile *p, const struct gmon_cg_arc_record *arc)
{
	uintptr_t self;
	u32 count;

	memcpy(&self, arc->self_pc, sizeof(self));
	memcpy(&count, arc->count, sizeof(count));
	/* mcount() gets the return address, which is behind its call in leaf(). */
	if (self >= said("leaf") && self < said("leaf") + 32)
		p->calls += count;
}

/* Reads the file @name and checks it strictly. Returns false if it is not correct. */
static bool load(struct profile *p, const char *name)
{
	FILE *f = fopen(name, "re");
	u64 at = sizeof(struct gmon_hdr);
	const struct gmon_hist_hdr *hist;
	int32_t size;

	memset(p, 0, sizeof(*p));
	if (!f)
		return false;
	p->size = fread(p->bytes, 1, sizeof(p->bytes), f);
	fclose(f);
	if (p->size < at || p->size == sizeof(p->bytes) ||
	    memcmp(p->bytes, "gmon\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", at))
		return false;

	while (at < p->size && p->bytes[at] == GMON_TAG_TIME_HIST) {
		hist = (void *)&p->bytes[++at];
		at += sizeof(*hist);
		if (at > p->size)
			return false;
		memcpy(&size, hist->hist_size, sizeof(size));
		if (size <= 0 || (u64)size > (p->size - at) / 2 ||
		    memcmp(hist->dimen, "seconds", 8) || hist->dimen_abbrev != 's')
			return false;
		load_hist(p, hist, &p->bytes[at]);
		at += size * 2;
	}
	p->arcs = at;
	while (at < p->size && p->bytes[at] == GMON_TAG_CG_ARC) {
		if (++at + sizeof(struct gmon_cg_arc_record) > p->size)
			return false;
		load_arc(p, (void *)&p->bytes[at]);
		at += sizeof(struct gmon_cg_arc_record);
	}
	return at == p->size;
}

/* Returns true if the arcs of both files are the same bytes. */
static bool same_arcs(const struct profile *a, const struct profile *b)
{
	return a->size - a->arcs == b->size - b->arcs && a->size > a->arcs &&
	       !memcmp(a->bytes + a->arcs, b->bytes + b->arcs, a->size - a->arcs);
}

static u64 in_loops(const struct profile *p)
{
	return counters_sum(p->loops, sizeof(*p->loops), LOOPS);
}

/* Checks the time of the loops that gprof prints, and the time that it assumes for a sample. */
static void expect_gprof(struct __test_metadata *_metadata, u64 hits, u64 rate)
{
	double percent, cumulative, self, seconds = -1, sample = -1;
	char command[2 * PATH_MAX], line[256];
	FILE *f;

	snprintf(command, sizeof(command), "gprof -b -p %s gmon.out",
		 path_beside(run.program));
	f = popen(command, "re");
	ASSERT_NE(NULL, f);
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Each sample counts as %lf seconds.", &sample);
		line[strcspn(line, "\n")] = 0;
		if (strstr(line, " loops_text") &&
		    sscanf(line, "%lf %lf %lf", &percent, &cumulative, &self) == 3)
			seconds = self;
	}
	EXPECT_EQ(0, pclose(f));
	EXPECT_GT(0.000001, fabs(sample - 1.0 / rate));
	EXPECT_GT(0.0051, fabs(seconds - (double)hits / rate));
}

/* Runs a program, which must write its profile to gmon.out. */
static void profile_of(struct run how)
{
	MUST(!work(how));
	MUST(load(&profile, "gmon.out"));
}

static u64 tick_hz(void)
{
	struct profil_query query;

	return device_query(&query) ? 0 : query.tick_hz;
}

/*
 * Tests for each way to link the program
 */

FIXTURE(form) {
};

FIXTURE_VARIANT(form) {
	const char *program;
	const char *preload;
};

FIXTURE_VARIANT_ADD(form, pie) { .program = "gmon_work", .preload = LIBRARY };
FIXTURE_VARIANT_ADD(form, no_pie) { .program = "gmon_work_no_pie", .preload = LIBRARY };
FIXTURE_VARIANT_ADD(form, linked) { .program = "gmon_work_linked" };
FIXTURE_VARIANT_ADD(form, linked_statically) { .program = "gmon_work_static" };
FIXTURE_VARIANT_ADD(form, linked_statically_pie) { .program = "gmon_work_static_pie" };

FIXTURE_SETUP(form)
{
	prepare();
}

FIXTURE_TEARDOWN(form)
{
	clean();
}

static struct run form_of(const FIXTURE_VARIANT(form) *variant, const char *task)
{
	return (struct run) {
		.program = variant->program,
		.preload = variant->preload,
		.task = task,
	};
}

TEST_F(form, the_kernel_counts_the_histogram)
{
	profile_of(form_of(variant, "burn"));
	EXPECT_FALSE(complained(NULL));
	EXPECT_EQ(said("hit"), profile.hits);
	EXPECT_LE(20, profile.loops[3]);
	EXPECT_EQ(profile.loops[3], in_loops(&profile));
	EXPECT_EQ(tick_hz(), profile.rate);
	EXPECT_EQ(1, profile.records);
	EXPECT_EQ(4, profile.bin);
	EXPECT_EQ(1000, profile.calls);
}

TEST_F(form, gprof_reads_it)
{
	profile_of(form_of(variant, "burn"));
	expect_gprof(_metadata, profile.loops[3], tick_hz());
}

TEST_F(form, all_threads_are_in_the_histogram)
{
	profile_of(form_of(variant, "threads"));
	EXPECT_EQ(said("hit"), profile.hits);
	for (unsigned int i = 0; i < LOOPS; i++)
		EXPECT_LE(3, profile.loops[i]);
}

TEST_F(form, moncontrol_stops_and_continues)
{
	profile_of(form_of(variant, "control"));
	EXPECT_FALSE(complained(NULL));
	EXPECT_LE(3, profile.loops[0]);
	EXPECT_EQ(0, profile.loops[1]);
	EXPECT_LE(3, profile.loops[2]);
	EXPECT_LE(3, profile.loops[3]);
	EXPECT_LE(said("hit"), profile.hits);
	EXPECT_GE(said("hit") + 8, profile.hits);
	EXPECT_EQ(3010, profile.calls);
}

TEST_F(form, monstartup_after_mcleanup_starts_another_profile)
{
	profile_of(form_of(variant, "part"));
	EXPECT_EQ(said("hit"), profile.hits);
	EXPECT_EQ(said("low"), profile.low);
	EXPECT_EQ(said("low") + 2 * LOOP_SIZE, profile.high);
	EXPECT_LE(3, profile.loops[2]);
	EXPECT_EQ(profile.loops[2], in_loops(&profile));
}

/*
 * The C library writes no file when it has lost arcs. Another program's gmon.out must stay
 * unchanged.
 */
TEST_F(form, when_the_c_library_writes_no_file_neither_does_libprofil)
{
	ASSERT_EQ(0, work(form_of(variant, "overflow")));
	EXPECT_FALSE(complained("libprofil"));
	EXPECT_EQ(-1, access("gmon.out", F_OK));

	profile_of(form_of(variant, "calls"));
	ASSERT_EQ(0, rename("gmon.out", "kept"));
	ASSERT_EQ(0, utimensat(AT_FDCWD, "kept", (struct timespec[2]) {}, 0));
	ASSERT_EQ(0, work(form_of(variant, "overflow")));
	EXPECT_FALSE(complained("libprofil"));
	ASSERT_TRUE(load(&other, "gmon.out"));
	EXPECT_EQ(profile.size, other.size);
	EXPECT_EQ(0, memcmp(profile.bytes, other.bytes, sizeof(other.bytes)));
}

TEST_F(form, mcleanup_has_an_effect_only_once)
{
	profile_of(form_of(variant, "finish"));
	EXPECT_FALSE(complained(NULL));
	EXPECT_EQ(0, profile.calls);
}

/*
 * Tests that are the same for each way to link the program
 */

FIXTURE(gmon) {
};

FIXTURE_SETUP(gmon)
{
	prepare();
}

FIXTURE_TEARDOWN(gmon)
{
	clean();
}

#define PRELOADED(...)	((struct run) { .program = "gmon_work", .preload = LIBRARY, __VA_ARGS__ })

TEST_F(gmon, arcs_are_as_the_c_library_writes_them)
{
	const char *const programs[] = { "gmon_work", "gmon_work_no_pie" };

	for (unsigned int i = 0; i < ARRAY_SIZE(programs); i++) {
		struct run how = { .program = programs[i], .task = "calls" };

		ASSERT_EQ(0, work(how));
		ASSERT_TRUE(load(&other, "gmon.out"));
		ASSERT_EQ(sysconf(_SC_CLK_TCK), other.rate);
		ASSERT_EQ(1234, other.calls);

		how.preload = LIBRARY;
		profile_of(how);
		EXPECT_EQ(tick_hz(), profile.rate);
		EXPECT_TRUE(same_arcs(&profile, &other));
		EXPECT_EQ(other.low, profile.low);
		EXPECT_EQ(other.high, profile.high);
	}
}

TEST_F(gmon, a_child_has_its_own_profile)
{
	char name[64];

	ASSERT_EQ(0, work(PRELOADED(.task = "fork", .prefix = "prof")));
	EXPECT_FALSE(complained(NULL));
	snprintf(name, sizeof(name), "prof.%d", run.pid);
	ASSERT_TRUE(load(&profile, name));
	snprintf(name, sizeof(name), "prof.%llu", (unsigned long long)said("child"));
	ASSERT_TRUE(load(&other, name));

	/* The child begins with the counts of its parent. */
	EXPECT_EQ(said("hit"), profile.hits);
	EXPECT_LE(said("child_hit"), other.hits);
	EXPECT_LE(3, profile.loops[0]);
	EXPECT_LE(profile.loops[0], other.loops[0]);
	EXPECT_EQ(0, profile.loops[1]);
	EXPECT_LE(8, other.loops[1]);
	EXPECT_LE(3, profile.loops[2]);
	EXPECT_EQ(0, other.loops[2]);
}

TEST_F(gmon, the_file_is_where_the_c_library_puts_it)
{
	char name[64], prefix[PATH_MAX + 16];

	ASSERT_EQ(0, work(PRELOADED(.task = "burn", .prefix = "prof")));
	snprintf(name, sizeof(name), "prof.%d", run.pid);
	ASSERT_TRUE(load(&profile, name));
	EXPECT_EQ(said("hit"), profile.hits);
	EXPECT_EQ(-1, access("gmon.out", F_OK));

	/* If it cannot write there, the C library uses another name, and so does the library. */
	profile_of(PRELOADED(.task = "burn", .prefix = "no/such/directory"));
	EXPECT_EQ(said("hit"), profile.hits);
	memset(prefix, 'x', sizeof(prefix) - 1);
	prefix[sizeof(prefix) - 1] = 0;
	ASSERT_EQ(0, unlink("gmon.out"));
	profile_of(PRELOADED(.task = "burn", .prefix = prefix));
	EXPECT_EQ(said("hit"), profile.hits);

	/* The C library does not follow symbolic links, and libprofil does not, either. */
	ASSERT_EQ(0, rename("gmon.out", "elsewhere"));
	ASSERT_EQ(0, symlink("elsewhere", "gmon.out"));
	ASSERT_TRUE(load(&profile, "elsewhere"));
	ASSERT_EQ(0, work(PRELOADED(.task = "calls")));
	EXPECT_FALSE(complained("libprofil"));
	ASSERT_TRUE(load(&other, "elsewhere"));
	EXPECT_EQ(profile.arcs, other.arcs);
	EXPECT_EQ(profile.hits, other.hits);
}

/* An existing file is replaced, even if it is longer, or has just been written. */
TEST_F(gmon, an_existing_file_is_replaced)
{
	profile_of(PRELOADED(.task = "burn"));
	ASSERT_EQ(0, truncate("gmon.out", 3 << 20));
	for (unsigned int i = 0; i < 5; i++) {
		profile_of(PRELOADED(.task = "calls"));
		EXPECT_EQ(tick_hz(), profile.rate);
		EXPECT_EQ(1234, profile.calls);
	}
}

TEST_F(gmon, the_rate_is_PROFIL_GMON_RATE)
{
	static const struct {
		const char *text;
		u64 rate;	/* 0: the tick's rate is used, with a message */
	} rates[] = {
		{ "1000", 1000 }, { "8128", 8128 }, { "20000", 20000 },
		{ "", 0 }, { "0", 0 }, { "-1", 0 }, { "1000x", 0 }, { "fast", 0 },
		{ "500000000", 0 }, { "2000000000", 0 }, { "18446744073709551617", 0 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rates); i++) {
		ASSERT_EQ(0, work(PRELOADED(.task = "calls", .rate = rates[i].text)));
		EXPECT_EQ(!rates[i].rate, complained("libprofil: gmon: PROFIL_GMON_RATE"));
		ASSERT_TRUE(load(&profile, "gmon.out"));
		EXPECT_EQ(rates[i].rate ?: tick_hz(), profile.rate);
	}
	profile_of(PRELOADED(.task = "burn", .rate = "1000"));
	EXPECT_EQ(said("hit"), profile.hits);
	EXPECT_LE(20, profile.loops[3]);
}

/* Needs more than 65,535 samples of one place, which takes a minute if the machine is busy. */
TEST_F_TIMEOUT(gmon, counts_above_65535_survive, 240)
{
	profile_of(PRELOADED(.task = "full", .rate = "20000"));
	EXPECT_FALSE(complained(NULL));
	EXPECT_EQ(said("hit"), profile.hits);
	EXPECT_LT(65535, profile.loops[3]);
	EXPECT_LE(3, profile.records);
	EXPECT_EQ(20000, profile.rate);
	expect_gprof(_metadata, profile.loops[3], 20000);
}

/* The library uses fewer counters, each for more text. */
TEST_F(gmon, with_a_low_RLIMIT_MEMLOCK_bins_are_larger)
{
	profile_of(PRELOADED(.task = "burn", .memlock = PAGE));
	EXPECT_FALSE(complained(NULL));
	EXPECT_EQ(said("hit"), profile.hits);
	/* A counter has 4 bytes, like the smallest bin. */
	if (profile.high - profile.low <= PAGE)
		SKIP(return, "the counters of the smallest bins fit into a page");
	EXPECT_LE(8, profile.bin);
	EXPECT_GE(PAGE / 4 * profile.bin, profile.high - profile.low);
	EXPECT_LE(20, in_loops(&profile));
	EXPECT_EQ(1000, profile.calls);
	expect_gprof(_metadata, in_loops(&profile), tick_hz());
}

#define NOT_COUNTED	"libprofil: gmon: not counted by the kernel: "

#define EXPECT_LIBCS() do {						\
	ASSERT_TRUE(load(&profile, "gmon.out"));			\
	EXPECT_EQ(sysconf(_SC_CLK_TCK), profile.rate);			\
	EXPECT_EQ(0, said("timer_is_free"));				\
	EXPECT_LE(1, profile.loops[3]);					\
	EXPECT_EQ(1234, profile.calls);					\
} while (0)

/* If the kernel cannot count, the C library does, and a message says why. */
TEST_F(gmon, without_RLIMIT_MEMLOCK_the_c_library_counts)
{
	ASSERT_EQ(0, work(PRELOADED(.task = "spend", .memlock = NO_MEMLOCK)));
	EXPECT_TRUE(complained(NOT_COUNTED "Cannot allocate memory"));
	EXPECT_LIBCS();
}

TEST_F(gmon, without_the_device_the_c_library_counts)
{
	SKIP_IF(geteuid(), "needs a mount namespace: run as root");
	ASSERT_EQ(0, work(PRELOADED(.task = "spend", .no_device = true)));
	EXPECT_TRUE(complained(NOT_COUNTED "Function not implemented"));
	EXPECT_LIBCS();
}

/* A program that was linked with the static library, but without the options for the linker. */
TEST_F(gmon, a_static_program_without_linker_options_is_left_alone)
{
	ASSERT_EQ(0, work((struct run) { .program = "gmon_work_static_alone", .task = "spend" }));
	EXPECT_FALSE(complained(NULL));
	EXPECT_LIBCS();
}

TEST_HARNESS_MAIN
