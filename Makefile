# SPDX-License-Identifier: GPL-2.0
#
# make			the module for the running kernel, the library, the command, the samples
# make modules KDIR=...	the module for the kernel with these headers
# make lib		the library alone
# make tools		the command profil alone
# make samples		the samples alone
# make install		library, headers, command, manual pages (DESTDIR, PREFIX, LIBDIR, BINDIR)
# make modules_install	the module, into the running kernel's tree
# make demo		real programs profiled in a VM with a real kernel (as root)
# make real		more of these, as an ordinary user's, beside what perf says (as root)
# make check		all tests (as root)
# make torture		fuzzing, races and stress for hours, also on kernels that check themselves (as root)
# make lint		what can be said of the sources without running them
# make bench		instructions per sample, in the VM
# make truth		what profilers say of programs of which the truth is known, in the VM
# make conformance	the table of what manual pages say and the tests of it, in the VM (as root)
# make clean

KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
BINDIR ?= $(PREFIX)/bin
export PREFIX LIBDIR BINDIR DESTDIR

MAN := $(DESTDIR)$(PREFIX)/share/man

all: modules lib tools samples

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

modules_install:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install

lib:
	$(MAKE) -C userlib

tools: lib
	$(MAKE) -C tools

samples: lib
	$(MAKE) -C samples

install: lib tools
	$(MAKE) -C userlib install
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
	$(MAKE) -C userlib clean
	$(MAKE) -C tools clean
	$(MAKE) -C samples clean
	$(MAKE) -C selftests clean

.PHONY: all modules modules_install lib tools samples install demo real check torture lint bench truth conformance clean
