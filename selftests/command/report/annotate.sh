# SPDX-License-Identifier: GPL-2.0
#
# Tests of profil annotate.

annotated_flags=(-O1 -g -fcf-protection=none -nostdlib -static-libgcc -no-pie -Wl,--build-id)

# A program with source lines and an inlined function, and code that no compiler makes.
annotated_programs() {
	mkdir -p "$tmp/source" && cd "$tmp/source" || return
	cat >inner.h <<-'END'
		static inline __attribute__((always_inline)) int inner(int n)
		{
			return n * 12345;
		}
	END
	cat >work.c <<-'END'
		#include "inner.h"
		volatile int sink;
		__attribute__((noinline)) int work(int n)
		{
			sink = n;
			sink	= inner(n);
			return sink;
		}
		__attribute__((noinline)) int more(int n) __asm__("_ZN3app7computeEiPKc");
		int more(int n) { sink = n; return n + 1; }
		void _start(void) { sink = work(sink) + more(sink); }
	END
	cat >code.s <<-'END'
		.globl _start, arm, huge, beyond
		.type arm, @function
		.type bad, @function
		.type huge, @function
		.type beyond, @function
		_start:
		arm:	.long 0x8b000020, 0xd65f03c0
		.size arm, . - arm
		bad:	.byte 0x06, 0x90
		.size bad, . - bad
		huge:	nop
		.size huge, 0x100001
		beyond:	nop
		.size beyond, 0x80000
	END
	touch -d '1 minute ago' work.c inner.h
	gcc "${annotated_flags[@]}" -o work work.c && gcc "${annotated_flags[@]}" -o code code.s &&
	cp code arm && printf '\xb7' | dd of=arm bs=1 seek=18 conv=notrunc status=none
}

# annotated DATA [OPTION...]: prints the listing without the heading and the hottest lines.
annotated() {
	all_annotated "$@" | awk -v RS= -v ORS='\n\n' '!/  the hottest /'
}

all_annotated() {
	"$tmp/profil" annotate -i "$tmp/$1.data" "${@:2}" | sed '1,/^$/d; s/ *$//'
}

listing() {
	local imul
	annotated_programs && imul=$(at source/work work imul) && make_data work <<-END || return
		file 1 @@/source/work
		sample 1 1 @source/work:work+0 0 9 1
		sample 1 1 @source/work:work+$imul 0 30 0
		tick 1 1 @source/work:work+$imul 0 0 0 20 0
		sample 1 1 @source/work:_ZN3app7computeEiPKc+0 0 40 0
	END
	# The heading, and the lines of the source.
	same "command: a
81 samples at 250 Hz: 0.32 s of CPU time

work in work: 60 ticks, 60.00% +- 10.73%

    ticks    share  the hottest lines
       50   83.33%  inner.h:3  return n * 12345;
       10   16.67%  work.c:5  sink = n;

    ticks    share  the hottest instructions

    ticks    share  $tmp/source/work.c
       10   16.67%     5  sink = n;
                       6  sink    = inner(n);
                       7  return sink;
                       8  }

    ticks    share  $tmp/source/inner.h, inner (inlined)
       50   83.33%     3  return n * 12345;" eval \
		"'$tmp/profil' annotate -i '$tmp/work.data' work --full-names | grep -v ' [0-9a-f]\\{6,\\}  '" &&
	same "$(annotated work | grep '83.33%.*imull' ; annotated work | grep ' 16.67%  *[0-9a-f]\{6,\} ')" \
		eval "all_annotated work | sed '1,/the hottest instructions/d; /^\$/,\$d'" &&
	same "       50   83.33%" eval "annotated work | sed -n 's/ *[0-9a-f]*  imull   .0x3039, .*//p'" &&
	# All instructions are there, with their addresses.
	same "$(objdump -d --no-show-raw-insn "$tmp/source/work" |
		sed -n '/<work>:/,/^$/s/^ *\([0-9a-f]*\):.*/\1/p')" \
		eval "annotated work | sed -n 's/.* \\([0-9a-f]\\{6,\\}\\)  .*/\\1/p' | sort" &&
	# The function with the most ticks, and others.
	same "$(annotated work)" annotated work work &&
	same "app::compute(int, char const*) in work: 40 ticks, 40.00% +- 10.73%" \
		eval "annotated work app::compute | head -n 1" &&
	same "_ZN3app7computeEiPKc in work: 40 ticks, 40.00% +- 10.73%" \
		eval "annotated work '_ZN*' --no-demangle | head -n 1" &&
	same "note: 2 functions match; this one has the most ticks" \
		eval "'$tmp/profil' annotate -i '$tmp/work.data' '*' | grep note" &&
	same "" eval "'$tmp/profil' annotate -i '$tmp/work.data' --dso work | grep note" &&
	same "$(annotated work)" annotated work --dso 'w*'
}

# An inlined function is shown in the functions that contain it.
inlined_function() {
	cd "$tmp/source" && cat >inlined.c <<-'END' && touch -d '1 minute ago' inlined.c &&
		#include "inner.h"
		volatile int sink;
		static inline __attribute__((always_inline)) int other(int n) { return n ^ (n >> 5); }
		__attribute__((noinline)) void first(void) { sink = inner(sink); sink = other(sink); }
		__attribute__((noinline)) void second(void) { sink += 1; sink = inner(sink); }
		void _start(void) { first(); second(); }
	END
	gcc "${annotated_flags[@]}" -o inlined inlined.c || return
	local first second
	first=$(at source/inlined first imul) && second=$(at source/inlined second imul) &&
	make_data inlined <<-END || return
		file 1 @@/source/inlined
		sample 1 1 @source/inlined:first+$first 0 20 0
		sample 1 1 @source/inlined:second+$second 0 70 0
		sample 1 1 @source/inlined:second+0 0 10 0
		name 2 [anon]
		sample 1 2 0x10 0 100 0
	END
	same "inner (inlined) in second in inlined: 70 ticks, 35.00% +- 3.37%
inner (inlined) in first in inlined: 20 ticks, 10.00% +- 2.12%" \
		eval "annotated inlined inner | grep ' in inlined: '" &&
	same "$tmp/source/inner.h, inner (inlined)" \
		eval "annotated inlined inner | sed -n 's/^    ticks    share  //p' | sort -u" &&
	same "$(annotated inlined inner)" annotated inlined 'inner (inlined)' &&
	same "note: one row of the report has more ticks, but no code to show" \
		eval "'$tmp/profil' annotate -i '$tmp/inlined.data' | grep '^note.*row'" &&
	same "70 100.00%
20 100.00%" eval "annotated inlined inner | awk '/imull/ {print \$1, \$2}'"
}

# Source files that are not read: newer than the binary, not regular, large, missing. A line of the
# source can be hostile, and so can its name.
sources() {
	local path=$tmp/source/work.c last='                       5' hostile=$'\e[2J\xff'
	cp "$path" "$tmp/work.c" || return
	touch "$path"
	same "    ticks    share  $path
warning: this file is newer than the binary
       10   16.67%     5" eval "annotated work work | sed -n 3,5p" || return
	mv "$tmp/source/inner.h" "$tmp/inner.h" && same "    ticks    share  $tmp/source/inner.h, inner (inlined)
warning: this file is not here; see --symfs" eval "annotated work work | grep -A 1 'inner.h'" &&
	mv "$tmp/inner.h" "$tmp/source/inner.h" || return
	rm "$path" && mkfifo "$path" && touch -d '1 minute ago' "$path" &&
	same "       10   16.67%     5" eval "timeout 10 '$tmp/profil' annotate -i '$tmp/work.data' |
		grep ' 5$'" &&
	rm "$path" && ln -s /dev/zero "$path" &&
	same "       10   16.67%     5" eval "annotated work work | sed -n 5p" &&
	rm "$path" && truncate -s 20M "$path" && touch -d '1 minute ago' "$path" &&
	same "       10   16.67%     5" eval "annotated work work | sed -n 5p" &&
	rm "$path" && same "       10   16.67%     5" eval "annotated work work | sed -n 5p" &&
	printf '\n\n\n\n%s\r\n' "$hostile" >"$path" && touch -d '1 minute ago' "$path" &&
	same "       10   16.67%     5  \\x1b[2J\\xff
${last/5/6}" eval "annotated work work | grep ' [56]\(\$\|  .x\)'" &&
	# With --symfs, binaries and source files are read from below this directory.
	mkdir -p "$tmp/root$tmp/source" && cp -p "$tmp/source/work" "$tmp/root$tmp/source/" &&
	cp "$tmp/work.c" "$tmp/root$tmp/source/" && touch -d '1 minute ago' "$tmp/root$path" &&
	same "       10   16.67%     5  sink = n;" \
		eval "annotated work work --symfs '$tmp/root' | sed -n 4p" &&
	mv "$tmp/work.c" "$path" && touch -d '1 minute ago' "$path"
}

hostile_sources() {
	mkdir -p "$tmp/source/"$'a\e[2J' && cd "$tmp/source/"$'a\e[2J' && cp ../work.c ../inner.h . &&
	gcc -O1 -g -nostdlib -no-pie -Wl,--build-id -o "$tmp/source/named" work.c &&
	make_ticks named source/named @source/named:work+0 9 || return
	same "    ticks    share  $tmp/source/a\\x1b[2J/work.c" eval "annotated named | sed -n 3p"
}

# Code that is not x86-64, or no code at all
machine_code() {
	make_data code <<-'END' || return
		file 1 @@/source/arm
		sample 1 1 @source/code:arm+4 0 9 0
		file 2 @@/source/code
		sample 1 2 @source/code:bad+0 0 8 0
	END
	same "        9  100.00%" eval "annotated code arm | sed -n 's/ *[0-9a-f]*  ret\$//p'" &&
	same "x0, x1, x0" eval "annotated code arm | sed -n 's/.*  add     *//p'" &&
	same "        8  100.00%
nop" eval "annotated code bad | sed -n 's/ *[0-9a-f]*  (bad)\$//p; s/.* nop/nop/p'" || return
	# Another machine, and no library: only the places that have ticks are printed.
	cp "$tmp/source/code" "$tmp/source/riscv" &&
	printf '\xf3' | dd of="$tmp/source/riscv" bs=1 seek=18 conv=notrunc status=none &&
	make_ticks riscv source/riscv @source/code:bad+1 3 @source/code:bad+0 1 || return
	same "note: the instructions of this machine are not known" \
		eval "'$tmp/profil' annotate -i '$tmp/riscv.data' | grep note" &&
	same "        1   25.00%
        3   75.00%" eval "annotated riscv | sed -n 's/  *[0-9a-f]\{6\}\$//p'" &&
	mkdir -p "$tmp/no_library" && echo text | tee "$tmp/no_library/libcapstone.so.4" \
		>"$tmp/no_library/libcapstone.so.5" &&
	same "note: to see the instructions, install libcapstone
        5  100.00%
        5  100.00%" eval "LD_LIBRARY_PATH='$tmp/no_library' '$tmp/profil' annotate \
		-i '$tmp/code.data' bad | sed -n 's/^\(note: to.*libcapstone\)[0-9]$/\1/p; s/^  *8 /        5 /; s/  *[0-9a-f]\{6\}\$//p'"
}

# The binary has lost its names since the recording, which still has them.
lost_names() {
	local imul
	imul=$(at source/work work imul) && mkdir -p "$tmp/lost" &&
	cp -p "$tmp/source/work" "$tmp/lost/work" &&
	make_data lost_names <<-END || return
		file 1 @@/lost/work
		sample 1 1 @source/work:work+0 0 9 0
		symbol 1 @source/work:work+0 @source/work:work+$((imul + 6)) work
	END
	strip "$tmp/lost/work" && same "work in work: 9 ticks, 100.00% +- 0.00%" \
		eval "annotated lost_names | head -n 1" &&
	same "1" eval "annotated lost_names | grep -c imull"
}

annotate_errors() {
	local some=$tmp/work.data errors=$tmp/errors.data
	cp -p "$tmp/source/work" "$tmp/source/other" && cp "$tmp/source/work" "$tmp/source/nobody" &&
	make_data errors <<-'END' || return
		file 1 @@/source/other
		sample 1 1 @source/work:work+0 0 9 0
		symbol 1 @source/work:work+0 @source/work:_start+0 w\x1brk
		file 2 @@/source/code
		sample 1 2 @source/code:huge+0 0 8 0
		sample 1 2 @source/code:beyond+0 0 7 0
		name 3 [anon]
		symbol 0x80000001 0x20 0x21 generated
		sample 1 3 0x20 0x10 6 0
		file 4 @@/source/nobody
		sample 1 4 @source/work:work+0 0 5 0
		symbol 4 @source/work:work+0 @source/work:_start+0 gone
	END
	cp "$tmp/source/code" "$tmp/source/other" && rm "$tmp/source/nobody" &&
	few empty 1000000 && printf '%s\n' 'name 1 [anon]' cut | make_data cut &&
	refusals annotate <<-END &&
		1 -i $errors | w\\x1brk in other: changed since the recording
		1 -i $errors gone | gone in nobody: not found here; see --symfs
		1 -i $errors huge | huge in code: its code has more than 1 MiB
		1 -i $errors beyond | beyond in code: its code is not in the file
		1 -i $errors generated | generated in [jit]: its code is not in a file
		1 -i $some none | $some: no function with ticks matches "none"; "profil report" lists them
		1 -i $some --dso none a* | $some: no function with ticks matches "a*" in none; "profil report" lists them
		1 -i $tmp/empty.data | $tmp/empty.data: no function has ticks
		1 -i $tmp/text | $tmp/text: not a recording of profil
		1 | profil.data: No such file or directory
		1 -i $some --symfs $tmp/none | $tmp/none: No such file or directory
		2 a b | unexpected argument "b"
		2 --sort | unrecognized option '--sort'\nSee "profil annotate --help".
	END
	refuses 1 "warning: the recording was cut off; its last second may be missing
profil annotate: $tmp/cut.data: no function has ticks" annotate -i "$tmp/cut.data" &&
	same "profil: standard output: No space left on device" \
		eval "'$tmp/profil' annotate -i '$some' 2>&1 >/dev/full" &&
	"$tmp/profil" annotate --help | grep -q '^usage: profil annotate'
}

annotate_terminal() {
	local command="annotate -i $tmp/work.data" width
	in_colour "       50 ^[31m  83.33%^[m     3  return n * 12345;" " 3  return" "$command" &&
	same "...* 12345;" eval "on_terminal 42 'TERM=dumb PAGER=cat $tmp/profil $command' |
		grep -o '\.\.\.\* 12345;' | tail -n 1" || return
	for width in 40 41 50; do
		COLUMNS=$width annotated work | sed 1d | wc -L
	done >"$tmp/got"
	same "$(printf '%s\n' 40 41 50)" cat "$tmp/got"
}

# Compilers use line 0 for code of no line.
line_zero() {
	cd "$tmp/source" && {
		yes '' | head -n 99
		echo 'volatile int sink; void _start(void) { for (;;) sink++; }'
	} >zero.c && touch -d '1 minute ago' zero.c &&
	gcc "${annotated_flags[@]}" -o zero zero.c && python3 - <<-'END' || return
		data = open("zero", "rb").read()
		advance = b"\x03\xe3\x00"	# by 99 lines
		assert data.count(advance) == 1
		open("zero", "wb").write(data.replace(advance, b"\x03\xff\x7f"))
	END
	make_ticks zero source/zero @source/zero:_start+0 9 || return
	same "        9  100.00%     0" eval "annotated zero | grep -m 1 '     0\$'"
}

check "annotate: source lines and instructions" listing
check "annotate: an inlined function" inlined_function
check "annotate: source files that are not read" sources
check "annotate: hostile names of source files" hostile_sources
check "annotate: code of line 0" line_zero
check "annotate: other machines, and without a disassembler" machine_code
check "annotate: a binary that has lost its names" lost_names
check "annotate: colours, the pager and the width of a terminal" annotate_terminal
check "annotate: errors" annotate_errors
