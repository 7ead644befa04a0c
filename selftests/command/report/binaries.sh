# SPDX-License-Identifier: GPL-2.0
#
# Tests of binaries that cost much to read. Each command ends within a bounded CPU time and memory,
# and says why there are no names.

# hurried COMMAND...: runs profil, without sanitizers, which gives each binary 1 s and 64 MB,
# instead of 3 s and 320 MB.
hurried() {
	bounded 3 150 "$tmp/hurried" "$@"
}

# costly NAME SAMPLES KIND NUMBER...: makes a binary, and recordings of it with stacks.
costly() {
	local name=$1 samples=$2
	python3 "$here/binaries.py" "${@:3}" >"$tmp/$name.bin" || return
	{
		echo stacks
		echo "file 1 @@/$name.bin"
		echo "stack 1 0 0:0 0:0 1:0x1021"
		for ((i = 0; i < samples; i++)); do
			echo "sample 1 1 $((0x1000 + 16 * i)) 0x10000000 1 0 1"
		done
	} | make_data "$name"
}

# reason NAME PATTERN [OPTION...]: checks what report says, and that all other commands end, too.
reason() {
	local name=$1 pattern=$2
	shift 2
	[ $# -gt 0 ] || set -- --children
	hurried report -i "$tmp/$name.data" "$@" >"$tmp/got" || return
	grep -q "$pattern" "$tmp/got" || { head "$tmp/got"; return 1; }
	hurried export -i "$tmp/$name.data" --format pprof >/dev/null &&
	hurried diff "$tmp/$name.data" "$tmp/$name.data" >/dev/null &&
	hurried report -i "$tmp/$name.data" --html "$tmp/page" >/dev/null || return
	hurried annotate -i "$tmp/$name.data" >/dev/null 2>"$tmp/got"
	[ $? -ne 99 ] || { cat "$tmp/got"; return 1; }
}

memory="its [a-z ]* could not be read with [0-9]* MB of memory"
seconds="its [a-z ]* could not be read within [0-9]* s"

costly_sections() {
	costly sections 2 sections 10000000 && reason sections "$memory"
}

costly_headers() {
	costly notes 4 notes 60000 && reason notes "compile with -g\|set DEBUGINFOD_URLS" &&
	costly headers 3000 headers 1000000 && reason headers "$seconds\|$memory"
}

costly_names() {
	costly suffixes 4000 names 4000 1000000 && reason suffixes "$memory" &&
	costly equal 1 equal 300000 1000000 && reason equal "$seconds" &&
	costly endless 100 endless 4000 && reason endless "100.00%"
}

costly_unwinding() {
	costly states 4 registers 1000000 300 && reason states "$memory"
}

costly_lines() {
	costly zeros 4 zeros $((1 << 29)) && reason zeros "$memory" -s srcline &&
	costly file 4 file 100000000 && reason file "$memory\|100.00%" -s srcline &&
	costly ranges 200 ranges 1000000 1000 && reason ranges "$seconds" -s srcline
}

# The other binary has its names.
costly_and_others() {
	make_data costly_pair <<-END
		file 1 @@/equal.bin
		file 2 @@/fixed
		sample 1 1 0x1000 0x10000000 1 0
		sample 1 2 @fixed:alpha+4 0x10000000 1 0
	END
	same "  50.00% 35.36%  equal.bin  [no symbol]
  50.00% 35.36%  fixed      alpha" eval \
		"hurried report -i '$tmp/costly_pair.data' | tail -n 2"
}

# The recorder reads ten of them, two of which cost much time, and writes the names of the others.
costly_in_recorder() {
	local i name

	for i in {0..9}; do
		[ $i -lt 2 ] && name=equal || name=suffixes
		{ cat "$tmp/$name.bin" && echo "$i"; } >"$tmp/costly$i.bin" &&
			echo "file $$ $tmp/costly$i.bin 0x1000 100"
	done >"$tmp/ticks" &&
	echo "file $$ $tmp/fixed $(offset "$tmp/fixed" alpha 4)" >>"$tmp/ticks" &&
	"$tmp/replay.hurried" "$tmp/ten.data" <"$tmp/ticks" &&
	rm -f "$tmp"/costly?.bin && mv "$tmp/fixed" "$tmp/fixed.kept" || return
	same "   0.10%  0.10%  fixed        alpha" eval "table ten | tail -n 1"
	i=$?
	mv "$tmp/fixed.kept" "$tmp/fixed"
	return $i
}

check "a binary with many sections" costly_sections
check "binaries with many program headers" costly_headers
check "binaries with long names" costly_names
check "a binary with a large unwind table" costly_unwinding
check "binaries with large line tables" costly_lines
check "binaries beside one that costs much" costly_and_others
check "a recording with ten binaries that cost much" costly_in_recorder
