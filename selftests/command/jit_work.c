// SPDX-License-Identifier: GPL-2.0
/*
 * A JIT compiler for record.c: it makes functions without frame pointers, and describes them in
 * jit-PID.dump in the current directory
 *
 *	jit_work HOW MS		calls made_outer, which calls made_middle, which calls
 *				made_leaf, for MS ms of CPU time. HOW:
 *		once		the functions are made before
 *		plain		without call frame information
 *		grow		they are made again and again, with other frames, in the
 *				same memory
 *		far		each is in another 16 MiB of memory
 *		fork		a child of the process executes them
 *		torn		the dump ends in the middle of a record
 */
#include "test.h"

#include <elf.h>
#include <stddef.h>

#include "process.h"

#ifdef __x86_64__

#define MEMORY		(64UL << 20)
#define GENERATIONS	4
#define LOOPS		200000UL
#define LOAD		0
#define UNWINDING	4
#define HEADER		20	/* the size of .eh_frame_hdr, which nobody reads here */
/* Offsets in the code of a function */
#define PUSHED		1
#define LOWERED		13
#define RAISED		32
#define POPPED		33
#define SIZE		34

static int dump;

static void write_all(const void *data, size_t size)
{
	MUST(write(dump, data, size) == (ssize_t)size);
}

static void write_record(uint32_t id, const void *body, size_t size)
{
	const struct {
		uint32_t id, size;
		uint64_t time;
	} record = { .id = id, .size = sizeof(record) + size };

	write_all(&record, sizeof(record));
	write_all(body, size);
}

/* Writes .eh_frame of the code, behind which it would be. @frame: bytes below the saved register */
static void write_frames(uint32_t frame)
{
	const struct {
		uint64_t size, header_size, mapped_size;
		struct {
			uint32_t length, id;
			uint8_t rest[16];
		} cie;
		struct {
			uint32_t length, cie;
			int32_t code;
			uint32_t size;
			uint8_t rest[24];
		} fde;
		uint32_t end;
		uint8_t header[HEADER];
	} body = {
		.size = sizeof(body) - offsetof(typeof(body), cie),
		.header_size = HEADER,
		.mapped_size = sizeof(body) - offsetof(typeof(body), cie),
		.cie = {
			.length = sizeof(body.cie) - 4,
			/* CFA: rsp (7) + 8; the return address (16) is below it. */
			.rest = { 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x80 | 16, 1 },
		},
		.fde = {
			.length = sizeof(body.fde) - 4,
			.cie = sizeof(body.cie) + 4,
			.code = -(int)((SIZE + 7) / 8 * 8 + sizeof(body.cie) + 8),
			.size = SIZE,
			.rest = {
				0, 0x40 | PUSHED, 0x0e, 16, 0x80 | 6, 2,
				0x40 | (LOWERED - PUSHED), 0x0e, (16 + frame) | 0x80,
				(16 + frame) >> 7,
				0x40 | (RAISED - LOWERED), 0x0e, 16,
				0x40 | (POPPED - RAISED), 0x0e, 8, 0xc0 | 6,
			},
		},
	};

	write_record(UNWINDING, &body, sizeof(body));
}

static void write_function(const char *name, const unsigned char *at, const uint8_t *code)
{
	static uint64_t index;
	struct {
		uint32_t pid, tid;
		uint64_t vma, address, size, index;
		char name_and_code[16 + SIZE];
	} body = {
		.pid = getpid(),
		.tid = getpid(),
		.vma = (uintptr_t)at,
		.address = (uintptr_t)at,
		.size = SIZE,
		.index = index++,
	};
	char *end = stpcpy(body.name_and_code, name) + 1;

	memcpy(end, code, SIZE);
	write_record(LOAD, &body, end + SIZE - (char *)&body);
}

/* Makes a function that calls @callee; or without one, a loop of %rdi iterations. */
static void make(const char *name, unsigned char *at, const unsigned char *callee, uint32_t frame,
		 int has_frames)
{
	static const uint8_t loop[] = {
		0x48, 0x89, 0xf9,				/* mov %rdi, %rcx */
		0xe2, 0xfe,					/* loop, to itself */
		0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	};
	uint8_t code[SIZE] = {
		0x55,						/* push %rbp */
		0xbd, 1, 0, 0, 0,				/* mov $1, %ebp */
		0x48, 0x81, 0xec, 0, 0, 0, 0,			/* sub $frame, %rsp */
		0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0,		/* movabs $callee, %rax */
		0xff, 0xd0,					/* call *%rax */
		0x48, 0x81, 0xc4, 0, 0, 0, 0,			/* add $frame, %rsp */
		0x5d, 0xc3,					/* pop %rbp; ret */
	};

	memcpy(code + LOWERED - sizeof(frame), &frame, sizeof(frame));
	memcpy(code + RAISED - sizeof(frame), &frame, sizeof(frame));
	if (callee)
		memcpy(code + LOWERED + 2, &callee, sizeof(callee));
	else
		memcpy(code + LOWERED, loop, sizeof(loop));
	memcpy(at, code, SIZE);
	if (has_frames)
		write_frames(frame);
	write_function(name, at, code);
}

static void open_dump(void)
{
	const struct {
		uint32_t magic, version, size, machine, padding, pid;
		uint64_t time, flags;
	} header = { 0x4a695444, 1, sizeof(header), EM_X86_64, 0, getpid(), 0, 0 };
	char path[64];

	snprintf(path, sizeof(path), "jit-%d.dump", getpid());
	dump = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	write_all(&header, sizeof(header));
	/* This tells recorders of the dump. */
	MUST(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) != MAP_FAILED);
}

__attribute__((noinline)) static void run(const unsigned char *outer, long ms)
{
	const clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);

	while (clock() < end)
		((void (*)(unsigned long))outer)(LOOPS);
}

int main(int argc, char **argv)
{
	const char *how = argc == 3 ? argv[1] : "";
	const size_t distance = strcmp(how, "far") ? 256 : 17UL << 20;
	const int generations = strcmp(how, "grow") ? 1 : GENERATIONS;
	const int has_frames = strcmp(how, "plain");
	const long ms = argc == 3 ? atol(argv[2]) : 0;
	unsigned char *memory = map_private(MEMORY);

	MUST(ms && !mprotect(memory, MEMORY, PROT_READ | PROT_WRITE | PROT_EXEC));
	open_dump();
	for (int i = 0; i < generations; i++) {
		const uint32_t frame = 200 + 400 * i;

		make("made_leaf", memory, NULL, frame, has_frames);
		make("made_middle", memory + distance, memory, frame + 8, has_frames);
		make("made_outer", memory + 2 * distance, memory + distance, frame, has_frames);
		if (!strcmp(how, "torn"))
			write_all("\0\0\0\0\1", 5);
		if (!strcmp(how, "fork"))
			return status_in_child((run(memory + 2 * distance, ms), 0));
		run(memory + 2 * distance, ms / generations);
	}
	return 0;
}

#else

int main(void)
{
	return 3;
}

#endif
