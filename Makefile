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
# make modules_install	the module, into the modules of the kernel of KDIR (DESTDIR)
# make uninstall	remove what these two installed, for all kernels (the same variables)
# make dist OUT=DIR	the source of the last commit: DIR/profil-VERSION.tar.gz
# make series KERNEL=DIR OUT=DIR
#			patches that add the driver to the Linux source in KERNEL, which does not change
# make deb OUT=DIR	Debian packages of the last commit, on Debian 12 or later
# make clean		remove what was built
#
# CC, CFLAGS, CPPFLAGS and LDFLAGS are those of all user programs. WERROR=1 makes warnings errors.
#
# These need to be root, and run the module in a virtual machine with a real kernel:
#
# make demo		profile real programs, with profil and perf side by side
# make real		the same for more programs, as an ordinary user
# make check		run all tests
# make check-matrix	run all tests on the kernels of all Debian suites, for amd64, arm64, riscv64
# make coverage		run the self-tests, and print the lines that no test reaches
# make torture		run fuzzing, races and stress for hours, also on debug kernels
# make soak		record for an hour, and check that nothing grows
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
VERSION := $(shell cat VERSION)

all: modules lib pprof tools samples

# CC=clang on the command line is not for the module: the kernel names its own compiler.
modules:
	MAKEFLAGS='$(filter-out CC=%,$(MAKEFLAGS))' $(MAKE) -C $(KDIR) M=$(CURDIR) modules

modules_install:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install $(if $(DESTDIR),INSTALL_MOD_PATH="$(DESTDIR)")

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

uninstall:
	$(MAKE) -C userlib/pprof uninstall
	$(MAKE) -C userlib uninstall
	$(MAKE) -C tools uninstall
	for page in man/*.[1-9]; do \
		rm -f $(MAN)/man$${page##*.}/$${page##*/}; \
	done
	for name in $$(sed -sn '/^\.Nd/,$$d;s/^\.Nm \([^ ]*\).*/\1/p' man/*.3); do \
		rm -f $(MAN)/man3/$$name.3; \
	done
	rm -f $(DESTDIR)/lib/modules/*/extra/profil.ko* $(DESTDIR)/lib/modules/*/updates/profil.ko*

GIT := git -c safe.directory=$(CURDIR)

dist:
	$(GIT) diff --quiet HEAD || echo "without the changes since the last commit" >&2
	mkdir -p "$(or $(OUT),$(error make $@ needs OUT=DIR))"
	$(GIT) -c tar.umask=0022 -c tar.tar.gz.command='gzip -cn9' archive \
		--prefix=profil-$(VERSION)/ -o "$(OUT)/profil-$(VERSION).tar.gz" HEAD

series:
	upstream/series "$(or $(KERNEL),$(error make $@ needs KERNEL=DIR))" \
		"$(or $(OUT),$(error make $@ needs OUT=DIR))"

# The variables of this make are not for the build of the packages.
deb:
	mkdir -p "$(or $(OUT),$(error make $@ needs OUT=DIR))"
	selftests/need git build-essential $$(sed -n '/^Build-Depends:/,/^[^ ]/p' debian/control | \
		sed -n 's/-compat\|-sequence//; s/^ \([^ ,]*\).*/\1/p')
	out=$$(realpath "$(OUT)") && dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(MAKE) dist OUT="$$dir" && cd "$$dir" && tar -xzf profil-$(VERSION).tar.gz && \
	(cd profil-$(VERSION) && env -i PATH="$$PATH" HOME="$$HOME" dpkg-buildpackage -us -uc) && \
	cp *.deb *.dsc *.tar.xz *.buildinfo *.changes "$$out"

demo:
	samples/demo

real:
	selftests/real/run
	selftests/real/run --suite trixie python3_perf python3_stacks
	selftests/real/run --rt mappings mappings_modes

check:
	selftests/check

check-matrix:
	selftests/matrix

coverage:
	selftests/coverage

torture:
	selftests/torture

soak:
	selftests/soak

lint:
	selftests/lint

bench:
	selftests/bench/bench

truth:
	selftests/truth/run
	selftests/truth/run --calls

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

.PHONY: all modules modules_install lib pprof tools samples install uninstall dist series deb demo real check check-matrix coverage torture soak lint bench truth conformance clean
