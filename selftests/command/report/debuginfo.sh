# SPDX-License-Identifier: GPL-2.0
#
# Tests of debug information that is not in one file: .gnu_debugdata, split DWARF, files made by dwz;
# and of the notes that say why there is none.

# keep_debugdata FILE OUT: strips FILE as Fedora does. The symbols of functions that are not in .dynsym
# remain in a compressed section.
keep_debugdata() {
	nm -D --defined-only --format=posix "$1" | cut -d ' ' -f 1 | sort >"$2.dynamic" &&
	nm --defined-only --format=posix "$1" | awk '$2 ~ /[Tt]/ { print $1 }' | sort |
		comm -13 "$2.dynamic" - >"$2.keep" &&
	objcopy --only-keep-debug "$1" "$2.debug" &&
	objcopy -S --keep-symbols="$2.keep" "$2.debug" "$2.mini" &&
	xz -f "$2.mini" && strip -o "$2" "$1" &&
	objcopy --add-section .gnu_debugdata="$2.mini.xz" "$2"
}

debugdata() {
	keep_debugdata "$tmp/whole64.so" "$tmp/mini.so" && make_data mini <<-'END' || return
		file 1 @@/mini.so
		sample 1 1 @whole64.so:inner+3 0 40 0
		sample 1 1 @whole64.so:middle+1 0 30 0
		sample 1 1 @whole64.so:outer+1 0 20 0
		sample 1 1 @whole64.so:bare+1 0 10 0
	END
	same "inner
middle
outer
bare" rows mini -s symbol && same "" notes mini
}

# The section is damaged, or too large.
debugdata_lost() {
	local inner note
	inner=mini.so+$(address "$tmp/whole64.so" inner)
	note="note: 80.00% have no symbol: mini.so
  (they are in .gnu_debugdata, which cannot be read; that needs liblzma)"
	printf 'damaged' >"$tmp/data" &&
	objcopy --update-section .gnu_debugdata="$tmp/data" "$tmp/mini.so" &&
	same "$note" notes mini && same "$inner" eval "rows mini -s symbol | head -n 1" &&
	head -c 100M /dev/zero | xz -0 >"$tmp/data" &&
	objcopy --update-section .gnu_debugdata="$tmp/data" "$tmp/mini.so" || return
	"$tmp/hurried" report -i "$tmp/mini.data" >"$tmp/got" &&
	grep -q "could not be read\|cannot be read" "$tmp/got"
}

split_source() {
	mkdir -p "$tmp/parts" && inlined_source "$tmp/parts/split.c"
}

# inlined_data NAME [LINE]: makes a recording with a tick in line 5, which is in work(), of $tmp/parts/NAME.
inlined_data() {
	local where line
	where=$(objdump -d --no-show-raw-insn "$tmp/parts/$1" |
		sed -n '/<outer>:/,/^$/s/^ *\([0-9a-f]*\):.*/\1/p' | while read -r where; do
			line=$(addr2line -e "$tmp/parts/$1" "0x$where")
			[[ $line =~ :${2:-5}( |$) ]] && echo "$where" && break
		done)
	where=$((0x$where - 0x$(nm "$tmp/parts/$1" | sed -n 's/ T outer//p')))
	make_ticks "$1" "parts/$1" "@parts/$1:outer+$where" 30
}

# split_program NAME COMPILER OPTION...
split_program() {
	local name=$1
	cd "$tmp/parts" && "${@:2}" -gsplit-dwarf -O1 -fno-tree-vectorize -c -o "$name.o" split.c &&
	gcc -nostdlib -static -no-pie -Wl,--build-id -o "$name" "$name.o" && rm "$name.o" &&
	inlined_data "$name"
}

inlined="split.c:5  work (inlined)"
not_inlined="split.c:5  outer"
no_split="note: 100.00% have no debug information: NAME
  (it is in .dwo files, which are not where the compiler wrote them)"

# inlined_rows NAME WANT [NOTE]: checks the row of the tick in work(), and the note.
inlined_rows() {
	local note=${3:-}
	same "$2" rows "$1" --inline -s srcline,symbol &&
	same "${note//NAME/$1}" notes "$1" --inline
}

# The parts are where the compiler wrote them, or beside the program.
split_debug() {
	local version compiler compilers=(gcc)
	split_source && "$root/selftests/need" clang >/dev/null 2>&1 && compilers+=(clang)
	for compiler in "${compilers[@]}"; do
		for version in 4 5; do
			split_program $compiler$version $compiler -gdwarf-$version &&
			inlined_rows $compiler$version "$inlined" &&
			mkdir -p "$tmp/parts/there" && mv "$tmp/parts/$compiler$version.dwo" "$tmp/parts/there/" &&
			inlined_rows $compiler$version "$not_inlined" "$no_split" &&
			mv "$tmp/parts/$compiler$version" "$tmp/parts/there/" &&
			ln -s there/$compiler$version "$tmp/parts/$compiler$version" &&
			sed "s|/parts/|/parts/there/|" "$tmp/description" >"$tmp/moved" &&
			"$tmp/generate" "$tmp/$compiler$version.data" <"$tmp/moved" &&
			inlined_rows $compiler$version "$inlined" && continue
			echo "$compiler -gdwarf-$version"
			return 1
		done
	done
}

# Parts of another program are not used, nor a file that is not what its name says. A FIFO is not
# opened, and only names that end with .dwo are.
split_of_others() {
	split_program other gcc -gdwarf-5 -DOTHER=1 && cp "$tmp/parts/other.dwo" "$tmp/other.dwo" &&
	split_program mine gcc -gdwarf-5 -Dwork=job && cp "$tmp/other.dwo" "$tmp/parts/mine.dwo" &&
	inlined_rows mine "$not_inlined" "$no_split" &&
	echo text >"$tmp/parts/mine.dwo" && inlined_rows mine "$not_inlined" "$no_split" &&
	rm "$tmp/parts/mine.dwo" && mkfifo "$tmp/parts/mine.dwo" &&
	not_opened "$tmp/parts/mine.dwo" inlined_rows mine "$not_inlined" "$no_split" || return
	# Another name for the part
	split_program named gcc -gdwarf-5 && cp "$tmp/parts/named.dwo" "$tmp/parts/named.dwx" &&
	rm "$tmp/parts/named.dwo" && sed -i 's/named\.dwo/named.dwx/' "$tmp/parts/named" &&
	inlined_data named && inlined_rows named "$not_inlined" "$no_split"
}

# dwp puts the parts into one file, beside the program.
split_packages() {
	local version
	for version in 4 5; do
		split_program packed$version gcc -gdwarf-$version && cd "$tmp/parts" &&
		llvm-dwp packed$version.dwo -o packed$version.dwp && rm packed$version.dwo &&
		inlined_rows packed$version "$not_inlined" "note: 100.00% have no debug information: NAME
  (it is in a .dwp file, which cannot be read; keep the .dwo files)" || return
	done
}

# dwz has moved parts of two programs to a file. It is found by its name, in the directory of the
# program or in that for such files, or by its build-id. It must have the build-id.
common_parts() {
	local name root=$tmp/root_of_parts id lost
	split_source && cd "$tmp/parts" || return
	for name in {1..50}; do
		echo "struct large$name { int first$name, second$name; struct large$name *next$name;"
		echo "long numbers$name[$name]; char text$name[8][$name]; } *variable$name;"
	done >common.h
	for name in one two; do
		{ echo '#include "common.h"'; cat split.c; } >$name.c && gcc -g -O1 -nostdlib -static -no-pie -Wl,--build-id -o $name $name.c || return
	done
	dwz -m common.debug -M /elsewhere/.dwz/common.debug one two && inlined_data one 6 || return
	lost="note: 100.00% have no debug information: one
  (parts of it are in a file made by dwz, which is not found)"
	inlined_rows one "one.c:6  work (inlined)" || return
	id=$(build_id common.debug)
	mkdir -p "$root$tmp/parts" "$root/usr/lib/debug/.dwz" "$root/usr/lib/debug/.build-id/${id:0:2}" &&
	cp -p one "$root$tmp/parts/" &&
	same "outer" rows one --inline -s symbol --symfs "$root" &&
	cp common.debug "$root/usr/lib/debug/.dwz/" &&
	same "work (inlined)" rows one --inline -s symbol --symfs "$root" &&
	mv "$root/usr/lib/debug/.dwz/common.debug" \
		"$root/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" &&
	same "work (inlined)" rows one --inline -s symbol --symfs "$root" &&
	mv common.debug lost.debug && same "outer" rows one --inline -s symbol &&
	same "$lost" notes one --inline &&
	gcc -g -O1 -nostdlib -static -no-pie -Wl,--build-id -o common.debug split.c &&
	same "$lost" notes one --inline
}

# Without debug information, the notes say that inlined functions cannot be shown, also of callers.
# With other options they do not.
no_debug_information() {
	make_data no_debug <<-'END' || return
		stacks
		file 1 @@/fixed
		file 2 @@/lines.unstripped
		stack 1 0 0:0 0:0 1:@fixed:sum+3 2:@lines.unstripped:outer+3
		stack 2 0 0:0 0:0
		stack 3 0 0:0 0:0 1:@fixed:sum+3
		sample 1 1 @fixed:alpha+4 0 20 0 2
		sample 1 2 @lines.unstripped:outer+1 0 30 0 2
		sample 1 2 @lines.unstripped:outer+2 0 30 0 3
		sample 1 2 @lines.unstripped:outer+1 0 20 0 1
	END
	same "note: 20.00% have no debug information: fixed
  (compile with -g, and do not strip)" eval "head_of no_debug --inline | sed -n '/^note.*no debug/,/^ /p'" &&
	same "note: call stacks have code with no debug information: fixed 40.00%" \
		eval "head_of no_debug --inline --children | grep 'no debug'" &&
	same "note: 20.00% have no debug information: fixed" \
		eval "head_of no_debug -s srcline | grep 'no debug'" &&
	same "" eval "head_of no_debug | grep 'no debug'"
}

# A part of a program was compiled without -g, and a program is gone, of which only names remain.
some_debug_information() {
	split_source && cd "$tmp/parts" && sed 's/outer/other/; /_start/d' split.c >rest.c &&
	gcc -g -O1 -c split.c && gcc -O1 -c rest.c &&
	gcc -nostdlib -static -no-pie -Wl,--build-id,-z,muldefs -o mixed split.o rest.o &&
	cp "$tmp/fixed" "$tmp/vanished" && make_data mixed <<-'END' || return
		file 1 @@/parts/mixed
		file 2 @@/vanished
		sample 1 1 @parts/mixed:outer+1 0 50 0
		sample 1 1 @parts/mixed:other+1 0 30 0
		sample 1 2 @fixed:alpha+1 0 20 0
		symbol 2 @fixed:alpha+0 @fixed:alpha+9 alpha
	END
	rm "$tmp/vanished"
	same "note: 20.00% have no debug information: vanished
  (only some of its functions were recorded)
note: 30.00% have no debug information: mixed
  (there is none for this code; compile it with -g)" notes mixed --inline
}

# changes A B: prints the functions and values of the page of changes, and the note on inlined ones.
changes() {
	"$tmp/profil" diff --html "$tmp/$1-$2.html" "$tmp/$1.data" "$tmp/$2.data" &&
		sed -n 's/^\["[^"]*", \("[^"]*", [0-9.]*, [0-9.]*\),.*/\1/p' "$tmp/$1-$2.html" &&
		sed -n 's/.*\(inlined functions are not shown[^\":]*\).*/\1/p' "$tmp/$1-$2.html"
}

# The older version of a program is gone, so only its functions are known.
uneven_debug_information() {
	local at name path ticks
	at=$(at lines.unstripped outer 'lines.c:5')
	mkdir -p "$tmp/old" && cp "$tmp/lines.unstripped" "$tmp/old"
	while read -r name path ticks; do
		make_data "$name" <<-END || return
			file 1 @@/$path
			sample 1 1 @lines.unstripped:outer+$at 0 $ticks 0
			symbol 1 @lines.unstripped:outer+0 @lines.unstripped:outer+40 outer
		END
	done <<-END
		before lines.unstripped 1000
		vanished old/lines.unstripped 1000
		after lines.unstripped 3000
	END
	rm -r "$tmp/old"
	same '"work (inlined)", 4, 12' changes before after &&
	same '"outer", 4, 12
inlined functions are not shown, since only one recording has debug information of lines.unstripped' \
		changes vanished after
}

check "symbols in .gnu_debugdata" debugdata
check "symbols in .gnu_debugdata that cannot be read" debugdata_lost
check "split debug information" split_debug
check "split debug information of other programs" split_of_others
check "packages of split debug information" split_packages
check "debug information in a file made by dwz" common_parts
check "no debug information" no_debug_information
check "debug information for a part of the code" some_debug_information
check "debug information for one of two recordings" uneven_debug_information
