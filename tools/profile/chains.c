// SPDX-License-Identifier: GPL-2.0-or-later
/* See chains.h. */
#define _GNU_SOURCE
#include <obstack.h>

#include <libiberty/hashtab.h>
#include <libiberty/libiberty.h>
#include <linux/profil.h>

#include "profile/chains.h"
#include "profile/names.h"
#include "recording/completeness.h"

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

/* The binary of what the kernel did */
#define KERNEL "[kernel]"

/* A place of a process, and its frames, the outermost first. */
struct chain_place {
	const struct recording_file *file;
	const struct recording_thread *process;	/* NULL if all processes have the same functions */
	u64 offset;
	u64 bias;				/* 0 without @process */
	u32 flags;				/* of a sample without a pc; or see get_kernel() */
	enum place_caller caller;
	const struct chain_frame **frames;
	size_t nr;
};

struct chain_maker {
	struct chains chains;
	const struct binaries *binaries;
	struct obstack memory;
	htab_t functions;
	htab_t places;
	htab_t made;
	size_t nr_made;
	const struct chain *last;		/* the last chain, and its sample */
	const struct recording_sample *last_sample;
};

static hashval_t function_hash(const void *data)
{
	const struct profile_function *function = data;
	const u64 words[] = {
		hash_text(function->name), hash_text(function->binary),
		function->start,
	};

	return hash_words(words, 3);
}

static int function_equals(const void *a, const void *b)
{
	const struct profile_function *x = a, *y = b;

	return x->start == y->start && !strcmp(x->name, y->name) && !strcmp(x->binary, y->binary);
}

static hashval_t place_hash(const void *data)
{
	const struct chain_place *place = data;
	const u64 words[] = {
		(uintptr_t)place->file, (uintptr_t)place->process, place->offset,
		place->bias + place->flags,
	};

	return hash_words(words, 4);
}

static int place_equals(const void *a, const void *b)
{
	const struct chain_place *x = a, *y = b;

	return x->file == y->file && x->process == y->process && x->offset == y->offset &&
	       x->bias == y->bias && x->flags == y->flags;
}

static hashval_t chain_hash(const void *data)
{
	const struct chain *chain = data;
	const u64 flags[] = {
		chain->nr, chain->end, chain->complete, chain->lost, chain->unknown,
		chain->unchecked
	};
	const u64 words[] = {
		hash_words(flags, sizeof(flags) / sizeof(*flags)),
		hash_words((const u64 *)chain->frames, chain->nr),
	};

	return hash_words(words, 2);
}

static int chain_equals(const void *a, const void *b)
{
	const struct chain *x = a, *y = b;

	return x->nr == y->nr && x->end == y->end && x->complete == y->complete &&
	       x->lost == y->lost &&
	       x->unknown == y->unknown && x->unchecked == y->unchecked &&
	       !memcmp(x->frames, y->frames, x->nr * sizeof(*x->frames));
}

struct chain_maker *chains_new(const struct binaries *binaries)
{
	struct chain_maker *maker = xcalloc(1, sizeof(*maker));

	maker->binaries = binaries;
	obstack_init(&maker->memory);
	maker->functions = htab_create(256, function_hash, function_equals, NULL);
	maker->places = htab_create(256, place_hash, place_equals, NULL);
	maker->made = htab_create(256, chain_hash, chain_equals, NULL);
	return maker;
}

void chains_free(struct chain_maker *maker)
{
	if (!maker)
		return;
	htab_delete(maker->functions);
	htab_delete(maker->places);
	htab_delete(maker->made);
	obstack_free(&maker->memory, NULL);
	free(maker->chains.functions);
	free(maker->chains.frames);
	free(maker);
}

const struct chains *chains_of(const struct chain_maker *maker)
{
	return &maker->chains;
}

bool chains_match(const struct chains *chains, const char *pattern)
{
	for (size_t i = 0; i < chains->nr_functions; i++)
		if (names_match(chains->functions[i]->name, pattern))
			return true;
	return false;
}

/* Returns the function that is equal to @key. */
static const struct profile_function *get_function(struct chain_maker *maker,
						   const struct profile_function *key)
{
	struct chains *chains = &maker->chains;
	struct profile_function *function;
	void **slot = htab_find_slot(maker->functions, key, INSERT);

	if (*slot)
		return *slot;
	function = obstack_copy(&maker->memory, key, sizeof(*key));
	function->index = chains->nr_functions;
	if (!array_grow(&chains->functions, chains->nr_functions, sizeof(function)))
		xmalloc_failed(sizeof(function));
	chains->functions[chains->nr_functions++] = function;
	*slot = function;
	return function;
}

static const struct chain_frame *add_frame(struct chain_maker *maker,
					   const struct chain_frame *data)
{
	struct chain_frame *frame = obstack_copy(&maker->memory, data, sizeof(*data));
	struct chains *chains = &maker->chains;

	frame->index = chains->nr_frames;
	if (!array_grow(&chains->frames, chains->nr_frames, sizeof(frame)))
		xmalloc_failed(sizeof(frame));
	chains->frames[chains->nr_frames++] = frame;
	return frame;
}

/* Adds the function, and those that are inlined there. @bias: that of the sample. */
static void add_frames(struct chain_maker *maker, struct chain_place *place, u64 bias,
		       struct profile_function function, const struct place *found)
{
	struct chain_frame frame = {
		.function = get_function(maker, &function),
		.file = place->file,
		.offset = place->offset,
		.bias = bias,
		.address = found->address,
		.code = place_outermost(found),
	};

	if (!found->nr_frames)
		frame.lack = found->lack;
	place->nr = found->nr_frames ?: 1;
	place->frames = obstack_alloc(&maker->memory, place->nr * sizeof(*place->frames));
	for (size_t i = 0; i < place->nr; i++) {
		if (i) {
			frame.inlined = true;
			frame.code = found->frames[i];
			function.linkage = frame.code.name;
			function.unnamed = !function.linkage;
			function.start = 0;
			function.name = function.unnamed ? PROFILE_NO_SYMBOL :
					symbols_inlined(maker->binaries->symbols, function.linkage);
			frame.function = get_function(maker, &function);
		}
		place->frames[i] = add_frame(maker, &frame);
	}
}

/* Returns the place of the sample, with its frames. */
static const struct chain_place *get_place(struct chain_maker *maker,
					   const struct recording_sample *sample)
{
	const struct recording_thread *process = sample->thread ? sample->thread->process : NULL;
	const bool shared = sample->file && !binary_of(maker->binaries, sample->file)->problem;
	const struct chain_place key = {
		.file = sample->file,
		.process = shared ? NULL : process,
		.offset = sample->offset,
		.bias = shared ? 0 : sample->bias,
		.flags = sample->flags & (FORMAT_SAMPLE_EXEC | FORMAT_SAMPLE_EXIT),
	};
	struct chain_place *place;
	void **slot = htab_find_slot(maker->places, &key, INSERT);
	struct profile_function function;
	struct place found;

	if (*slot)
		return *slot;
	binaries_find(maker->binaries, sample, false, &function, &found);
	if (function.unnamed && !key.file && !key.flags)
		function.name = PROFILE_UNKNOWN;
	place = obstack_copy(&maker->memory, &key, sizeof(key));
	place->caller = found.caller;
	add_frames(maker, place, sample->bias, function, &found);
	*slot = place;
	return place;
}

/* Returns the place of a call in the process of the sample. */
static const struct chain_place *get_call(struct chain_maker *maker,
					  const struct recording_sample *sample,
					  const struct recording_frame *frame)
{
	const struct recording_sample call = {
		.file = frame->file,
		.thread = sample->thread,
		.offset = frame->offset - 1,
		.bias = frame->bias,
	};

	return get_place(maker, &call);
}

/* Returns a place for what the kernel did. */
static const struct chain_place *get_kernel(struct chain_maker *maker,
					    const struct format_call *call)
{
	const struct chain_place key = { .offset = call->id, .flags = FORMAT_SAMPLE_SYSTEM };
	struct profile_function function = { .binary = KERNEL, .label = KERNEL };
	void **slot = htab_find_slot(maker->places, &key, INSERT);
	struct chain_place *place;

	if (*slot)
		return *slot;
	obstack_printf(&maker->memory, "[%s]", call->name);
	obstack_1grow(&maker->memory, '\0');
	function.name = obstack_finish(&maker->memory);
	place = obstack_copy(&maker->memory, &key, sizeof(key));
	add_frames(maker, place, 0, function, &(struct place){});
	*slot = place;
	return place;
}

static bool is_same_frame(const struct recording_frame *a, const struct recording_frame *b)
{
	return a->file == b->file && a->offset == b->offset && a->bias == b->bias;
}

/*
 * Returns the return address of the function of the sample, if the stack has it only as an
 * innermost word; otherwise NULL.
 */
static const struct recording_frame *find_innermost(const struct recording_stack *stack,
						    enum place_caller caller)
{
	const struct recording_frame *word = &stack->innermost[caller != PLACE_CALLER_FIRST];

	if (caller != PLACE_CALLER_FIRST && caller != PLACE_CALLER_SECOND &&
	    caller != PLACE_CALLER_GO)
		return NULL;
	if (!word->mapping_id)
		return NULL;
	/* If the frame has been made, the word is its return address. */
	if (caller == PLACE_CALLER_GO && stack->nr && is_same_frame(word, &stack->frames[0]))
		return NULL;
	return word;
}

/* Adds the frames of a place before those that were added. They are in reverse order. */
static void grow_chain(struct chain_maker *maker, const struct chain_place *place)
{
	for (size_t i = place->nr; i-- > 0;)
		obstack_ptr_grow(&maker->memory, place->frames[i]);
}

static void reverse(const struct chain_frame **frames, size_t nr)
{
	const struct chain_frame *frame;

	for (size_t i = 0; i < nr / 2; i++) {
		frame = frames[i];
		frames[i] = frames[nr - 1 - i];
		frames[nr - 1 - i] = frame;
	}
}

/* The chain of a sample, while it is made */
struct draft {
	const struct chain_place **places;	/* the innermost first */
	size_t nr;
	bool lost;
	bool unchecked;
};

/* Returns true if the function has no frame there. */
static bool hides_caller(enum place_caller caller)
{
	return caller >= PLACE_CALLER_FIRST;
}

/* Returns true if the unwind table of its callee has led to frame @i. */
static bool has_caller_by_table(const struct recording_stack *stack, size_t i)
{
	return stack && i < stack->nr && stack->frames[i].flags & FORMAT_FRAME_BY_TABLE;
}

/*
 * Returns true if the outermost function that was found has a caller. The frame pointer was 0, but
 * the function does not keep it, and its table was not there yet; or it was made at run time.
 */
static bool is_cut_off(const struct chain_place *place, const struct recording_stack *stack)
{
	const u32 made = FORMAT_FILE_NONE | FORMAT_FILE_GENERATED;

	return stack->end == PROFIL_STACK_OUTERMOST &&
	       (place->caller > PLACE_CALLER_FIRST ||
		(place->file && place->file->data.flags & made));
}

/* Collects the places of the sample. */
static void draft_places(struct chain_maker *maker, const struct recording_sample *sample,
			 struct draft *draft)
{
	const struct recording_stack *stack = sample->stack;
	const struct chain_place *place = get_place(maker, sample);
	const struct recording_frame *word = stack ? find_innermost(stack, place->caller) : NULL;
	enum place_caller caller = place->caller;
	bool by_table = has_caller_by_table(stack, 0);
	bool is_hidden;

	draft->places[draft->nr++] = place;
	draft->unchecked = stack && place->file && caller == PLACE_CALLER_NO_TABLE && !by_table;
	if (word) {
		place = get_call(maker, sample, word);
		draft->places[draft->nr++] = place;
		caller = place->caller;
	}
	/*
	 * Without a frame of its own, this function hides the caller from the frame pointers. If
	 * nothing was found, the end of the stack says why.
	 */
	is_hidden = hides_caller(caller) && !by_table;
	if (stack && stack->nr)
		draft->lost = is_hidden;
	else if (stack)
		draft->lost = is_cut_off(place, stack) ||
			      (is_hidden && !word && stack->end == PROFIL_STACK_OUTERMOST);
	for (size_t i = 0; stack && i < stack->nr; i++) {
		place = get_call(maker, sample, &stack->frames[i]);
		if (i + 1 == stack->nr)
			draft->lost |= is_cut_off(place, stack);
		else
			draft->lost |= hides_caller(place->caller) &&
				       !has_caller_by_table(stack, i + 1);
		draft->places[draft->nr++] = place;
	}
	/*
	 * The start code of a C library without frame pointers leaves any value in the register, so
	 * the address above its own can be data.
	 */
	if (draft->nr > 2 && !draft->places[draft->nr - 1]->file &&
	    draft->places[draft->nr - 2]->file)
		draft->nr--;
}

/* Frees the chain, which was made last, if there is an equal one. Returns the one that remains. */
static struct chain *share_chain(struct chain_maker *maker, struct chain *chain)
{
	void **slot = htab_find_slot(maker->made, chain, INSERT);

	if (*slot) {
		obstack_free(&maker->memory, chain);
	} else {
		chain->index = maker->nr_made++;
		*slot = chain;
	}
	return *slot;
}

const struct chain *chains_make(struct chain_maker *maker, const struct recording_sample *sample)
{
	const struct recording_sample *last = maker->last_sample;
	const struct recording_stack *stack = sample->stack;
	const struct chain_place *kernel = sample->call ? get_kernel(maker, sample->call) : NULL;
	struct chain chain = { .end = stack ? stack->end : PROFIL_STACK_NO_REGISTERS };
	struct draft draft = {};
	struct chain *made;

	/* Samples are sorted, so a sample often differs from the last one only in its time. */
	if (last && last->file == sample->file && last->offset == sample->offset &&
	    last->bias == sample->bias && last->stack == stack && last->flags == sample->flags &&
	    last->call == sample->call &&
	    binaries_thread(last)->process == binaries_thread(sample)->process)
		return maker->last;
	draft.places = xcalloc(stack ? stack->nr + 2 : 1, sizeof(*draft.places));
	draft_places(maker, sample, &draft);
	for (size_t i = 0; i < draft.nr; i++) {
		chain.nr += draft.places[i]->nr;
		chain.unknown |= i && !draft.places[i]->file;
	}
	if (kernel)
		chain.nr += kernel->nr;
	chain.lost = draft.lost || (!stack && sample->stack_id);
	chain.unchecked = draft.unchecked;
	chain.complete = completeness_is_whole(chain.end) && !chain.lost && !chain.unknown &&
			 !chain.unchecked;
	obstack_grow(&maker->memory, &chain, sizeof(chain));
	if (kernel)
		grow_chain(maker, kernel);
	for (size_t i = 0; i < draft.nr; i++)
		grow_chain(maker, draft.places[i]);
	made = obstack_finish(&maker->memory);
	reverse(made->frames, made->nr);
	free(draft.places);
	made = share_chain(maker, made);
	maker->last = made;
	maker->last_sample = sample;
	return made;
}
