/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rows of the last moments, for a live view
 *
 * Time is divided into slots. The window has the current slot and those before it: together
 * WINDOW_SLOTS. Rows without ticks in these are forgotten, and the number of rows is limited, so
 * the memory does not grow with time.
 */
#ifndef PROFIL_TOOLS_WINDOW_H
#define PROFIL_TOOLS_WINDOW_H

#include "profile/rows.h"

#define WINDOW_SLOTS	10

/* If there are too many different rows, further ones are added up in a row with this name. */
#define WINDOW_OTHER	"[other]"

struct window;

/* If there is no memory, these functions exit, as xcalloc() does. */
struct window *window_new(void);
void window_free(struct window *window);

/* Sets the keys of @rows by which all other keys of the window can be made. */
void window_keys(struct rows *rows);

/* Adds rows with these keys to the current slot. */
void window_add(struct window *window, const struct rows *rows);

/* Sets the duration of the current slot in ns. */
void window_set_time(struct window *window, u64 ns);

/* Begins a new slot, and forgets the oldest one. */
void window_advance(struct window *window);

/* Forgets all rows. */
void window_clear(struct window *window);

/* Returns the duration of all slots in ns. */
u64 window_time(const struct window *window);

/*
 * Makes rows with the keys in @rows, which can be any but those of a sample: offset, line, CPU,
 * mode and second. They are valid until the window changes; rows_free() frees them.
 */
void window_rows(struct window *window, struct rows *rows);

#endif /* PROFIL_TOOLS_WINDOW_H */
