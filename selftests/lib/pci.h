/* SPDX-License-Identifier: GPL-2.0 */
/* Device memory */
#ifndef _SELFTESTS_PCI_H
#define _SELFTESTS_PCI_H

#include "device.h"

#include <dirent.h>
#include <limits.h>

/* Opens the first region of a PCI device that can be mapped. Returns -1 if there is none. */
static inline int pci_memory_open(void)
{
	DIR *dir = opendir("/sys/bus/pci/devices");
	struct dirent *entry;
	int found = -1, fd;
	char path[PATH_MAX];
	void *p;

	while (found < 0 && dir && (entry = readdir(dir))) {
		for (unsigned int i = 0; found < 0 && i < 6; i++) {
			snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource%u",
				 entry->d_name, i);
			fd = open(path, O_RDWR | O_CLOEXEC);
			if (fd < 0)
				continue;
			p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			if (p == MAP_FAILED) {
				close(fd);
				continue;
			}
			munmap(p, PAGE);
			found = fd;
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

#endif /* _SELFTESTS_PCI_H */
