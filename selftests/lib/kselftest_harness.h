/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's harness, with these differences.
 *
 * Its time limits end a test that hangs. They are longer, because time can pass faster in a VM
 * (vm/run --clock), and more so on debug kernels (vm/debug-kernel) and on ARM, which QEMU emulates
 * (vm/run --arch).
 *
 * A program's arguments select the tests to run. They are patterns as in glob(7) for TEST,
 * FIXTURE.TEST or FIXTURE.VARIANT.TEST. With --list, the program prints the names of its tests.
 * (Linux 6.12's harness has -t.)
 */
#ifndef _SELFTESTS_KSELFTEST_HARNESS_H
#define _SELFTESTS_KSELFTEST_HARNESS_H

#include "test.h"

#include <fnmatch.h>

static inline unsigned int patient_alarm(unsigned int seconds)
{
	return alarm((machine_is_slow() ? 10 : 2) * seconds);
}

#define alarm patient_alarm
#include <kselftest_harness.h>
#undef alarm

/* With clang, the kernel's macro does not accept an _Atomic value. The comma makes it an rvalue. */
#ifdef __clang__
#undef is_signed_type
#define is_signed_type(v) ((__typeof__((void)0, (v)))(-1) < (__typeof__((void)0, (v)))1)
#endif

#define TEST_NAME_SIZE 512

static inline const char *test_name(char *name, const struct __fixture_metadata *f,
				    const struct __fixture_variant_metadata *v,
				    const struct __test_metadata *t)
{
	snprintf(name, TEST_NAME_SIZE, "%s%s%s.%s", f->name, v ? "." : "", v ? v->name : "",
		 t->name);
	return name;
}

static inline bool test_matches(const struct __fixture_metadata *f,
				const struct __fixture_variant_metadata *v,
				const struct __test_metadata *t, char *const *patterns)
{
	char name[TEST_NAME_SIZE];

	for (test_name(name, f, v, t); *patterns; patterns++)
		if (!fnmatch(*patterns, name, 0) || !fnmatch(*patterns, t->name, 0))
			return true;
	return false;
}

/* Does @t match in one of the variants of @f, or by itself if @f has none? */
static inline bool test_is_wanted(const struct __fixture_metadata *f,
				  const struct __test_metadata *t, char *const *patterns)
{
	const struct __fixture_variant_metadata *v = f->variant;

	do {
		if (test_matches(f, v, t, patterns))
			return true;
		v = v ? v->next : NULL;
	} while (v);
	return false;
}

static inline bool variant_is_wanted(const struct __fixture_metadata *f,
				     const struct __fixture_variant_metadata *v,
				     char *const *patterns)
{
	for (const struct __test_metadata *t = f->tests; t; t = t->next)
		if (test_matches(f, v, t, patterns))
			return true;
	return false;
}

/* Removes the tests that no pattern matches. Returns whether any test is left. */
static inline bool tests_keep(char *const *patterns)
{
	struct __fixture_metadata **f = &__fixture_list;
	struct __fixture_variant_metadata **v;
	struct __test_metadata **t;

	while (*f) {
		for (t = &(*f)->tests; *t;) {
			if (test_is_wanted(*f, *t, patterns))
				t = &(*t)->next;
			else
				*t = (*t)->next;
		}
		for (v = &(*f)->variant; *v;) {
			if (variant_is_wanted(*f, *v, patterns))
				v = &(*v)->next;
			else
				*v = (*v)->next;
		}
		if ((*f)->tests)
			f = &(*f)->next;
		else
			*f = (*f)->next;
	}
	return __fixture_list;
}

static inline int tests_list(void)
{
	const struct __fixture_variant_metadata *v;
	const struct __fixture_metadata *f;
	const struct __test_metadata *t;
	char name[TEST_NAME_SIZE];

	for (f = __fixture_list; f; f = f->next) {
		v = f->variant;
		do {
			for (t = f->tests; t; t = t->next)
				puts(test_name(name, f, v, t));
			v = v ? v->next : NULL;
		} while (v);
	}
	return 0;
}

static inline int tests_run(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--list"))
		return tests_list();
	if (argc > 1 && !tests_keep(argv + 1)) {
		fprintf(stderr, "%s: no such test (--list prints them)\n", argv[0]);
		return 2;
	}
	return test_harness_run(argc, argv);
}

#undef TEST_HARNESS_MAIN
#define TEST_HARNESS_MAIN						\
	static void __attribute__((constructor))			\
	__constructor_order_last(void)					\
	{								\
		if (!__constructor_order)				\
			__constructor_order = _CONSTRUCTOR_ORDER_BACKWARD; \
	}								\
									\
	int main(int argc, char **argv)					\
	{								\
		return tests_run(argc, argv);				\
	}

#endif /* _SELFTESTS_KSELFTEST_HARNESS_H */
