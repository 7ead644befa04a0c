/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The text of instructions, from the library capstone
 *
 * The library is loaded when it is needed: the command works without it.
 */
#ifndef PROFIL_TOOLS_DISASSEMBLE_H
#define PROFIL_TOOLS_DISASSEMBLE_H

#include "symbols/symbols.h"

#define INSTRUCTION_TEXT	256

/**
 * struct instruction - An instruction
 * @address: Its address.
 * @size: Its number of bytes.
 * @text: Its text, or "(bad)".
 */
struct instruction {
	u64 address;
	size_t size;
	char text[INSTRUCTION_TEXT];
};

struct disassembler;

/*
 * Returns a disassembler for @code, whose first byte has the address @address. Returns NULL and an
 * error message for the user on failure.
 */
struct disassembler *disassembler_new(const struct symbols_code *code, u64 address,
				      const char **reason);
void disassembler_free(struct disassembler *disassembler);

/* Returns the next instruction, which is valid until the next call; NULL after the last one. */
const struct instruction *disassemble(struct disassembler *disassembler);

#endif /* PROFIL_TOOLS_DISASSEMBLE_H */
