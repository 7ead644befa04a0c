/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The profiler of the Nintendo 64's operating system: see osProfile(3)
 *
 * For an old program that includes <ultra64.h>, add -I.../profil/compat/n64 to the compiler
 * options.
 */
#ifndef _PROFIL_N64_H
#define _PROFIL_N64_H

#if !defined(__cplusplus)
#define __PROFIL_NOTHROW
#elif __cplusplus >= 201103L
#define __PROFIL_NOTHROW noexcept(true)
#else
#define __PROFIL_NOTHROW throw()
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The shortest period, in microseconds. */
#define PROF_MIN_INTERVAL	50

/**
 * OSProf - A segment of text and its counters
 * @histo_base: Array of counters, aligned to 32 bits.
 * @histo_size: Number of counters: one for each 32-bit word of the text.
 * @text_start: The first instruction.
 * @text_end: The last instruction.
 *
 * unsigned short is the u16, and unsigned int the u32, of <ultra64.h>.
 */
typedef struct {
	unsigned short *histo_base;
	unsigned int histo_size;
	unsigned int *text_start;
	unsigned int *text_end;
} OSProf;

/* Errors with their original numbers */
#define ERR_OSPROFILEINIT_STR		61	/* the profiler is running */
#define ERR_OSPROFILEINIT_CNT		62	/* profcnt is 0 or too large */
#define ERR_OSPROFILEINIT_ALN		63	/* histo_base is not aligned to 32 bits */
#define ERR_OSPROFILEINIT_ORD		64	/* text_start is not below text_end */
#define ERR_OSPROFILEINIT_SIZ		65	/* histo_size is too small for the text */
#define ERR_OSPROFILESTART_TIME		66	/* the period is too short or too long */
#define ERR_OSPROFILESTART_FLAG		67	/* the profiler is running already */
#define ERR_OSPROFILESTOP_FLAG		68	/* the profiler is stopped already */
#define ERR_OSPROFILESTOP_TIMER		69	/* there is no profile to stop */

/* Additional errors */
#define ERR_OSPROFILEINIT_OVL		1000	/* segments overlap: PROF_DISJOINT */
#define ERR_OSPROFILEINIT_FLAGS		1001	/* a flag is not known */
#define ERR_OSPROFILESTART_INIT		1002	/* osProfileInit() was not called */
#define ERR_OSPROFILE_ERRNO		1003	/* a system call failed: see errno */

/*
 * A function that fails calls the error handler with the error, the number of further arguments,
 * and these arguments.
 */
typedef void (*OSErrorHandler)(short, short, ...);

/* All functions are thread-safe and async-signal-safe. */

/* Sets the error handler, or none with NULL, and returns the previous one. */
OSErrorHandler osSetErrorHandler(OSErrorHandler handler);

void osProfileInit(OSProf *profp, unsigned int profcnt);
void osProfileStart(unsigned int microseconds);
void osProfileStop(void);
void osProfileFlush(void);

/* Additional functions */

/* Flags of osProfileInitFlags() */
#define PROF_UINT32	1U	/* counters are u32, not u16 */
#define PROF_DISJOINT	2U	/* overlapping segments are an error */

/* Like osProfileInit(), with these flags. */
void osProfileInitFlags(OSProf *profp, unsigned int profcnt, unsigned int flags);

/* Returns the overflow counter: the number of ticks with a pc in no segment. */
unsigned int osProfileOverflow(void);

#ifdef __cplusplus
}
#endif

#undef __PROFIL_NOTHROW

#endif /* _PROFIL_N64_H */
