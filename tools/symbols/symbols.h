/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions, from binaries and from the recording
 */
#ifndef PROFIL_TOOLS_SYMBOLS_H
#define PROFIL_TOOLS_SYMBOLS_H

#include <sys/stat.h>

#include "symbols/lookup.h"

/* The owner of all names, which remain valid after a binary is closed. */
struct symbols;

/**
 * symbols_new - Prepare for reading symbols
 * @demangle: Demangle names.
 * @symfs: A directory below which all binaries and debug files are found; or NULL.
 *
 * Return: NULL with errno set if the directory cannot be opened.
 */
struct symbols *symbols_new(bool demangle, const char *symfs);
void symbols_free(struct symbols *symbols);

/*
 * Demangles names that are not those of symbols_read(), all at once. They must be valid as long as
 * @symbols.
 */
void symbols_demangle(struct symbols *symbols, const char *const *names, size_t nr);

/*
 * Returns @name as it is printed. It is one of the names of symbols_read() or symbols_demangle(),
 * and must be valid as long as @symbols.
 */
const char *symbols_name(struct symbols *symbols, const char *name);

/*
 * Returns the name of a function of the file @path whose @name is FUNCTION_BY_ADDRESS, as it is
 * printed. Both must be valid as long as @symbols.
 */
const char *symbols_by_address(struct symbols *symbols, const char *path, const char *name);

/* Returns @name as it is printed for an inlined function. */
const char *symbols_inlined(struct symbols *symbols, const char *name);

/**
 * struct symbols_file - A file that has certain contents
 * @path: Its path; NULL if it is memory without a file.
 * @unknown: Why the contents are not known; or NULL.
 * @size: Its size.
 * @mtime: The time of its last change, in ns since 1970; 0: any contents are right.
 * @build_id: Its build-id.
 * @build_id_len: The number of bytes; 0 if it is not known.
 */
struct symbols_file {
	const char *path;
	const char *unknown;
	u64 size;
	u64 mtime;
	const u8 *build_id;
	u32 build_id_len;
};

/**
 * symbols_read - Find the functions at offsets in a file
 * @lookup: The offsets.
 * @file: The file.
 * @lines: Find source lines and inlined functions, too.
 *
 * Return: NULL, or an error message for the user.
 */
const char *symbols_read(struct symbols *symbols, struct lookup *lookup,
			 const struct symbols_file *file, bool lines);

/**
 * struct symbols_code - Instructions of a file
 * @offset: Their offset in the file.
 * @size: Their number of bytes.
 * @bytes: Out: the bytes. The caller allocates them.
 * @machine: Out: an EM_* constant.
 */
struct symbols_code {
	u64 offset;
	size_t size;
	u8 *bytes;
	int machine;
};

/* Reads instructions. Returns the same as symbols_read(). */
const char *symbols_read_code(struct symbols *symbols, struct symbols_code *code,
			      const struct symbols_file *file);

/* Opens a source file. Returns NULL if it is not found, or not a regular file. */
FILE *symbols_open_source(const struct symbols *symbols, const char *path, struct stat *st);

#endif /* PROFIL_TOOLS_SYMBOLS_H */
