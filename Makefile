# SPDX-License-Identifier: GPL-2.0
#
# make			the module for the running kernel, the library, the samples
# make modules KDIR=...	the module for the kernel with these headers
# make lib		the library alone
# make samples		the samples alone
# make install		library, headers, manual pages (DESTDIR, PREFIX, LIBDIR)
# make modules_install	the module, into the running kernel's tree
# make demo		real programs profiled in a VM with a real kernel (as root)
# make check		all tests (as root)
# make lint		what can be said of the sources without running them
# make bench		instructions per sample, in the VM
# make clean

KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
export PREFIX LIBDIR DESTDIR

MAN := $(DESTDIR)$(PREFIX)/share/man

all: modules lib samples

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

modules_install:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install

lib:
	$(MAKE) -C userlib

samples: lib
	$(MAKE) -C samples

install: lib
	$(MAKE) -C userlib install
	install -d $(MAN)/man3 $(MAN)/man4
	install -m 644 man/*.3 $(MAN)/man3
	install -m 644 man/*.4 $(MAN)/man4
	for page in profil profil_session; do \
		sed -n '/^\.Nd/q;s/^\.Nm \([^ ]*\).*/\1/p' man/$$page.3 | while read -r name; do \
			[ $$name = $$page ] || ln -sf $$page.3 $(MAN)/man3/$$name.3; \
		done; \
	done

demo:
	samples/demo

check:
	selftests/check

lint:
	selftests/lint

bench:
	selftests/bench/bench

clean:
	if [ -d $(KDIR) ]; then $(MAKE) -C $(KDIR) M=$(CURDIR) clean; fi
	$(MAKE) -C userlib clean
	$(MAKE) -C samples clean
	$(MAKE) -C selftests clean

.PHONY: all modules modules_install lib samples install demo check lint bench clean
