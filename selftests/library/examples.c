// SPDX-License-Identifier: GPL-2.0
/*
 * The programs in the manual pages of the library, compiled unchanged with -O2. Each must print the
 * result that its page describes. They are beside this program, as example-PAGE-NUMBER.
 */
#include "kselftest_harness.h"

#include "old.h"

/* Functions that check the output of a program */

static bool profil_found(FILE *output)
{
	unsigned int at, ticks;

	return fscanf(output, "hottest: main+%x, %u ticks", &at, &ticks) == 2 && ticks > 5;
}

static bool sprofil_found(FILE *output)
{
	unsigned int first, second, elsewhere, us;

	return fscanf(output, "%u, %u, elsewhere %u ticks of %u us", &first, &second, &elsewhere,
		      &us) == 4 && first + second > 5 && first + second > elsewhere && us;
}

static bool pcsample_found(FILE *output)
{
	unsigned long pc;
	unsigned int n = 0;

	while (fscanf(output, "%lx", &pc) == 1)
		n++;
	return n > 5 && feof(output);
}

static bool osProfile_found(FILE *output)
{
	unsigned int elsewhere;

	return fscanf(output, "see profil gperf; %u elsewhere", &elsewhere) == 1 && elsewhere < 100;
}

static bool session_found(FILE *output)
{
	unsigned long long sum = 0, hits = 0, ticks = 0, pc;
	char line[256];
	unsigned int n;

	while (fgets(line, sizeof(line), output)) {
		if (sscanf(line, "%llu of %llu ticks", &hits, &ticks) == 2)
			break;
		if (sscanf(line, "%llx %u", &pc, &n) != 2)
			return false;
		sum += n;
	}
	return sum == hits && hits > 5 && 2 * hits > ticks;
}

static bool records_found(FILE *output)
{
	unsigned int in_a_file = 0;
	char line[4096];

	/* A tick during an exec may have no file, and offset 0. */
	while (fgets(line, sizeof(line), output)) {
		if (strtol(line, NULL, 10) <= 0 || !strstr(line, "+0"))
			return false;
		in_a_file += strstr(line, " /") && strstr(line, "+0x");
	}
	return in_a_file > 5;
}

/* pprof itself reads the profiles of the servers in samples/: see servers. */
static bool pprof_found(FILE *output)
{
	int bytes[2] = { fgetc(output), fgetc(output) };

	return bytes[0] == 0x1f && bytes[1] == 0x8b;
}

FIXTURE(examples) {
};

FIXTURE_VARIANT(examples) {
	const char *command;
	bool (*found)(FILE *output);
};

/* A row for each program: its page, its command, and what checks the output */
#define EXAMPLE(page, command_, found_)						\
	FIXTURE_VARIANT_ADD(examples, page) {					\
		.command = "example-" command_, .found = found_,		\
	}

EXAMPLE(profil, "profil-1", profil_found);
EXAMPLE(sprofil, "sprofil-1", sprofil_found);
EXAMPLE(pcsample, "pcsample-1", pcsample_found);
EXAMPLE(osProfile, "osProfile-1", osProfile_found);
EXAMPLE(profil_session, "profil_session-1", session_found);
EXAMPLE(profil_session_records,
	"profil_session-2 sh -c 'ulimit -t 1; while :; do :; done'", records_found);
EXAMPLE(profil_pprof, "profil_pprof-1 /dev/stdout", pprof_found);

FIXTURE_SETUP(examples)
{
	ASSERT_DEVICE();
}

FIXTURE_TEARDOWN(examples)
{
}

TEST_F(examples, the_output_is_as_the_page_describes)
{
	char command[2 * PATH_MAX];
	FILE *output;

	snprintf(command, sizeof(command), "%s </dev/null", path_beside(variant->command));
	output = popen(command, "re");
	ASSERT_NE(NULL, output);
	EXPECT_TRUE(variant->found(output));
	while (fgetc(output) != EOF)
		;
	pclose(output);
}

TEST_HARNESS_MAIN
