// SPDX-License-Identifier: GPL-2.0
/*
 * dumper FILE: writes the functions of a JIT compiler to FILE, in the format jitdump of Linux, maps
 * it as JIT compilers do, and waits for a signal
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct header {
	uint32_t magic, version, size, machine, padding, pid;
	uint64_t time, flags;
};

struct load {
	uint32_t id, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, address, code_size, index;
	char name[16];
	char code[16];
};

static void dump(int fd, const void *data, size_t size)
{
	if (write(fd, data, size) != (ssize_t)size)
		err(1, "write");
}

static void dump_load(int fd, uint64_t index, uint64_t address, const char *name)
{
	struct load load = {
		.size = sizeof(load),
		.address = address,
		.code_size = 16,
		.index = index,
	};

	strncpy(load.name, name, sizeof(load.name) - 1);
	dump(fd, &load, sizeof(load));
}

int main(int argc, char **argv)
{
	const struct header header = {
		.magic = 0x4a695444,
		.version = 1,
		.size = sizeof(header),
	};
	const struct load debug_info = {
		.id = 2,
		.size = sizeof(debug_info),
	};
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;

	if (fd < 0)
		err(1, "open");
	dump(fd, &header, sizeof(header));
	dump_load(fd, 0, 0x7f0000001000, "first");
	dump_load(fd, 1, 0x7f0000002000, "second");
	/* A record of another type, and code that overwrites other code. */
	dump(fd, &debug_info, sizeof(debug_info));
	dump_load(fd, 2, 0x7f0000002008, "third");
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		err(1, "mmap");
	pause();
	return 0;
}
