// SPDX-License-Identifier: GPL-2.0-or-later
/* See table_cache.h. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <libiberty/libiberty.h>

#include "recording/table_cache.h"

#define MAGIC		0x454c424154465250ULL	/* "PRFTABLE", in the byte order of the machine */
#define VERSION		1
#define FUSE_MAGIC	0x65735546
/* The largest table, and some names */
#define ENTRY_BYTES_MAX	(4 * UNWIND_ROWS_MAX + (1U << 21))
/* A file that was written so short a time ago may be changed without a change of its times. */
#define SETTLED_NS	(2 * NS_PER_S)
/* The time of the last use is written again after this time. */
#define USED_NS		(3600 * NS_PER_S)
/* Temporary files that are older were left by a process that was killed. */
#define TEMPORARY_NS	(3600 * NS_PER_S)
#define TEMPORARY	"tmp."
#define BLOCK_BYTES	4096

struct table_cache {
	int directory;
	u64 bytes_max;
};

/* The beginning of a file. The table follows. */
struct cache_header {
	u64 magic;
	u32 version;
	u32 table_version;
	u64 size;		/* of the table */
	u64 check;		/* checksum of the table */
	struct table_key key;
};

_Static_assert(sizeof(struct table_key) == 6 * sizeof(u64) + 2 * sizeof(u32) + BUILD_ID_MAX,
	       "keys are compared with memcmp()");

struct cache_name {
	char name[2 * BUILD_ID_MAX + 32];
};

/* Returns a number that differs if the data are damaged. */
static u64 checksum(const void *data, size_t size)
{
	const u64 factor = 0x9e3779b97f4a7c15ULL;
	u64 sum = size, word;

	for (; size >= sizeof(word); size -= sizeof(word), data = (const u8 *)data + sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		sum = hash_step(sum, word, factor);
	}
	word = 0;
	memcpy(&word, data, size);
	return hash_step(hash_step(sum, word, factor), factor, factor);
}

/* ---- keys ---- */

bool table_key_of_file(struct table_key *key, int fd)
{
	struct statfs fs;
	struct stat st;

	memset(key, 0, sizeof(*key));
	if (fstat(fd, &st) || fstatfs(fd, &fs) || fs.f_type == FUSE_MAGIC ||
	    (st.st_uid && st.st_uid != geteuid()) ||
	    time_ns(st.st_ctim) + SETTLED_NS > clock_ns(CLOCK_REALTIME))
		return false;
	key->device = st.st_dev;
	key->ino = st.st_ino;
	key->size = st.st_size;
	key->mtime = time_ns(st.st_mtim);
	key->ctime = time_ns(st.st_ctim);
	key->build_id_len = buildid_of_fd(fd, key->build_id);
	return key->build_id_len;
}

bool table_key_of_vdso(struct table_key *key, int fd, const void *image, size_t size)
{
	memset(key, 0, sizeof(*key));
	key->size = size;
	key->check = checksum(image, size);
	key->build_id_len = buildid_of_fd(fd, key->build_id);
	return key->build_id_len;
}

static struct cache_name name_of(const struct table_key *key)
{
	const struct buildid_text id = buildid_text(key->build_id, key->build_id_len);
	struct cache_name name;

	snprintf(name.name, sizeof(name.name), "%s-%016llx", id.text,
		 (unsigned long long)checksum(key, sizeof(*key)));
	return name;
}

static struct cache_header header_of(const struct table_key *key, const u8 *data, size_t size)
{
	return (struct cache_header){
		.magic = MAGIC,
		.version = VERSION,
		.table_version = UNWIND_TABLE_VERSION,
		.size = size,
		.check = checksum(data, size),
		.key = *key,
	};
}

/* ---- the directory ---- */

/* Returns the path of the user's directory for caches; NULL if there is none. */
static char *user_directory(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const struct passwd *user;

	if (cache && *cache == '/')
		return xstrdup(cache);
	if (!home || *home != '/') {
		user = getpwuid(geteuid());
		home = user ? user->pw_dir : NULL;
	}
	return home && *home == '/' ? xasprintf("%s/.cache", home) : NULL;
}

/*
 * Opens a directory of the user in @parent, which this closes. Makes it if it does not exist.
 * Returns -1 if it is that of another user, or has one of the permissions @others.
 */
static int open_directory(int parent, const char *name, int flags, mode_t others)
{
	struct stat st;
	int fd = -1;

	if (parent >= 0 || parent == AT_FDCWD) {
		mkdirat(parent, name, 0700);
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
	}
	if (parent >= 0)
		close(parent);
	if (fd < 0 || (!fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & others)))
		return fd;
	close(fd);
	return -1;
}

struct table_cache *table_cache_open(u64 bytes_max)
{
	char *path = user_directory();
	struct table_cache *cache;
	int fd;

	if (!path)
		return NULL;
	/* The user may have made the first one a link. */
	fd = open_directory(AT_FDCWD, path, 0, 0);
	free(path);
	fd = open_directory(fd, "profil", O_NOFOLLOW, 0022);
	fd = open_directory(fd, "unwind", O_NOFOLLOW, 0077);
	if (fd < 0)
		return NULL;
	cache = xmalloc(sizeof(*cache));
	*cache = (struct table_cache){ .directory = fd, .bytes_max = bytes_max };
	return cache;
}

void table_cache_close(struct table_cache *cache)
{
	if (!cache)
		return;
	close(cache->directory);
	free(cache);
}

/* ---- reading ---- */

static bool read_all(int fd, void *to, size_t size, off_t offset)
{
	return pread(fd, to, size, offset) == (ssize_t)size;
}

/* Reads the table in the file. Returns NULL if it is not that of the key, or is damaged. */
static u8 *read_table(int fd, const struct table_key *key, size_t *size)
{
	struct cache_header header, expected;
	struct stat st;
	u8 *data;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size <= (off_t)sizeof(header) || st.st_size > ENTRY_BYTES_MAX)
		return NULL;
	*size = st.st_size - sizeof(header);
	data = xmalloc(*size);
	if (read_all(fd, &header, sizeof(header), 0) &&
	    read_all(fd, data, *size, sizeof(header))) {
		expected = header_of(key, data, *size);
		if (!memcmp(&header, &expected, sizeof(header))) {
			if (time_ns(st.st_mtim) + USED_NS < clock_ns(CLOCK_REALTIME))
				futimens(fd, NULL);
			return data;
		}
	}
	free(data);
	return NULL;
}

bool table_cache_get(struct table_cache *cache, const struct table_key *key,
		     struct unwind_table *table)
{
	const struct cache_name name = name_of(key);
	size_t size;
	u8 *data;
	int fd;

	fd = openat(cache->directory, name.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	data = read_table(fd, key, &size);
	close(fd);
	return data && unwind_table_take(table, data, size);
}

/* ---- writing ---- */

/* A file in the directory */
struct cache_file {
	u64 used;		/* the time of its last use */
	u64 bytes;
	char *name;
};

struct cache_files {
	struct cache_file *files;
	size_t nr;
	u64 bytes;
};

static void add_file(struct cache_files *files, int directory, const char *name)
{
	struct cache_file file = {};
	struct stat st;

	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) || S_ISDIR(st.st_mode))
		return;
	file.used = time_ns(st.st_mtim);
	file.bytes = ((u64)st.st_size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	if (!strncmp(name, TEMPORARY, strlen(TEMPORARY))) {
		if (file.used + TEMPORARY_NS < clock_ns(CLOCK_REALTIME))
			unlinkat(directory, name, 0);
		return;
	}
	file.name = xstrdup(name);
	files->bytes += file.bytes;
	if (!array_grow(&files->files, files->nr, sizeof(file)))
		xmalloc_failed(sizeof(file));
	files->files[files->nr++] = file;
}

static int compare_files(const void *a, const void *b)
{
	return compare_u64(((const struct cache_file *)a)->used,
			   ((const struct cache_file *)b)->used);
}

/* If there are too many files, removes those that were not used for the longest time. */
static void limit_size(const struct table_cache *cache)
{
	int fd = openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct cache_files files = {};
	const struct dirent *entry;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(directory)))
		add_file(&files, cache->directory, entry->d_name);
	closedir(directory);
	if (files.bytes > cache->bytes_max)
		qsort(files.files, files.nr, sizeof(*files.files), compare_files);
	for (size_t i = 0; i < files.nr && files.bytes > cache->bytes_max; i++) {
		unlinkat(cache->directory, files.files[i].name, 0);
		files.bytes -= files.files[i].bytes;
	}
	while (files.nr)
		free(files.files[--files.nr].name);
	free(files.files);
}

static bool write_all(int fd, const void *data, size_t size)
{
	ssize_t n;

	for (; size; size -= n, data = (const u8 *)data + n) {
		n = write(fd, data, size);
		if (n <= 0)
			return false;
	}
	return true;
}

void table_cache_put(struct table_cache *cache, const struct table_key *key,
		     const struct unwind_table *table)
{
	const struct cache_header header = header_of(key, table->data, table->size);
	const struct cache_name name = name_of(key);
	const int directory = cache->directory;
	char temporary[32];
	u64 random = 0;
	bool done;
	int fd;

	if (sizeof(header) + table->size > ENTRY_BYTES_MAX ||
	    getrandom(&random, sizeof(random), 0) != sizeof(random))
		return;
	snprintf(temporary, sizeof(temporary), TEMPORARY "%016llx", (unsigned long long)random);
	fd = openat(directory, temporary,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	done = write_all(fd, &header, sizeof(header)) && write_all(fd, table->data, table->size);
	/* Another recorder may do the same at the same time: the last one wins. */
	if (close(fd) || !done || renameat(directory, temporary, directory, name.name))
		unlinkat(directory, temporary, 0);
	else
		limit_size(cache);
}
