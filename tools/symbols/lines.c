// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See extract.h. This does not use libdwfl, which maps files and opens whatever a binary names. The
 * debug information may be hostile: this file bounds its size, the depth of recursion and the work.
 */
#define _GNU_SOURCE
#include <dwarf.h>

#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <libiberty/libiberty.h>

#include "symbols/extract.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/* A larger file is not read: libdw reads all of its debug information. */
#define BYTES_MAX	(4LL << 30)
#define DEPTH_MAX	64
/* dwz moves what several debug files have in common to a file in this directory. */
#define COMMON_DIRECTORY "/.dwz/"

static Dwarf *open_dwarf(const struct elf_file *file)
{
	return file->st.st_size > BYTES_MAX ? NULL :
	       dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
}

/*
 * Opens the file that the debug file refers to, because libdw would open any. Returns false if
 * there should be one that cannot be found.
 */
static bool open_common(Dwarf *dwarf, struct elf_file *file, Dwarf **common, int root)
{
	const void *id;
	const char *name;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);

	if (!len)
		return true;
	name = len > 0 ? strstr(name, COMMON_DIRECTORY) : NULL;
	if (!name || strstr(name, "..") ||
	    !debug_file_try(file, root, xasprintf(DEBUG_DIRECTORY "%s", name), id, len))
		return false;
	*common = open_dwarf(file);
	dwarf_setalt(dwarf, *common);
	return *common;
}

/* Returns the name for the linker, which has the namespace and parameters; or the plain name. */
static const char *die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	const char *name;

	name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
	return name ?: dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute));
}

/* Functions can be in these, which have no addresses. */
static bool is_container(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type;
}

/* The state of the search for the innermost inlined function at an address */
struct search {
	u64 address;
	u64 *steps;		/* the work for this file */
	Dwarf_Off last;		/* the last entry; in a hostile file, the next can be its child */
	Dwarf_Die function;	/* the function that contains the previous address, if any */
	const char *found;
};

static void find_inlined(struct search *search, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;
	int tag, has;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		if (dwarf_dieoffset(&die) <= search->last || ++*search->steps > STEPS_MAX)
			return;
		search->last = dwarf_dieoffset(&die);
		tag = dwarf_tag(&die);
		has = dwarf_haspc(&die, search->address);
		if (has > 0 && tag == DW_TAG_subprogram)
			search->function = die;
		if (has > 0 && tag == DW_TAG_inlined_subroutine)
			search->found = die_name(&die) ?: search->found;
		if (has > 0 || is_container(tag))
			find_inlined(search, &die, depth + 1);
	} while (has <= 0 && !dwarf_siblingof(&die, &die));
}

/* @search: that of the place before, in the same unit. */
static void read_place(struct place *place, Dwarf_Die *unit, struct search *search,
		       struct obstack *names)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, place->address);
	const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	Dwarf_Die function = search->function;
	bool same = function.addr && dwarf_haspc(&function, place->address) > 0;

	search->address = place->address;
	search->found = NULL;
	search->last = same ? dwarf_dieoffset(&function) : 0;
	find_inlined(search, same ? &function : unit, 0);
	if (file && !dwarf_lineno(line, &place->line))
		place->source = obstack_copy0(names, file, strlen(file));
	if (search->found)
		place->inlined = obstack_copy0(names, search->found, strlen(search->found));
}

/* Reads the places from address @start up to @end, which are in the unit. */
static void read_range(struct lookup *lookup, Dwarf_Die *unit, u64 start, u64 end,
		       struct obstack *names)
{
	struct search search = { .steps = &lookup->steps };

	for (size_t i = lookup_index(lookup, start);
	     i < lookup->nr && lookup->places[i].address < end; i++)
		if (!lookup->places[i].source)
			read_place(&lookup->places[i], unit, &search, names);
}

/* Reads the places in the ranges of addresses of each unit. */
static void read_units(struct lookup *lookup, Dwarf *dwarf, struct obstack *names)
{
	Dwarf_Addr base, start, end;
	Dwarf_CU *unit = NULL;
	ptrdiff_t at;
	Dwarf_Die die;

	while (!dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL))
		for (at = 0; (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0;)
			read_range(lookup, &die, start, end, names);
}

static bool has_units(Dwarf *dwarf)
{
	Dwarf_CU *unit;

	return !dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, NULL, NULL);
}

void lines_read(struct lookup *lookup, const struct elf_file *file, int root, const char *path,
		struct obstack *names)
{
	struct elf_file debug = { .fd = -1 }, common_file = { .fd = -1 };
	Dwarf *dwarf = open_dwarf(file), *common = NULL;

	/* A program without debug information may have unwind tables, which are in DWARF, too. */
	if (!has_units(dwarf) && debug_file_open(&debug, file, root, path)) {
		dwarf_end(dwarf);
		dwarf = open_dwarf(&debug);
	}
	if (has_units(dwarf) && open_common(dwarf, &common_file, &common, root))
		read_units(lookup, dwarf, names);
	dwarf_end(dwarf);
	dwarf_end(common);
	elf_file_close(&common_file);
	elf_file_close(&debug);
}
