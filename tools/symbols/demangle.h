/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Demangles names, in a confined process
 */
#ifndef PROFIL_TOOLS_DEMANGLE_H
#define PROFIL_TOOLS_DEMANGLE_H

#include <obstack.h>

#include "../util.h"

/* Returns true if @name may be mangled. This process can decide that. */
bool demangle_is_mangled(const char *name);

/* Returns the demangled name in @memory; NULL if @name is not mangled, or it would be too long. */
const char *demangle_name(struct obstack *memory, const char *name);

#endif /* PROFIL_TOOLS_DEMANGLE_H */
