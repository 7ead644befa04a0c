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
	static const struct {
		const char *name;
		unsigned int slack;
	} slacks[] = {
		{ "mm_struct", 12 }, { "task_struct", 12 }, { "signal_cache", 12 },
		{ "sighand_cache", 12 }, { "files_cache", 12 }, { "filp", 100 }, { "pid", 100 },
		{ "vm_area_struct", 100 }, { "anon_vma", 100 }, { "anon_vma_chain", 100 },
		{ "cred_jar", 100 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(slacks); i++)
		if (!strcmp(name, slacks[i].name))
			return slacks[i].slack;
	return strncmp(name, "kmalloc-", 8) ? 0 : 100;
}

/* Reads the next line of /proc/slabinfo about a cache that is compared. */
static inline bool next_cache(FILE *slabinfo, struct cache *c)
{
	char line[512];

	while (fgets(line, sizeof(line), slabinfo))
		if (sscanf(line, "%63s %lld %*d %lld", c->name, &c->objects, &c->size) == 3 &&
		    cache_slack(c->name))
			return true;
	return false;
}

/* The counts are exact only after CPUs have returned the objects of their own lists. */
static inline void caches(struct caches *c)
{
	FILE *f = fopen("/proc/slabinfo", "re");
	struct cache cache;
	char path[128];

	c->n = 0;
	if (!f)
		return;
	while (next_cache(f, &cache)) {
		snprintf(path, sizeof(path), "/sys/kernel/slab/%s/shrink", cache.name);
		file_write(path, "1");
	}
	rewind(f);
	while (c->n < MAX_CACHES && next_cache(f, &c->cache[c->n]))
		c->n++;
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
		struct cache *is = &now.cache[i];
		long long more = is->objects - before->cache[i].objects;

		if (more > cache_slack(is->name) &&
		    (cache_slack(is->name) < 100 || more * is->size > CACHE_SLACK))
			return is;
	}
	return NULL;
}

/* Waits until no cache is larger than in @before. If that does not happen, the test fails. */
static inline void expect_no_growth(struct __test_metadata *_metadata, const struct caches *before)
{
	const struct cache *more;

	EXPECT_TRUE(await(!grown(before))) {
		more = grown(before);
		for (unsigned int i = 0; more && i < before->n; i++)
			if (!strcmp(more->name, before->cache[i].name))
				TH_LOG("%s: %lld objects of %lld bytes, were %lld", more->name,
				       more->objects, more->size, before->cache[i].objects);
	}
}

#endif /* _SELFTESTS_USAGE_H */
