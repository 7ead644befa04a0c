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
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__

#define MEMORY		(64UL << 20)
#define FAR		(17UL << 20)
#define NEAR		256
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

/* Bytes, to which others are added */
struct bytes {
	unsigned char data[512];
	size_t nr;
};

static void add(struct bytes *bytes, const void *data, size_t size)
{
	memcpy(bytes->data + bytes->nr, data, size);
	bytes->nr += size;
}

#define ADD(bytes, ...) add(bytes, (const unsigned char[]){ __VA_ARGS__ }, \
			    sizeof((const unsigned char[]){ __VA_ARGS__ }))

static void add_u32(struct bytes *bytes, uint32_t number)
{
	add(bytes, &number, sizeof(number));
}

static void add_u64(struct bytes *bytes, uint64_t number)
{
	add(bytes, &number, sizeof(number));
}

static void pad(struct bytes *bytes, size_t alignment)
{
	while (bytes->nr % alignment)
		ADD(bytes, 0);
}

static void end_entry(struct bytes *bytes, size_t start)
{
	uint32_t length;

	pad(bytes, 8);
	length = bytes->nr - start - sizeof(length);
	memcpy(bytes->data + start, &length, sizeof(length));
}

/* Adds .eh_frame of the code, behind which it would be. @frame: bytes below the saved register */
static void add_frames(struct bytes *to, uint32_t frame)
{
	const uint32_t behind = (SIZE + 7) / 8 * 8;
	struct bytes frames = {};
	size_t start;

	add_u32(&frames, 0);
	add_u32(&frames, 0);
	/* CFA: rsp (7) + 8; the return address (16) is below it. */
	ADD(&frames, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x80 | 16, 1);
	end_entry(&frames, 0);
	start = frames.nr;
	add_u32(&frames, 0);
	add_u32(&frames, frames.nr);
	add_u32(&frames, -(behind + frames.nr));
	add_u32(&frames, SIZE);
	ADD(&frames, 0, 0x40 | PUSHED, 0x0e, 16, 0x80 | 6, 2);
	ADD(&frames, 0x40 | (LOWERED - PUSHED), 0x0e, (16 + frame) | 0x80, (16 + frame) >> 7);
	ADD(&frames, 0x40 | (RAISED - LOWERED), 0x0e, 16);
	ADD(&frames, 0x40 | (POPPED - RAISED), 0x0e, 8, 0xc0 | 6);
	end_entry(&frames, start);
	add_u32(&frames, 0);
	add(to, frames.data, frames.nr);
}

static void write_record(uint32_t id, const struct bytes *body)
{
	struct bytes record = {};

	add_u32(&record, id);
	add_u32(&record, 16 + body->nr);
	add_u64(&record, 0);
	add(&record, body->data, body->nr);
	if (write(dump, record.data, record.nr) != (ssize_t)record.nr)
		exit(1);
}

static void write_frames(uint32_t frame)
{
	struct bytes frames = {}, body = {};
	static const unsigned char header[HEADER];

	add_frames(&frames, frame);
	add_u64(&body, frames.nr + HEADER);
	add_u64(&body, HEADER);
	add_u64(&body, frames.nr + HEADER);
	add(&body, frames.data, frames.nr);
	add(&body, header, HEADER);
	pad(&body, 8);
	write_record(UNWINDING, &body);
}

static void write_function(const char *name, const unsigned char *at, const struct bytes *code)
{
	static uint64_t index;
	struct bytes body = {};

	add_u32(&body, getpid());
	add_u32(&body, getpid());
	add_u64(&body, (uintptr_t)at);
	add_u64(&body, (uintptr_t)at);
	add_u64(&body, code->nr);
	add_u64(&body, index++);
	add(&body, name, strlen(name) + 1);
	add(&body, code->data, code->nr);
	write_record(LOAD, &body);
}

/* Makes a function that calls @callee; or without one, a loop of %rdi iterations. */
static void make(const char *name, unsigned char *at, const unsigned char *callee, uint32_t frame,
		 int has_frames)
{
	struct bytes code = {};

	ADD(&code, 0x55);			/* push %rbp */
	ADD(&code, 0xbd, 1, 0, 0, 0);		/* mov $1, %ebp */
	ADD(&code, 0x48, 0x81, 0xec);		/* sub $frame, %rsp */
	add_u32(&code, frame);
	if (callee) {
		ADD(&code, 0x48, 0xb8);		/* movabs $callee, %rax */
		add_u64(&code, (uintptr_t)callee);
		ADD(&code, 0xff, 0xd0);		/* call *%rax */
	} else {
		ADD(&code, 0x48, 0x89, 0xf9);	/* mov %rdi, %rcx */
		ADD(&code, 0xe2, 0xfe);		/* loop, to itself */
	}
	while (code.nr < RAISED - 7)
		ADD(&code, 0x90);
	ADD(&code, 0x48, 0x81, 0xc4);		/* add $frame, %rsp */
	add_u32(&code, frame);
	ADD(&code, 0x5d, 0xc3);			/* pop %rbp; ret */
	memcpy(at, code.data, code.nr);
	if (has_frames)
		write_frames(frame);
	write_function(name, at, &code);
}

static void open_dump(void)
{
	struct bytes header = {};
	char path[64];

	snprintf(path, sizeof(path), "jit-%d.dump", getpid());
	dump = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	add_u32(&header, 0x4a695444);
	add_u32(&header, 1);
	add_u32(&header, 40);
	add_u32(&header, EM_X86_64);
	add_u32(&header, 0);
	add_u32(&header, getpid());
	add_u64(&header, 0);
	add_u64(&header, 0);
	if (dump < 0 || write(dump, header.data, header.nr) != (ssize_t)header.nr ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0) == MAP_FAILED)
		exit(1);
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
	const size_t distance = strcmp(how, "far") ? NEAR : FAR;
	const int generations = strcmp(how, "grow") ? 1 : GENERATIONS;
	const long ms = argc == 3 ? atol(argv[2]) : 0;
	unsigned char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE | PROT_EXEC,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status = 0;

	if (memory == MAP_FAILED || !ms)
		return 2;
	open_dump();
	for (int i = 0; i < generations; i++) {
		const uint32_t frame = 200 + 400 * i;
		const int has_frames = strcmp(how, "plain");

		make("made_leaf", memory, NULL, frame, has_frames);
		make("made_middle", memory + distance, memory, frame + 8, has_frames);
		make("made_outer", memory + 2 * distance, memory + distance, frame, has_frames);
		if (!strcmp(how, "torn") && write(dump, "\0\0\0\0\1", 5) != 5)
			return 1;
		if (!strcmp(how, "fork") && fork())
			return wait(&status) < 0 || status;
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
