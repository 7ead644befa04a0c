// SPDX-License-Identifier: GPL-2.0-or-later
/* See debugdata.h. Few files have this section, so liblzma is only loaded for them. */
#include <dlfcn.h>

#include <libiberty/libiberty.h>

#include "symbols/debugdata.h"

/* The memory for a dictionary, and for the result */
#define MEMORY_MAX	(64ULL << 20)
#define SIZE_MAX_OUT	((size_t)256 << 20)

/* What lzma_stream_buffer_decode() returns */
#define LZMA_OK		0
#define LZMA_BUF_ERROR	10

static int (*decode)(uint64_t *memory, uint32_t flags, const void *allocator, const u8 *in,
		     size_t *in_at, size_t in_size, u8 *out, size_t *out_at, size_t out_size);

void debugdata_load(void)
{
	static bool is_loaded;
	void *library;

	if (is_loaded)
		return;
	is_loaded = true;
	library = dlopen("liblzma.so.5", RTLD_NOW);
	if (library)
		decode = dlsym(library, "lzma_stream_buffer_decode");
}

static Elf_Data *find_section(Elf *elf)
{
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr shdr;

	while ((scn = elf_section_next(elf, scn, &shdr, &name)))
		if (name && !strcmp(name, ".gnu_debugdata"))
			return elf_section_data(scn);
	return NULL;
}

/* Returns the decompressed data; NULL if they are damaged or too large. */
static u8 *decompress(const Elf_Data *data, size_t *size)
{
	size_t room = 4 * data->d_size;
	u8 *out = NULL;
	int status;

	do {
		uint64_t memory = MEMORY_MAX;
		size_t in_at = 0;

		out = xrealloc(out, room);
		*size = 0;
		status = decode(&memory, 0, NULL, data->d_buf, &in_at, data->d_size, out, size,
				room);
		room *= 2;
	} while (status == LZMA_BUF_ERROR && room <= SIZE_MAX_OUT);
	if (status == LZMA_OK)
		return out;
	free(out);
	return NULL;
}

Elf *debugdata_open(Elf *elf, bool *is_lost)
{
	Elf_Data *data = find_section(elf);
	u8 *image;
	size_t size;

	if (!data)
		return NULL;
	image = decode ? decompress(data, &size) : NULL;
	*is_lost = !image;
	return image ? elf_memory((char *)image, size) : NULL;
}
