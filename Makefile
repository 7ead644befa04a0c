# SPDX-License-Identifier: GPL-2.0
#
# make			the module for the running kernel, the libraries, the command, the samples
# make modules KDIR=...	the module, for the kernel with these headers
# make lib		only libprofil
# make pprof		only libprofil and libprofil-pprof
# make tools		only the command profil
# make samples		only the samples
# make install		libraries, headers, command, completion by shells, manual pages (DESTDIR,
#			PREFIX, LIBDIR, BINDIR)
# make modules_install	the module, into the modules of the running kernel
# make clean		remove what was built
#
# These need to be root, and run the module in a virtual machine with a real kernel:
#
# make demo		profile real programs, with profil and perf side by side
# make real		the same for more programs, as an ordinary user
# make check		run all tests
# make torture		run fuzzing, races and stress for hours, also on debug kernels
# make bench		count the instructions of a sample
# make truth		compare profilers on programs whose profile is known
# make conformance	test the sentences of the manual pages, and write their table
#
# make lint		check the sources without running them

KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BINDIR ?= $(PREFIX)/bin
export PREFIX LIBDIR BINDIR DESTDIR

MAN := $(DESTDIR)$(PREFIX)/share/man

all: modules lib pprof tools samples

# CC=clang on the command line is not for the module: the kernel names its own compiler.
modules:
	MAKEFLAGS='$(filter-out CC=%,$(MAKEFLAGS))' $(MAKE) -C $(KDIR) M=$(CURDIR) modules

modules_install:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install

lib:
	$(MAKE) -C userlib

pprof: lib
	$(MAKE) -C userlib/pprof

tools: lib
	$(MAKE) -C tools

samples: lib pprof
	$(MAKE) -C samples

install: lib pprof tools
	$(MAKE) -C userlib install
	$(MAKE) -C userlib/pprof install
	$(MAKE) -C tools install
	for page in man/*.[1-9]; do \
		install -D -m 644 $$page $(MAN)/man$${page##*.}/$${page##*/} || exit; \
	done
	for page in man/*.3; do \
		sed -n '/^\.Nd/q;s/^\.Nm \([^ ]*\).*/\1/p' $$page | while read -r name; do \
			[ $$name.3 = $${page##*/} ] || ln -sf $${page##*/} $(MAN)/man3/$$name.3; \
		done; \
	done

demo:
	samples/demo

real:
	selftests/real/run
	selftests/real/run --suite trixie python3_perf

check:
	selftests/check

torture:
	selftests/torture

lint:
	selftests/lint

bench:
	selftests/bench/bench

truth:
	selftests/truth/run

conformance:
	selftests/check families | selftests/conformance >$@.tmp && mv $@.tmp Documentation/$@.rst; \
		status=$$?; rm -f $@.tmp; exit $$status

clean:
	if [ -d $(KDIR) ]; then $(MAKE) -C $(KDIR) M=$(CURDIR) clean; fi
	$(MAKE) -C userlib/pprof clean
	$(MAKE) -C userlib clean
	$(MAKE) -C tools clean
	$(MAKE) -C samples clean
	$(MAKE) -C selftests clean

.PHONY: all modules modules_install lib pprof tools samples install demo real check torture lint bench truth conformance clean
