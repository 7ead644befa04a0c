# SPDX-License-Identifier: GPL-2.0
#
# Functions that the tests of profil report, profil export and others share. They read this file
# first. It sets $here, the directory of the test, $root, that of the project, and $tmp, a directory
# for files, which is removed at the end.

set -u
export LC_ALL=C.UTF-8 TZ=UTC
# The programs of the packages. A python3 before them can be a wrapper, which takes longer.
PATH=/usr/bin:$PATH

here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
tmp=${tmp:-$(mktemp -d)}
trap 'rm -rf --one-file-system "$tmp"' EXIT

tools=$root/tools
build_packages=(gcc ccache make libc6-dev binutils linux-libc-dev libdw-dev libelf-dev libiberty-dev
	zlib1g-dev libprotobuf-c-dev protobuf-c-compiler libcapstone-dev libseccomp-dev)

. "$root/selftests/tap.sh"
# The command. A test of its limits can set another one.
profil=$tmp/profil

# begin PACKAGE...: begins the output, and installs the packages that the tests need.
begin() {
	echo "TAP version 13"
	"$root/selftests/need" "${build_packages[@]}" "$@" 2>&1 | sed 's/^/# /'
}

# same WANT COMMAND...: checks that the command prints WANT.
same() {
	local want=$1 got
	got=$("${@:2}" 2>&1)
	[ "$got" = "$want" ] && return
	diff <(printf '%s\n' "$want") <(printf '%s\n' "$got")
	return 1
}

# refuses STATUS MESSAGE ARGUMENT...: checks the status of profil and its message, and that it
# prints nothing else, and writes no file $tmp/new.
refuses() {
	local want=$1 message=$2 status
	shift 2
	rm -f "$tmp/new"
	"$tmp/profil" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	same "$message" cat "$tmp/err" && [ ! -s "$tmp/out" ] && [ $status = "$want" ] &&
		[ ! -e "$tmp/new" ] && ! compgen -G "$tmp/new.*" && return
	echo "$*: status $status"
	head "$tmp/out"
	return 1
}

# refusals COMMAND [ARGUMENT...] <TABLE: as refuses, for each line STATUS MORE ARGUMENTS | MESSAGE.
# In the message, \n is a line end, and the name of the command is left out.
refusals() {
	local line message words
	while IFS='|' read -r line message; do
		read -ra words <<<"$line"
		message="profil $1:${message//\\n/$'\n'}"
		refuses "${words[0]}" "$message" "$@" "${words[@]:1}" || return
	done
}

# on_terminal COLUMNS COMMAND: prints what the command writes to a terminal, and returns its status.
on_terminal() {
	SHELL=/bin/sh script -qec "stty rows 24 cols $1; $2" /dev/null </dev/null | tr -d '\r' |
		tr '\033' '^'
	return "${PIPESTATUS[0]}"
}

# make_data NAME <DESCRIPTION: writes a recording. In DESCRIPTION, @FILE:FUNCTION+N is an offset in
# the file, and @@ the temporary directory.
make_data() {
	make_description || return
	"$tmp/generate" "$tmp/$1.data" <"$tmp/description"
}

# make_ticks NAME FILE PLACE TICKS...: writes a recording of ticks at places, in a file in $tmp.
make_ticks() {
	{
		echo "file 1 @@/$2"
		printf 'sample 1 1 %s 0 %s 0\n' "${@:3}"
	} | make_data "$1"
}

# make_description <DESCRIPTION: replaces the places in the description.
make_description() {
	local line before file name nr after start word
	local -A starts=()
	while IFS= read -r line; do
		while [[ $line = *@@* ]]; do
			line=${line%%@@*}$tmp${line#*@@}
		done
		while [[ $line =~ ^(.*)@([^:]+):([^+]+)\+([0-9]+)(.*)$ ]]; do
			before=${BASH_REMATCH[1]} file=$tmp/${BASH_REMATCH[2]}
			name=${BASH_REMATCH[3]} nr=${BASH_REMATCH[4]} after=${BASH_REMATCH[5]}
			find_start "$file" "$name" || return
			printf -v word '%#x' $((start + nr))
			line=$before$word$after
		done
		printf '%s\n' "$line"
	done >"$tmp/description"
}

# find_start FILE FUNCTION: sets start to the offset of the function. starts, an array of the
# caller, keeps those of the files that were read.
find_start() {
	[ -n "${starts[$1]:-}" ] || read_starts "$1"
	start=${starts[$1:$2]:-}
	[ -n "$start" ] || { echo "$1 has no $2" >&2; return 1; }
}

# read_starts FILE: sets starts[FILE:FUNCTION] to the offset of each function, and starts[FILE]. nm
# would take ten times as long, because it loads the plugins of compilers.
read_starts() {
	local address from load loads=() name offset size
	while read -r name address offset size; do
		if [ "$name" = LOAD ]; then
			loads+=("$address $offset $size")
			continue
		fi
		for load in "${loads[@]}"; do
			read -r from offset size <<<"$load"
			[ $((address)) -lt $((from)) ] || [ $((address)) -ge $((from + size)) ] ||
				starts[$1:$name]=$((address - from + offset))
		done
	done < <(readelf -lsW "$1" | awk '$1 == "LOAD" { print $1, $3, $2, $5 }
		$4 ~ /^(FUNC|NOTYPE)$/ && $7 ~ /^[0-9]/ { print $8, "0x" $2 }')
	starts[$1]=1
}

# offset FILE FUNCTION N: prints the offset in FILE of the Nth byte of FUNCTION.
offset() {
	local start
	local -A starts=()
	find_start "$1" "$2" && printf '%#x\n' $((start + $3))
}

# build_id FILE: prints its build-id.
build_id() {
	readelf -n "$1" | sed -n 's/.*Build ID: //p'
}

# wait_until COMMAND...: waits until the command succeeds.
wait_until() {
	until "$@"; do
		sleep 0.1
	done
}

# at FILE FUNCTION PATTERN [call]: prints the offset in FUNCTION of the first instruction that
# matches, or that is of a source line that matches; or of what follows the first call from there.
at() {
	local start address
	read -r start address < <(objdump -dl --no-show-raw-insn --disassemble="$2" "$tmp/$1" |
		awk -v pattern="$3" -v call="${4:-}" '/^[0-9a-f]+ </ { start = $1; next }
			!/^ *[0-9a-f]+:\t/ { found = found || $0 ~ pattern; next }
			called { print start, $1; exit }
			!found && $0 !~ pattern { next }
			!call { print start, $1; exit }
			{ found = 1; called = /call/ }')
	[ -n "$address" ] || { echo "$1: no $3 in $2" >&2; return 1; }
	echo $((0x${address%:} - 0x$start))
}

# The directory in which the command is compiled: of the tests that run, or of a caller that runs
# several of them, so that each file is compiled once for all.
built=${PROFIL_BUILT:-$tmp/built}

# For gcc: the options, the files of the command that reports, those that record, and the libraries.
# Each file is compiled once with the sanitizers, into checked.a, and once without, into plain.a.
# selftests/coverage sets COVERAGE, the directory in which what is built with the sanitizers counts
# for gcov the lines that it reaches.
sanitize=(-fsanitize='address,undefined' -fno-sanitize-recover=all)
flags=(-O1 -std=gnu11 -g1 -Wall -Wextra -Werror -I"$tools" -I"$root/userlib" -I"$root/uapi")
reporter=("$tools"/{export,profile,text}/*.c
	"$tools"/commands/{annotate,command,diff,export,input,outfile,report}.c
	"$root/userlib/pprof/message.c" pprof.pb-c.c)
recorder=("$tools"/{recording,symbols}/*.c "$root"/userlib/*.c)
coverage=(${COVERAGE:+--coverage} ${COVERAGE:+-dumpdir "$COVERAGE/"})
main=(-DPROFIL_VERSION='"0"' "$tools"/commands/{complete,main}.c "$tmp/others.c")
libs=(-ldw -lelf -liberty -lz -lseccomp -l:libprotobuf-c.a -lm)

# The objects do not depend on the working directory, which is $built: its name is another one each
# time, and in an option of gcc, it would keep ccache from finding an object without preprocessing.
# With COVERAGE, gcc writes files besides them.
export CCACHE_DIR=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/profil/ccache CCACHE_NOHASHDIR=1
[ -z "${COVERAGE:-}" ] || export CCACHE_DISABLE=1

# archive NAME OPTION... -- FILE...: compiles the files that are not yet in $built/NAME.a into it.
archive() {
	local name=$1 extra=() objects=$built/$1.objects object file
	shift
	while [ "$1" != -- ]; do
		extra+=("$1")
		shift
	done
	shift
	mkdir -p "$objects" && for file; do
		object=$objects/${file//\//_}.o
		[ -e "$object" ] || printf '%s\0' "$object" "$file"
	done | env -C "$built" xargs -0 -r -n 2 -P "$(nproc)" \
		ccache gcc -c "${extra[@]}" "${flags[@]}" -I. -o &&
	ar rcs "$built/$name.a" "$objects"/*.o
}

# unchecked NAME FILE...: builds $tmp/NAME of the files and plain.a, without the sanitizers.
unchecked() {
	gcc "${flags[@]}" -o "$tmp/$1" "${@:2}" "$built/plain.a" "${libs[@]}"
}

# checked NAME FILE...: builds $tmp/NAME of the files and checked.a, with the sanitizers.
checked() {
	gcc "${sanitize[@]}" "${flags[@]}" "${coverage[@]}" -o "$tmp/$1" "${@:2}" \
		"$built/checked.a" "${libs[@]}"
}

# constant FILE NAME VALUE: changes NAME in $tmp/FILE, a copy of this source of the command, so that
# a test need not wait for a limit of the command.
constant() {
	local copy=$tmp/${1##*/}

	[ -e "$copy" ] || cp "$tools/$1" "$copy"
	grep -q "^#define $2\>" "$copy" && sed -i "s/^\(#define $2\)\>.*/\1 $3/" "$copy"
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
	make -s -C "$tools" O="$built" pages "$built/pprof.pb-c.c" &&
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
	archive checked "${sanitize[@]}" -- "${recorder[@]}" &&
	checked "$1" "$root/selftests/command/tables/frames.c"
}
