/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Opens binaries and their separate debug files
 *
 * The names of these files are not trusted, so only regular files are opened: opening a device can
 * have effects. No file is mapped into memory: if it were truncated, the next access would kill
 * this process.
 */
#ifndef PROFIL_TOOLS_FILES_H
#define PROFIL_TOOLS_FILES_H

#include <sys/stat.h>

#include "../util.h"

/* Where separate debug files are. */
#define DEBUG_DIRECTORY	"/usr/lib/debug"
/* Longer build-ids are not read. */
#define BUILD_ID_MAX	32

/**
 * file_open - Open a regular file for reading
 * @root: A directory that stands for the root directory, also for symbolic links; -1: the root
 *	directory of this process.
 * @path: The path.
 * @flags: 0 or O_NOFOLLOW.
 *
 * Return: the descriptor, or -1 with errno set: ENOEXEC if it is not a regular file.
 */
int file_open(int root, const char *path, int flags);

/*
 * Closes the file. Returns a descriptor with O_PATH that stands for it, or -1. Each confined
 * process closes all descriptors, and on virtiofs, FUSE and NFS, only those with O_PATH need no
 * request.
 */
int file_handle(int fd);

/* Opens the file again for reading. Returns the descriptor, or -1. */
int file_of_handle(int handle);

/*
 * Returns true if this is an ELF program or library of a little-endian machine, and its machine, an
 * EM_* constant. Reads only the first bytes.
 */
bool elf_machine(int fd, int *machine);

/* A part of a file that is loaded, and the address that the linker has given it */
struct elf_segment {
	u64 offset;
	u64 address;
	u64 size;		/* in the file */
	bool is_executable;
};

/*
 * Reads the parts of an ELF file that are loaded, at most @nr_max, and the address of the first
 * instruction. Returns their number; 0 if it is not such a file. Reads only the headers.
 */
size_t elf_segments(int fd, struct elf_segment *segments, size_t nr_max, u64 *entry);

/*
 * Reads the build-id of a file, ELF or not. Returns its length, or 0 if the file has none. This
 * reads only a bounded part of the file, so it needs no confined process.
 */
u32 buildid_of_fd(int fd, u8 id[BUILD_ID_MAX]);

/* A build-id in hexadecimal digits */
struct buildid_text {
	char text[2 * BUILD_ID_MAX + 1];
};

struct buildid_text buildid_text(const u8 *id, u32 len);

/**
 * download_open - Get a file from the servers in the environment variable DEBUGINFOD_URLS
 * @kind: "executable" or "debuginfo".
 * @id: The build-id of the file, of @len bytes.
 *
 * Return: its descriptor; -1 if there is none, no server, or no libdebuginfod.
 */
int download_open(const char *kind, const u8 *id, u32 len);

/**
 * struct file_request - A file that a confined process asks for, which belongs to another one
 * @kind: Its debug file by build-id; by its link, in one of FILE_LINK_PLACES places; from a server;
 *	the common parts of debug files; a file of split debug information (.dwo); or a package of
 *	these (.dwp). The last two have no build-id.
 * @place: The place.
 * @id: The build-id of the file, of @len bytes.
 * @name: The name in the link. That of common parts begins with FILE_COMMON_DIRECTORY. That of a
 *	.dwo is a path.
 */
struct file_request {
	enum {
		FILE_BY_ID, FILE_BY_LINK, FILE_DOWNLOAD, FILE_COMMON, FILE_SPLIT, FILE_PACKAGE,
	} kind;
	u32 place;
	u32 len;
	u8 id[BUILD_ID_MAX];
	char name[1024];
};

#define FILE_LINK_PLACES	3
/* dwz moves the common parts of several debug files to a file in this directory. */
#define FILE_COMMON_DIRECTORY	"/.dwz/"

/* Opens the file. @root and @path: as in struct confined. Returns its descriptor or -1. */
int file_request_open(int root, const char *path, const struct file_request *request);

#endif /* PROFIL_TOOLS_FILES_H */
