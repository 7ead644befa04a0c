// SPDX-License-Identifier: GPL-2.0-or-later
/* See demangle.h. */
#include <setjmp.h>

#include <libiberty/demangle.h>
#include <libiberty/libiberty.h>

#include "symbols/demangle.h"
#include "symbols/lookup.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/*
 * The demangled name can be exponentially longer than the mangled one. So these limit both lengths,
 * and for D the number of references to earlier parts: one long name must not cost all others of
 * the binary.
 */
#define MANGLED_MAX	8192
#define DEMANGLED_MAX	(64U << 10)
#define REFERENCES_MAX	24

/* The result, and where demangling continues if it would be too long. */
struct result {
	struct obstack *memory;
	jmp_buf too_long;
};

/* Appends a part of a demangled name to the result. */
static void add_part(const char *part, size_t length, void *data)
{
	struct result *result = data;

	if (obstack_object_size(result->memory) + length > DEMANGLED_MAX)
		longjmp(result->too_long, 1);
	obstack_grow(result->memory, part, length);
}

static bool demangle_cxx_or_rust(struct obstack *memory, const char *name)
{
	struct result result = { .memory = memory };

	return !setjmp(result.too_long) &&
	       (rust_demangle_callback(name, DMGL_PARAMS, add_part, &result) ||
		cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI, add_part, &result));
}

static bool is_cxx_or_rust(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) || !strncmp(name, "__Z", 3);
}

bool demangle_is_mangled(const char *name)
{
	return is_cxx_or_rust(name) || !strncmp(name, "_D", 2) || !strncmp(name, "_ada_", 5);
}

/*
 * Appends the demangled name. Returns false if the result is too long, or @name is not mangled, as
 * in C and Go. Ada mangles other names than _ada_*, too, but they could be names of C.
 */
static bool append(struct obstack *memory, const char *name)
{
	size_t references = 0;
	char *demangled = NULL;

	if (!demangle_is_mangled(name) || strnlen(name, MANGLED_MAX + 1) > MANGLED_MAX)
		return false;
	if (is_cxx_or_rust(name))
		return demangle_cxx_or_rust(memory, name);
	for (const char *at = name; (at = strchr(at, 'Q')); at++)
		references++;
	if (!strncmp(name, "_D", 2) && references <= REFERENCES_MAX)
		demangled = dlang_demangle(name, 0);
	else if (!strncmp(name, "_ada_", 5))
		demangled = ada_demangle(name, 0);
	if (demangled)
		obstack_grow(memory, demangled, strlen(demangled));
	free(demangled);
	return demangled;
}

const char *demangle_name(struct obstack *memory, const char *name)
{
	const size_t len = strlen(name), suffix = sizeof(FUNCTION_STUB) - 1;
	const bool is_stub = len > suffix && !strcmp(name + len - suffix, FUNCTION_STUB);
	char *function = is_stub ? xstrndup(name, len - suffix) : NULL, *text;
	const bool is_mangled = append(memory, function ?: name);

	free(function);
	if (is_stub)
		obstack_grow(memory, FUNCTION_STUB, suffix);
	obstack_1grow(memory, '\0');
	text = obstack_finish(memory);
	if (is_mangled)
		return text;
	obstack_free(memory, text);
	return NULL;
}
