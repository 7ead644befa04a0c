// SPDX-License-Identifier: GPL-2.0
/*
 * The build-ids that libprofil-pprof reads in the notes of loaded libraries, which may be hostile
 *
 * Needs no device: this calls the library's own functions with records that it makes. Each library
 * is a copy of stacks_plugin.so whose program headers have been changed.
 */
#include "kselftest_harness.h"

#include <dlfcn.h>
#include <elf.h>

#include "old.h"
#include "samples.c"

#define PLUGIN_MAX	(1U << 20)

static char plugin[PLUGIN_MAX];
static size_t plugin_size;

static Elf64_Phdr *plugin_header(Elf64_Word type, unsigned int number)
{
	const Elf64_Ehdr *ehdr = (const void *)plugin;
	Elf64_Phdr *headers = (void *)(plugin + ehdr->e_phoff);

	for (int i = 0; i < ehdr->e_phnum; i++)
		if (headers[i].p_type == type && !number--)
			return &headers[i];
	return NULL;
}

/* Loads the changed library, and returns the build-id that is found at a pc in it. */
static const char *build_id(void)
{
	struct profil_record record = { .flags = PROFIL_RECORD_MAPPED | PROFIL_RECORD_FILE };
	int fd = memfd_create("plugin", MFD_CLOEXEC);
	static struct samples samples;
	char path[PATH_MAX];
	void *library;

	MUST(write(fd, plugin, plugin_size) == (ssize_t)plugin_size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	library = dlopen(path, RTLD_NOW);
	MUST(library);
	record.pc = (uintptr_t)dlsym(library, "plugin_call");
	MUST(record.pc);
	record.start = record.pc & -4096;
	record.end = record.start + 4096;
	samples_add(&samples, &record);
	return samples.first->mapping.build_id;
}

FIXTURE(notes) {
};

FIXTURE_SETUP(notes)
{
	int fd = open(path_beside("stacks_plugin.so"), O_RDONLY | O_CLOEXEC);

	plugin_size = read(fd, plugin, sizeof(plugin));
	close(fd);
	ASSERT_LT(sizeof(Elf64_Ehdr), plugin_size);
	ASSERT_NE(sizeof(plugin), plugin_size);
}

FIXTURE_TEARDOWN(notes)
{
}

TEST_F(notes, have_the_build_id)
{
	EXPECT_NE(0, strlen(build_id()));
}

/* Each makes all notes lead to memory that the file does not fill. */

TEST_F(notes, outside_the_loaded_segments_are_not_read)
{
	Elf64_Phdr *note;

	for (unsigned int i = 0; (note = plugin_header(PT_NOTE, i)); i++)
		note->p_vaddr = 1ULL << 40;
	EXPECT_STREQ("", build_id());
}

TEST_F(notes, that_leave_their_segment_are_not_read)
{
	Elf64_Phdr *note;

	for (unsigned int i = 0; (note = plugin_header(PT_NOTE, i)); i++)
		note->p_memsz = UINT64_MAX - note->p_vaddr;
	EXPECT_STREQ("", build_id());
}

/* A segment that is loaded can be behind the end of the file. Then an access is a SIGBUS. */
TEST_F(notes, behind_the_end_of_the_file_are_not_read)
{
	Elf64_Phdr *note = plugin_header(PT_NOTE, 0), *load = plugin_header(PT_LOAD, 0), *last;

	for (unsigned int i = 1; (last = plugin_header(PT_LOAD, i)); i++)
		load = last;
	ASSERT_NE(NULL, note);
	load->p_filesz += 1 << 20;
	load->p_memsz = load->p_filesz;
	for (unsigned int i = 0; (note = plugin_header(PT_NOTE, i)); i++) {
		note->p_vaddr = load->p_vaddr + load->p_filesz - 4096;
		note->p_memsz = 64;
	}
	EXPECT_STREQ("", build_id());
}

TEST_HARNESS_MAIN
