// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names of functions: from the symbol tables of binaries and their separate debug files, as
 * elfutils' libdwfl finds them; from /tmp/perf-PID.map for code that a process made itself. Where
 * a binary has no symbols, its unwind table still tells where functions begin and end.
 *
 * All of these are files that anybody may have written: libelf checks what it reads, and here
 * nothing is added without looking for overflow.
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

/* Exception handling's way to encode pointers, as of the LSB. */
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

/* Longer ones are shown as they are: demanglers may take their time. */
#define MANGLED_MAX	8192
/* Functions that may begin between one that holds a pc and that pc: nested, or wrong sizes. */
#define STEPS_MAX	4096
/* Of /tmp/perf-PID.map */
#define JIT_BYTES_MAX	(512LL << 20)

/**
 * struct entry - A function in a table
 * @start: Its first address.
 * @end: The address past it.
 * @reach: The highest @end of all entries up to this.
 * @name: As the table has it, or NULL.
 * @rank: Among those with the same start, the highest is meant; of JIT code, the latest.
 * @guessed: @end is only where the next one begins.
 * @stub: It only calls what is called so.
 * @result: What was returned for it.
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

struct table {
	struct entry *entries;
	size_t nr;
};

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/* @results: All symbols that were returned, with their names. */
struct symbols {
	bool demangle;
	struct obstack results;
};

struct segment {
	u64 offset;
	u64 end;	/* in the file */
	u64 address;
	bool text;
};

/**
 * struct binary - A file that is looked into
 * @segments: What of it is loaded where.
 * @named: Functions by name.
 * @unwound: Functions by the unwind table, which is read when it is first asked for.
 */
struct binary {
	struct symbols *symbols;
	enum binary_state state;
	Dwfl *dwfl;
	Dwfl_Module *module;
	u64 bias;
	struct segment *segments;
	size_t nr_segments;
	struct table named;
	struct table unwound;
	bool unwinding;
	void *image;
};

/* @text: The file, which the names are in. */
struct jit {
	struct symbols *symbols;
	char *text;
	struct table table;
};

static struct entry *table_add(struct table *table, u64 start, u64 end)
{
	struct entry *entry;

	if (!array_grow(&table->entries, table->nr, sizeof(*entry)))
		return NULL;
	entry = &table->entries[table->nr++];
	*entry = (struct entry){ .start = start, .end = end };
	return entry;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return compare_u64(x->start, y->start) ?: compare_u64(y->rank, x->rank);
}

/* By start; of those that begin together the one with the highest rank remains. */
static void table_sort(struct table *table)
{
	size_t nr = 0;
	u64 reach = 0;

	if (table->nr)
		qsort(table->entries, table->nr, sizeof(*table->entries), compare_entries);
	for (size_t i = 0; i < table->nr; i++)
		if (!nr || table->entries[nr - 1].start != table->entries[i].start)
			table->entries[nr++] = table->entries[i];
	table->nr = nr;
	for (size_t i = 0; i < nr; i++) {
		struct entry *entry = &table->entries[i];

		if (entry->guessed && i + 1 < nr && entry[1].start < entry->end)
			entry->end = entry[1].start;
		reach = entry->end > reach ? entry->end : reach;
		entry->reach = reach;
	}
}

/*
 * The innermost entry that holds @address, those with a known end first; or the latest, if they
 * replace each other.
 */
static struct entry *table_find(struct table *table, u64 address, bool latest)
{
	size_t low = 0, high = table->nr, steps = 0;
	struct entry *found = NULL;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- && table->entries[low].reach > address && steps++ < STEPS_MAX) {
		struct entry *entry = &table->entries[low];

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
	/* What is not on this machine is not looked for on others. */
	unsetenv("DEBUGINFOD_URLS");
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	if (symbols)
		obstack_free(&symbols->results, NULL);
	free(symbols);
}

/* Go's names, and C's, are what they are. */
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

/* Binaries */

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

/* Pages where two segments meet are loaded twice: what runs is in that of text. */
static const struct segment *segment_of(const struct binary *binary, u64 offset)
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

static const struct segment *segment_at(const struct binary *binary, u64 address)
{
	for (size_t i = 0; i < binary->nr_segments; i++) {
		const struct segment *segment = &binary->segments[i];

		if (address >= segment->address &&
		    address - segment->address < segment->end - segment->offset)
			return segment;
	}
	return NULL;
}

static u64 offset_at(const struct binary *binary, u64 address)
{
	const struct segment *segment = segment_at(binary, address);

	return segment ? address - segment->address + segment->offset : 0;
}

static unsigned int leading_underscores(const char *name)
{
	return strspn(name, "_");
}

/* Which of several names of a function is shown: that which perf would show. */
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

/* The end of the section that a symbol without a size lies in; 0 if that is not of text. */
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
	/* Labels: of text, and not the names that compilers make up. */
	if (type == STT_NOTYPE && (!end || !strncmp(name, ".L", 2)))
		return;
	if (sym.st_size)
		end = address + sym.st_size;
	if (end <= address)
		return;
	entry = table_add(&binary->named, address, end);
	if (!entry)
		return;
	entry->name = name;
	entry->rank = rank_of(&sym, name);
	entry->guessed = !sym.st_size;
}

static void found_stub(void *data, u64 start, u64 end, const char *name)
{
	struct binary *binary = data;
	struct entry *entry = table_add(&binary->named, start, end);

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
	plt_read(elf, found_stub, binary);
	table_sort(&binary->named);
}

/**
 * struct unwind - Reads .eh_frame
 * @data: Its contents.
 * @address: Where these are loaded.
 * @ident: The file's e_ident.
 * @wide: Addresses have 8 bytes.
 * @cie: Offset of the CIE that @encoding is of; -1 for none yet.
 */
struct unwind {
	Elf_Data *data;
	u64 address;
	const unsigned char *ident;
	bool wide;
	u64 cie;
	int encoding;
};

/* The number at @at in this format; moves @at past it. */
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

/* How the addresses of the FDEs of a CIE are encoded; -1 if that cannot be told. */
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
		table_add(&binary->unwound, start, start + length);
}

static void read_unwinding(struct binary *binary, Elf *elf)
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
	table_sort(&binary->unwound);
}

static struct entry *unwound_at(struct binary *binary, u64 address)
{
	GElf_Addr bias;
	Elf *elf;

	if (!binary->unwinding) {
		binary->unwinding = true;
		elf = dwfl_module_getelf(binary->module, &bias);
		if (elf)
			read_unwinding(binary, elf);
	}
	return table_find(&binary->unwound, address, false);
}

/* Once it has been reported, the module has the file. */
static void look_into(struct binary *binary)
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

static bool is_program(int fd)
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

static bool is_same(int fd, const struct stat *st, const struct format_file *file)
{
	u8 id[FORMAT_BUILD_ID_MAX];

	if (file->build_id_len)
		return buildid_of_fd(fd, id) == file->build_id_len &&
		       !memcmp(id, file->build_id, file->build_id_len);
	/* Mappings may have another inode than the file: see the recorder's maps_as(). */
	if (!file->mtime)
		return !file->ino || file->ino == st->st_ino;
	return file->size == (u64)st->st_size &&
	       file->mtime == st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec;
}

static void open_file(struct binary *binary, const struct format_file *file)
{
	struct stat st;
	int fd;

	/* Whatever the path says: nothing is opened that opening does something to. */
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
	if (!is_same(fd, &st, file)) {
		binary->state = BINARY_CHANGED;
		goto close_file;
	}
	if (!is_program(fd))
		goto close_file;
	binary->dwfl = dwfl_begin(&callbacks);
	if (!binary->dwfl)
		goto close_file;
	binary->module = dwfl_report_offline(binary->dwfl, "", file->path, fd);
	if (!binary->module)
		goto close_file;
	look_into(binary);
	return;

close_file:
	if (fd >= 0)
		close(fd);
}

/* Our own, which has the functions of that kernel at the offsets that all others see. */
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
	look_into(binary);
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
	const struct segment *segment = segment_of(binary, offset);
	struct entry *named, *unwound;
	u64 address, start;

	if (binary->state != BINARY_FINE || !segment)
		return NULL;
	address = offset - segment->offset + segment->address;
	named = table_find(&binary->named, address, false);
	if (!named || named->guessed) {
		unwound = unwound_at(binary, address);
		/* A label before another function is not its name. */
		if (unwound && (!named || unwound->start > named->start))
			named = unwound;
	}
	if (!named)
		return NULL;
	start = offset_at(binary, named->start);
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

/* Code that a process made itself */

/* A line is: start, length, both without 0x, and the name. */
static void read_line(struct jit *jit, char *line)
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
	entry = table_add(&jit->table, start, start + length);
	if (!entry)
		return;
	entry->name = name;
	entry->rank = jit->table.nr;
}

/* All of the file, terminated. It may be written to meanwhile: no more than there was. */
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
		read_line(jit, line);
	}
	table_sort(&jit->table);

close_file:
	close(fd);
	return jit;
}

const struct symbol *jit_find(struct jit *jit, u64 address)
{
	struct entry *entry = table_find(&jit->table, address, true);

	return entry ? result(jit->symbols, entry, 0, 0) : NULL;
}

void jit_close(struct jit *jit)
{
	if (!jit)
		return;
	free(jit->text);
	free(jit->table.entries);
	free(jit);
}
