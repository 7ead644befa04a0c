/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call chains: the functions of a sample, from the outermost caller to the function of the pc, and
 * what the kernel did for it
 *
 * All outputs that show callers get them from here. rows_make() makes a chain for each sample if
 * struct rows_options.chains is set. Functions and frames are shared: equal ones have the same
 * address and the same index.
 */
#ifndef PROFIL_TOOLS_CHAINS_H
#define PROFIL_TOOLS_CHAINS_H

#include "profile/binaries.h"

/**
 * struct chain_frame - A place in a function: the pc of a sample, or a call
 * @index: Its index in struct chains.
 * @function: The function.
 * @file: The file that contains it; NULL if it is not known.
 * @offset: Offset of the place in the file; its address if @file is NULL or FORMAT_FILE_NONE. For
 *	a call, it is that of the last byte of the instruction.
 * @bias: As in struct recording_sample.
 * @address: As in struct place.
 * @inlined: The function is inlined in that of the frame before it, which has the same place.
 * @lack: As in struct place, for the outermost function of a place.
 * @code: The line in the function: if the next frame is inlined, that of the inlined call.
 */
struct chain_frame {
	size_t index;
	const struct profile_function *function;
	const struct recording_file *file;
	u64 offset;
	u64 bias;
	u64 address;
	bool inlined;
	enum place_lack lack;
	struct frame code;
};

/**
 * struct chain - The functions of a sample
 * @index: Its number, from 0 on.
 * @lost: A caller between these functions is missing, or the only caller.
 * @unchecked: The caller of the innermost function may be missing: there is no unwind table for it.
 * @unknown: At least one frame is in a mapping that is not known.
 * @complete: The chain begins with the outermost function, and lacks none.
 * @end: Otherwise, if none of the above is true, why there are no more frames: enum
 *	profil_stack_end.
 * @nr: The number of frames; not 0.
 * @frames: The outermost one is the first. The last one is that of the pc; or if it is known what
 *	the kernel did, a frame for this, such as "[read]", after that of the pc.
 */
struct chain {
	size_t index;
	bool lost;
	bool unchecked;
	bool unknown;
	bool complete;
	u32 end;
	size_t nr;
	const struct chain_frame *frames[];
};

/**
 * struct chains - All functions and frames
 * @functions: The functions, by their indexes.
 * @frames: The frames, by their indexes.
 */
struct chains {
	const struct profile_function **functions;
	size_t nr_functions;
	const struct chain_frame **frames;
	size_t nr_frames;
};

/* Returns true if a function matches the pattern as in names_match(). */
bool chains_match(const struct chains *chains, const char *pattern);

/* Makes the chains of samples, whose functions are in @binaries until binaries_close(). */
struct chain_maker *chains_new(const struct binaries *binaries);
const struct chain *chains_make(struct chain_maker *maker, const struct recording_sample *sample);
const struct chains *chains_of(const struct chain_maker *maker);
void chains_free(struct chain_maker *maker);

#endif /* PROFIL_TOOLS_CHAINS_H */
