# SPDX-License-Identifier: GPL-2.0
#
# Functions that the tests of profil report and profil export share. The tests set $root, the
# directory of the project, and $tmp, a directory for their files, and then read this file.

tools=$root/tools
build_packages=(gcc make libc6-dev binutils linux-libc-dev libdw-dev libelf-dev libiberty-dev
	zlib1g-dev libprotobuf-c-dev protobuf-c-compiler libcapstone-dev libseccomp-dev)

number=0 failed=0

# check NAME COMMAND...: runs one test. If it fails, the command prints the reason.
check() {
	local name=$1 output
	shift
	number=$((number + 1))
	if output=$("$@" 2>&1 </dev/null); then
		echo "ok $number $name"
		return
	fi
	failed=$((failed + 1))
	printf '%s\n' "$output" | sed 's/^/# /'
	echo "not ok $number $name"
}

# same WANT COMMAND...: checks that the command prints WANT.
same() {
	local want=$1 got
	shift
	got=$("$@" 2>&1)
	[ "$got" = "$want" ] && return
	diff <(printf '%s\n' "$want") <(printf '%s\n' "$got")
	return 1
}

# make_data NAME <DESCRIPTION: writes a recording. In DESCRIPTION, @FILE:FUNCTION+N is an offset in
# the file, and @@ the temporary directory.
make_data() {
	make_description || return
	"$tmp/generate" "$tmp/$1.data" <"$tmp/description"
}

# make_description <DESCRIPTION: replaces the places in the description.
make_description() {
	local line before word
	while IFS= read -r line; do
		while [[ $line = *@@* ]]; do
			line=${line%%@@*}$tmp${line#*@@}
		done
		while [[ $line =~ ^(.*)@([^:]+):([^+]+)\+([0-9]+)(.*)$ ]]; do
			before=${BASH_REMATCH[1]}
			word=$(offset "$tmp/${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}" \
				"${BASH_REMATCH[4]}") || return
			line=$before$word${BASH_REMATCH[5]}
		done
		printf '%s\n' "$line"
	done >"$tmp/description"
}

# offset FILE FUNCTION N: prints the offset in FILE of the Nth byte of FUNCTION.
offset() {
	local address load
	address=$(nm "$1" | sed -n "s/^\([0-9a-f]*\) [TtW] $2\$/\1/p")
	[ -n "$address" ] || { echo "$1 has no $2" >&2; return 1; }
	address=$((0x$address))
	while read -r _ load_offset load_address _ size _; do
		load=$((load_address))
		if [ $address -ge $load ] && [ $address -lt $((load + size)) ]; then
			printf '%#x\n' $((address - load + load_offset + $3))
			return
		fi
	done < <(readelf -lW "$1" | grep '^ *LOAD')
	echo "$1: $2 is not loaded" >&2
	return 1
}

# For gcc: the options, the files of the command that reports, those that record, and the libraries.
# Each file is compiled once with the sanitizers, into checked.a, and once without, into plain.a.
# selftests/coverage sets COVERAGE, the directory in which what is built with the sanitizers counts
# for gcov the lines that it reaches.
sanitize=(-fsanitize='address,undefined' -fno-sanitize-recover=all)
flags=(-O1 -std=gnu11 -g -Wall -Wextra -Werror -I"$tmp/built" -I"$tmp" -I"$tools"
	-I"$root/userlib" -I"$root/uapi")
reporter=("$tools"/{export,profile,text}/*.c
	"$tools"/commands/{annotate,command,diff,export,input,outfile,report}.c
	"$root/userlib/pprof/message.c" "$tmp/pprof.pb-c.c")
recorder=("$tools"/{recording,symbols}/*.c "$root"/userlib/*.c)
coverage=(${COVERAGE:+--coverage} ${COVERAGE:+-dumpdir "$COVERAGE/"})
main=(-DPROFIL_VERSION='"0"' "$tools"/commands/{complete,main}.c "$tmp/others.c")
libs=(-ldw -lelf -liberty -lz -lseccomp -l:libprotobuf-c.a -lm)

# archive NAME OPTION... -- FILE...: compiles the files into $tmp/NAME.a.
archive() {
	local name=$1 extra=() objects=$tmp/$1.objects file
	shift
	while [ "$1" != -- ]; do
		extra+=("$1")
		shift
	done
	shift
	mkdir "$objects" && for file; do
		printf '%s\0' "$objects/${file//\//_}.o" "$file"
	done | xargs -0 -n 2 -P "$(nproc)" gcc -c "${extra[@]}" "${flags[@]}" -o &&
	ar rcs "$tmp/$name.a" "$objects"/*.o
}

# checked NAME FILE...: builds $tmp/NAME, with the sanitizers, of the files and checked.a.
checked() {
	gcc "${sanitize[@]}" "${flags[@]}" "${coverage[@]}" -o "$tmp/$1" "${@:2}" \
		"$tmp/checked.a" "${libs[@]}"
}

# Builds the command and generate.c. Only the pages are built with make, because its variables O and
# CFLAGS would also change the build of the library.
build_command() {
	cat >"$tmp/others.c" <<-'END'
		#include "commands/command.h"
		const struct command command_record = { .name = "record" };
		const struct command command_gperf = { .name = "gperf" };
		const struct command command_top = { .name = "top" };
		const struct command command_unwind_tables = { .name = "unwind-tables" };
	END
	make -s -C "$tools" O="$tmp/built" pages &&
	protoc-c --proto_path="$root/userlib/pprof" --c_out="$tmp" pprof.proto &&
	archive checked "${sanitize[@]}" "${coverage[@]}" -- "${reporter[@]}" \
		"${recorder[@]}" &&
	checked profil "${main[@]}" &&
	checked generate "$root/selftests/command/report/generate.c"
}

# our_reports: prints reports of sanitizers in $tmp/asan.* about the command, in which the first
# function that is not of the sanitizer is in its source. Others are about a library.
our_reports() {
	local file frame

	for file in "$tmp"/asan.*; do
		[ -e "$file" ] || continue
		frame=$(grep "^ *#[0-9]* " "$file" | grep -v -m 1 -e libsanitizer -e libasan)
		if [[ $frame = *" $root/"* ]] || grep -q "^$root/.*runtime error" "$file"; then
			cat "$file"
		fi
	done
}

# build_frames NAME: builds selftests/command/tables/frames.c as $tmp/NAME.
build_frames() {
	gcc "${sanitize[@]}" "${flags[@]}" -o "$tmp/$1" "$root/selftests/command/tables/frames.c" \
		"$tools"/symbols/{cfi,confined,elf_file,files,reduce}.c "${libs[@]}"
}
