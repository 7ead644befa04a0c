// SPDX-License-Identifier: GPL-2.0-or-later
/* See entries.h: system calls. Their names are those that libseccomp knows. */
#define _GNU_SOURCE
#include <stdlib.h>

#include <linux/audit.h>
#include <seccomp.h>

#include "recording/entries.h"

#define X32_BIT		0x40000000	/* in the numbers of calls of x32 */

/* Returns a prefix for the names of calls of an ABI that 64-bit kernels have beside their own. */
static const char *abi_prefix(u32 arch)
{
	switch (arch) {
	case SCMP_ARCH_X86:
		return "i386:";
	case SCMP_ARCH_X32:
		return "x32:";
	case SCMP_ARCH_ARM:
		return "arm:";
	}
	return "";
}

/* Returns the name of the call, which the caller frees. */
static char *name_call(const struct profil_record *record)
{
	const bool is_x32 = record->arch == AUDIT_ARCH_X86_64 && record->syscall & X32_BIT;
	const u32 arch = is_x32 ? SCMP_ARCH_X32 : record->arch;
	char *known, *name;

	if (record->syscall == -1)
		return xstrdup(record->flags & PROFIL_RECORD_SOFTIRQ ? "interrupt" : "page fault");
	known = seccomp_syscall_resolve_num_arch(arch, record->syscall);
	name = known ? concat(abi_prefix(arch), known, NULL) :
		       xasprintf("%ssyscall %d", abi_prefix(arch), record->syscall);
	free(known);
	return name;
}

u32 stream_call(struct stream *stream, const struct profil_record *record)
{
	const u64 key[KEY_WORDS] = {
		FORMAT_CALL, record->arch, (u32)record->syscall,
		record->flags & PROFIL_RECORD_SOFTIRQ,
	};
	struct format_call call = { .nr = record->syscall, .arch = record->arch };
	struct entry *entry;
	char *name;

	if (!(record->flags & PROFIL_RECORD_SYSTEM))
		return 0;
	entries_empty(stream);
	entry = entry_get(stream->entries, key);
	if (entry->id)
		return entry->id;
	name = name_call(record);
	call.id = ++stream->last[FORMAT_CALL];
	call.name = name;
	entry->id = call.id;
	format_write(stream->writer, FORMAT_CALL, &call);
	free(name);
	return call.id;
}
