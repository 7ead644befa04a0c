// SPDX-License-Identifier: LGPL-2.1-or-later
/* See maps.h. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "maps.h"

/* Reads an executable mapping from a line of /proc/PID/maps. */
static bool read_line(char *line, struct map *map)
{
	uint64_t major, minor;
	char executable;
	int path = 0;

	*map = (struct map){};
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*2c%c%*c %" SCNx64 " %" SCNx64 ":%" SCNx64
		   " %" SCNu64 " %n", &map->start, &map->end, &executable, &map->offset, &major,
		   &minor, &map->inode, &path) != 7 || executable != 'x')
		return false;
	line[strcspn(line, "\n")] = 0;
	map->device = major << 32 | minor;
	map->path = strdup(path ? line + path : "");
	return map->path;
}

static bool maps_add(struct maps *maps, const struct map *map)
{
	struct map *list;

	/* The size is a power of two. */
	if (!(maps->nr & (maps->nr - 1))) {
		list = reallocarray(maps->list, maps->nr ? 2 * maps->nr : 1, sizeof(*list));
		if (!list)
			return false;
		maps->list = list;
	}
	maps->list[maps->nr++] = *map;
	return true;
}

void maps_read(struct maps *maps)
{
	FILE *file = fopen("/proc/self/maps", "re");
	struct maps new = {};
	char *line = NULL;
	bool done = file;
	size_t size = 0;
	struct map map;

	while (done && getline(&line, &size, file) > 0)
		if (read_line(line, &map) && !maps_add(&new, &map)) {
			free(map.path);
			done = false;
		}
	free(line);
	if (file)
		fclose(file);
	if (done) {
		maps_free(maps);
		*maps = new;
	} else {
		maps_free(&new);
	}
}

const struct map *maps_find(const struct maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->nr;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (maps->list[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < maps->nr && maps->list[low].start <= address ? &maps->list[low] : NULL;
}

void maps_free(struct maps *maps)
{
	for (size_t i = 0; i < maps->nr; i++)
		free(maps->list[i].path);
	free(maps->list);
	*maps = (struct maps){};
}
