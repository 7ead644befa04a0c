// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See symbols.h. The names of functions in binaries come from the symbol tables of the binaries and
 * of their separate debug files, which libdwfl finds. The names of JIT code come from
 * /tmp/perf-PID.map. For a binary without symbols, the unwind table has the extents of functions.
 *
 * All these files may be hostile. libelf checks the data that it reads. This file checks sums of
 * addresses and sizes for overflow.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <obstack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <libiberty/demangle.h>
#include <libiberty/libiberty.h>

#include "symbols/buildid.h"
#include "symbols/plt.h"
#include "symbols/symbols.h"

/* Encodings of pointers in .eh_frame: DW_EH_PE_* of the LSB. */
#define EH_ABSPTR	0x00
#define EH_UDATA2	0x02
#define EH_UDATA4	0x03
#define EH_UDATA8	0x04
#define EH_SDATA2	0x0a
#define EH_SDATA4	0x0b
#define EH_SDATA8	0x0c
#define EH_FORMAT	0x0f
#define EH_PCREL	0x10
#define EH_APPLIED	0x70

/* A longer name is not demangled, because that could take too long. */
#define MANGLED_MAX	8192
/* To find the function that contains a pc, at most this many functions are searched. */
#define STEPS_MAX	4096
/* A larger /tmp/perf-PID.map is ignored. */
#define JIT_BYTES_MAX	(512LL << 20)

/**
 * struct entry - A function
 * @start: Its first address.
 * @end: The address after it.
 * @reach: The highest @end of this entry and all before it.
 * @name: Its name, mangled; or NULL.
 * @rank: Of the entries with the same start, only the one with the highest rank is kept. In JIT
 *	code, later entries have higher ranks.
 * @guessed: @end is not from the symbol table. It is the start of the next entry, or the end of the
 *	section.
 * @stub: The entry is the PLT stub through which the function @name is called.
 * @result: The symbol that was returned for the entry, or NULL.
 */
struct entry {
	u64 start;
	u64 end;
	u64 reach;
	const char *name;
	u64 rank;
	bool guessed;
	bool stub;
	const struct symbol *result;
};

struct functions {
	struct entry *entries;
	size_t nr;
};

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/* @results: The memory of all symbols that were returned, and of their names. */
struct symbols {
	bool demangle;
	struct obstack results;
};

struct segment {
	u64 offset;
	u64 end;	/* also an offset */
	u64 address;
	bool text;
};

/**
 * struct binary - An open binary
 * @segments: The PT_LOAD segments of the binary.
 * @named: Functions of the symbol table, and stubs.
 * @unwound: Functions of the unwind table, which is read when it is first needed.
 */
struct binary {
	struct symbols *symbols;
	enum binary_state state;
	Dwfl *dwfl;
	Dwfl_Module *module;
	u64 bias;
	struct segment *segments;
	size_t nr_segments;
	struct functions named;
	struct functions unwound;
	bool unwind_read;
	void *image;
};

/* @text: The contents of the file. The names of entries point into it. */
struct jit {
	struct symbols *symbols;
	char *text;
	struct functions functions;
};

static struct entry *functions_add(struct functions *functions, u64 start, u64 end)
{
	struct entry *entry;

	if (!array_grow(&functions->entries, functions->nr, sizeof(*entry)))
		return NULL;
	entry = &functions->entries[functions->nr++];
	*entry = (struct entry){ .start = start, .end = end };
	return entry;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return compare_u64(x->start, y->start) ?: compare_u64(y->rank, x->rank);
}

/* Sorts by start. Of the entries with the same start, keeps the one with the highest rank. */
static void functions_sort(struct functions *functions)
{
	size_t nr = 0;
	u64 reach = 0;

	if (functions->nr)
		qsort(functions->entries, functions->nr, sizeof(struct entry), compare_entries);
	for (size_t i = 0; i < functions->nr; i++)
		if (!nr || functions->entries[nr - 1].start != functions->entries[i].start)
			functions->entries[nr++] = functions->entries[i];
	functions->nr = nr;
	for (size_t i = 0; i < nr; i++) {
		struct entry *entry = &functions->entries[i];

		if (entry->guessed && i + 1 < nr && entry[1].start < entry->end)
			entry->end = entry[1].start;
		reach = entry->end > reach ? entry->end : reach;
		entry->reach = reach;
	}
}

/*
 * Returns an entry that contains @address. With @latest it is the entry that was added last.
 * Otherwise it is the innermost entry with a known end; or the innermost one, if all ends are
 * guessed.
 */
static struct entry *functions_find(struct functions *functions, u64 address, bool latest)
{
	size_t low = 0, high = functions->nr, steps = 0;
	struct entry *found = NULL;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (functions->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- && functions->entries[low].reach > address && steps++ < STEPS_MAX) {
		struct entry *entry = &functions->entries[low];

		if (entry->end <= address)
			continue;
		if (!found || (latest ? entry->rank > found->rank : !entry->guessed))
			found = entry;
		if (!latest && !found->guessed)
			break;
	}
	return found;
}

struct symbols *symbols_new(bool demangle)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return NULL;
	symbols->demangle = demangle;
	obstack_init(&symbols->results);
	elf_version(EV_CURRENT);
	/* Otherwise libdwfl would download debug files from these servers. */
	unsetenv("DEBUGINFOD_URLS");
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	if (symbols)
		obstack_free(&symbols->results, NULL);
	free(symbols);
}

/* Returns the demangled name, or NULL if @name is not mangled, as in C and Go. */
static char *demangle(const char *name)
{
	if (strncmp(name, "_Z", 2) && strncmp(name, "_R", 2) && strncmp(name, "__Z", 3))
		return NULL;
	if (strlen(name) > MANGLED_MAX)
		return NULL;
	return cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}

static const struct symbol *result(struct symbols *symbols, struct entry *entry, u64 start, u64 end)
{
	struct obstack *results = &symbols->results;
	struct symbol *symbol;
	char *demangled;

	if (entry->result)
		return entry->result;
	symbol = obstack_alloc(results, sizeof(*symbol));
	*symbol = (struct symbol){ .start = start, .end = end };
	if (entry->name) {
		demangled = symbols->demangle ? demangle(entry->name) : NULL;
		obstack_printf(results, "%s%s", demangled ?: entry->name,
			       entry->stub ? "@plt" : "");
		obstack_1grow(results, '\0');
		symbol->name = obstack_finish(results);
		free(demangled);
	}
	entry->result = symbol;
	return symbol;
}

/* ---- binaries ---- */

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static bool read_segments(struct binary *binary, Elf *elf)
{
	GElf_Phdr phdr;
	size_t nr;

	if (elf_getphdrnum(elf, &nr))
		return false;
	binary->segments = calloc(nr ? nr : 1, sizeof(*binary->segments));
	if (!binary->segments)
		return false;
	for (size_t i = 0; i < nr; i++) {
		if (!gelf_getphdr(elf, i, &phdr) || phdr.p_type != PT_LOAD ||
		    phdr.p_offset + phdr.p_filesz < phdr.p_offset ||
		    phdr.p_vaddr + phdr.p_filesz < phdr.p_vaddr)
			continue;
		binary->segments[binary->nr_segments++] = (struct segment){
			.offset = phdr.p_offset,
			.end = phdr.p_offset + phdr.p_filesz,
			.address = phdr.p_vaddr,
			.text = phdr.p_flags & PF_X,
		};
	}
	return true;
}

/* A page where two segments meet is mapped twice: prefer the executable segment. */
static const struct segment *segment_of_offset(const struct binary *binary, u64 offset)
{
	const struct segment *found = NULL;

	for (size_t i = 0; i < binary->nr_segments; i++) {
		const struct segment *segment = &binary->segments[i];

		if (offset >= segment->offset && offset < segment->end &&
		    (!found || segment->text > found->text))
			found = segment;
	}
	return found;
}

static const struct segment *segment_of_address(const struct binary *binary, u64 address)
{
	for (size_t i = 0; i < binary->nr_segments; i++) {
		const struct segment *segment = &binary->segments[i];

		if (address >= segment->address &&
		    address - segment->address < segment->end - segment->offset)
			return segment;
	}
	return NULL;
}

static u64 offset_of_address(const struct binary *binary, u64 address)
{
	const struct segment *segment = segment_of_address(binary, address);

	return segment ? address - segment->address + segment->offset : 0;
}

static unsigned int leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/* If a function has several names, we print the one with the highest rank, as perf does. */
static u64 rank_of(const GElf_Sym *sym, const char *name)
{
	unsigned int underscores = leading_underscores(name);
	size_t length = strlen(name);
	u64 rank = 0;

	rank |= (u64)(sym->st_size != 0) << 62;
	rank |= (u64)(GELF_ST_BIND(sym->st_info) != STB_WEAK) << 61;
	rank |= (u64)(GELF_ST_BIND(sym->st_info) == STB_GLOBAL) << 60;
	rank |= (u64)(255 - (underscores < 255 ? underscores : 255)) << 32;
	return rank | (length < UINT32_MAX ? length : UINT32_MAX);
}

/* Returns the end of the section that contains the symbol; 0 if the section has no code. */
static u64 text_end(Elf *elf, GElf_Word shndx, const GElf_Sym *sym, u64 address)
{
	Elf_Scn *scn = elf ? elf_getscn(elf, shndx) : NULL;
	GElf_Shdr shdr;

	if (!scn || !gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR))
		return 0;
	if (sym->st_value < shdr.sh_addr || sym->st_value - shdr.sh_addr >= shdr.sh_size)
		return 0;
	return address + (shdr.sh_size - (sym->st_value - shdr.sh_addr));
}

static void read_symbol(struct binary *binary, int index)
{
	struct entry *entry;
	const char *name;
	GElf_Word shndx;
	GElf_Addr value;
	GElf_Sym sym;
	u64 address, end;
	Elf *elf;
	int type;

	name = dwfl_module_getsym_info(binary->module, index, &sym, &value, &shndx, &elf, NULL);
	if (!name || !*name || shndx == SHN_UNDEF || shndx == SHN_ABS)
		return;
	type = GELF_ST_TYPE(sym.st_info);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return;
	address = value - binary->bias;
	end = text_end(elf, shndx, &sym, address);
	/* Of the symbols without a type, use only labels of code that the compiler did not make. */
	if (type == STT_NOTYPE && (!end || !strncmp(name, ".L", 2)))
		return;
	if (sym.st_size)
		end = address + sym.st_size;
	if (end <= address)
		return;
	entry = functions_add(&binary->named, address, end);
	if (!entry)
		return;
	entry->name = name;
	entry->rank = rank_of(&sym, name);
	entry->guessed = !sym.st_size;
}

static void add_stub(void *data, u64 start, u64 end, const char *name)
{
	struct binary *binary = data;
	struct entry *entry = functions_add(&binary->named, start, end);

	if (!entry)
		return;
	entry->name = name;
	entry->stub = true;
}

static void read_symbols(struct binary *binary, Elf *elf)
{
	int nr = dwfl_module_getsymtab(binary->module);

	for (int i = 0; i < nr; i++)
		read_symbol(binary, i);
	plt_read(elf, add_stub, binary);
	functions_sort(&binary->named);
}

/**
 * struct unwind - A parser of .eh_frame
 * @data: The section.
 * @address: The address of the section.
 * @ident: The member e_ident of the ELF header.
 * @wide: Addresses have 8 bytes.
 * @cie: Offset of the CIE (common information entry) that was read last, or -1.
 * @encoding: The encoding of addresses in the FDEs (frame description entries) of this CIE, or -1
 *	if the encoding is not supported.
 */
struct unwind {
	Elf_Data *data;
	u64 address;
	const unsigned char *ident;
	bool wide;
	u64 cie;
	int encoding;
};

/* Reads the number at *@at, which has the encoding @format, and advances *@at past it. */
static bool read_encoded(const struct unwind *unwind, int format, const u8 **at, const u8 *end,
			 u64 *value)
{
	size_t bytes;

	if (format == EH_ABSPTR)
		format = unwind->wide ? EH_UDATA8 : EH_UDATA4;
	bytes = (format & 7) == 2 ? 2 : (format & 7) == 3 ? 4 : (format & 7) == 4 ? 8 : 0;
	if (!bytes || *at > end || bytes > (size_t)(end - *at))
		return false;
	*value = 0;
	memcpy(value, *at, bytes);
	if (format == EH_SDATA2)
		*value = (int16_t)*value;
	else if (format == EH_SDATA4)
		*value = (int32_t)*value;
	*at += bytes;
	return true;
}

/* Returns the encoding of addresses in the FDEs of @cie; -1 if it cannot be found. */
static int encoding_of(const Dwarf_CIE *cie)
{
	const char *augmentation = cie->augmentation;
	const u8 *at = cie->augmentation_data, *end = at + cie->augmentation_data_size;

	if (!*augmentation)
		return EH_ABSPTR;
	if (*augmentation != 'z')
		return -1;
	while (*++augmentation) {
		switch (*augmentation) {
		case 'R':
			return at < end ? *at : -1;
		case 'L':
			at++;
			break;
		case 'P':
			if (at >= end)
				return -1;
			switch (*at++ & 7) {
			case 0:
				return -1;
			case 2:
				at += 2;
				break;
			case 3:
				at += 4;
				break;
			case 4:
				at += 8;
				break;
			}
			break;
		case 'S':
		case 'B':
			break;
		default:
			return -1;
		}
	}
	return EH_ABSPTR;
}

static bool read_cie(struct unwind *unwind, u64 offset)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;

	if (offset == unwind->cie)
		return unwind->encoding >= 0;
	unwind->cie = offset;
	unwind->encoding = -1;
	if (!dwarf_next_cfi(unwind->ident, unwind->data, true, offset, &next, &entry) &&
	    dwarf_cfi_cie_p(&entry))
		unwind->encoding = encoding_of(&entry.cie);
	return unwind->encoding >= 0;
}

static void read_fde(struct binary *binary, struct unwind *unwind, const Dwarf_FDE *fde)
{
	const u8 *at = fde->start, *end = fde->end;
	u64 place = unwind->address + (at - (const u8 *)unwind->data->d_buf);
	u64 start, length;
	int applied;

	if (!read_cie(unwind, fde->CIE_pointer))
		return;
	applied = unwind->encoding & EH_APPLIED;
	if ((applied && applied != EH_PCREL) ||
	    !read_encoded(unwind, unwind->encoding & EH_FORMAT, &at, end, &start) ||
	    !read_encoded(unwind, unwind->encoding & 7, &at, end, &length))
		return;
	if (applied)
		start += place;
	if (!unwind->wide)
		start = (u32)start;
	if (start && length && start + length > start)
		functions_add(&binary->unwound, start, start + length);
}

static void read_unwind_table(struct binary *binary, Elf *elf)
{
	struct unwind unwind = { .cie = ~0ULL };
	Dwarf_CFI_Entry entry;
	Dwarf_Off offset = 0, next;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	const char *name;
	size_t strings;
	int result;

	if (elf_getshdrstrndx(elf, &strings))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, strings, shdr.sh_name);
		if (name && !strcmp(name, ".eh_frame"))
			break;
	}
	unwind.data = scn ? elf_getdata(scn, NULL) : NULL;
	unwind.ident = (const unsigned char *)elf_getident(elf, NULL);
	if (!unwind.data || !unwind.data->d_buf || !unwind.ident)
		return;
	unwind.address = shdr.sh_addr;
	unwind.wide = unwind.ident[EI_CLASS] == ELFCLASS64;
	for (;; offset = next) {
		next = offset;
		result = dwarf_next_cfi(unwind.ident, unwind.data, true, offset, &next, &entry);
		if (result > 0 || next <= offset)
			break;
		if (!result && !dwarf_cfi_cie_p(&entry))
			read_fde(binary, &unwind, &entry.fde);
	}
	functions_sort(&binary->unwound);
}

static struct entry *find_unwound(struct binary *binary, u64 address)
{
	GElf_Addr bias;
	Elf *elf;

	if (!binary->unwind_read) {
		binary->unwind_read = true;
		elf = dwfl_module_getelf(binary->module, &bias);
		if (elf)
			read_unwind_table(binary, elf);
	}
	return functions_find(&binary->unwound, address, false);
}

/* Reads the segments and symbols of @binary->module, which was reported to libdwfl. */
static void read_module(struct binary *binary)
{
	GElf_Addr bias;
	Elf *elf;

	dwfl_report_end(binary->dwfl, NULL, NULL);
	elf = binary->module ? dwfl_module_getelf(binary->module, &bias) : NULL;
	if (!elf || !read_segments(binary, elf))
		return;
	binary->bias = bias;
	read_symbols(binary, elf);
	binary->state = BINARY_FINE;
}

static bool is_elf_binary(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL);
	GElf_Ehdr ehdr;
	bool is;

	is = elf && elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &ehdr) &&
	     ehdr.e_ident[EI_DATA] == ELFDATA2LSB &&
	     (ehdr.e_type == ET_EXEC || ehdr.e_type == ET_DYN);
	elf_end(elf);
	return is;
}

static bool is_recorded_file(int fd, const struct stat *st, const struct format_file *file)
{
	u8 id[FORMAT_BUILD_ID_MAX];

	if (file->build_id_len)
		return buildid_of_fd(fd, id) == file->build_id_len &&
		       !memcmp(id, file->build_id, file->build_id_len);
	/* Compare the time, because on overlayfs the inode may differ: see aggregate.c. */
	if (!file->mtime)
		return !file->ino || file->ino == st->st_ino;
	return file->size == (u64)st->st_size &&
	       file->mtime == st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec;
}

static void open_file(struct binary *binary, const struct format_file *file)
{
	struct stat st;
	int fd;

	/* Check the type first, because opening a device may have side effects. */
	if (stat(file->path, &st)) {
		binary->state = errno == EACCES ? BINARY_UNREADABLE : BINARY_GONE;
		return;
	}
	if (!S_ISREG(st.st_mode))
		return;
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		binary->state = BINARY_UNREADABLE;
		goto close_file;
	}
	if (!is_recorded_file(fd, &st, file)) {
		binary->state = BINARY_CHANGED;
		goto close_file;
	}
	if (!is_elf_binary(fd))
		goto close_file;
	binary->dwfl = dwfl_begin(&callbacks);
	if (!binary->dwfl)
		goto close_file;
	binary->module = dwfl_report_offline(binary->dwfl, "", file->path, fd);
	if (!binary->module)
		goto close_file;
	read_module(binary);
	return;

close_file:
	if (fd >= 0)
		close(fd);
}

/* Reads our own vDSO, because all 64-bit processes have the same image. */
static void open_vdso(struct binary *binary)
{
	const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *ehdr = (const void *)image;
	size_t size;

	if (!image)
		return;
	size = ehdr->e_shoff + (size_t)ehdr->e_shnum * ehdr->e_shentsize;
	binary->image = malloc(size);
	binary->dwfl = dwfl_begin(&callbacks);
	if (!binary->image || !binary->dwfl)
		return;
	memcpy(binary->image, image, size);
	binary->module = dwfl_report_offline_memory(binary->dwfl, "[vdso]", "[vdso]",
						    binary->image, size);
	read_module(binary);
}

struct binary *binary_open(struct symbols *symbols, const struct format_file *file,
			   bool this_kernel)
{
	struct binary *binary = calloc(1, sizeof(*binary));

	if (!binary)
		return NULL;
	binary->symbols = symbols;
	binary->state = BINARY_OTHER;
	if (!(file->flags & FORMAT_FILE_NONE))
		open_file(binary, file);
	else if (this_kernel && !strcmp(file->path, "[vdso]"))
		open_vdso(binary);
	return binary;
}

enum binary_state binary_state(const struct binary *binary)
{
	return binary->state;
}

const struct symbol *binary_find(struct binary *binary, u64 offset)
{
	const struct segment *segment = segment_of_offset(binary, offset);
	struct entry *named, *unwound;
	u64 address, start;

	if (binary->state != BINARY_FINE || !segment)
		return NULL;
	address = offset - segment->offset + segment->address;
	named = functions_find(&binary->named, address, false);
	if (!named || named->guessed) {
		unwound = find_unwound(binary, address);
		/* The end of @named is guessed, so the address may be in a later function. */
		if (unwound && (!named || unwound->start > named->start))
			named = unwound;
	}
	if (!named)
		return NULL;
	start = offset_of_address(binary, named->start);
	return result(binary->symbols, named, start, start + (named->end - named->start));
}

void binary_close(struct binary *binary)
{
	if (!binary)
		return;
	if (binary->dwfl)
		dwfl_end(binary->dwfl);
	free(binary->image);
	free(binary->segments);
	free(binary->named.entries);
	free(binary->unwound.entries);
	free(binary);
}

/* ---- JIT code ---- */

/* Parses a line. It has start and length in hexadecimal without 0x, and the name. */
static void parse_jit_line(struct jit *jit, char *line)
{
	struct entry *entry;
	u64 start, length;
	char *at, *name;

	errno = 0;
	start = strtoull(line, &at, 16);
	if (at == line || *at != ' ')
		return;
	name = at;
	length = strtoull(name, &at, 16);
	if (at == name || *at != ' ' || errno || start + length <= start)
		return;
	name = at + strspn(at, " ");
	if (!*name)
		return;
	entry = functions_add(&jit->functions, start, start + length);
	if (!entry)
		return;
	entry->name = name;
	entry->rank = jit->functions.nr;
}

/* Returns the first @size bytes of the file, terminated by 0. The file may be growing. */
static char *read_text(int fd, size_t size)
{
	char *text = malloc(size + 1);
	size_t done = 0;
	ssize_t n;

	while (text && done < size) {
		n = read(fd, text + done, size - done);
		if (n <= 0)
			break;
		done += n;
	}
	if (text)
		text[done] = '\0';
	return text;
}

struct jit *jit_open(struct symbols *symbols, pid_t pid, uid_t owner, u64 since)
{
	char path[64], *line, *next;
	struct jit *jit = NULL;
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > JIT_BYTES_MAX ||
	    (st.st_uid && st.st_uid != owner && st.st_uid != geteuid()) ||
	    st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec < since)
		goto close_file;
	jit = calloc(1, sizeof(*jit));
	if (!jit)
		goto close_file;
	jit->symbols = symbols;
	jit->text = read_text(fd, st.st_size);
	for (line = jit->text; line && *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		parse_jit_line(jit, line);
	}
	functions_sort(&jit->functions);

close_file:
	close(fd);
	return jit;
}

const struct symbol *jit_find(struct jit *jit, u64 address)
{
	struct entry *entry = functions_find(&jit->functions, address, true);

	return entry ? result(jit->symbols, entry, 0, 0) : NULL;
}

void jit_close(struct jit *jit)
{
	if (!jit)
		return;
	free(jit->text);
	free(jit->functions.entries);
	free(jit);
}
