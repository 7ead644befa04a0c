// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * selfprofile - a program that profiles itself
 *
 * It compresses and uncompresses files with zlib, which is linked into the program, and prints the
 * time that each function took. There is one counter for two bytes of the program's text. The
 * program adds up the counters of each function in its symbol table.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <gelf.h>
#include <linux/profil.h>
#include <zlib.h>

#include <profil.h>

#define CHUNK (128 * 1024)

struct function {
	const char *name;
	size_t start;
	size_t end;
	unsigned long ticks;
};

/* The program's text, from the linker. */
extern const char __executable_start[], etext[];

/* Compresses and uncompresses the head of a file, and compares the result. */
static void squeeze(const char *path)
{
	static const int levels[] = { 1, 4, 6 };
	static unsigned char plain[CHUNK], back[CHUNK], packed[CHUNK + CHUNK / 8];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return;
	len = read(fd, plain, sizeof(plain));
	close(fd);

	for (size_t i = 0; len > 0 && i < sizeof(levels) / sizeof(levels[0]); i++) {
		uLongf packed_len = sizeof(packed), back_len = sizeof(back);

		if (compress2(packed, &packed_len, plain, len, levels[i]) != Z_OK ||
		    uncompress(back, &back_len, packed, packed_len) != Z_OK ||
		    back_len != (uLongf)len || crc32(0, back, len) != crc32(0, plain, len))
			errx(1, "%s: differs after level %d", path, levels[i]);
	}
}

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void squeeze_all(char **paths, size_t nr, double seconds)
{
	double end = cpu_seconds() + seconds;

	for (size_t i = 0; cpu_seconds() < end; i = (i + 1) % nr)
		squeeze(paths[i]);
}

/* profil(NULL, 0, 0, 0) would stop as well, but it returns no statistics. */
static void stop(struct profil_stats *stats)
{
	struct profil_stop arg = {
		.size = sizeof(arg),
		.scope = PROFIL_SCOPE_PROCESS,
		.stats = (uintptr_t)stats,
	};
	int fd = open(PROFIL_DEVICE, O_RDONLY | O_CLOEXEC);

	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	if (fd < 0 || ioctl(fd, PROFIL_IOC_STOP, &arg))
		err(1, PROFIL_DEVICE);
	close(fd);
}

static int load_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	(void)size;
	*(size_t *)bias = info->dlpi_addr;
	return 1;	/* the program itself is the first object */
}

static int by_start(const void *a, const void *b)
{
	const struct function *f = a, *g = b;

	return (f->start > g->start) - (f->start < g->start);
}

static int by_ticks(const void *a, const void *b)
{
	const struct function *f = a, *g = b;

	return (f->ticks < g->ticks) - (f->ticks > g->ticks);
}

/* Returns all functions of this program, sorted by address. Their names stay mapped. */
static struct function *functions(size_t *nr)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct function *list = NULL;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;
	size_t bias = 0;
	Elf *elf;

	dl_iterate_phdr(load_bias, &bias);
	*nr = 0;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	while ((section = elf_nextscn(elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
			continue;
		list = calloc(header.sh_size / header.sh_entsize, sizeof(*list));
		if (!list)
			err(1, NULL);
		for (int i = 0; gelf_getsym(elf_getdata(section, NULL), i, &symbol); i++) {
			if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || !symbol.st_size)
				continue;
			list[*nr].name = elf_strptr(elf, header.sh_link, symbol.st_name);
			list[*nr].start = symbol.st_value + bias;
			list[(*nr)++].end = symbol.st_value + bias + symbol.st_size;
		}
	}
	if (!list)
		errx(1, "no symbol table: %s", elf_errno() ? elf_errmsg(-1) : "stripped");
	qsort(list, *nr, sizeof(*list), by_start);
	return list;
}

static void print_profile(const unsigned short *counters, size_t nr_counters,
			  const struct profil_stats *stats)
{
	struct function unnamed = { .name = "(unnamed)" }, outside = { .name = "(outside)" };
	struct function *list, *f, *end;
	unsigned long sum = 0;
	size_t nr;

	list = functions(&nr);
	list = reallocarray(list, nr + 2, sizeof(*list));
	if (!list)
		err(1, NULL);

	f = list;
	end = list + nr;
	for (size_t i = 0; i < nr_counters; i++) {
		size_t pc = (size_t)__executable_start + 2 * i;

		while (f < end && f->end <= pc)
			f++;
		(f < end && f->start <= pc + 1 ? f : &unnamed)->ticks += counters[i];
		sum += counters[i];
	}
	if (sum != stats->hit)
		errx(1, "the counters add up to %lu, not to the hits", sum);

	/* These ticks were in libc, or in the kernel when libc called it. */
	outside.ticks = stats->outside;
	list[nr++] = unnamed;
	list[nr++] = outside;
	qsort(list, nr, sizeof(*list), by_ticks);
	printf("%8s %8s  %s\n", "percent", "ticks", "function");
	for (f = list; f < list + nr && f->ticks; f++)
		printf("%8.2f %8lu  %s\n", 100.0 * f->ticks / stats->ticks, f->ticks, f->name);
}

static void print_account(const struct profil_stats *s)
{
	printf("ticks %llu, expected %llu: ", s->ticks, s->expected);
	printf("hit %llu outside %llu saturated %llu dropped %llu, missed %llu; ",
	       s->hit, s->outside, s->saturated, s->dropped, s->missed);
	printf("user %llu system %llu\n", s->user, s->system);

	if (s->hit + s->outside + s->saturated + s->dropped != s->ticks ||
	    s->user + s->system != s->ticks)
		errx(1, "the statistics do not add up");
	if (!s->ticks)
		errx(1, "there was no tick");
}

int main(int argc, char **argv)
{
	size_t nr_counters = (etext - __executable_start) / 2 + 1;
	unsigned short *counters = calloc(nr_counters, sizeof(*counters));
	struct profil_stats stats;
	double seconds = 8;
	bool profile = true;
	glob_t files = { 0 };
	int opt;

	while ((opt = getopt(argc, argv, "ns:")) != -1) {
		if (opt == 'n')
			profile = false;
		else if (opt == 's')
			seconds = atof(optarg);
		else
			errx(2, "usage: selfprofile [-n] [-s CPU_SECONDS] [FILE...]");
	}
	argv += optind;
	argc -= optind;
	if (!argc) {
		if (glob("/usr/bin/*", 0, NULL, &files))
			errx(1, "no files in /usr/bin");
		argv = files.gl_pathv;
		argc = files.gl_pathc;
	}

	/* Keep freed memory: otherwise the kernel takes most of the time, to map it again. */
	mallopt(M_TRIM_THRESHOLD, -1);

	if (profile && profil(counters, nr_counters * sizeof(*counters),
			      (size_t)__executable_start, 65536))
		err(1, "profil");
	squeeze_all(argv, argc, seconds);
	if (profile) {
		stop(&stats);
		print_profile(counters, nr_counters, &stats);
		print_account(&stats);
	}
	return 0;
}
