// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See buildid.h. The recorder calls this once for each file, while the program runs. So this must
 * be fast: elfutils reads only the program headers and the notes. The file may be hostile. libelf
 * checks the data that it reads.
 */
#include <string.h>

#include <elfutils/libdwelf.h>

#include "symbols/buildid.h"

u32 buildid_of_fd(int fd, u8 id[FORMAT_BUILD_ID_MAX])
{
	const void *found;
	ssize_t len;
	Elf *elf;

	memset(id, 0, FORMAT_BUILD_ID_MAX);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	len = elf ? dwelf_elf_gnu_build_id(elf, &found) : 0;
	if (len > 0 && len <= FORMAT_BUILD_ID_MAX)
		memcpy(id, found, len);
	else
		len = 0;
	elf_end(elf);
	return len;
}
