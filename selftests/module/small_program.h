/* SPDX-License-Identifier: GPL-2.0 */
/* A program of two segments, the first of which runs a loop */
#ifndef _SELFTESTS_SMALL_PROGRAM_H
#define _SELFTESTS_SMALL_PROGRAM_H

#include "loop.h"

#include <elf.h>
#include <stddef.h>

#define PROGRAM_AT	0x10000000UL	/* the address of the first segment */
#define PROGRAM_BYTES	4096
#define PROGRAM_ALIGN	65536

struct small_program {
	Elf64_Ehdr header;
	Elf64_Phdr segments[2];
	char loop[LOOP_SIZE];	/* for ever: all registers are 0 */
};

static inline struct small_program small_program(Elf64_Phdr second)
{
	struct small_program p = {
		.segments[0] = {
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_vaddr = PROGRAM_AT,
			.p_filesz = PROGRAM_BYTES,
			.p_memsz = PROGRAM_BYTES,
			.p_align = PROGRAM_ALIGN,
		},
		.segments[1] = second,
	};
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	MUST(read(self, &p.header, sizeof(p.header)) == sizeof(p.header));
	close(self);
	p.header.e_type = ET_EXEC;
	p.header.e_entry = PROGRAM_AT + offsetof(struct small_program, loop);
	p.header.e_phoff = offsetof(struct small_program, segments);
	p.header.e_phnum = 2;
	memcpy(p.loop, loops_text, LOOP_SIZE);
	return p;
}

#endif /* _SELFTESTS_SMALL_PROGRAM_H */
