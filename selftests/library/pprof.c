// SPDX-License-Identifier: GPL-2.0
/*
 * libprofil-pprof, used by its public header only: programs that profile themselves for pprof
 *
 * servers checks in addition that pprof reads the profiles.
 */
#include "kselftest_harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <zlib.h>

#include <profil/pprof.h>

#include "kernel.h"
#include "loop.h"
#include "old.h"
#include "pprof.pb-c.h"

#define HZ		1000
#define SAMPLES		10	/* enough to be sure that the code is sampled */
#define MESSAGE_MAX	(4U << 20)

/* ---- reading profiles ---- */

static Pprof__Profile *message;	/* the last one that was read */

/* Reads the message at offset @start of the file. If there is none, the process exits. */
static void read_message(int fd, off_t start)
{
	static u8 data[MESSAGE_MAX];
	gzFile file;
	int len;

	lseek(fd, start, SEEK_SET);
	file = gzdopen(fd, "r");
	len = gzread(file, data, sizeof(data));
	MUST(gzclose(file) == Z_OK && len > 0);
	if (message)
		pprof__profile__free_unpacked(message, NULL);
	message = pprof__profile__unpack(NULL, len, data);
	MUST(message);
}

/* Reads what profil_pprof_write() writes now. */
static void read_profile(struct profil_pprof *profile)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);

	MUST(!profil_pprof_write(profile, fd));
	read_message(fd, 0);
}

/* Returns a new profile. If there can be none, the process exits. */
static struct profil_pprof *start_profile(unsigned int hz)
{
	struct profil_pprof *profile = profil_pprof_start(hz);

	MUST(profile);
	return profile;
}

static const char *text(int64_t index)
{
	return index >= 0 && (size_t)index < message->n_string_table ?
	       message->string_table[index] : "(bad index)";
}

/* Returns the location of caller @nr; 0: where the sample is. */
static const Pprof__Location *location_at(const Pprof__Sample *sample, size_t nr)
{
	for (size_t i = 0; i < message->n_location && nr < sample->n_location_id; i++)
		if (message->location[i]->id == sample->location_id[nr])
			return message->location[i];
	return NULL;
}

static const Pprof__Mapping *mapping_of(u64 address)
{
	for (size_t i = 0; i < message->n_mapping; i++)
		if (message->mapping[i]->memory_start <= address &&
		    address < message->mapping[i]->memory_limit)
			return message->mapping[i];
	return NULL;
}

static bool has_label(const Pprof__Sample *sample, const char *key, const char *value)
{
	for (size_t i = 0; i < sample->n_label; i++)
		if (!strcmp(text(sample->label[i]->key), key))
			return !strcmp(text(sample->label[i]->str), value);
	return false;
}

/* Returns true if the innermost function of the sample is in [@start, @end). */
static bool is_in(const Pprof__Sample *sample, u64 start, u64 end)
{
	const Pprof__Location *location = location_at(sample, 0);

	return location && location->address >= start && location->address < end;
}

/* Returns the name of the innermost function of the sample, or "". */
static const char *name_of(const Pprof__Sample *sample)
{
	const Pprof__Location *location = location_at(sample, 0);

	for (size_t i = 0; location && location->n_line && i < message->n_function; i++)
		if (message->function[i]->id == location->line[0]->function_id)
			return text(message->function[i]->name);
	return "";
}

/* The number of samples for which @cond is true: that of sample i is in message->sample[i]. */
#define NR_SAMPLES(cond)	SUM_IF(message->n_sample, cond, message->sample[i]->value[0])

/* Returns the number of samples in [@start, @end), of one thread unless @thread is NULL. */
static u64 samples_in(u64 start, u64 end, const char *thread)
{
	return NR_SAMPLES(is_in(message->sample[i], start, end) &&
			  (!thread || has_label(message->sample[i], "thread", thread)));
}

static u64 samples_in_loop(unsigned int i, const char *thread)
{
	return samples_in(loop_at(i), loop_at(i) + LOOP_BLOCK, thread);
}

/* Reads the numbers in the first comment: ticks, lost, missed, expected. */
static bool read_comment(unsigned long long numbers[4])
{
	return message->n_comment &&
	       sscanf(text(message->comment[0]),
		      "%llu ticks, %llu lost, %llu missed, %llu expected", &numbers[0],
		      &numbers[1], &numbers[2], &numbers[3]) == 4;
}

static bool has_samples(struct profil_pprof *profile, u64 start, u64 end, const char *thread)
{
	read_profile(profile);
	return samples_in(start, end, thread) >= SAMPLES;
}

/*
 * Runs loop @i until the profile has samples of it, and reads it. To read a profile takes longer
 * than a burst.
 */
static bool burn_loop(struct profil_pprof *profile, unsigned int i)
{
	return loop_until(i, (loop_spend(i, 2 * SAMPLES, 1000000000 / HZ),
			      has_samples(profile, loop_at(i), loop_at(i) + LOOP_BLOCK, NULL)));
}

/* Returns the number of open descriptors. */
static unsigned int nr_descriptors(void)
{
	unsigned int nr = 0;

	for (int fd = 0; fd < 256; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

FIXTURE(pprof) {
	struct profil_pprof *profile;
	struct profil_query query;
	unsigned int nr_descriptors;
};

FIXTURE_SETUP(pprof)
{
	ASSERT_EQ(0, device_query(&self->query));
	self->nr_descriptors = nr_descriptors();
	self->profile = start_profile(HZ);
}

FIXTURE_TEARDOWN(pprof)
{
	errno = 12345;
	profil_pprof_stop(self->profile);
	EXPECT_EQ(12345, errno);
	EXPECT_EQ(0, pinned_bytes());
	EXPECT_EQ(self->nr_descriptors, nr_descriptors());
}

/* ---- the message ---- */

TEST_F(pprof, samples_are_in_the_code_that_runs)
{
	unsigned long long numbers[4] = {};
	u64 all = 0, cpu = 0;

	ASSERT_TRUE(burn_loop(self->profile, 3));
	EXPECT_LE(SAMPLES, samples_in_loop(3, NULL));
	EXPECT_EQ(0, samples_in_loop(2, NULL));
	for (size_t i = 0; i < message->n_sample; i++) {
		ASSERT_EQ(2, message->sample[i]->n_value);
		ASSERT_LE(1, message->sample[i]->n_location_id);
		ASSERT_NE(NULL, location_at(message->sample[i], 0));
		EXPECT_LT(0, message->sample[i]->value[0]);
		EXPECT_LE(message->sample[i]->value[0] * message->period,
			  message->sample[i]->value[1]);
		EXPECT_TRUE(has_label(message->sample[i], "mode", "user") ||
			    has_label(message->sample[i], "mode", "system"));
		all += message->sample[i]->value[0];
		cpu += message->sample[i]->value[1];
	}
	EXPECT_TRUE(read_comment(numbers));
	EXPECT_EQ(all, numbers[0]);
	EXPECT_EQ(0, numbers[1]);
	EXPECT_GE(2, message->n_comment);
	/* The statistics are older than the last samples. */
	EXPECT_LE((all + numbers[2]) * message->period, cpu + 2 * message->period);
}

TEST_F(pprof, types_period_and_times)
{
	const u64 now = cpu_ns(CLOCK_REALTIME);

	ASSERT_TRUE(burn_loop(self->profile, 0));
	EXPECT_STREQ("", text(0));
	ASSERT_EQ(2, message->n_sample_type);
	EXPECT_STREQ("samples", text(message->sample_type[0]->type));
	EXPECT_STREQ("count", text(message->sample_type[0]->unit));
	EXPECT_STREQ("cpu", text(message->sample_type[1]->type));
	EXPECT_STREQ("nanoseconds", text(message->sample_type[1]->unit));
	ASSERT_NE(NULL, message->period_type);
	EXPECT_STREQ("cpu", text(message->period_type->type));
	EXPECT_STREQ("nanoseconds", text(message->period_type->unit));
	EXPECT_EQ(1000000000 / HZ, message->period);
	EXPECT_GE(now, message->time_nanos);
	EXPECT_LT(now - 60000000000ULL, message->time_nanos);
	EXPECT_LE(now, message->time_nanos + message->duration_nanos);
	EXPECT_LT(SAMPLES * message->period / 4, message->duration_nanos);
}

/* The mapping leads from an address to the same code in the file. */
TEST_F(pprof, mappings_lead_to_the_file)
{
	char program[PATH_MAX] = "", command[2 * PATH_MAX], build_id[128] = "";
	const Pprof__Mapping *mapping;
	u8 code[LOOP_BLOCK];
	FILE *output;
	int fd;

	ASSERT_LT(0, readlink("/proc/self/exe", program, sizeof(program) - 1));
	ASSERT_TRUE(burn_loop(self->profile, 1));
	mapping = mapping_of(loop_at(1));
	ASSERT_NE(NULL, mapping);
	EXPECT_EQ(message->mapping[0], mapping);
	EXPECT_STREQ(program, text(mapping->filename));
	EXPECT_FALSE(mapping->has_functions);

	fd = open(program, O_RDONLY | O_CLOEXEC);
	ASSERT_EQ(sizeof(code), pread(fd, code, sizeof(code), loop_at(1) - mapping->memory_start +
				      mapping->file_offset));
	close(fd);
	EXPECT_EQ(0, memcmp(code, (void *)(uintptr_t)loop_at(1), sizeof(code)));

	snprintf(command, sizeof(command), "readelf -n %s | sed -n 's/.*Build ID: //p'", program);
	output = popen(command, "re");
	ASSERT_NE(NULL, output);
	EXPECT_EQ(1, fscanf(output, "%127s", build_id));
	pclose(output);
	EXPECT_STREQ(build_id, text(mapping->build_id));
}

/* Functions of libraries have their names, if they are exported. */
TEST_F(pprof, exported_functions_have_names)
{
	static u8 zeros[1 << 20];

	do {
		for (unsigned int i = 0; i < 20; i++)
			ASSERT_NE(0, adler32(1, zeros, sizeof(zeros)));
		read_profile(self->profile);
	} while (NR_SAMPLES(!strcmp(name_of(message->sample[i]), "adler32_z")) < SAMPLES);
}

TEST_F(pprof, code_without_a_file_is_sampled)
{
	const size_t size = PAGE;
	u8 *code = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const Pprof__Mapping *mapping;

	ASSERT_NE(MAP_FAILED, code);
	memcpy(code, loops_text, LOOP_SIZE);
	do {
		for (unsigned int i = 0; i < 2 * SAMPLES; i++)
			((void (*)(unsigned long))(uintptr_t)code)(LOOP_BURST);
	} while (!has_samples(self->profile, addr(code), addr(code) + LOOP_SIZE, NULL));
	mapping = mapping_of(addr(code));
	ASSERT_NE(NULL, mapping);
	EXPECT_STREQ("[anon]", text(mapping->filename));
	EXPECT_STREQ("", text(mapping->build_id));
	EXPECT_EQ(0, mapping->file_offset);
	munmap(code, size);
}

/* ---- call stacks ---- */

#define FUNCTION_MAX 128	/* bytes: no function is larger, so each is in a block of its own */
#define NOINLINE __attribute__((noinline, noclone, aligned(FUNCTION_MAX)))

static NOINLINE void stack_inner(void)
{
	for (volatile unsigned int i = 0; i < 3000000; i++)
		;
}

static NOINLINE void stack_middle(void)
{
	stack_inner();
	__asm__ volatile("");
}

static NOINLINE void stack_outer(void)
{
	stack_middle();
	__asm__ volatile("");
}

/* Is caller @nr of the sample @function? */
static bool is_caller(const Pprof__Sample *sample, size_t nr, void *function)
{
	const Pprof__Location *location = location_at(sample, nr);

	return location && location->mapping_id &&
	       location->address - (uintptr_t)function < FUNCTION_MAX;
}

/*
 * Runs functions in which the profile gets samples, and reads it. Returns the number of samples in
 * stack_inner(), and sets @whole to those with all callers: the two functions, @plugin_call unless
 * it is NULL, and others up to main() and _start().
 */
static u64 sample_chains(struct profil_pprof *profile, void (*plugin_call)(void (*)(void)),
			 u64 *whole)
{
	u64 all = 0;

	for (unsigned int i = 0; i < 20; i++) {
		if (plugin_call)
			plugin_call(stack_outer);
		else
			stack_outer();
	}
	read_profile(profile);
	*whole = 0;
	for (size_t i = 0; i < message->n_sample; i++) {
		const Pprof__Sample *sample = message->sample[i];

		if (!is_caller(sample, 0, stack_inner))
			continue;
		all += sample->value[0];
		if (is_caller(sample, 1, stack_middle) && is_caller(sample, 2, stack_outer) &&
		    (!plugin_call || is_caller(sample, 3, plugin_call)) &&
		    sample->n_location_id > (plugin_call ? 5 : 4))
			*whole += sample->value[0];
	}
	return all;
}

/* Returns the percentage of complete stacks in a comment; or -1. */
static double complete_stacks(void)
{
	for (size_t i = 0; i < message->n_comment; i++)
		if (strstr(text(message->comment[i]), "% of the call stacks are complete"))
			return strtod(text(message->comment[i]), NULL);
	return -1;
}

#define NEED_TABLES() do {								\
	SKIP_IF(!(self->query.features & PROFIL_FEATURE_UNWIND),			\
		"the kernel has no unwind tables");					\
	SKIP_IF(access("/usr/bin/profil", X_OK), "there is no /usr/bin/profil");	\
} while (0)

/* The first ones may come before the table is there. */
TEST_F(pprof, samples_have_their_callers)
{
	u64 all, whole = 0, early;

	NEED_TABLES();
	do {
		all = sample_chains(self->profile, NULL, &whole);
		ASSERT_LT(0, all);
	} while (!whole);
	early = all - whole;
	do {
		all = sample_chains(self->profile, NULL, &whole);
		ASSERT_LT(0, all);
	} while (all < early + 5 * SAMPLES);
	EXPECT_EQ(all - early, whole);
	EXPECT_LE(early ? 0 : 97, complete_stacks());
}

/* Its first samples, before it has a table, may lack callers. */
TEST_F(pprof, samples_in_a_new_library_have_their_callers)
{
	void *plugin = dlopen(path_beside("bare_plugin.so"), RTLD_NOW), *call;
	u64 whole;

	NEED_TABLES();
	ASSERT_NE(NULL, plugin) TH_LOG("%s", dlerror());
	call = dlsym(plugin, "plugin_call");
	ASSERT_NE(NULL, call);
	do {
		sample_chains(self->profile, (void (*)(void (*)(void)))call, &whole);
	} while (whole < SAMPLES);
}

static volatile sig_atomic_t nr_signals;

static void count_signal(int signal)
{
	(void)signal;
	nr_signals++;
}

/* The program sees nothing of the process that makes the tables. */
TEST_F(pprof, no_child_is_seen)
{
	struct profil_pprof *other;

	EXPECT_ERROR(ECHILD, waitpid(-1, NULL, WNOHANG));
	signal(SIGCHLD, count_signal);
	other = start_profile(HZ);
	EXPECT_ERROR(ECHILD, waitpid(-1, NULL, WNOHANG));
	EXPECT_EQ(0, nr_signals);
	profil_pprof_stop(other);
	signal(SIGCHLD, SIG_DFL);
}

/* ---- threads ---- */

static atomic_bool threads_end;

/* The names of the threads that run the loops. One is malformed UTF-8. */
static const char *const thread_names[] = { "one", "two", "three", "\xc3\xa4\xff" };
static const char *const written_names[] = { "one", "two", "three", "\xc3\xa4?" };

static void *run_loop(void *data)
{
	const unsigned int i = (uintptr_t)data;

	prctl(PR_SET_NAME, thread_names[i]);
	while (!threads_end)
		loop_run(i, LOOP_BURST);
	return NULL;
}

/* Two threads exist when the profile starts. */
TEST_F(pprof, all_threads_are_sampled)
{
	const unsigned int nr = ARRAY_SIZE(thread_names);
	struct profil_pprof *profile = NULL;
	pthread_t threads[nr];

	for (uintptr_t i = 0; i < nr; i++) {
		if (i == 2)
			profile = start_profile(HZ);
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run_loop, (void *)i));
	}
	for (unsigned int i = 0; i < nr; i++)
		EXPECT_TRUE(await(has_samples(profile, loop_at(i), loop_at(i) + LOOP_BLOCK,
					      written_names[i])));
	threads_end = true;
	for (unsigned int i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
	read_profile(profile);
	EXPECT_EQ(0, samples_in_loop(0, "two"));
	EXPECT_EQ(0, samples_in_loop(1, "one"));
	profil_pprof_stop(profile);
}

TEST_F(pprof, the_thread_of_the_library_blocks_all_signals)
{
	DIR *dir = opendir("/proc/self/task");
	char path[PATH_MAX], line[256];
	unsigned long long mask;
	struct dirent *entry;
	unsigned int nr = 0;

	ASSERT_NE(NULL, dir);
	while ((entry = readdir(dir))) {
		if (atoi(entry->d_name) <= 0 || atoi(entry->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		ASSERT_TRUE(file_has(path, "SigBlk", line, sizeof(line)));
		ASSERT_EQ(1, sscanf(line, "SigBlk: %llx", &mask));
		for (int sig = SIGHUP; sig <= SIGUSR2; sig++)
			EXPECT_EQ(sig != SIGKILL, mask >> (sig - 1) & 1);
		nr++;
	}
	closedir(dir);
	EXPECT_EQ(1, nr);
}

#define USES	4U

static atomic_uint nr_busy;

static void *use_profiles(void *unused)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);

	(void)unused;
	for (unsigned int i = 0; i < USES; i++) {
		struct profil_pprof *profile = profil_pprof_start(HZ);

		if (!profile && errno == EBUSY) {
			nr_busy++;
			continue;
		}
		MUST(profile);
		loop_run(4, LOOP_BURST);
		MUST(!profil_pprof_write(profile, fd));
		profil_pprof_stop(profile);
	}
	close(fd);
	return NULL;
}

/* Another profile is written at the same time, and processes are forked. */
TEST_F_TIMEOUT(pprof, threads_can_use_profiles_at_the_same_time, 120)
{
	pthread_t threads[4];

	for (unsigned int i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, use_profiles, NULL));
	for (unsigned int i = 0; i < USES; i++) {
		read_profile(self->profile);
		EXPECT_CHILD(profil_pprof_stop(self->profile));
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	EXPECT_GT(USES * ARRAY_SIZE(threads), nr_busy);
}

/* ---- several profiles ---- */

TEST_F(pprof, several_profiles_are_independent)
{
	struct profil_pprof *other;

	ASSERT_TRUE(burn_loop(self->profile, 0));
	other = start_profile(HZ / 2);
	ASSERT_TRUE(burn_loop(other, 1));
	EXPECT_EQ(2000000000 / HZ, message->period);
	EXPECT_EQ(0, samples_in_loop(0, NULL));
	profil_pprof_stop(other);
	ASSERT_TRUE(burn_loop(self->profile, 2));
	for (unsigned int i = 0; i < 3; i++)
		EXPECT_LE(SAMPLES / 2, samples_in_loop(i, NULL));
}

TEST_F(pprof, one_profile_more_than_the_limit_is_EBUSY)
{
	const unsigned int max = self->query.max_clocked;
	struct profil_pprof *profiles[max];

	for (unsigned int i = 1; i < max; i++)
		profiles[i] = start_profile(HZ);
	EXPECT_EQ(NULL, profil_pprof_start(HZ));
	EXPECT_EQ(EBUSY, errno);
	/* This limit is not for the ticks of the scheduler. */
	profil_pprof_stop(start_profile(0));
	profil_pprof_stop(profiles[1]);
	profiles[1] = start_profile(HZ);
	for (unsigned int i = 1; i < max; i++) {
		EXPECT_TRUE(burn_loop(profiles[i], i));
		profil_pprof_stop(profiles[i]);
	}
}

TEST_F(pprof, with_0_hz_the_clock_is_the_scheduler_tick)
{
	struct profil_pprof *profile = start_profile(0);

	EXPECT_TRUE(burn_loop(profile, 0));
	EXPECT_EQ(self->query.tick_ns, message->period);
	profil_pprof_stop(profile);
}

/* ---- errors ---- */

TEST_F(pprof, wrong_rates_are_EINVAL)
{
	const unsigned int rates[] = { 100001, 1000000000, 1000000001, UINT_MAX };

	for (unsigned int i = 0; i < ARRAY_SIZE(rates); i++) {
		EXPECT_EQ(NULL, profil_pprof_start(rates[i]));
		EXPECT_EQ(EINVAL, errno);
	}
	profil_pprof_stop(NULL);
}

TEST_F(pprof, limits_of_ordinary_users_are_EPERM)
{
	SKIP_IF(getuid(), "needs root");
	/* An ordinary user may not sample as often as root, and is bound by RLIMIT_MEMLOCK. */
	EXPECT_CHILD({
		struct profil_pprof *profile;

		MUST(!setresuid(1000, 1000, 1000));
		profile = start_profile(1000);
		MUST(burn_loop(profile, 0));
		profil_pprof_stop(profile);
		MUST(!profil_pprof_start(50000) && errno == EPERM);
		limit_memlock(0);
		MUST(!profil_pprof_start(1000) && errno == EPERM);
	});
}

TEST_F(pprof, errors_of_the_descriptor_are_those_of_write)
{
	int fds[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	signal(SIGPIPE, SIG_IGN);
	ASSERT_EQ(0, pipe2(fds, O_CLOEXEC));
	close(fds[0]);
	EXPECT_ERROR(EPIPE, profil_pprof_write(self->profile, fds[1]));
	close(fds[1]);
	EXPECT_ERROR(EBADF, profil_pprof_write(self->profile, -1));
	EXPECT_ERROR(EBADF, profil_pprof_write(self->profile, null));
	close(null);
	/* The profile continues. */
	EXPECT_TRUE(burn_loop(self->profile, 0));
}

static void *copy_slowly(void *data)
{
	int *fds = data;
	char bytes[16];
	ssize_t len;

	while ((len = read(fds[0], bytes, sizeof(bytes))) > 0) {
		if (write(fds[2], bytes, len) != len)
			return data;
		usleep(1000);
	}
	return NULL;
}

/* The pipe has room for a part of the message only. */
TEST_F(pprof, write_waits_until_a_nonblocking_descriptor_can_be_written)
{
	static char full[1 << 16];
	pthread_t reader;
	void *failed;
	int fds[3];

	ASSERT_TRUE(burn_loop(self->profile, 0));
	ASSERT_EQ(0, pipe2(fds, O_CLOEXEC));
	ASSERT_EQ(0, fcntl(fds[1], F_SETFL, O_NONBLOCK));
	fds[2] = memfd_create("profile", MFD_CLOEXEC);
	ASSERT_EQ(PAGE, fcntl(fds[1], F_SETPIPE_SZ, PAGE));
	ASSERT_EQ(PAGE, write(fds[1], full, sizeof(full)));
	ASSERT_EQ(0, pthread_create(&reader, NULL, copy_slowly, fds));
	EXPECT_EQ(0, profil_pprof_write(self->profile, fds[1]));
	close(fds[1]);
	pthread_join(reader, &failed);
	EXPECT_EQ(NULL, failed);
	close(fds[0]);
	/* The message is after the bytes that filled the pipe. */
	read_message(fds[2], PAGE);
	EXPECT_LE(SAMPLES, samples_in_loop(0, NULL));
}

/* Returns the highest descriptor of a session. */
static int last_session(void)
{
	char path[64], link[64];
	ssize_t len;
	int fd;

	for (fd = 255; fd >= 0; fd--) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, link, sizeof(link) - 1);
		link[len > 0 ? len : 0] = '\0';
		if (!strncmp(link, "anon_inode:[profil", 18))
			break;
	}
	return fd;
}

/* The library does not read from a file that has got the number of its descriptor. */
TEST_F(pprof, a_profile_whose_descriptor_was_closed_is_EBADF_or_ENOTTY)
{
	struct profil_pprof *profile = start_profile(HZ);
	const int fd = last_session();
	char byte;
	int file;

	ASSERT_LE(0, fd);
	close(fd);
	EXPECT_ERROR(EBADF, profil_pprof_write(profile, 1));
	file = memfd_create("file", MFD_CLOEXEC);
	ASSERT_EQ(1, pwrite(file, "x", 1, 0));
	if (file != fd) {
		ASSERT_EQ(fd, dup2(file, fd));
		close(file);
	}
	EXPECT_ERROR(ENOTTY, profil_pprof_write(profile, 1));
	profil_pprof_stop(profile);
	EXPECT_EQ(1, read(fd, &byte, 1));
	close(fd);
}

/* ---- fork ---- */

/* The child keeps nothing of the profile: the limit of profiles is as if there were no child. */
TEST_F(pprof, a_fork_has_no_effect_on_the_profile)
{
	const unsigned int max = self->query.max_clocked;
	struct profil_pprof *profiles[max];
	pid_t child;
	int fds[2];

	profiles[0] = start_profile(HZ);
	ASSERT_EQ(0, pipe2(fds, O_CLOEXEC));
	child = FORK({
		struct profil_pprof *own;
		char byte;

		close(fds[1]);
		MUST(profil_pprof_write(profiles[0], 1) && errno == ENODEV);
		own = start_profile(HZ);
		MUST(burn_loop(own, 6));
		profil_pprof_stop(own);
		/* The parent closes its end after it has tried the limit. */
		MUST(read(fds[0], &byte, 1) == 0);
		profil_pprof_stop(profiles[0]);
		MUST(!pinned_bytes());
	});
	EXPECT_TRUE(burn_loop(profiles[0], 5));
	EXPECT_EQ(0, samples_in_loop(6, NULL));
	profil_pprof_stop(profiles[0]);
	for (unsigned int i = 1; i < max; i++)
		profiles[i] = start_profile(HZ);
	for (unsigned int i = 1; i < max; i++)
		profil_pprof_stop(profiles[i]);
	close(fds[1]);
	EXPECT_EQ(0, status_of(child));
	close(fds[0]);
}

/* ---- lost ticks ---- */

/* Runs after the handler of the library, which has been registered later. */
static void delay_fork(void)
{
	loop_spend(7, 6000, 1000000000 / HZ);
}

/*
 * During a fork nobody reads the records, so that the kernel has no room for more in the end. Each
 * test has a process of its own, in which the library's handler is registered after ours.
 */
TEST(ticks_that_were_lost_are_in_the_comments)
{
	unsigned long long numbers[4] = {};
	struct profil_pprof *profile;
	char expected[80];

	ASSERT_EQ(0, pthread_atfork(delay_fork, NULL, NULL));
	profile = start_profile(HZ);
	EXPECT_CHILD();
	read_profile(profile);
	ASSERT_TRUE(read_comment(numbers));
	EXPECT_LT(100, numbers[1]);
	EXPECT_EQ(NR_SAMPLES(true), numbers[0] - numbers[1]);
	ASSERT_LE(2, message->n_comment);
	snprintf(expected, sizeof(expected), "warning: %llu of %llu ticks (%.2f%%) were lost",
		 numbers[1], numbers[0], 100.0 * numbers[1] / numbers[0]);
	EXPECT_STREQ(expected, text(message->comment[message->n_comment - 1]));
	profil_pprof_stop(profile);
}

TEST_HARNESS_MAIN
