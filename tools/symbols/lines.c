// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See extract.h. This does not use libdwfl, which maps files, and opens every file that a binary
 * names. This file bounds the depth of recursion.
 */
#define _GNU_SOURCE
#include <dwarf.h>

#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <libiberty/libiberty.h>
#include <unistd.h>

#include "symbols/extract.h"

#define DEPTH_MAX	64
/* Only LLVM writes this attribute of inlined calls. */
#define AT_DISCRIMINATOR 0x2136

/* Returns true if no string continues behind its section: libdw does not check that. */
static bool strings_end(Elf *elf)
{
	Elf_Scn *scn = NULL;
	const char *name;
	GElf_Shdr shdr;
	Elf_Data *data;

	while ((scn = elf_section_next(elf, scn, &shdr, &name))) {
		if (!name || (strcmp(name, ".debug_str") && strcmp(name, ".debug_line_str") &&
			      strcmp(name, ".debug_str.dwo")))
			continue;
		data = elf_section_data(scn);
		if (data && ((const char *)data->d_buf)[data->d_size - 1])
			return false;
	}
	return true;
}

/* This decompresses the sections. */
static Dwarf *open_dwarf(const struct elf_file *file)
{
	Dwarf *dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);

	return dwarf && strings_end(file->elf) ? dwarf : NULL;
}

/*
 * Opens the file that the debug file refers to, because libdw would open any. Returns false if
 * there should be one that cannot be found.
 */
static bool open_common(Dwarf *dwarf, struct elf_file *file, const struct confined *confined)
{
	Dwarf *common;
	const void *id;
	const char *name;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);

	if (!len)
		return true;
	if (len < 0 || !debug_common_open(file, name, id, len, confined))
		return false;
	common = open_dwarf(file);
	dwarf_setalt(dwarf, common);
	return common;
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

/**
 * struct scope - A function or block that contains places
 * @die: Its entry.
 * @outer: The scope in which it is; NULL for a function that is not inlined.
 * @is_function: It is a function, which may be inlined.
 */
struct scope {
	Dwarf_Die die;
	const struct scope *outer;
	bool is_function;
};

/**
 * struct search - The search for the scopes of the places in a unit
 * @lookup: The places.
 * @scopes: The innermost scope of each place, as far as it is known.
 * @last: The last entry. Later ones must be after it: damaged entries can have loops.
 */
struct search {
	const struct lookup *lookup;
	const struct scope **scopes;
	Dwarf_Off last;
};

/* The places with these indices, from @low to the one before @high */
struct places {
	size_t low;
	size_t high;
};

static struct places places_between(const struct lookup *lookup, u64 start, u64 end)
{
	return (struct places){ lookup_index(lookup, start), lookup_index(lookup, end) };
}

/*
 * Makes the entry the innermost scope of the places in it that are in @outer, but in no other entry
 * there. Returns the first and the last of them, and others in between.
 */
static struct places enter(struct search *search, Dwarf_Die *die, const struct scope *outer)
{
	struct places found = { SIZE_MAX, 0 }, range;
	const int tag = dwarf_tag(die);
	struct scope *scope = NULL;
	Dwarf_Addr base, start, end;

	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
		range = places_between(search->lookup, start, end);
		for (size_t i = range.low; i < range.high; i++) {
			if (search->scopes[i] != outer)
				continue;
			if (!scope) {
				scope = xmalloc(sizeof(*scope));
				*scope = (struct scope){
					.die = *die,
					.outer = tag == DW_TAG_subprogram ? NULL : outer,
					.is_function = tag == DW_TAG_subprogram ||
						       tag == DW_TAG_inlined_subroutine,
				};
			}
			search->scopes[i] = scope;
			found.low = found.low < i ? found.low : i;
			found.high = found.high > i + 1 ? found.high : i + 1;
		}
	}
	return found;
}

/* Enters all scopes below @parent, for all places at once: a unit can have very many of both. */
static void find_scopes(struct search *search, Dwarf_Die *parent, const struct scope *outer,
			int depth)
{
	struct places found;
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		if (dwarf_dieoffset(&die) <= search->last)
			return;
		search->last = dwarf_dieoffset(&die);
		found = enter(search, &die, outer);
		if (found.low < found.high)
			find_scopes(search, &die, search->scopes[found.low], depth + 1);
		else if (is_container(dwarf_tag(&die)))
			find_scopes(search, &die, outer, depth + 1);
	} while (!dwarf_siblingof(&die, &die));
}

static u64 number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number = 0;

	dwarf_formudata(dwarf_attr(die, name, &attribute), &number);
	return number;
}

/* Sets the place of the call of the inlined function @callee. */
static void read_call(struct frame *frame, Dwarf_Die *unit, Dwarf_Die *callee)
{
	Dwarf_Files *files;
	size_t nr;

	frame->line = number_of(callee, DW_AT_call_line);
	frame->discriminator = number_of(callee, AT_DISCRIMINATOR);
	if (!dwarf_getsrcfiles(unit, &files, &nr))
		frame->source = dwarf_filesrc(files, number_of(callee, DW_AT_call_file), NULL,
					      NULL);
}

/* Sets the frames. The depth bounds their number. */
static void read_frames(struct place *place, Dwarf_Die *unit, const struct scope *innermost,
			Dwarf_Line *line)
{
	struct scope const *functions[DEPTH_MAX + 1];
	struct frame *frames;
	size_t nr = 0;

	for (const struct scope *scope = innermost; scope; scope = scope->outer)
		if (scope->is_function)
			functions[nr++] = scope;
	if (!nr)
		return;
	frames = xcalloc(nr, sizeof(*frames));
	for (size_t i = 0; i < nr; i++) {
		Dwarf_Die die = functions[nr - 1 - i]->die, callee;

		frames[i].name = die_name(&die);
		dwarf_decl_line(&die, &frames[i].start);
		if (i + 1 == nr)
			break;
		callee = functions[nr - 2 - i]->die;
		read_call(&frames[i], unit, &callee);
	}
	frames[nr - 1].source = place->source;
	frames[nr - 1].line = place->line;
	if (line)
		dwarf_linediscriminator(line, &frames[nr - 1].discriminator);
	place->frames = frames;
	place->nr_frames = nr;
}

/* @unit: the unit of the lines. @entries: that of the functions, which may be in another file. */
static void read_place(struct place *place, Dwarf_Die *unit, Dwarf_Die *entries,
		       const struct scope *innermost)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, place->address);
	const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;

	if (file && !dwarf_lineno(line, &place->line))
		place->source = file;
	read_frames(place, entries, innermost, line);
}

/*
 * Sets @entries to the unit with the entries of @unit, which -gsplit-dwarf moves to another file.
 * libdw opens it: see confined_open().
 */
static enum place_lack find_entries(Dwarf_Die *unit, Dwarf_Die *entries)
{
	Dwarf *dwarf;
	uint8_t type;

	*entries = *unit;
	if (dwarf_cu_info(unit->cu, NULL, &type, NULL, entries, NULL, NULL, NULL) ||
	    type != DW_UT_skeleton) {
		*entries = *unit;
		return PLACE_LACKS_NOTHING;
	}
	dwarf = entries->cu ? dwarf_cu_getdwarf(entries->cu) : NULL;
	return dwarf && strings_end(dwarf_getelf(dwarf)) ? PLACE_LACKS_NOTHING :
							   PLACE_LACKS_SPLIT;
}

/* Reads the places in the ranges of addresses of the unit. */
static void read_unit(struct search *search, Dwarf_Die *unit)
{
	const struct lookup *lookup = search->lookup;
	enum place_lack lack = PLACE_LACKS_NOTHING;
	Dwarf_Addr base, start, end;
	bool is_searched = false;
	struct places places;
	Dwarf_Die entries;

	for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &start, &end)) > 0;) {
		places = places_between(lookup, start, end);
		if (places.low >= places.high)
			continue;
		if (!is_searched) {
			memset(search->scopes, 0, lookup->nr * sizeof(*search->scopes));
			search->last = 0;
			lack = find_entries(unit, &entries);
			if (lack == PLACE_LACKS_NOTHING)
				find_scopes(search, &entries, NULL, 0);
			is_searched = true;
		}
		for (size_t i = places.low; i < places.high; i++) {
			if (lookup->places[i].source)
				continue;
			lookup->places[i].lack = lack;
			read_place(&lookup->places[i], unit, &entries, search->scopes[i]);
		}
	}
}

static void read_units(struct lookup *lookup, Dwarf *dwarf)
{
	struct search search = {
		.lookup = lookup,
		.scopes = xcalloc(lookup->nr + 1, sizeof(*search.scopes)),
	};
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	while (!dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL))
		read_unit(&search, &die);
}

static bool has_units(Dwarf *dwarf)
{
	Dwarf_CU *unit;

	return !dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, NULL, NULL);
}

static void set_lack(struct lookup *lookup, enum place_lack lack)
{
	for (size_t i = 0; i < lookup->nr; i++)
		lookup->places[i].lack = lack;
}

/* If there is a .dwp, it has the files that are missing. */
static void find_package(struct lookup *lookup, const struct confined *confined)
{
	const struct file_request request = { .kind = FILE_PACKAGE };
	bool is_split = false;
	int fd;

	for (size_t i = 0; i < lookup->nr; i++)
		is_split |= lookup->places[i].lack == PLACE_LACKS_SPLIT;
	fd = is_split ? confined_ask(confined, &request) : -1;
	if (fd < 0)
		return;
	close(fd);
	for (size_t i = 0; i < lookup->nr; i++)
		if (lookup->places[i].lack == PLACE_LACKS_SPLIT)
			lookup->places[i].lack = PLACE_LACKS_PACKAGE;
}

void lines_read(struct lookup *lookup, const struct elf_file *file,
		const struct confined *confined)
{
	struct elf_file debug = { .fd = -1 }, common_file = { .fd = -1 };
	Dwarf *dwarf = open_dwarf(file);

	/* A program without debug information may have unwind tables, which are in DWARF, too. */
	if (!has_units(dwarf) && debug_file_open(&debug, file, confined))
		dwarf = open_dwarf(&debug);
	if (!has_units(dwarf)) {
		set_lack(lookup, PLACE_LACKS_ALL);
	} else if (!open_common(dwarf, &common_file, confined)) {
		set_lack(lookup, PLACE_LACKS_COMMON);
	} else {
		set_lack(lookup, PLACE_LACKS_UNIT);
		read_units(lookup, dwarf);
		find_package(lookup, confined);
	}
}
