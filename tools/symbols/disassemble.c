// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See disassemble.h.
 */
#include <capstone/capstone.h>
#include <dlfcn.h>
#include <elf.h>

#include <libiberty/libiberty.h>

#include "symbols/confined.h"
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

/* ---- in the confined process ---- */

/* The library, and the state of the work */
struct engine {
	const struct machine *machine;
	const struct symbols_code *code;
	u64 address;
	csh handle;
	cs_insn *insn;
	typeof(cs_disasm_iter) *next;
};

/* An instruction in the answer, after which the text follows */
struct answer_instruction {
	u32 size;
	u32 length;
};

/* Loads the library, before the process is confined. */
static void load_library(const struct confined *confined)
{
	struct engine *engine = confined->data;
	void *library = dlopen(LIBRARY, RTLD_NOW);
	typeof(cs_open) *open;
	typeof(cs_option) *option;
	typeof(cs_malloc) *allocate;

	if (!library)
		return;
	open = dlsym(library, "cs_open");
	option = dlsym(library, "cs_option");
	allocate = dlsym(library, "cs_malloc");
	engine->next = dlsym(library, "cs_disasm_iter");
	if (!open || !option || !allocate || !engine->next ||
	    open(engine->machine->arch, engine->machine->mode, &engine->handle) != CS_ERR_OK)
		return;
	if (engine->machine->arch == CS_ARCH_X86)
		option(engine->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	engine->insn = allocate(engine->handle);
}

static void write_instruction(const struct confined *confined, size_t size, const char *text)
{
	const struct answer_instruction instruction = { .size = size, .length = strlen(text) };

	confined_write(confined, &instruction, sizeof(instruction));
	confined_write(confined, text, instruction.length);
}

/* Writes nothing if there is no library. */
static void work_disassemble(const struct confined *confined)
{
	const struct engine *engine = confined->data;
	const u8 *code = engine->code->bytes;
	size_t size = engine->code->size, left;
	u64 address = engine->address;
	char text[INSTRUCTION_TEXT];

	while (engine->insn && size) {
		left = size;
		if (engine->next(engine->handle, &code, &left, &address, engine->insn)) {
			snprintf(text, sizeof(text), *engine->insn->op_str ? "%-7s %s" : "%s",
				 engine->insn->mnemonic, engine->insn->op_str);
			write_instruction(confined, size - left, text);
			size = left;
			continue;
		}
		/* It is not an instruction: continue after it. */
		left = size < engine->machine->step ? size : engine->machine->step;
		write_instruction(confined, left, "(bad)");
		code += left;
		size -= left;
		address += left;
	}
}

/* ---- in the parent ---- */

/**
 * struct disassembler - A disassembler
 * @answer: That of the confined process.
 * @size: The number of bytes of it.
 * @at: The place of the next instruction in it.
 * @address: The address of the next instruction.
 * @left: The bytes of code that remain.
 */
struct disassembler {
	u8 *answer;
	size_t size;
	size_t at;
	u64 address;
	size_t left;
	struct instruction instruction;
};

struct disassembler *disassembler_new(const struct symbols_code *code, u64 address,
				      const char **reason)
{
	struct engine engine = { .code = code, .address = address };
	struct confined confined = {
		.prepare = load_library, .work = work_disassemble, .data = &engine, .fd = -1,
		.subject = "its instructions",
		.bytes = code->size * (sizeof(struct answer_instruction) + INSTRUCTION_TEXT),
	};
	struct disassembler *disassembler;
	size_t i = 0;

	while (i < sizeof(machines) / sizeof(*machines) && machines[i].number != code->machine)
		i++;
	if (i == sizeof(machines) / sizeof(*machines)) {
		*reason = "the instructions of this machine are not known";
		return NULL;
	}
	engine.machine = &machines[i];
	if (!confined_run(&confined)) {
		*reason = "the instructions cannot be read";
		return NULL;
	}
	if (!confined.size && code->size) {
		*reason = "to see the instructions, install libcapstone" TEXT_OF(CS_API_MAJOR);
		free(confined.answer);
		return NULL;
	}
	disassembler = xcalloc(1, sizeof(*disassembler));
	disassembler->answer = confined.answer;
	disassembler->size = confined.size;
	disassembler->address = address;
	disassembler->left = code->size;
	return disassembler;
}

void disassembler_free(struct disassembler *disassembler)
{
	if (disassembler)
		free(disassembler->answer);
	free(disassembler);
}

const struct instruction *disassemble(struct disassembler *disassembler)
{
	struct instruction *instruction = &disassembler->instruction;
	const size_t left = disassembler->size - disassembler->at;
	struct answer_instruction next;

	if (left < sizeof(next))
		return NULL;
	memcpy(&next, disassembler->answer + disassembler->at, sizeof(next));
	if (next.length > left - sizeof(next) || next.length >= sizeof(instruction->text) ||
	    !next.size || next.size > disassembler->left)
		return NULL;
	instruction->address = disassembler->address;
	instruction->size = next.size;
	memcpy(instruction->text, disassembler->answer + disassembler->at + sizeof(next),
	       next.length);
	instruction->text[next.length] = '\0';
	disassembler->at += sizeof(next) + next.length;
	disassembler->address += next.size;
	disassembler->left -= next.size;
	return instruction;
}
