/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The resources that a session takes, and that must be back when all sessions are gone
 */
#ifndef _SELFTESTS_USAGE_H
#define _SELFTESTS_USAGE_H

#include "kselftest_harness.h"

#include "kernel.h"
#include "loop.h"

struct usage {
	long long users;	/* references to the module */
	u64 locked;		/* bytes that are locked by this process */
	long long pins;		/* pinned pages of the whole system */
	long long areas;	/* vmalloc areas of the module */
	long long area_bytes;
	long long percpu;	/* bytes */
};

static inline void areas(struct usage *u)
{
	FILE *f = fopen("/proc/vmallocinfo", "re");
	char line[512];
	long long size;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "[profil]") || sscanf(line, "%*s %lld", &size) != 1)
			continue;
		u->areas++;
		u->area_bytes += size;
	}
	if (f)
		fclose(f);
}

static inline struct usage usage(void)
{
	struct usage u = {
		.users = module_users(),
		.locked = pinned_bytes(),
		.pins = pinned_pages(),
		.percpu = file_number("/proc/meminfo", "Percpu:") * 1024,
	};

	areas(&u);
	return u;
}

/* The kernel frees per-CPU memory late, and in whole pages. */
#define PERCPU_SLACK	(256LL << 10)

static inline bool same(const struct usage *before)
{
	struct usage now = usage();

	/* At the time of @before, a session of the test before may still have been ending. */
	return now.users <= before->users && now.locked == before->locked &&
	       now.pins == before->pins && now.areas == before->areas &&
	       now.area_bytes == before->area_bytes &&
	       now.percpu <= before->percpu + PERCPU_SLACK;
}

static inline void log_usage(struct __test_metadata *_metadata, const struct usage *before)
{
	struct usage now = usage();

	TH_LOG("locked %llu, was %llu", (unsigned long long)now.locked,
	       (unsigned long long)before->locked);
	TH_LOG("module's users %lld, were %lld", now.users, before->users);
	TH_LOG("pinned pages %lld, were %lld", now.pins, before->pins);
	TH_LOG("vmalloc areas %lld of %lld bytes, were %lld of %lld", now.areas, now.area_bytes,
	       before->areas, before->area_bytes);
	TH_LOG("memory for CPUs %lld, was %lld", now.percpu, before->percpu);
}

/* Waits until no more is used than in @before. If that does not happen, the test fails. */
static inline void expect_same_usage(struct __test_metadata *_metadata, const struct usage *before)
{
	EXPECT_TRUE(await(same(before))) {
		log_usage(_metadata, before);
	}
}

/*
 * Slab objects of the caches that the module allocates from, or whose objects it could hold
 * references to. Other parts of the kernel allocate from these caches, too.
 */

#define MAX_CACHES	64U

struct caches {
	unsigned int n;
	struct cache {
		char name[64];
		long long objects, size;
	} cache[MAX_CACHES];
};

/* Returns the number of objects by which this cache may grow; 0 if it is not compared. */
static inline unsigned int cache_slack(const char *name)
{
	static const char *const of_processes[] = {
		"mm_struct", "task_struct", "signal_cache", "sighand_cache", "files_cache",
	};
	static const char *const others[] = {
		"filp", "pid", "vm_area_struct", "anon_vma", "anon_vma_chain", "cred_jar",
	};
	unsigned int i;

	if (!strncmp(name, "kmalloc-", 8))
		return 100;
	for (i = 0; i < ARRAY_SIZE(of_processes); i++)
		if (!strcmp(name, of_processes[i]))
			return 16;
	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(name, others[i]))
			return 100;
	return 0;
}

/* The counts are exact only after CPUs have returned the objects of their own lists. */
static inline void caches(struct caches *c)
{
	FILE *f = fopen("/proc/slabinfo", "re");
	char line[512], path[128];
	struct cache *cache;

	c->n = 0;
	while (f && c->n < MAX_CACHES && fgets(line, sizeof(line), f)) {
		cache = &c->cache[c->n];
		if (sscanf(line, "%63s", cache->name) != 1 || !cache_slack(cache->name))
			continue;
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", cache->name);
		file_write(path, "1");
		c->n++;
	}
	if (f)
		fclose(f);

	f = fopen("/proc/slabinfo", "re");
	while (f && fgets(line, sizeof(line), f)) {
		char name[64];
		long long objects, size;

		if (sscanf(line, "%63s %lld %*d %lld", name, &objects, &size) != 3)
			continue;
		for (unsigned int i = 0; i < c->n; i++) {
			if (strcmp(name, c->cache[i].name))
				continue;
			c->cache[i].objects = objects;
			c->cache[i].size = size;
		}
	}
	if (f)
		fclose(f);
}

/* Caches of small objects may grow by more objects: the kernel frees some late. */
#define CACHE_SLACK	(32LL << 10)	/* bytes */

/* Returns the first cache that has grown by more than its slack, or NULL. */
static inline const struct cache *grown(const struct caches *before)
{
	static struct caches now;

	caches(&now);
	for (unsigned int i = 0; i < before->n && i < now.n; i++) {
		const struct cache *was = &before->cache[i];
		struct cache *is = &now.cache[i];
		long long more = is->objects - was->objects;

		if (more > cache_slack(is->name) &&
		    (cache_slack(is->name) < 100 || more * is->size > CACHE_SLACK))
			return is;
	}
	return NULL;
}

#endif /* _SELFTESTS_USAGE_H */
