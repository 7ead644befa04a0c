// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds out where the return address is at each place: see extract.h. Before a function has made
 * its frame, the frame pointers lack its caller.
 */
#include <dwarf.h>

#include "symbols/cfi.h"
#include "symbols/extract.h"

/* The maximum number of bytes from where the frame pointer is saved to where it is set. */
#define PROLOGUE_MAX	16

/* The registers of a machine, as DWARF numbers them */
struct registers {
	int machine;
	int stack;
	int frame;
	int link;		/* contains the return address; -1: the stack does */
	int word;		/* bytes */
	bool frame_is_base;	/* compilers base the CFA on the frame pointer while it is set */
};

static const struct registers machines[] = {
	{ EM_X86_64, 7, 6, -1, 8, true },
	{ EM_386, 4, 5, -1, 4, true },
	{ EM_AARCH64, 31, 29, 30, 8, false },
	{ EM_RISCV, 2, 8, 1, 8, true },
};

/**
 * struct unwind - The unwind tables of a file
 * @registers: Of its machine.
 * @cfi: The tables.
 * @is_go: Go compiled the file, with frame pointers, which it does not have on riscv. Its tables do
 *	not tell that the frame pointer is saved.
 */
struct unwind {
	const struct registers *registers;
	Dwarf_CFI *cfi;
	bool is_go;
};

static const struct registers *registers_of(Elf *elf)
{
	GElf_Ehdr ehdr;

	if (!gelf_getehdr(elf, &ehdr))
		return NULL;
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
		if (machines[i].machine == ehdr.e_machine)
			return &machines[i];
	return NULL;
}

/* ---- one instruction ---- */

/* Returns true if the register @number still has the value that it has in the caller. */
static bool is_callers(Dwarf_Frame *frame, int number)
{
	Dwarf_Op memory[3], *ops;
	size_t nr;

	/* Without operations, the register is unchanged if there is no pointer, else it is lost. */
	return !dwarf_frame_register(frame, number, memory, &ops, &nr) && !nr && !ops;
}

/* Returns true if the table says that the function has no caller. */
static bool is_outermost(Dwarf_Frame *frame)
{
	const int number = dwarf_frame_info(frame, NULL, NULL, NULL);
	Dwarf_Op memory[3], *ops;
	size_t nr;

	/* A return address that is lost, as in is_callers() */
	return number >= 0 && !dwarf_frame_register(frame, number, memory, &ops, &nr) && !nr && ops;
}

/*
 * Finds the register on which the CFA at @address is based, and its distance. Returns -1 if there
 * is no table for it, or if the CFA is something else.
 */
static int cfa_register(const struct unwind *unwind, u64 address, s64 *distance,
			Dwarf_Frame **frame)
{
	Dwarf_Op *ops;
	size_t nr;

	*frame = NULL;
	if (dwarf_cfi_addrframe(unwind->cfi, address, frame))
		return -1;
	if (dwarf_frame_cfa(*frame, &ops, &nr) || !nr)
		return -1;
	if (ops->atom == DW_OP_bregx) {
		*distance = ops->number2;
		return ops->number;
	}
	if (ops->atom < DW_OP_breg0 || ops->atom > DW_OP_breg31)
		return -1;
	*distance = ops->number;
	/* In a stub of the procedure linkage table: one more word, from byte 11 on. */
	if (nr > 1 && ops[1].atom == DW_OP_breg16 && address % 16 >= 11)
		*distance += unwind->registers->word;
	return ops->atom - DW_OP_breg0;
}

/* Returns true if the function sets the frame pointer soon after @address. */
static bool is_in_prologue(const struct unwind *unwind, u64 address)
{
	bool is = false;

	for (u64 i = 1; i <= PROLOGUE_MAX && !is; i++) {
		Dwarf_Frame *frame;
		s64 distance;

		is = cfa_register(unwind, address + i, &distance, &frame) ==
		     unwind->registers->frame;
		free(frame);
	}
	return is;
}

static enum place_caller caller_on_stack(const struct unwind *unwind, u64 address, s64 words,
					 Dwarf_Frame *frame)
{
	/* All saved registers have been restored, or are not saved yet. */
	if (words == 1)
		return PLACE_CALLER_FIRST;
	if (unwind->is_go)
		return words == 2 ? PLACE_CALLER_GO : PLACE_CALLER_FRAME;
	if (words == 2 && (is_callers(frame, unwind->registers->frame) ||
			   is_in_prologue(unwind, address)))
		return PLACE_CALLER_SECOND;
	return PLACE_CALLER_LOST;
}

static enum place_caller caller_at(const struct unwind *unwind, u64 address)
{
	const struct registers *registers = unwind->registers;
	enum place_caller caller = PLACE_CALLER_NO_TABLE;
	Dwarf_Frame *frame;
	s64 distance = 0;
	int base = cfa_register(unwind, address, &distance, &frame);

	if (!frame)
		return caller;
	caller = PLACE_CALLER_FRAME;
	if (is_outermost(frame))
		goto out;
	if (registers->link < 0 && base == registers->stack)
		caller = caller_on_stack(unwind, address, distance / registers->word, frame);
	else if (registers->link >= 0 && is_callers(frame, registers->frame))
		caller = is_callers(frame, registers->link) ? PLACE_CALLER_FIRST :
			 unwind->is_go ? PLACE_CALLER_FRAME : PLACE_CALLER_LOST;
	else if (registers->frame_is_base && base != registers->frame)
		caller = PLACE_CALLER_LOST;
out:
	free(frame);
	return caller;
}

/* ---- tables ---- */

static void read_places(struct lookup *lookup, const struct unwind *unwind)
{
	for (size_t i = 0; i < lookup->nr; i++)
		if (lookup->places[i].address != UINT64_MAX)
			lookup->places[i].caller = caller_at(unwind, lookup->places[i].address);
}

void callers_read(struct lookup *lookup, const struct elf_file *file)
{
	struct unwind unwind = {
		.registers = registers_of(file->elf),
	};

	if (!unwind.registers)
		return;
	unwind.is_go = unwind.registers->machine != EM_RISCV && elf_is_go(file->elf);
	unwind.cfi = cfi_open(file->elf, unwind.is_go).cfi;
	if (unwind.cfi)
		read_places(lookup, &unwind);
}
