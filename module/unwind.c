// SPDX-License-Identifier: GPL-2.0
/*
 * The unwind tables that user space gives to a session: one for each file, and one for each part of
 * an address space with code made at run time. The walk of a stack (stack.c) finds there how a
 * function's caller is found.
 *
 * A table is checked once, and never changes. It is freed with its session: not later, when a task
 * that waits for mmap_lock drops the ring; or a grace period after another one has replaced it. The
 * tables of a user have a limit of their own, since RLIMIT_MEMLOCK is too low for those of one
 * large program. The control group is charged, too.
 *
 * A table is found by the identity of the file's inode, and does not keep the file in use. If the
 * inode gets other contents, stacks may be wrong, but not unsafe: stack.c checks all that it finds.
 * So user space may also say for any address space what code is there.
 *
 * Context: system calls, workers (may sleep); task work, under mmap_lock: profil_unwind_find().
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "ring.h"

static unsigned int unwind_mib = 64;
module_param(unwind_mib, uint, 0644);
MODULE_PARM_DESC(unwind_mib, "MiB of unwind tables of a user without CAP_IPC_LOCK");

/* All tables of a user. Each ring with stacks references the object of its creator. */
struct unwind_user {
	struct hlist_node node;		/* in unwind_users */
	kuid_t uid;
	unsigned int nr_rings;
	atomic64_t bytes;
};

static DEFINE_HASHTABLE(unwind_users, 10);
static DEFINE_SPINLOCK(unwind_users_lock);	/* innermost, for unwind_users and nr_rings */

static struct unwind_user *unwind_user_find(kuid_t uid)
{
	struct unwind_user *user;

	hash_for_each_possible(unwind_users, user, node, __kuid_val(uid))
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

/* Prepares @ring, which is new and has stacks, for tables. Return: 0, or -ENOMEM. */
int profil_unwind_init(struct profil_ring *ring)
{
	struct unwind_user *new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);

	if (!new)
		return -ENOMEM;
	ring->table_seed = get_random_u32();
	spin_lock(&unwind_users_lock);
	ring->user = unwind_user_find(ring->uid);
	if (!ring->user) {
		ring->user = new;
		new->uid = ring->uid;
		hash_add(unwind_users, &new->node, __kuid_val(new->uid));
		new = NULL;
	}
	ring->user->nr_rings++;
	spin_unlock(&unwind_users_lock);
	kfree(new);
	return 0;
}

static void unwind_user_put(struct unwind_user *user)
{
	spin_lock(&unwind_users_lock);
	if (--user->nr_rings)
		user = NULL;
	else
		hash_del(&user->node);
	spin_unlock(&unwind_users_lock);
	WARN_ON_ONCE(user && atomic64_read(&user->bytes));
	kfree(user);
}

/* Charges @bytes to the user of @ring. Return: 0, or -EPERM above the limit. */
static int unwind_charge(struct profil_ring *ring, size_t bytes, bool may_exceed)
{
	atomic64_t *all = &ring->user->bytes;
	s64 before = atomic64_read(all);

	do {
		if (!may_exceed && before + bytes > (u64)READ_ONCE(unwind_mib) << 20)
			return -EPERM;
	} while (!atomic64_try_cmpxchg(all, &before, before + bytes));
	return 0;
}

static struct unwind_key unwind_key_of_inode(const struct inode *inode)
{
	return (struct unwind_key) {
		.ino = inode->i_ino,
		.dev = inode->i_sb->s_dev,
		.generation = inode->i_generation,
	};
}

/* No address space has this id. */
static const struct unwind_key vdso_key = { .ino = U64_MAX };

static struct unwind_key unwind_key_of_code(u64 space, u64 address)
{
	return (struct unwind_key) {
		.ino = space,
		.generation = address / PROFIL_UNWIND_CODE_SIZE,
	};
}

static bool unwind_is_of_code(const struct unwind_key *key)
{
	return !key->dev && key->ino != vdso_key.ino;
}

/* Returns the identity of the text at @address in @vma; zeros if no table can describe it. */
static struct unwind_key unwind_key_of(struct vm_area_struct *vma, u64 space, u64 address)
{
	const char *name = NULL;

	if (vma->vm_file)
		return unwind_key_of_inode(file_inode(vma->vm_file));
	if (vma_is_anonymous(vma))
		return unwind_key_of_code(space, address);
	if (vma->vm_ops->name)
		name = vma->vm_ops->name(vma);
	return name && !strcmp(name, "[vdso]") ? vdso_key : (struct unwind_key) {};
}

/* Returns true if @arg, with PROFIL_UNWIND_CODE, describes a part of an address space. */
static bool unwind_code_is_valid(const struct profil_unwind *arg)
{
	return arg->fd == -1 && arg->space && arg->space != vdso_key.ino &&
	       IS_ALIGNED(arg->start, PROFIL_UNWIND_CODE_SIZE) && arg->start < PROFIL_USER_END &&
	       arg->nr_blocks <= PROFIL_UNWIND_CODE_SIZE / PROFIL_UNWIND_BLOCK;
}

/* Sets @key for the text of @arg. On overlayfs, the file that is mapped is the real one. */
static int unwind_key_set(struct unwind_key *key, const struct profil_unwind *arg)
{
	const struct inode *inode;
	struct file *file;
	int err = -EBADF;

	*key = unwind_key_of_code(arg->space, arg->start);
	if (arg->flags == PROFIL_UNWIND_CODE)
		return unwind_code_is_valid(arg) ? 0 : -EINVAL;
	if (arg->space || arg->start)
		return -EINVAL;
	*key = vdso_key;
	if (arg->flags)
		return arg->flags == PROFIL_UNWIND_VDSO && arg->fd == -1 ? 0 : -EINVAL;
	file = fget(arg->fd);
	if (!file)
		return -EBADF;
	inode = d_real_inode(file->f_path.dentry);
	if (file->f_mode & FMODE_READ)
		err = S_ISREG(inode->i_mode) ? 0 : -EINVAL;
	*key = unwind_key_of_inode(inode);
	fput(file);
	return err;
}

/* The hash is random, so that a user cannot choose many keys for one bucket. */
static struct hlist_head *unwind_bucket(struct profil_ring *ring, const struct unwind_key *key)
{
	const u32 hash = jhash(key, sizeof(*key), ring->table_seed);

	return &ring->tables[hash % ARRAY_SIZE(ring->tables)];
}

static struct unwind_table *unwind_find(struct profil_ring *ring, const struct unwind_key *key)
{
	struct unwind_table *table;

	hlist_for_each_entry_rcu(table, unwind_bucket(ring, key), node, true)
		if (table->key.ino == key->ino && table->key.dev == key->dev &&
		    table->key.generation == key->generation)
			return table;
	return NULL;
}

/*
 * Finds the table for the text at @address in @vma, which is in the address space with the id
 * @space, under mmap_lock and RCU; or returns NULL.
 */
const struct unwind_table *profil_unwind_find(struct profil_ring *ring, struct vm_area_struct *vma,
					      u64 space, unsigned long address)
{
	const struct unwind_key key = unwind_key_of(vma, space, address);

	return unwind_find(ring, &key);
}

static void unwind_free(struct profil_ring *ring, struct unwind_table *table)
{
	atomic64_sub(table->charged, &ring->user->bytes);
	vfree(table);
}

/* Frees all tables of @ring, which was closed a grace period ago. */
void profil_unwind_free(struct profil_ring *ring)
{
	struct unwind_table *table;
	struct hlist_node *next;

	if (!ring->user)
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(ring->tables); i++)
		hlist_for_each_entry_safe(table, next, &ring->tables[i], node)
			unwind_free(ring, table);
	unwind_user_put(ring->user);
}

static bool unwind_rule_is_valid(const struct profil_unwind_rule *rule)
{
	if (rule->kind == PROFIL_UNWIND_REGISTER)
		return rule->number >= 6 && rule->number <= 14;
	if (rule->kind == PROFIL_UNWIND_SP_INDIRECT)
		return true;
	if (rule->kind > PROFIL_UNWIND_SIGNAL || rule->number)
		return false;
	return rule->kind == PROFIL_UNWIND_SP || rule->kind == PROFIL_UNWIND_FP ||
	       (!rule->fp && (!rule->cfa || rule->kind == PROFIL_UNWIND_FP_INDIRECT));
}

/* Checks all that stack_rule() relies on. */
static bool unwind_is_valid(const struct unwind_table *table)
{
	u32 nr_rows = table->blocks[table->nr_blocks];

	for (u32 i = 0; i < table->nr_rules; i++)
		if (!unwind_rule_is_valid(&table->rules[i]))
			return false;
	if (table->blocks[0])
		return false;
	for (u32 b = 0; b < table->nr_blocks; b++) {
		u32 first = table->blocks[b], end = table->blocks[b + 1];

		if (end < first || end > nr_rows)
			return false;
		for (u32 i = first; i < end; i++)
			if ((table->rows[i] & 0xffff) >= table->nr_rules ||
			    table->rows[i] >> 16 >= PROFIL_UNWIND_BLOCK ||
			    (i > first && table->rows[i] >> 16 <= table->rows[i - 1] >> 16))
				return false;
		cond_resched();
	}
	return true;
}

/* Makes the table of @arg, charged; or returns an error pointer. May wait for user space. */
static struct unwind_table *unwind_create(struct profil_ring *ring, const struct profil_unwind *arg,
					  const struct unwind_key *key, bool may_exceed)
{
	const size_t rules = arg->nr_rules * sizeof(struct profil_unwind_rule);
	const size_t blocks = arg->nr_blocks * sizeof(u32), rows = arg->nr_rows * sizeof(u32);
	const size_t bytes = sizeof(struct unwind_table) + rules + blocks + sizeof(u32) + rows;
	struct unwind_table *table, head = {
		.key = *key,
		.nr_blocks = arg->nr_blocks,
		.nr_rules = arg->nr_rules,
		.charged = PAGE_ALIGN(bytes) + PAGE_SIZE,	/* also for the kernel's mapping */
	};
	int err = unwind_charge(ring, head.charged, may_exceed);

	if (err)
		return ERR_PTR(err);
	table = __vmalloc(bytes, PROFIL_RING_GFP);
	if (!table) {
		atomic64_sub(head.charged, &ring->user->bytes);
		return ERR_PTR(-ENOMEM);
	}
	*table = head;
	table->rules = (void *)(table + 1);
	table->blocks = (void *)(table->rules + arg->nr_rules);
	table->blocks[arg->nr_blocks] = arg->nr_rows;
	table->rows = table->blocks + arg->nr_blocks + 1;
	if (copy_from_user(table->rules, u64_to_user_ptr(arg->rules), rules) ||
	    copy_from_user(table->blocks, u64_to_user_ptr(arg->blocks), blocks) ||
	    copy_from_user(table->rows, u64_to_user_ptr(arg->rows), rows))
		err = -EFAULT;
	else if (!unwind_is_valid(table))
		err = -EINVAL;
	if (!err)
		return table;
	unwind_free(ring, table);
	return ERR_PTR(err);
}

/* Returns true if @arg has no table, but removes one. */
static bool unwind_is_removal(const struct profil_unwind *arg)
{
	return arg->flags == PROFIL_UNWIND_CODE && !arg->nr_blocks && !arg->nr_rows &&
	       !arg->nr_rules;
}

/* Puts @table, which may be NULL, in the place of @old, which may be NULL, too. */
static int unwind_replace(struct profil_ring *ring, struct unwind_table *old,
			  struct unwind_table *table)
{
	if (old && table && !unwind_is_of_code(&table->key))
		return -EEXIST;
	if (!old && !table)
		return -ENOENT;
	if (!old && ring->nr_tables >= PROFIL_MAX_UNWIND_TABLES)
		return -ENOSPC;
	if (old && table) {
		hlist_replace_rcu(&old->node, &table->node);	/* walks always find one of them */
	} else if (table) {
		hlist_add_head_rcu(&table->node, unwind_bucket(ring, &table->key));
		ring->nr_tables++;
	} else {
		hlist_del_rcu(&old->node);
		ring->nr_tables--;
	}
	return 0;
}

int profil_descriptor_unwind(struct file *file, void *data, struct profil_stats *stats)
{
	struct profil_session *s = file->private_data;
	struct unwind_table *table = NULL, *old;
	const struct profil_unwind *arg = data;
	struct profil_ring *ring = s->ring;
	struct unwind_key key;
	int err;

	if (!PROFIL_HAS_UNWIND)
		return -EOPNOTSUPP;
	if (!ring->stack_depth || arg->nr_blocks > PROFIL_UNWIND_BLOCKS ||
	    arg->nr_rules > PROFIL_UNWIND_RULES || arg->nr_rows > PROFIL_MAX_UNWIND_ROWS)
		return -EINVAL;
	if (!unwind_is_removal(arg) && (!arg->nr_blocks || !arg->nr_rules || !arg->nr_rows))
		return -EINVAL;
	/* It belongs to the creator. Others may have no right to its memory. */
	if (!profil_space_is_own(s->home))
		return -EPERM;
	err = unwind_key_set(&key, arg);
	if (err)
		return err;
	if (arg->nr_blocks) {
		table = unwind_create(ring, arg, &key, s->may_exceed);
		if (IS_ERR(table))
			return PTR_ERR(table);
	}
	s = profil_descriptor_lock_own(file);
	err = PTR_ERR_OR_ZERO(s);
	if (!err) {
		old = unwind_find(ring, &key);
		err = unwind_replace(ring, old, table);
		mutex_unlock(&s->home->lock);
	}
	if (err)
		old = table;
	else if (old)
		synchronize_rcu();
	if (old)
		unwind_free(ring, old);
	return err;
}
