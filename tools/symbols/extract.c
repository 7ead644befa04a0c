// SPDX-License-Identifier: GPL-2.0-or-later
/* See extract.h. */
#include <gelf.h>

#include <libiberty/libiberty.h>

#include "symbols/cfi.h"
#include "symbols/debugdata.h"
#include "symbols/extract.h"
#include "symbols/stubs.h"

/**
 * struct candidate - A function that may contain a place
 * @rank: If several functions are at a place, the one with the highest rank is used.
 * @sized: The function has a size. Otherwise it ends where the next one starts.
 */
struct candidate {
	struct function function;
	int rank;
	bool sized;
};

struct candidates {
	struct candidate *candidates;
	size_t nr;
	bool unsized;		/* at least one has no size */
};

/* Returns the address of an offset; UINT64_MAX if it is not loaded. */
static u64 address_of(Elf *elf, u64 offset)
{
	u64 address = UINT64_MAX;
	GElf_Phdr phdr;

	for (int i = 0; gelf_getphdr(elf, i, &phdr); i++) {
		if (phdr.p_type != PT_LOAD || offset < phdr.p_offset ||
		    offset - phdr.p_offset >= phdr.p_filesz)
			continue;
		address = offset - phdr.p_offset + phdr.p_vaddr;
		/* A page where two segments meet is mapped twice: prefer the executable one. */
		if (phdr.p_flags & PF_X)
			break;
	}
	return address;
}

/* ---- symbol tables ---- */

/* Returns the end of the section that contains the symbol; 0 if the section has no code. */
static u64 text_end(Elf *elf, const GElf_Sym *sym)
{
	Elf_Scn *scn = elf_getscn(elf, sym->st_shndx);
	GElf_Shdr shdr;

	if (!scn || !gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR) ||
	    sym->st_value < shdr.sh_addr || sym->st_value - shdr.sh_addr >= shdr.sh_size)
		return 0;
	return shdr.sh_addr + shdr.sh_size;
}

/* Most symbols are not of interest, so this does not need their names. */
static bool is_function(Elf *elf, const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS)
		return false;
	/* An untyped symbol must label code, and is_name() rejects the compiler's labels. */
	if (type == STT_NOTYPE)
		return text_end(elf, sym);
	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

static bool is_name(const GElf_Sym *sym, const char *name)
{
	if (!name || !*name)
		return false;
	return GELF_ST_TYPE(sym->st_info) != STT_NOTYPE || (*name != '$' && strncmp(name, ".L", 2));
}

/* The order in which functions are added: inner ones later, and better names later. */
static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const char *x_name = x->function.name, *y_name = y->function.name;

	/* If a function has several names, we print the one that perf prints. */
	return compare_u64(x->function.start, y->function.start) ?: x->rank - y->rank ?:
	       compare_u64(strspn(y_name, "_"), strspn(x_name, "_")) ?:
	       compare_u64(strlen(x_name), strlen(y_name));
}

/* @strings: the section that contains the name */
static void add_candidate(const struct lookup *lookup, struct candidates *candidates, Elf *elf,
			  const GElf_Sym *sym, size_t strings)
{
	size_t i = lookup_index(lookup, sym->st_value);
	int bind = GELF_ST_BIND(sym->st_info);
	struct candidate candidate = {
		.function = { .start = sym->st_value, .end = sym->st_value + sym->st_size },
		.rank = (sym->st_size != 0) << 2 | (bind != STB_WEAK) << 1 | (bind == STB_GLOBAL),
		.sized = sym->st_size,
	};

	candidate.function.local = lookup->number_locals && bind == STB_LOCAL;

	if (!candidate.sized)
		candidate.function.end = text_end(elf, sym);
	if (i == lookup->nr || lookup->places[i].address >= candidate.function.end)
		return;
	candidate.function.name = elf_strptr(elf, strings, sym->st_name);
	if (!is_name(sym, candidate.function.name) ||
	    !array_grow(&candidates->candidates, candidates->nr, sizeof(candidate)))
		return;
	candidates->unsized |= !candidate.sized;
	candidates->candidates[candidates->nr++] = candidate;
}

/* Ends the last candidate before the function at @address, if it has no size. */
static void end_candidate(const struct candidates *candidates, u64 address)
{
	size_t i = array_index(&candidates->candidates->function.start, candidates->nr,
			       sizeof(struct candidate), address);
	struct candidate *candidate = i ? &candidates->candidates[i - 1] : NULL;

	if (candidate && !candidate->sized && candidate->function.end > address)
		candidate->function.end = address;
}

static int compare_names(const void *a, const void *b)
{
	const struct candidate *const *x = a, *const *y = b;

	return strcmp((*x)->function.name, (*y)->function.name);
}

/* Returns the index of the first of the @nr functions, sorted by name, that is not before @name. */
static size_t name_index(struct candidate **locals, size_t nr, const char *name)
{
	size_t low = 0, middle;

	while (low < nr) {
		middle = low + (nr - low) / 2;
		if (strcmp(locals[middle]->function.name, name) < 0)
			low = middle + 1;
		else
			nr = middle;
	}
	return low;
}

/* Counts the local symbol @name at @address for the functions of this name that are behind it. */
static void count_local(struct candidate **locals, size_t nr, const char *name, u64 address)
{
	for (size_t i = name_index(locals, nr, name); i < nr; i++) {
		struct function *function = &locals[i]->function;

		if (strcmp(function->name, name))
			break;
		function->local += address < function->start;
	}
}

/* Data and labels count, too, as in BOLT. @strings: the section that contains the names */
static void number_locals(const struct candidates *candidates, Elf *elf, Elf_Data *data,
			  size_t strings)
{
	struct candidate **locals = xcalloc(candidates->nr + 1, sizeof(*locals));
	const char *name;
	size_t nr = 0;
	GElf_Sym sym;

	for (size_t i = 0; i < candidates->nr; i++) {
		struct candidate *candidate = &candidates->candidates[i];

		if (candidate->function.local)
			locals[nr++] = candidate;
	}
	qsort(locals, nr, sizeof(*locals), compare_names);
	for (int i = 0; nr && gelf_getsym(data, i, &sym); i++) {
		const int type = GELF_ST_TYPE(sym.st_info);

		if (GELF_ST_BIND(sym.st_info) != STB_LOCAL || sym.st_shndx == SHN_UNDEF ||
		    sym.st_shndx == SHN_ABS || type == STT_FILE || type == STT_SECTION)
			continue;
		name = elf_strptr(elf, strings, sym.st_name);
		if (name)
			count_local(locals, nr, name, sym.st_value);
	}
	free(locals);
}

/* A symbol table, and the section that has its names */
struct table {
	Elf *elf;
	GElf_Word type;
	Elf_Data *data;
	size_t strings;
};

/* Finds the section of type @type. Returns false if the file has none. */
static bool find_table(struct table *table, Elf *elf, GElf_Word type)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == type)
			break;
	*table = (struct table){ .elf = elf, .type = type, .data = elf_section_data(scn) };
	if (!table->data || !elf_section_data(elf_getscn(elf, shdr.sh_link)))
		return false;
	table->strings = shdr.sh_link;
	return true;
}

static void read_table(struct lookup *lookup, const struct table *table)
{
	struct candidates candidates = {};
	Elf_Data *data = table->data;
	Elf *elf = table->elf;
	GElf_Sym sym;

	/* In .dynsym, the next function may be missing, so a size is needed. */
	for (int i = 0; gelf_getsym(data, i, &sym); i++)
		if (is_function(elf, &sym) && (sym.st_size || table->type == SHT_SYMTAB))
			add_candidate(lookup, &candidates, elf, &sym, table->strings);
	if (candidates.nr)
		qsort(candidates.candidates, candidates.nr, sizeof(*candidates.candidates),
		      compare_candidates);
	for (int i = 0; candidates.unsized && gelf_getsym(data, i, &sym); i++)
		if (is_function(elf, &sym) &&
		    is_name(&sym, elf_strptr(elf, table->strings, sym.st_name)))
			end_candidate(&candidates, sym.st_value);
	if (lookup->number_locals)
		number_locals(&candidates, elf, data, table->strings);
	for (size_t i = 0; i < candidates.nr; i++)
		lookup_add(lookup, &candidates.candidates[i].function);
	free(candidates.candidates);
}

/* ---- functions without symbols ---- */

static void add_unnamed(void *data, u64 start, u64 end)
{
	struct function function = { .start = start, .end = end };
	const struct lookup *lookup = data;

	for (size_t i = lookup_index(lookup, start);
	     i < lookup->nr && lookup->places[i].address < end; i++) {
		if (lookup->places[i].found.name)
			continue;
		if (!function.name)
			function.name = xasprintf(FUNCTION_BY_ADDRESS, (unsigned long long)start);
		lookup->places[i].found = function;
	}
}

static bool has_unnamed(const struct lookup *lookup)
{
	for (size_t i = 0; i < lookup->nr; i++)
		if (!lookup->places[i].found.name && lookup->places[i].address != UINT64_MAX)
			return true;
	return false;
}

/* Names the functions that have only call frame information by their addresses. */
static void add_by_address(struct lookup *lookup, Elf *elf)
{
	struct cfi cfi;

	if (has_unnamed(lookup) && cfi_find(&cfi, elf, false))
		cfi_read_entries(&cfi, elf, add_unnamed, lookup);
}

/*
 * Finds the symbol tables of a file, the outer functions first. Returns their number. @debug: its
 * debug file, which is opened if it is needed.
 */
static size_t find_tables(struct table tables[2], struct lookup *lookup,
			  const struct elf_file *file, struct elf_file *debug,
			  const struct confined *confined)
{
	bool is_lost = false;
	size_t nr = 0;
	Elf *data;

	lookup->symtab = SYMTAB_READ;
	if (find_table(tables, file->elf, SHT_SYMTAB) ||
	    (debug_file_open(debug, file, confined) && find_table(tables, debug->elf, SHT_SYMTAB)))
		return 1;
	data = debugdata_open(file->elf, &is_lost);
	nr += find_table(&tables[nr], file->elf, SHT_DYNSYM);
	if (data && find_table(&tables[nr], data, SHT_SYMTAB))
		return nr + 1;
	lookup->symtab = data || is_lost ? SYMTAB_COMPRESSED : SYMTAB_NONE;
	return nr;
}

void extract_functions(struct lookup *lookup, const struct elf_file *file,
		       const struct confined *confined)
{
	struct elf_file debug = { .fd = -1 };
	struct table tables[2];
	struct stubs stubs;
	size_t nr;

	for (size_t i = 0; i < lookup->nr; i++)
		lookup->places[i].address = address_of(file->elf, lookup->places[i].where);
	nr = find_tables(tables, lookup, file, &debug, confined);
	stubs_find(&stubs, lookup, file->elf);
	for (size_t i = 0; i < nr && stubs.targets.nr; i++)
		read_table(&stubs.targets, &tables[i]);
	stubs_add(&stubs, lookup);
	for (size_t i = 0; i < nr; i++)
		read_table(lookup, &tables[i]);
	add_by_address(lookup, file->elf);
	/* The debug file may have been written to while it was read. */
	if (debug.elf && !elf_file_unchanged(&debug))
		lookup_clear(lookup);
	for (size_t i = 0; i < lookup->nr; i++) {
		struct place *place = &lookup->places[i];

		if (!place->found.name)
			continue;
		place->found.start += place->where - place->address;
		place->found.end += place->where - place->address;
	}
}
