/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The format of a jit-PID.dump, in which a JIT compiler describes the code that it makes
 *
 * Linux defines it in tools/perf/Documentation/jitdump-specification.txt. All numbers have the byte
 * order of the machine. After the header there are records, with these structures.
 */
#ifndef PROFIL_TOOLS_JITDUMP_H
#define PROFIL_TOOLS_JITDUMP_H

#include "../util.h"

#define JITDUMP_MAGIC		0x4a695444

/* The first bytes of the header, whose size is @size */
struct jitdump_header {
	u32 magic;
	u32 version;
	u32 size;
	u32 machine;
};

/* The types of records */
enum jitdump_id {
	JITDUMP_LOAD = 0,
	JITDUMP_UNWINDING = 4,
};

/* The first bytes of each record: its size contains them. */
struct jitdump_record {
	u32 id;
	u32 size;
	u64 time;
};

/* A function: its name follows, with a NUL, and then the code. */
struct jitdump_load {
	struct jitdump_record record;
	u32 pid;
	u32 tid;
	u64 vma;
	u64 address;
	u64 code_size;
	u64 index;
};

/*
 * The call frame information of the next function: @size - @header_size bytes of .eh_frame follow,
 * and then @header_size bytes of .eh_frame_hdr. The addresses are as if the former was behind the
 * code, at the next multiple of JITDUMP_ALIGNMENT.
 */
struct jitdump_unwinding {
	struct jitdump_record record;
	u64 size;
	u64 header_size;
	u64 mapped_size;
};

#define JITDUMP_ALIGNMENT	8

#endif /* PROFIL_TOOLS_JITDUMP_H */
