/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs code that parses untrusted files in a process of its own
 *
 * libelf, libdw, the demanglers and capstone have not been made for hostile files: they can need
 * gigabytes or hours, or write out of bounds. So only such a process calls them. It is forked for
 * one file, with the memory of this process, which it cannot change. It has one open file, limits
 * of time and memory, and hardly any system calls. It writes an answer to a pipe, and this process
 * checks the answer. It asks for further files, and cannot choose their paths, but for .dwo files:
 * see files.h.
 */
#ifndef PROFIL_TOOLS_CONFINED_H
#define PROFIL_TOOLS_CONFINED_H

#include "symbols/files.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#define CONFINED_PROBLEM 128

/**
 * struct confined - Work for a confined process
 * @prepare: Is called there before it is confined; or NULL.
 * @work: Is called there.
 * @data: For @prepare and @work.
 * @fd: The file that the process has; or -1.
 * @root: For files that it asks for, as in file_open().
 * @path: The path of the file, if files may be found by its link to a debug file; or NULL.
 * @may_ask: It may ask for files.
 * @by_size: Large files get more time and memory.
 * @has_budget: The caller limits the time of all such work. So no time is taken from the next one
 *	after one that needed too much.
 * @subject: What the process reads, for messages.
 * @bytes: Further memory for the process and its answer.
 * @seconds: Further time of a CPU.
 * @answer: Out: what it has written; the caller frees it.
 * @size: Out: the number of bytes.
 * @problem: Out: why there is no answer.
 * @exceeded: Out: the process has exceeded its limits, or crashed.
 */
struct confined {
	void (*prepare)(const struct confined *confined);
	void (*work)(const struct confined *confined);
	void *data;
	int fd;
	int root;
	const char *path;
	bool may_ask;
	bool by_size;
	bool has_budget;
	const char *subject;
	u64 bytes;
	u64 seconds;
	u8 *answer;
	size_t size;
	char problem[CONFINED_PROBLEM];
	bool exceeded;

	/* Only confined.c uses these. */
	int output;
	int requests;
};

/* Runs the work. Returns false, with a message for the user in @problem, if it does not end. */
bool confined_run(struct confined *confined);

/*
 * Calls @call every @interval_ns while confined_run() waits. Without that, records of the module
 * would be lost while a recorder reads binaries.
 */
void confined_set_idle(void (*call)(void *data), void *data, u64 interval_ns);

/* In the process: adds to the answer, or asks for a file. Returns its descriptor or -1. */
void confined_write(const struct confined *confined, const void *data, size_t size);
int confined_ask(const struct confined *confined, const struct file_request *request);

/* Returns true in such a process. */
bool confined_is_here(void);

/* In the process: asks for the file of split debug information @path, which libdw wants to open. */
int confined_open(const char *path);

#endif /* PROFIL_TOOLS_CONFINED_H */
