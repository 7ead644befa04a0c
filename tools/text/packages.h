/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The packages that have the debug files of binaries, according to dpkg and apt's lists
 */
#ifndef PROFIL_TOOLS_PACKAGES_H
#define PROFIL_TOOLS_PACKAGES_H

#include "symbols/files.h"

/**
 * enum packages_answer - What is known about the debug file of a binary
 * @PACKAGES_UNKNOWN: Nothing: dpkg or apt does not answer, or was not asked.
 * @PACKAGES_NO_OWNER: No package has the binary.
 * @PACKAGES_NO_LISTS: apt has no lists.
 * @PACKAGES_NONE: apt's lists have no package with the debug file.
 * @PACKAGES_OTHER: They have a package with debug files of another version.
 * @PACKAGES_FOUND: They have the package.
 */
enum packages_answer {
	PACKAGES_UNKNOWN,
	PACKAGES_NO_OWNER,
	PACKAGES_NO_LISTS,
	PACKAGES_NONE,
	PACKAGES_OTHER,
	PACKAGES_FOUND,
};

/**
 * struct packages_file - A binary
 * @path: Its path. The file there has this build-id.
 * @build_id: Its build-id.
 * @answer: Out: the answer.
 * @owner: Out: the package of the binary; NULL if there is none.
 * @package: Out: the package with debug files, of its version or of another one; or NULL. The
 *	caller frees both.
 */
struct packages_file {
	const char *path;
	struct buildid_text build_id;
	enum packages_answer answer;
	char *owner;
	char *package;

	/* Only packages.c uses this. */
	char *source;
};

/* Runs dpkg-query and apt-cache, without a network, for at most a few seconds. */
void packages_find(struct packages_file *files, size_t nr);

#endif /* PROFIL_TOOLS_PACKAGES_H */
