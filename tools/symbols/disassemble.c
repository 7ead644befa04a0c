// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See disassemble.h.
 */
#include <capstone/capstone.h>
#include <dlfcn.h>
#include <elf.h>

#include <libiberty/libiberty.h>

#include "symbols/disassemble.h"

#define TEXT_OF(macro)	TEXT(macro)
#define TEXT(word)	#word
#define LIBRARY		"libcapstone.so." TEXT_OF(CS_API_MAJOR)

/* The machines, and the sizes of their smallest instructions */
static const struct machine {
	int number;
	cs_arch arch;
	cs_mode mode;
	size_t step;
} machines[] = {
	{ EM_X86_64, CS_ARCH_X86, CS_MODE_64, 1 },
	{ EM_386, CS_ARCH_X86, CS_MODE_32, 1 },
	{ EM_AARCH64, CS_ARCH_ARM64, CS_MODE_ARM, 4 },
#if CS_API_MAJOR >= 5
	{ EM_RISCV, CS_ARCH_RISCV, CS_MODE_RISCV64 | CS_MODE_RISCVC, 2 },
#endif
};

/**
 * struct disassembler - A disassembler
 * @code: The @size bytes that remain.
 * @address: The address of the first one.
 * @machine: That of the code.
 */
struct disassembler {
	void *library;
	csh handle;
	cs_insn *insn;
	const u8 *code;
	size_t size;
	u64 address;
	const struct machine *machine;
	struct instruction instruction;

	typeof(cs_disasm_iter) *next;
	typeof(cs_free) *free;
	typeof(cs_close) *close;
};

static bool open_library(struct disassembler *disassembler)
{
	const struct machine *machine = disassembler->machine;
	typeof(cs_open) *open;
	typeof(cs_option) *option;
	typeof(cs_malloc) *allocate;

	disassembler->library = dlopen(LIBRARY, RTLD_NOW);
	if (!disassembler->library)
		return false;
	open = dlsym(disassembler->library, "cs_open");
	option = dlsym(disassembler->library, "cs_option");
	allocate = dlsym(disassembler->library, "cs_malloc");
	disassembler->next = dlsym(disassembler->library, "cs_disasm_iter");
	disassembler->free = dlsym(disassembler->library, "cs_free");
	disassembler->close = dlsym(disassembler->library, "cs_close");
	if (!open || !option || !allocate || !disassembler->next || !disassembler->free ||
	    !disassembler->close ||
	    open(machine->arch, machine->mode, &disassembler->handle) != CS_ERR_OK)
		return false;
	if (machine->arch == CS_ARCH_X86)
		option(disassembler->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	disassembler->insn = allocate(disassembler->handle);
	return disassembler->insn;
}

struct disassembler *disassembler_new(const struct symbols_code *code, u64 address,
				      const char **reason)
{
	struct disassembler *disassembler;
	size_t i = 0;

	while (i < sizeof(machines) / sizeof(*machines) && machines[i].number != code->machine)
		i++;
	if (i == sizeof(machines) / sizeof(*machines)) {
		*reason = "the instructions of this machine are not known";
		return NULL;
	}
	disassembler = xcalloc(1, sizeof(*disassembler));
	disassembler->code = code->bytes;
	disassembler->size = code->size;
	disassembler->address = address;
	disassembler->machine = &machines[i];
	if (open_library(disassembler))
		return disassembler;
	*reason = "to see the instructions, install libcapstone" TEXT_OF(CS_API_MAJOR);
	disassembler_free(disassembler);
	return NULL;
}

void disassembler_free(struct disassembler *disassembler)
{
	if (!disassembler)
		return;
	if (disassembler->insn)
		disassembler->free(disassembler->insn, 1);
	if (disassembler->handle)
		disassembler->close(&disassembler->handle);
	if (disassembler->library)
		dlclose(disassembler->library);
	free(disassembler);
}

const struct instruction *disassemble(struct disassembler *disassembler)
{
	struct instruction *instruction = &disassembler->instruction;
	const cs_insn *insn = disassembler->insn;
	size_t size = disassembler->size;

	if (!size)
		return NULL;
	instruction->address = disassembler->address;
	if (disassembler->next(disassembler->handle, &disassembler->code, &disassembler->size,
			       &disassembler->address, disassembler->insn)) {
		instruction->size = size - disassembler->size;
		snprintf(instruction->text, sizeof(instruction->text), *insn->op_str ? "%-7s %s" :
			 "%s", insn->mnemonic, insn->op_str);
		return instruction;
	}
	/* It is not an instruction: continue after it. */
	instruction->size = size < disassembler->machine->step ? size : disassembler->machine->step;
	disassembler->code += instruction->size;
	disassembler->size -= instruction->size;
	disassembler->address += instruction->size;
	strcpy(instruction->text, "(bad)");
	return instruction;
}
