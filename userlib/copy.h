/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PROFIL_COPY_H
#define PROFIL_COPY_H

#include <stddef.h>

int profil_copy_in(void *to, const void *from, size_t size);
int profil_copy_out(void *to, const void *from, size_t size);

#endif /* PROFIL_COPY_H */
