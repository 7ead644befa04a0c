// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See extract.h. This does not use libdwfl, which maps files, and opens every file that a binary
 * names. The debug information may be hostile: this file bounds its size, the depth of recursion
 * and the work.
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
#define FRAMES_MAX	64
/* Only LLVM writes this attribute of inlined calls. */
#define AT_DISCRIMINATOR 0x2136
/* dwz moves the common parts of several debug files to a file in this directory. */
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

/* Entries of these types have no addresses, but can contain functions. */
static bool is_container(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type;
}

/* The state of the search for the functions at an address */
struct search {
	u64 address;
	u64 *steps;		/* the work for this file */
	Dwarf_Off last;		/* the last entry; later ones must be after it */
	/* The functions at the address, the outermost first. Before a search, the last result. */
	Dwarf_Die found[FRAMES_MAX];
	size_t nr;
};

static void find_functions(struct search *search, Dwarf_Die *parent, int depth)
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
		/* A function that is declared in another function is not inlined there. */
		if (has > 0 && tag == DW_TAG_subprogram)
			search->nr = 0;
		if (has > 0 && search->nr < FRAMES_MAX &&
		    (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine))
			search->found[search->nr++] = die;
		if (has > 0 || is_container(tag))
			find_functions(search, &die, depth + 1);
	} while (has <= 0 && !dwarf_siblingof(&die, &die));
}

/* Copies a string. Its length is work, too: all places may have the same long name. */
static const char *copy_text(const char *text, u64 *steps, struct obstack *names)
{
	size_t length = text ? strlen(text) : 0;

	*steps += length;
	return text && *steps <= STEPS_MAX ? obstack_copy0(names, text, length) : NULL;
}

static u64 number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number = 0;

	dwarf_formudata(dwarf_attr(die, name, &attribute), &number);
	return number;
}

/* Sets the place of the call of the inlined function @callee. */
static void read_call(struct frame *frame, Dwarf_Die *unit, Dwarf_Die *callee, u64 *steps,
		      struct obstack *names)
{
	Dwarf_Files *files;
	size_t nr;

	frame->line = number_of(callee, DW_AT_call_line);
	frame->discriminator = number_of(callee, AT_DISCRIMINATOR);
	if (!dwarf_getsrcfiles(unit, &files, &nr))
		frame->source = copy_text(dwarf_filesrc(files, number_of(callee, DW_AT_call_file),
							NULL, NULL), steps, names);
}

/* Finds the functions at the address. It is often in the same function as the last address. */
static void find_functions_at(struct search *search, Dwarf_Die *unit, u64 address)
{
	Dwarf_Die function = search->found[0];
	const bool same = search->nr && dwarf_tag(&function) == DW_TAG_subprogram &&
			  dwarf_haspc(&function, address) > 0;

	search->address = address;
	search->nr = same;
	search->last = same ? dwarf_dieoffset(&function) : 0;
	find_functions(search, same ? &function : unit, 0);
}

static void read_place(struct place *place, Dwarf_Die *unit, struct search *search,
		       struct obstack *names)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, place->address);
	const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	struct frame *frames;

	find_functions_at(search, unit, place->address);
	if (file && !dwarf_lineno(line, &place->line))
		place->source = obstack_copy0(names, file, strlen(file));
	if (!search->nr)
		return;
	frames = obstack_alloc(names, search->nr * sizeof(*frames));
	for (size_t i = 0; i < search->nr; i++) {
		frames[i] = (struct frame){
			.name = copy_text(die_name(&search->found[i]), search->steps, names),
		};
		dwarf_decl_line(&search->found[i], &frames[i].start);
		if (i + 1 < search->nr)
			read_call(&frames[i], unit, &search->found[i + 1], search->steps, names);
	}
	frames[search->nr - 1].source = place->source;
	frames[search->nr - 1].line = place->line;
	if (line)
		dwarf_linediscriminator(line, &frames[search->nr - 1].discriminator);
	place->frames = frames;
	place->nr_frames = search->nr;
}

/* Reads the places from address @start up to @end, which are in the unit. */
static void read_range(struct lookup *lookup, Dwarf_Die *unit, u64 start, u64 end,
		       struct obstack *names)
{
	struct search search = { .steps = &lookup->steps };

	for (size_t i = lookup_index(lookup, start);
	     i < lookup->nr && lookup->places[i].address < end && ++lookup->steps < STEPS_MAX; i++)
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
		for (at = 0; (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0 &&
		     ++lookup->steps < STEPS_MAX;)
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
