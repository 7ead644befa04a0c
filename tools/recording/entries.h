/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The threads, files, mappings, stacks and calls that a stream has written. Only the files of the
 * stream include this.
 */
#ifndef PROFIL_TOOLS_ENTRIES_H
#define PROFIL_TOOLS_ENTRIES_H

#include <sys/stat.h>

#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>

#include "recording/functions.h"
#include "recording/stream.h"

#define KEY_WORDS	6

/**
 * struct entry - A thread, file, mapping or call that was written
 * @key: Its type and its identity.
 * @id: Its id; 0: it was not written yet.
 * @comm: The name of a thread.
 * @is_generated: For a file or a mapping, a JIT compiler may have made the code.
 * @is_exact: For a file whose key ignores the generation: @id is that of a known generation.
 * @source: For a file or a mapping, where the functions of its samples are noted; or NULL.
 */
struct entry {
	u64 key[KEY_WORDS];
	u32 id;
	char comm[16];
	bool is_generated;
	bool is_exact;
	struct source *source;
};

/* Returns a table of entries, and the entry with this key, which is new if it has no id. */
htab_t entries_new(size_t size);
struct entry *entry_get(htab_t table, const u64 *key);

/* Makes room for more threads, mappings and calls. */
void entries_empty(struct stream *stream);

/* Return the thread, or the mapping, of the record. They write it if it is new. */
u32 stream_thread(struct stream *stream, const struct profil_record *record);
const struct entry *stream_mapping(struct stream *stream, const struct profil_record *record);

/*
 * Opens the mapped file of the record, if nobody has changed it since. Returns its descriptor and
 * its state; or -1 and in *@reason why it is not known: FORMAT_FILE_* flags.
 */
int mapping_open(const struct profil_record *record, struct stat *st, u32 *reason);

/* Returns the id of the call of the record, which is written if it is new; 0 in user mode. */
u32 stream_call(struct stream *stream, const struct profil_record *record);

/* Returns a table of stacks. */
htab_t stacks_new(void);

/* Returns the id of the stack of the record, which is written if it is new; 0 if it has none. */
u32 stream_stack(struct stream *stream, const struct profil_record *record);

#endif /* PROFIL_TOOLS_ENTRIES_H */
