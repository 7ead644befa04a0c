// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See unwind_table.h. The bytes of a table are its header, and then the arrays that the header
 * counts.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "symbols/cfi_reduce.h"

/* What is read of the names of other files */
#define NAMES_MAX	256
#define NAME_SIZE_MAX	4096
/* A CPU that an emulator makes needs a second for so many bytes of a file. */
#define BYTES_PER_SECOND (4ULL << 20)
#define SECONDS_MAX	60
/* Memory for the largest table, and what the process needs to make it */
#define TABLE_BYTES	(2 * UNWIND_ROWS_MAX * sizeof(u32))

struct table_header {
	u32 nr_rules;
	u32 nr_blocks;
	u32 nr_rows;
	u32 names_size;
};

/* ---- in the confined process ---- */

/* The names of the files that are loaded with this one */
struct names {
	char *text;
	size_t size;
	size_t nr;
};

static void name_add(struct names *names, enum unwind_name letter, const char *name)
{
	const size_t size = name ? strlen(name) + 1 : 0;

	if (size < 2 || size > NAME_SIZE_MAX || names->nr == NAMES_MAX)
		return;
	names->text = xrealloc(names->text, names->size + 1 + size);
	names->text[names->size] = letter;
	memcpy(names->text + names->size + 1, name, size);
	names->size += 1 + size;
	names->nr++;
}

static void read_interpreter(struct names *names, const struct elf_file *file)
{
	char name[NAME_SIZE_MAX + 1] = {};
	GElf_Phdr segment;

	for (int i = 0; gelf_getphdr(file->elf, i, &segment); i++) {
		if (segment.p_type != PT_INTERP || segment.p_filesz > NAME_SIZE_MAX ||
		    segment.p_offset > INT64_MAX)
			continue;
		if (pread(file->fd, name, segment.p_filesz, segment.p_offset) > 0)
			name_add(names, UNWIND_INTERPRETER, name);
		return;
	}
}

static void read_names(struct names *names, const struct elf_file *file)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data = NULL;
	GElf_Shdr shdr = {};
	GElf_Dyn dyn;

	read_interpreter(names, file);
	while (!data && (scn = elf_nextscn(file->elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_DYNAMIC)
			data = elf_section_data(scn);
	for (int i = 0; data && gelf_getdyn(data, i, &dyn) && dyn.d_tag != DT_NULL; i++) {
		const char *name = elf_strptr(file->elf, shdr.sh_link, dyn.d_un.d_val);

		if (dyn.d_tag == DT_NEEDED)
			name_add(names, UNWIND_LIBRARY, name);
		else if (dyn.d_tag == DT_RUNPATH || dyn.d_tag == DT_RPATH)
			name_add(names, UNWIND_RUN_PATH, name);
	}
}

static struct table_header header_of(const struct reduced *reduced, size_t names_size)
{
	return (struct table_header){
		.nr_rules = reduced->nr_rules,
		.nr_blocks = (reduced->end + PROFIL_UNWIND_BLOCK - 1) / PROFIL_UNWIND_BLOCK,
		.nr_rows = reduced->nr_rows,
		.names_size = names_size,
	};
}

static u64 size_of(const struct table_header *header)
{
	return sizeof(*header) + (u64)header->nr_rules * sizeof(struct profil_unwind_rule) +
	       ((u64)header->nr_blocks + header->nr_rows) * sizeof(u32) + header->names_size;
}

size_t reduced_size(const struct reduced *reduced)
{
	const struct table_header header = header_of(reduced, 0);

	return size_of(&header);
}

/* Writes the numbers of rows before the blocks, and the rows. */
static void write_rows(const struct confined *confined, const struct reduced *reduced,
		       u32 nr_blocks)
{
	u32 *blocks = xcalloc(nr_blocks, sizeof(*blocks));
	u32 *rows = xcalloc(reduced->nr_rows, sizeof(*rows));
	u32 block = 0;

	for (u32 i = 0; i < reduced->nr_rows; i++) {
		const struct reduced_row *row = &reduced->rows[i];

		for (; block <= row->offset / PROFIL_UNWIND_BLOCK; block++)
			blocks[block] = i;
		rows[i] = row->offset % PROFIL_UNWIND_BLOCK << 16 | row->rule;
	}
	for (; block < nr_blocks; block++)
		blocks[block] = reduced->nr_rows;
	confined_write(confined, blocks, nr_blocks * sizeof(*blocks));
	confined_write(confined, rows, reduced->nr_rows * sizeof(*rows));
	free(blocks);
	free(rows);
}

static void write_table(const struct reduced *reduced, const struct names *names,
			const struct confined *confined)
{
	const struct table_header header = header_of(reduced, names->size);

	confined_write(confined, &header, sizeof(header));
	confined_write(confined, reduced->rules, reduced->nr_rules * sizeof(*reduced->rules));
	write_rows(confined, reduced, header.nr_blocks);
	confined_write(confined, names->text, names->size);
}

void reduced_write(const struct reduced *reduced, const struct confined *confined)
{
	write_table(reduced, &(struct names){}, confined);
}

static void work_make(const struct confined *confined)
{
	struct reduced reduced = {};
	struct names names = {};
	struct elf_file file;

	if (!elf_file_open(&file, confined->fd) || !reduce_file(&reduced, &file))
		return;
	read_names(&names, &file);
	if (elf_file_unchanged(&file))
		write_table(&reduced, &names, confined);
}

/* ---- in the parent ---- */

static bool rule_is_valid(const struct profil_unwind_rule *rule)
{
	if (rule->kind == PROFIL_UNWIND_REGISTER)
		return rule->number >= 6 && rule->number <= 14;
	if (rule->kind == PROFIL_UNWIND_SP_INDIRECT)
		return true;
	if (rule->kind > PROFIL_UNWIND_SIGNAL || rule->number)
		return false;
	return rule->kind == PROFIL_UNWIND_SP || rule->kind == PROFIL_UNWIND_FP ||
	       (!rule->fp && (!rule->cfa || rule->kind == PROFIL_UNWIND_FP_INDIRECT));
}

static bool rows_are_valid(const struct unwind_table *table, u32 first, u32 end)
{
	for (u32 i = first; i < end; i++)
		if ((table->rows[i] & 0xffff) >= table->nr_rules ||
		    (i > first && table->rows[i] >> 16 <= table->rows[i - 1] >> 16))
			return false;
	return true;
}

static bool names_are_valid(const char *names, size_t size)
{
	size_t len;

	if (size && names[size - 1])
		return false;
	for (; size; names += len + 1, size -= len + 1) {
		len = strlen(names);
		if (len < 2)
			return false;
	}
	return true;
}

static bool table_is_valid(const struct unwind_table *table)
{
	for (u32 i = 0; i < table->nr_rules; i++)
		if (!rule_is_valid(&table->rules[i]))
			return false;
	if (table->blocks[0])
		return false;
	for (u32 i = 0; i < table->nr_blocks; i++) {
		const u32 first = table->blocks[i];
		const u32 end = i + 1 < table->nr_blocks ? table->blocks[i + 1] : table->nr_rows;

		if (end < first || end > table->nr_rows || !rows_are_valid(table, first, end))
			return false;
	}
	return names_are_valid(table->names, table->names_size);
}

bool unwind_table_take(struct unwind_table *table, u8 *data, size_t size)
{
	struct table_header header = {};

	if (size >= sizeof(header))
		memcpy(&header, data, sizeof(header));
	*table = (struct unwind_table){
		.nr_blocks = header.nr_blocks,
		.nr_rows = header.nr_rows,
		.nr_rules = header.nr_rules,
		.names_size = header.names_size,
		.data = data,
		.size = size,
	};
	if (header.nr_rules && header.nr_rules <= PROFIL_UNWIND_RULES &&
	    header.nr_blocks && header.nr_blocks <= PROFIL_UNWIND_BLOCKS &&
	    header.nr_rows && header.nr_rows <= UNWIND_ROWS_MAX &&
	    size == size_of(&header)) {
		table->rules = (const void *)(data + sizeof(header));
		table->blocks = (const void *)(table->rules + header.nr_rules);
		table->rows = table->blocks + header.nr_blocks;
		table->names = (const char *)(table->rows + header.nr_rows);
		if (table_is_valid(table))
			return true;
	}
	unwind_table_free(table);
	return false;
}

bool unwind_table_make(struct unwind_table *table, int fd)
{
	struct confined confined = {
		.work = work_make,
		.fd = fd,
		.root = -1,
		.by_size = true,
		.has_budget = true,
		.subject = "its unwind tables",
		.bytes = TABLE_BYTES,
	};
	struct stat st;
	int machine;

	*table = (struct unwind_table){};
	if (!elf_machine(fd, &machine) || machine != EM_X86_64 || fstat(fd, &st))
		return false;
	confined.seconds = (u64)st.st_blocks * 512 / BYTES_PER_SECOND;
	if (confined.seconds > SECONDS_MAX)
		confined.seconds = SECONDS_MAX;
	return confined_run(&confined) &&
	       unwind_table_take(table, confined.answer, confined.size);
}

void unwind_table_free(struct unwind_table *table)
{
	free(table->data);
	*table = (struct unwind_table){};
}

struct profil_unwind unwind_table_argument(const struct unwind_table *table)
{
	return (struct profil_unwind){
		.size = sizeof(struct profil_unwind),
		.nr_blocks = table->nr_blocks,
		.nr_rows = table->nr_rows,
		.nr_rules = table->nr_rules,
		.blocks = (uintptr_t)table->blocks,
		.rows = (uintptr_t)table->rows,
		.rules = (uintptr_t)table->rules,
	};
}

struct profil_unwind_rule unwind_table_rule(const struct unwind_table *table, u64 offset)
{
	const u64 block = offset / PROFIL_UNWIND_BLOCK;
	const u32 key = offset % PROFIL_UNWIND_BLOCK << 16 | 0xffff;
	u32 low, high;

	if (block >= table->nr_blocks)
		return (struct profil_unwind_rule){ .kind = PROFIL_UNWIND_NONE };
	low = table->blocks[block];
	high = block + 1 < table->nr_blocks ? table->blocks[block + 1] : table->nr_rows;
	while (low < high) {
		const u32 middle = low + (high - low) / 2;

		if (table->rows[middle] <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? table->rules[table->rows[low - 1] & 0xffff] :
		     (struct profil_unwind_rule){ .kind = PROFIL_UNWIND_NONE };
}

const char *unwind_table_name(const struct unwind_table *table, const char *name)
{
	name = name ? name + strlen(name) + 1 : table->names;
	return name < table->names + table->names_size ? name : NULL;
}
