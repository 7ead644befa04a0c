// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See disassemble.h. The declarations of capstone's functions and numbers are here: so its header
 * is not needed, and both of its versions can be used.
 */
#include <dlfcn.h>
#include <elf.h>

#include <libiberty/libiberty.h>

#include "symbols/disassemble.h"

/* cs_arch, cs_mode, cs_opt_type, cs_opt_value */
#define ARCH_ARM64	1
#define ARCH_X86	3
#define MODE_ARM	0
#define MODE_32		(1 << 2)
#define MODE_64		(1 << 3)
#define OPTION_SYNTAX	1
#define SYNTAX_ATT	2

/*
 * In struct cs_insn, the bytes of the instruction have this offset. Then follow its name, with this
 * size, and its operands.
 */
#define BYTES_OFFSET	18
#define NAME_SIZE	32

static const struct version {
	const char *library;
	size_t nr_bytes;
} versions[] = {
	{ "libcapstone.so.5", 24 },
	{ "libcapstone.so.4", 16 },
};

/**
 * struct disassembler - A disassembler
 * @handle: Of the library.
 * @insn: The library's structure for an instruction.
 * @code: The bytes that remain, of number @size.
 * @address: The address of the first one.
 * @step: The size of the smallest instruction.
 */
struct disassembler {
	void *library;
	const struct version *version;
	size_t handle;
	char *insn;
	const u8 *code;
	size_t size;
	u64 address;
	size_t step;
	struct instruction instruction;

	bool (*next)(size_t handle, const u8 **code, size_t *size, u64 *address, void *insn);
	void (*free)(void *insn, size_t nr);
	int (*close)(size_t *handle);
};

static bool open_library(struct disassembler *disassembler, int arch, int mode)
{
	int (*open)(int arch, int mode, size_t *handle);
	int (*option)(size_t handle, int type, size_t value);
	char *(*allocate)(size_t handle);

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		disassembler->version = &versions[i];
		disassembler->library = dlopen(versions[i].library, RTLD_NOW);
		if (disassembler->library)
			break;
	}
	if (!disassembler->library)
		return false;
	open = dlsym(disassembler->library, "cs_open");
	option = dlsym(disassembler->library, "cs_option");
	allocate = dlsym(disassembler->library, "cs_malloc");
	disassembler->next = dlsym(disassembler->library, "cs_disasm_iter");
	disassembler->free = dlsym(disassembler->library, "cs_free");
	disassembler->close = dlsym(disassembler->library, "cs_close");
	if (!open || !option || !allocate || !disassembler->next || !disassembler->free ||
	    !disassembler->close || open(arch, mode, &disassembler->handle))
		return false;
	if (arch == ARCH_X86)
		option(disassembler->handle, OPTION_SYNTAX, SYNTAX_ATT);
	disassembler->insn = allocate(disassembler->handle);
	return disassembler->insn;
}

struct disassembler *disassembler_new(const struct symbols_code *code, u64 address,
				      const char **reason)
{
	struct disassembler *disassembler;
	const bool is_arm = code->machine == EM_AARCH64;
	int mode = is_arm ? MODE_ARM : code->machine == EM_386 ? MODE_32 : MODE_64;

	if (!is_arm && code->machine != EM_386 && code->machine != EM_X86_64) {
		*reason = "the instructions of this machine are not known";
		return NULL;
	}
	disassembler = xcalloc(1, sizeof(*disassembler));
	disassembler->code = code->bytes;
	disassembler->size = code->size;
	disassembler->address = address;
	disassembler->step = is_arm ? 4 : 1;
	if (open_library(disassembler, is_arm ? ARCH_ARM64 : ARCH_X86, mode))
		return disassembler;
	*reason = "to see the instructions, install libcapstone4 or libcapstone5";
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
	const char *name = disassembler->insn + BYTES_OFFSET + disassembler->version->nr_bytes;
	size_t size = disassembler->size;

	if (!size)
		return NULL;
	instruction->address = disassembler->address;
	if (disassembler->next(disassembler->handle, &disassembler->code, &disassembler->size,
			       &disassembler->address, disassembler->insn)) {
		instruction->size = size - disassembler->size;
		snprintf(instruction->text, sizeof(instruction->text), name[NAME_SIZE] ?
			 "%-7s %s" : "%s", name, name + NAME_SIZE);
		return instruction;
	}
	/* It is not an instruction: continue after it. */
	instruction->size = size < disassembler->step ? size : disassembler->step;
	disassembler->code += instruction->size;
	disassembler->size -= instruction->size;
	disassembler->address += instruction->size;
	strcpy(instruction->text, "(bad)");
	return instruction;
}
