/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LIBPROFIL_COPY_H
#define LIBPROFIL_COPY_H

#include <stddef.h>

int libprofil_copy_in(void *to, const void *from, size_t size);
int libprofil_copy_out(void *to, const void *from, size_t size);

#endif /* LIBPROFIL_COPY_H */
