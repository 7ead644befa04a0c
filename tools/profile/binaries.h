/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The binaries of a recording: their labels, and the functions at places in them
 */
#ifndef PROFIL_TOOLS_BINARIES_H
#define PROFIL_TOOLS_BINARIES_H

#include "recording/recording.h"
#include "symbols/symbols.h"

/* Stands for the name of a binary, process or host that is not known. */
#define PROFILE_UNKNOWN "[unknown]"
/* Stands for the names of all functions of a binary that are not known. */
#define PROFILE_NO_SYMBOL "[no symbol]"

/* The name of a binary that is not known has this address. */
extern const char binaries_unknown[];

/**
 * struct profile_function - A function
 * @index: Its index in struct chains, if it is in a chain.
 * @name: The name of the function, or a name in brackets.
 * @unnamed: The function is not known.
 * @by_address: It has no symbol, and its name is the address of its first byte in the binary.
 * @binary: The path of the binary, or a name in brackets. For ticks during exec and exit, the name
 *	of the thread.
 * @label: The name of the binary in the report.
 * @start: Distinguishes functions of a binary that have the same name.
 * @linkage: The name of the function for the linker; or NULL.
 */
struct profile_function {
	size_t index;
	const char *name;
	bool unnamed;
	bool by_address;
	const char *binary;
	const char *label;
	u64 start;
	const char *linkage;
};

/**
 * struct nameless - Ticks in functions that processes have made at run time, without names
 * @why: The reason of the first process; or NULL.
 * @ticks: Their number, weighted by their periods.
 * @is_many: Several processes have this reason.
 */
struct nameless {
	const struct format_nameless *why;
	u64 ticks;
	bool is_many;
};

#define NAMELESS_REASONS	(FORMAT_NAMELESS_MANY + 1)

/**
 * struct profile_binary - A file of the recording
 * @problem: The reason if functions could not be read; or NULL.
 * @only_names: The reason if only names could be read; or NULL.
 * @label: The name of the file in the report.
 * @symtab: What symbol table it has.
 * @address_size: The size of its addresses in bytes, if it could be read.
 * @lookup: The places in it, until binaries_close().
 * @ticks: The ticks in it, which rows.c counts.
 * @unnamed: The ticks in code without a symbol, likewise.
 * @nameless: Those that processes have made at run time instead, by enum format_nameless_reason.
 * @lacking: If lines or inlined functions are wanted, the ticks that lack debug information, or
 *	whose callers in this file do, by reason, likewise.
 * @last: The last row that was counted in @lacking.
 */
struct profile_binary {
	const char *problem;
	const char *only_names;
	const char *label;
	enum lookup_symtab symtab;
	size_t address_size;
	struct lookup lookup;
	u64 ticks;
	u64 unnamed;
	struct nameless nameless[NAMELESS_REASONS];
	u64 lacking[PLACE_LACKS];
	size_t last;
};

/**
 * struct binaries - The binaries of a recording
 * @recording: The recording.
 * @lines: Find source lines and inlined functions.
 * @number_locals: Number local functions: see struct function.
 * @callers: Find the functions in stacks, and where return addresses are.
 * @recorded: Do not read files whose functions were recorded.
 * @by_symbol: The binary of ticks during exec and exit is the name of the thread; otherwise it is
 *	their own name.
 * @symbols: The owner of all names.
 * @files: One for each of @recording->files.
 */
struct binaries {
	/* Set by the caller of binaries_open(). */
	const struct recording *recording;
	bool lines;
	bool number_locals;
	bool callers;
	bool recorded;
	bool by_symbol;

	struct symbols *symbols;
	struct profile_binary *files;
};

/*
 * Reads the functions at all places of the recording. @demangle and @symfs: as for symbols_new().
 * Returns false with errno set if @symfs cannot be opened.
 */
bool binaries_open(struct binaries *binaries, bool demangle, const char *symfs);

/* Forgets the places. The names remain valid until binaries_free(). */
void binaries_close(struct binaries *binaries);
void binaries_free(struct binaries *binaries);

/* Returns the entry of a file of the recording. */
static inline struct profile_binary *binary_of(const struct binaries *binaries,
					       const struct recording_file *file)
{
	return &binaries->files[file - binaries->recording->files];
}

/* Returns the file as it was recorded. It is valid as long as @file. */
struct symbols_file binary_file(const struct recording_file *file);

/* Adds ticks of @sample, which has a file, to those in functions without names. */
void binaries_add_unnamed(const struct binaries *binaries, const struct recording_sample *sample,
			  u64 ticks);

/* Returns the thread of the sample, or one with the name PROFILE_UNKNOWN. */
const struct recording_thread *binaries_thread(const struct recording_sample *sample);

/*
 * Finds the function of @sample; with @inlines, the inlined one. Sets @place, too: to the offset of
 * the sample if the binary could not be read.
 */
void binaries_find(const struct binaries *binaries, const struct recording_sample *sample,
		   bool inlines, struct profile_function *function, struct place *place);

/**
 * struct binary_label - A binary that needs a label
 * @path: Its path.
 * @whole: Its label is @path, also for others whose path ends with the same name.
 * @label: Where to store the label.
 */
struct binary_label {
	const char *path;
	bool whole;
	const char **label;
};

/*
 * Labels each binary with the last part of its path, or with the whole path if two have this part.
 * Sorts @labels.
 */
void binaries_choose_labels(struct binary_label *labels, size_t nr);

#endif /* PROFIL_TOOLS_BINARIES_H */
