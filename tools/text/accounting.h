/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the ticks of a recording were counted: a summary for people, and the accounting line
 *
 *	2,170 samples at 1,000 Hz, 3.1 s of CPU time; 7 during exec or exit. See: profil report
 *	ticks 2179, expected 2251: hit 2046 outside 133 saturated 0 dropped 0, missed 40;
 *	user 2086 system 93
 */
#ifndef PROFIL_TOOLS_ACCOUNTING_H
#define PROFIL_TOOLS_ACCOUNTING_H

#include <stdio.h>

#include "recording/completeness.h"

/*
 * Prints the accounting line, with its newline. @modes: PROFIL_MODE_* bits. @is_machine: The
 * recording is one of the machine.
 */
void accounting_print(FILE *out, const struct format_account *account, u32 modes, bool is_machine);

/* A note is printed if it is about this share of the ticks, or more. */
#define NOTE_SHARE	0.01

/*
 * Prints the share of the complete call stacks, and notes on why the others end. Each of these
 * begins with @prefix. Prints nothing if there are no stacks.
 */
void completeness_print(FILE *out, const char *prefix, const struct completeness *completeness);

/* The contents of the summary of profil record. */
struct summary {
	const char *path;			/* of the file */
	const char *target;			/* the process; or NULL */
	const char *machine;			/* NULL: the machine was not recorded */
	u64 tick_ns;
	struct format_account account;
	u64 samples;				/* in the file */
	u64 bare;				/* ticks during exec or exit */
	struct format_detached *detached;	/* execs that were not followed */
	size_t nr_detached;
	bool tables_refused;			/* the module has not taken all */
	u64 tables_late;			/* were not made: there was no time */
	u64 left;				/* processes of the command that still run */
	struct completeness completeness;	/* of the call stacks */
};

/*
 * Prints the summary on standard error, and warnings about ticks that were missed and programs that
 * were not followed.
 */
void summary_print(const struct summary *summary);

/* Sorts @detached and prints a line for each program, which begins with @prefix. */
void detached_print(FILE *out, const char *prefix, struct format_detached *detached, size_t nr);

struct number {
	char text[32];
};

/* Returns @value in decimal, with a comma between groups of three digits. */
struct number number(u64 value);

#endif /* PROFIL_TOOLS_ACCOUNTING_H */
