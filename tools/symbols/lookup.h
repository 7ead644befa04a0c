/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds the function that contains each of a set of places
 *
 * The functions of a binary or of a JIT compiler are added one by one. Only the last one for each
 * place is kept, so the memory does not depend on the number of functions.
 */
#ifndef PROFIL_TOOLS_LOOKUP_H
#define PROFIL_TOOLS_LOOKUP_H

#include "../util.h"

/* The name of a function without a symbol: its address, which follows the name of the file. */
#define FUNCTION_BY_ADDRESS	"+0x%llx"
/* Follows the name of the function that a stub of a linkage table calls. */
#define FUNCTION_STUB		"@plt"

/**
 * struct function - A function
 * @start: Its first byte.
 * @end: The byte after it.
 * @name: Its name, mangled, or FUNCTION_BY_ADDRESS; NULL if there is no function.
 * @local: Its number among the local symbols of this name, sorted by address, from 1 on; 0 if it is
 *	not local, or for lack of @number_locals.
 */
struct function {
	u64 start;
	u64 end;
	const char *name;
	u64 local;
};

/**
 * struct frame - A function at a place, or one that was inlined there
 * @name: Its name, mangled; or NULL.
 * @start: The line where it is declared; 0 if it is not known.
 * @source: The source file of @line, or NULL.
 * @line: In the innermost function, the line of the place; in others, the line of the inlined call.
 * @discriminator: Distinguishes blocks of code in this line.
 */
struct frame {
	const char *name;
	int start;
	const char *source;
	int line;
	unsigned int discriminator;
};

/**
 * enum place_caller - Where the return address is when the instruction at a place is executed
 * @PLACE_CALLER_NO_TABLE: It is not known.
 * @PLACE_CALLER_FRAME: In the frame of the function, to which the frame pointer points; or the
 *	function has no caller.
 * @PLACE_CALLER_GO: There, or in the second word: the tables of Go do not tell whether the frame
 *	has been made. At a call it has.
 * @PLACE_CALLER_FIRST: In the first word of profil_stack.innermost. The frame pointer is that of
 *	the caller.
 * @PLACE_CALLER_SECOND: In the second word, likewise.
 * @PLACE_CALLER_LOST: Elsewhere.
 */
enum place_caller {
	PLACE_CALLER_NO_TABLE,
	PLACE_CALLER_FRAME,
	PLACE_CALLER_GO,
	PLACE_CALLER_FIRST,
	PLACE_CALLER_SECOND,
	PLACE_CALLER_LOST,
};

/**
 * enum place_lack - Why there is no debug information for a place
 * @PLACE_LACKS_NOTHING: There is some, or it was not read.
 * @PLACE_LACKS_ALL: The file has none, and no debug file was found.
 * @PLACE_LACKS_UNIT: There is none for this code.
 * @PLACE_LACKS_SPLIT: It is in another file (.dwo), which was not found.
 * @PLACE_LACKS_PACKAGE: It is in a file with those of many objects (.dwp).
 * @PLACE_LACKS_COMMON: Parts of it are in a file made by dwz, which was not found.
 */
enum place_lack {
	PLACE_LACKS_NOTHING,
	PLACE_LACKS_ALL,
	PLACE_LACKS_UNIT,
	PLACE_LACKS_SPLIT,
	PLACE_LACKS_PACKAGE,
	PLACE_LACKS_COMMON,
	PLACE_LACKS,
};

/**
 * struct place - An offset in a file, or an address
 * @where: The offset or address.
 * @address: The address to which the function is compared. In files, the linker has set it.
 * @found: The function that contains it.
 * @source: The source file, or NULL. Only lines_read() sets this and the next members.
 * @line: The line in it.
 * @frames: The functions at the place according to the debug information, the outermost first.
 * @nr_frames: Their number; 0 if there is no debug information.
 * @lack: Why there is no debug information.
 * @caller: Where the return address is. Only callers_read() sets it.
 */
struct place {
	u64 where;
	u64 address;
	struct function found;
	const char *source;
	int line;
	const struct frame *frames;
	size_t nr_frames;
	enum place_lack lack;
	enum place_caller caller;
};

/**
 * enum lookup_symtab - The symbol table of a file
 * @SYMTAB_NONE: It has only .dynsym, or none, and no debug file was found.
 * @SYMTAB_READ: It has a .symtab, so a debug file has no further names.
 * @SYMTAB_COMPRESSED: It has a .gnu_debugdata, which could not be read.
 */
enum lookup_symtab { SYMTAB_NONE, SYMTAB_READ, SYMTAB_COMPRESSED };

/**
 * struct lookup - A set of places
 * @places: The places, sorted.
 * @number_locals: Number the local functions.
 * @find_callers: Find out where the return addresses are.
 * @address_size: The size of an address in bytes. Only binary_read() sets it.
 * @symtab: What symbol table there is. Likewise.
 * @only_names: Why there are only names; or NULL. Only symbols_read() sets it.
 */
struct lookup {
	struct place *places;
	size_t nr;
	bool number_locals;
	bool find_callers;
	size_t address_size;
	enum lookup_symtab symtab;
	const char *only_names;
};

/* Returns true if @name is FUNCTION_BY_ADDRESS. */
static inline bool function_is_by_address(const char *name)
{
	return !strncmp(name, FUNCTION_BY_ADDRESS, 3);
}

/* Sorts @values, and removes values that are equal. Returns the number of values that remain. */
size_t lookup_sort(u64 *values, size_t nr);

/* @where: the places, which are sorted by this. */
void lookup_init(struct lookup *lookup, u64 *where, size_t nr);
void lookup_free(struct lookup *lookup);

/* Forgets all functions. */
void lookup_clear(struct lookup *lookup);

/*
 * Adds a function, which replaces others where they overlap: an inner function is added after the
 * outer one. The name is not copied.
 */
void lookup_add(struct lookup *lookup, const struct function *function);

/* Returns the index of the first place whose address is @address or more. */
size_t lookup_index(const struct lookup *lookup, u64 address);

/* Returns the place @where, which must be one of the places of lookup_init(). */
struct place *lookup_place(const struct lookup *lookup, u64 where);

/* Returns the outermost function at the place; without debug information, only its line. */
struct frame place_outermost(const struct place *place);

/* Returns the innermost inlined function at the place that has a name, or NULL. */
const char *place_inlined(const struct place *place);

#endif /* PROFIL_TOOLS_LOOKUP_H */
