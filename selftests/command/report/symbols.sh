# SPDX-License-Identifier: GPL-2.0
#
# Tests of the names of functions: files that must not be opened, files that change, large files of
# JIT compilers.

# link_to NAME: makes $tmp/links/prog, a program without names. It links to NAME as its debug file.
link_to() {
	mkdir -p "$tmp/links" && objcopy --strip-all "$tmp/fixed" "$tmp/links/prog" &&
	{
		printf '%s\0' "$1"
		head -c $((3 - ${#1} % 4)) /dev/zero
		head -c 4 /dev/zero
	} >"$tmp/links/section" &&
	objcopy --add-section .gnu_debuglink="$tmp/links/section" "$tmp/links/prog"
}

# link_names: prints the names that the report finds for $tmp/links/prog.
link_names() {
	make_ticks links links/prog @fixed:hidden+3 40 || return
	timeout 60 "$tmp/profil" report -i "$tmp/links.data" -s symbol | sed '1,/share/d; s/.*%  //'
}

# A link is followed only if it has no directory, and if the debug file has the build-id.
debug_links() {
	local none
	none=prog+$(address "$tmp/fixed" hidden)
	mkdir -p "$tmp/links/.debug" "$tmp/aside"
	objcopy --only-keep-debug "$tmp/fixed" "$tmp/links/.debug/prog.debug" &&
	cp "$tmp/links/.debug/prog.debug" "$tmp/aside/" || return
	link_to prog.debug && same hidden link_names || return
	link_to ../aside/prog.debug && same "$none" link_names || return
	link_to "$tmp/aside/prog.debug" && same "$none" link_names || return
	objcopy --only-keep-debug "$tmp/sub/fixed" "$tmp/links/.debug/prog.debug" &&
	link_to prog.debug && same "$none" link_names
}

# A FIFO is not opened: that would wake its writer. A device is not opened, either.
special_files() {
	local target none
	none=prog+$(address "$tmp/fixed" hidden)
	mkdir -p "$tmp/links" && mkfifo "$tmp/links/pipe" && link_to pipe &&
	not_opened "$tmp/links/pipe" link_names >/dev/null || return
	for target in /dev/zero "$tmp"; do
		ln -sfn "$target" "$tmp/links/other"
		link_to other && same "$none" link_names && continue
		echo "$target: the report failed"
		return 1
	done
}

# The program is written anew all the time. Each report has the right names; or none, and says that
# the program has changed, or, while only the end of the file is missing, that it has no symbols.
rebuilt() {
	local writer i fine=0
	cp "$tmp/fixed" "$tmp/rebuilt"
	make_ticks rebuilt rebuilt @fixed:alpha+4 40 @fixed:_ZN3app7computeEiPKc+1 40 || return
	while :; do
		: >"$tmp/rebuilt"
		cat "$tmp/fixed" >"$tmp/rebuilt"
		# A file system has the time of a write with a resolution of some ms.
		sleep 0.02
	done & writer=$!
	for i in {1..100}; do
		"$tmp/plain" report -i "$tmp/rebuilt.data" >"$tmp/got" 2>&1 || break
		if grep -Eq 'changed since|have no symbol' "$tmp/got"; then
			! grep -Eq 'alpha|compute' "$tmp/got" || break
		else
			grep -q alpha "$tmp/got" && grep -q 'app::compute' "$tmp/got" || break
		fi
		fine=$i
	done
	kill $writer
	wait $writer 2>/dev/null
	[ $fine = 100 ] && return
	echo "report $i:"
	cat "$tmp/got"
	return 1
}

# replay NAME <DESCRIPTION: as make_data, but with the part of the recorder that gets records.
replay() {
	make_description && "$tmp/replay" "$tmp/$1.data" <"$tmp/description"
}

# The names are those of the program at the time of the recording.
kept_names() {
	cp "$tmp/fixed" "$tmp/deleted" && cp "$tmp/fixed" "$tmp/replaced" &&
	cp "$tmp/stripped" "$tmp/bare" && cp "$tmp/fixed" "$tmp/overwritten" &&
	replay kept <<-END || return
		file 100 @@/deleted @fixed:alpha+4
		file 100 @@/deleted @fixed:_ZN3app7computeEiPKc+1
		file 100 @@/replaced @fixed:hidden+3
		file 100 @@/bare @fixed:beta+3
		file 100 @@/overwritten @fixed:beta+3
		run cd @@ && rm deleted bare && cp fixed new && mv new replaced
		run cat @@/sub/fixed >@@/overwritten
	END
	cp "$tmp/sub/fixed" "$tmp/replaced"
	same "[no symbol]
alpha
app::compute(int, char const*)
bare+$(address "$tmp/fixed" beta)
hidden" eval "rows kept -s symbol | LC_ALL=C sort"
}

# A program that was deleted before its first tick is read while the process lives.
deleted_before() {
	local pid
	cat >"$tmp/idle.c" <<-'END'
		#include <unistd.h>
		__attribute__((noinline)) int idle(void) { return pause(); }
		int main(void) { return idle(); }
	END
	gcc -O1 -no-pie -o "$tmp/idle" "$tmp/idle.c" && cp "$tmp/idle" "$tmp/unlinked" || return
	"$tmp/unlinked" >&- 2>&- & pid=$!
	wait_until [ /proc/$pid/exe -ef "$tmp/unlinked" ]
	rm "$tmp/unlinked"
	replay unlinked <<-END
		gone $pid @@/unlinked @idle:idle+4
	END
	kill $pid
	same "unlinked  idle" rows unlinked
}

# The names in the recording are used if the program has lost them, with the same build-id.
stripped_later() {
	cp "$tmp/fixed" "$tmp/later" && replay later <<-END || return
		file 100 @@/later @fixed:hidden+3
		file 100 @@/later @fixed:alpha+3
	END
	strip "$tmp/later" &&
	same "alpha
hidden" eval "rows later -s symbol | LC_ALL=C sort"
}

# A file is not the file of the record if it has changed since, or is on another device. The report
# says so, and if the process had ended.
other_files() {
	cp "$tmp/fixed" "$tmp/later" && cp "$tmp/fixed" "$tmp/elsewhere" && replay others <<-END || return
		run sleep 0.1 && touch @@/later
		file 100 @@/later @fixed:hidden+3
		other $$ @@/elsewhere @fixed:hidden+3
	END
	same "note: 50.00% have no symbol: later
  (changed before the recorder could read it)
note: 50.00% have no symbol: elsewhere
  (another file was at its path when the recorder looked for it)" notes others &&
	replay others <<-'END' || return
		other 5000000 @@/elsewhere @fixed:hidden+3
	END
	same "note: 100.00% have no symbol: elsewhere
  (its process had ended, and another file is at its path here)" notes others
}

# Processes with generated code do not count towards the limit of files, and ticks without a mapping
# do not count towards the limit of these processes.
many_processes() {
	local pid
	cp "$tmp/fixed" "$tmp/later"
	sleep 1000 >&- 2>&- & pid=$!
	write_map $pid
	{
		printf 'unmapped 99%s 0x1000\n' {1..70}
		echo "memory $pid 0x7f0000001001"
		printf 'memory 99%s 0x1000\n' {1..70}
		echo "file 100 @@/later @fixed:hidden+3"
		echo "run kill $pid && rm @@/later"
	} | replay processes || return
	same "LazyCompile:*loop /x y.js:3
hidden" eval "rows processes -s symbol | grep -v 'no symbol' | LC_ALL=C sort"
}

# In exec, the name of the thread is the new one before the space is.
names_in_exec() {
	replay exec <<-'END' || return
		unmapped 100 0x1000
		exec 100 next
		exec 101 next
	END
	same "replayed 100
next 101" rows exec -s process && same "replayed  [exec]
next  [exec]" eval "rows exec | grep exec | LC_ALL=C sort -r"
}

# The notes tell memory that was unmapped from memory that nobody has looked up.
unknown_memory() {
	replay unknown <<-'END' || return
		unmapped 5000000 0x1000
		pending 5000000 0x2000
		memory 5000000 0x3000
		pending 5000000 0x4000
	END
	same "note: 25.00% have no symbol: [anon]
  (code made at run time; its process ended before a map could be found)
note: 25.00% have no symbol: [unknown]
  (unmapped before the interrupted thread returned to user mode)
note: 50.00% have no symbol: [unknown]
  (the thread stayed in the kernel, or too many threads waited there)" notes unknown &&
	same "replayed  [unknown]
replayed  [anon]" rows unknown -s comm,dso
}

# The recorder names calls by their number and their ABI.
system_call_names() {
	replay calls_made <<-'END' || return
		call 100 0 0xc000003e 0
		call 100 9999 0xc000003e 0
		call 100 0x40000001 0xc000003e 0
		call 100 3 0xc000003e 0
		call 100 3 0x40000003 0
		call 100 9999 0x40000003 0
		call 100 3 0x40000028 0
		call 100 0 0xc000003e 0
		call 100 -1 0 0
		call 100 -1 0 1024
		unmapped 100 0x1000
	END
	same "[user mode]
arm:read
close
i386:read
i386:syscall 9999
interrupt
page fault
read
syscall 9999
x32:write" eval "rows calls_made -s syscall | LC_ALL=C sort"
}

# With -a, a task that was reaped before its last tick belongs to the last program of its process.
reaped_before_last_tick() {
	replay reaped <<-'END' || return
		unmapped 100 0x1000
		unmapped 101 0x1000
		exec 100 next
		reaped 100 100 next
		reaped 101 102 worker
		reaped 103 103 alone
	END
	same "next 100
replayed 101
alone 103" eval "rows reaped -s process | LC_ALL=C sort -k 2" &&
	same "3" eval "rows reaped | grep -c '\[exit\]'"
}

# The memory of the recorder does not depend on the number of samples.
many_samples() {
	make_description <<-END &&
		file 100 @@/fixed @fixed:alpha+0 1500000
	END
	bounded 60 40 "$tmp/replay.plain" "$tmp/samples.data" <"$tmp/description" &&
	rm "$tmp/samples.data"
}

# A file can have a note of any size, most of it a hole.
large_note() {
	python3 -c '
import struct, sys
size = 1 << 29
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0))
    file.write(struct.pack("<IIQQQQQQ", 4, 4, 4096, 0, 0, size, size, 4))
    file.truncate(4096 + size)' "$tmp/sparse" &&
	make_data sparse <<-'END' || return
		stale 1 @@/sparse
		sample 1 1 0x20 0 40 0
	END
	bounded 60 200 "$tmp/plain" report -i "$tmp/sparse.data"
}

# Some names become exponentially longer when they are demangled.
mangled_names() {
	python3 - >"$tmp/mangled" <<-'END'
		digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		reference = lambda i: "S_" if i < 0 else "S" + (digits[i // 36] if i > 35 else "") + digits[i % 36] + "_"
		cxx = "_Z1f1AIiiE" + "".join(f"S_I{reference(i)}{reference(i)}E" for i in range(60))
		def d(levels):
		    name, last = "_D3app4workF", 0
		    def back(at):
		        n, text = len(name) - at, ""
		        text = chr(ord("a") + n % 26)
		        while n >= 26:
		            n //= 26
		            text = chr(ord("A") + n % 26) + text
		        return "Q" + text
		    name, last = name + "Hii", len(name)
		    for _ in range(levels):
		        start = len(name)
		        name += "H"
		        name += back(last)
		        name += back(last)
		        last = start
		    return name + "Zv"
		print("name 1 [anon]")
		names = ["_D3app4workFiAyaZv", "_ada_hello", "_ada_main__worker", d(2), cxx, d(60)]
		for number, name in enumerate(names, 1):
		    print(f"symbol 0x80000001 {number * 16} {number * 16 + 8} {name}")
		    print(f"sample 1 1 {number * 16} 0 {10 - number} 0")
	END
	make_data mangled <"$tmp/mangled" || return
	timeout 100 "$tmp/plain" report -i "$tmp/mangled.data" -s symbol --full-names >"$tmp/got" ||
		return
	same "app.work(int, immutable(char)[])
hello
main.worker
app.work(int[int], int[int][int[int]], int[int][int[int]][int[int][int[int]]])
_Z1f1AIiiES_IS0_S0_ES_IS1_S1
_D3app4workFHiiHQeQgHQgQiHQg" eval \
		"sed '1,/share/d; s/.*%  //; s/\(_Z.\{26\}\).*/\1/; s/\(_D.\{26\}\).*/\1/' '$tmp/got'"
}

# In this program, the next entry after each namespace is the namespace in it.
looping_lines() {
	local level
	{
		cat <<-'END'
			.globl _start
			.type _start, @function
			.text
			_start: .fill 64, 1, 0x90
			.size _start, 64
			.section .debug_abbrev
			.byte 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0	# unit: low_pc, high_pc
			.byte 2, 0x39, 1, 1, 0x13, 0, 0, 0		# namespace: sibling
			.section .debug_info
			unit: .long end - 1f
			1: .value 4
			.long .debug_abbrev
			.byte 8, 1
			.quad _start, 64
		END
		for level in {1..60}; do
			echo ".byte 2; .long 1f - unit; 1:"
		done
		echo ".fill 62, 1, 0; end:"
	} >"$tmp/looping.s"
	gcc -nostdlib -static -no-pie -o "$tmp/looping" "$tmp/looping.s" &&
	make_ticks looping looping @looping:_start+4 40 || return
	same "[no line]    _start" eval "timeout 100 '$tmp/plain' report -i '$tmp/looping.data' --inline \
		-s srcline,symbol | sed '1,/share/d; s/^[^%]*%[^%]*%  //'"
}

# In this program, all units share a long list of ranges, which contain all places.
many_ranges() {
	local number
	cat >"$tmp/ranges.s" <<-'END'
		.globl _start
		.type _start, @function
		.text
		_start: .fill 4096, 1, 0x90
		.size _start, 4096
		.section .debug_abbrev
		.byte 1, 0x11, 0, 0x11, 1, 0x55, 0x17, 0, 0, 0	# unit: low_pc, ranges
		.section .debug_ranges
		.rept 20000
		.quad 1, 4096
		.endr
		.quad 0, 0
		.section .debug_info
		.rept 20000
		.long 2f - 1f
		1: .value 4
		.long .debug_abbrev
		.byte 8, 1
		.quad 0x401000
		.long 0
		2:
		.endr
	END
	gcc -nostdlib -static -no-pie -o "$tmp/ranges" "$tmp/ranges.s" &&
	{
		echo "file 1 @@/ranges"
		for number in {1..1000}; do
			echo "sample 1 1 $((0x1000 + number)) 0 1 0"
		done
	} | make_data ranges &&
	same "[no line]    _start" eval "timeout 100 '$tmp/hurried' report -i '$tmp/ranges.data' \
		-s srcline,symbol | sed '1,/share/d; s/^[^%]*%[^%]*%  //'"
}

# The names that are in the recording are used on a machine without the program.
other_root() {
	mkdir -p "$tmp/root$tmp" && cp "$tmp/fixed" "$tmp/root$tmp/rooted" || return
	cp "$tmp/fixed" "$tmp/rooted"
	make_ticks rooted rooted @fixed:alpha+4 40 || return
	rm "$tmp/rooted"
	report rooted | grep -q 'no symbol' &&
	report rooted --symfs "$tmp/root" | grep -q '  alpha$' ||
		return
	# A symbolic link does not lead out of the directory.
	ln -s "$tmp/root$tmp/rooted" "$tmp/root$tmp/link"
	mv "$tmp/root$tmp/rooted" "$tmp/root/moved"
	ln -s /moved "$tmp/root$tmp/rooted"
	report rooted --symfs "$tmp/root" | grep -q '  alpha$' &&
	! report rooted --symfs "$tmp/none" 2>/dev/null
}

# Without DEBUGINFOD_URLS nothing is asked. With it, Debian's server has the debug file of a program
# without symbols, and a program that is gone.
downloads() {
	local server port=$((20000 + RANDOM % 10000)) i
	mkdir -p "$tmp/server" "$tmp/cache" && cp "$tmp/fixed" "$tmp/served" &&
	cp "$tmp/stripped" "$tmp/needy" && cp "$tmp/fixed" "$tmp/server/" &&
	objcopy --only-keep-debug "$tmp/fixed" "$tmp/server/fixed.debug" &&
	make_data served <<-'END' || return
		file 1 @@/served
		sample 1 1 @fixed:alpha+4 0 40 0
		file 2 @@/needy
		sample 1 2 @fixed:hidden+3 0 30 0
	END
	rm "$tmp/served"
	! "$tmp/plain" report -i "$tmp/served.data" | grep -E '  (alpha|hidden)$' || return
	debuginfod --database="$tmp/cache/server" --port=$port --fdcache-mbs=100 -F "$tmp/server" \
		>"$tmp/server.log" 2>&1 & server=$!
	for i in {1..60}; do
		DEBUGINFOD_URLS=http://127.0.0.1:$port DEBUGINFOD_CACHE_PATH=$tmp/cache/$i \
			"$tmp/plain" report -i "$tmp/served.data" >"$tmp/got" 2>&1
		grep -q '  alpha$' "$tmp/got" && grep -q '  hidden$' "$tmp/got" && break
		sleep 0.5
	done
	kill $server
	[ "$i" -lt 60 ] && return
	cat "$tmp/got" "$tmp/server.log"
	return 1
}

# jit_names NAME: prints the names of the replayed recording NAME.
jit_names() {
	rows "$1" -s offset,symbol | LC_ALL=C sort | sed 's/^0x[0-9a-f]*  //'
}

# write_map PID: writes functions to the map of the process.
write_map() {
	echo "/tmp/perf-$1.map" >>"$tmp/leftovers"
	printf '%s\n' '7f0000001000 100 old' 'bad line' '7f0000002000 0 empty' \
		'7f0000001000 80 LazyCompile:*loop /x y.js:3' 'ffffffffffffffff ff overflow' \
		'7f0000001040 10 newest' '7f0000003010 10 inner' \
		'7f0000003000 100 around it' >"/tmp/perf-$1.map"
}

# The map is read at the end of the recording, when the process has ended.
maps_of_processes() {
	local pid
	sleep 1000 >&- 2>&- & pid=$!
	write_map $pid
	replay map <<-END || return
		memory $pid 0x7f0000001001
		memory $pid 0x7f0000001041
		memory $pid 0x7f0000001090
		memory $pid 0x7f0000003018
		memory $pid 0x7f0000002000
		run kill $pid
	END
	rm "/tmp/perf-$pid.map"
	same "LazyCompile:*loop /x y.js:3
newest
[no symbol]
[no symbol]
around it" jit_names map
}

# why_nameless PID: prints why code of the process has no name.
why_nameless() {
	replay map <<-END || return
		memory $1 0x7f0000001001
	END
	same "[no symbol]" jit_names map || return
	head_of map | sed -n "s/$1/PID/; s/^  (code made at run time; \(.*\))/\1/p"
}

# The map of an older process with the same id, or of another user, is not used, nor another file.
# The report says why.
maps_of_others() {
	local pid fine=false
	sleep 1000 >&- 2>&- & pid=$!
	same "see --runtimes in profil-record(1)" why_nameless $pid &&
	write_map $pid && touch -d 2025-01-01 "/tmp/perf-$pid.map" &&
	same "perf-PID.map is dated before its process" why_nameless $pid &&
	touch "/tmp/perf-$pid.map" && chown 12345 "/tmp/perf-$pid.map" &&
	same "perf-PID.map belongs to another user" why_nameless $pid &&
	echo "7f0000002000 100 elsewhere" >"/tmp/perf-$pid.map" && chown 0 "/tmp/perf-$pid.map" &&
	same "perf-PID.map has no function there" why_nameless $pid &&
	truncate -s 300M "/tmp/perf-$pid.map" && same "replay: files that are too large: 1
perf-PID.map is too large" why_nameless $pid &&
	write_map $pid && mv "/tmp/perf-$pid.map" "$tmp/a.map" &&
	ln -s "$tmp/a.map" "/tmp/perf-$pid.map" &&
	same "perf-PID.map is not a regular file" why_nameless $pid && fine=true
	rm -f "/tmp/perf-$pid.map"
	kill $pid
	$fine
}

# holder [a [b [c]]]: makes memory for code at the address of write_map, and waits. With b, so does
# its child; with c, as another program.
build_holder() {
	cat >"$tmp/holder.c" <<-'END'
		#include <sys/mman.h>
		#include <unistd.h>
		int main(int argc, char **argv)
		{
			void *at = (void *)0x7f0000000000;
			int prot = PROT_READ | PROT_EXEC, shared = argc > 1 ? MAP_SHARED : MAP_PRIVATE;

			if (mmap(at, 0x10000, prot, shared | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
				return 1;
			if (argc > 2 && !fork() && argc > 3)
				execl(argv[0], argv[0], argv[1], (char *)0);
			pause();
		}
	END
	gcc -O1 -o "$tmp/holder" "$tmp/holder.c"
}

# The clock was set after the process had written the map: most functions are in its memory.
maps_before_clock() {
	local pid
	build_holder || return
	"$tmp/holder" >&- 2>&- & pid=$!
	wait_until grep -q '^7f0000000000' /proc/$pid/maps
	write_map $pid
	touch -d 2025-01-01 "/tmp/perf-$pid.map"
	replay map <<-END || return
		memory $pid 0x7f0000001001
		run kill $pid
	END
	same "LazyCompile:*loop /x y.js:3" jit_names map
}

# A process has the map of the one from which it was forked, unless it has called exec since.
maps_of_ancestors() {
	local pid child words want
	build_holder || return
	for words in "a b" "a b c"; do
		"$tmp/holder" $words >&- 2>&- & pid=$!
		wait_until pgrep -P $pid
		child=$(pgrep -P $pid)
		wait_until grep -q '^7f0000000000' "/proc/$child/maps"
		[ "$words" = "a b" ] && want="LazyCompile:*loop /x y.js:3" || want="[no symbol]"
		# exec may be going on.
		sleep 0.5
		write_map $pid
		replay map <<-END || return
			memory $child 0x7f0000001001
			run kill $child $pid
		END
		same "$want" jit_names map || return
	done
}

# The map of a process that has ended is used if it was written during the recording.
maps_of_the_ended() {
	echo "/tmp/perf-5000001.map" >>"$tmp/leftovers"
	write_map 5000001
	touch -d 2025-01-01 /tmp/perf-5000001.map
	same "perf-PID.map is dated before its process" why_nameless 5000001 || return
	replay map <<-END || return
		memory 5000001 0x7f0000001001
		run touch /tmp/perf-5000001.map
	END
	same "LazyCompile:*loop /x y.js:3" jit_names map
}

# In a container, the process has another id, and another /tmp.
maps_in_namespaces() {
	local pid
	unshare --pid --mount --fork --kill-child sh -c '
		mount -t tmpfs tmpfs /tmp
		echo "7f0000001000 80 inside" >/tmp/perf-1.map
		exec sleep 1000' >&- 2>&- &
	wait_until pgrep -P $! -x sleep
	pid=$(pgrep -P $! -x sleep)
	echo "/tmp/perf-$pid.map" >>"$tmp/leftovers"
	echo '7f0000001000 80 outside' >"/tmp/perf-$pid.map"
	replay map <<-END || return
		memory $pid 0x7f0000001001
		run kill -9 $pid
	END
	same "inside" jit_names map
}

# A process that writes a jit-PID.dump maps it.
dumps() {
	local pid
	cat >"$tmp/dumper.py" <<-'END'
		import mmap, signal, struct, sys
		def load(index, address, name):
		    return struct.pack("<IIQIIQQQQ16s16x", 0, 88, 0, 0, 0, 0, address, 16, index,
		                       name)
		with open(sys.argv[1], "w+b") as file:
		    file.write(struct.pack("<6I2Q", 0x4a695444, 1, 40, 0, 0, 0, 0, 0))
		    file.write(load(0, 0x7f0000001000, b"first") + load(1, 0x7f0000002000, b"second"))
		    # A record of another type, and code that overwrites other code
		    file.write(struct.pack("<II80x", 2, 88) + load(2, 0x7f0000002008, b"third"))
		    file.flush()
		    memory = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE,
		                       mmap.PROT_READ | mmap.PROT_EXEC)
		    signal.pause()
	END
	python3 "$tmp/dumper.py" "$tmp/jit-1.dump" >&- 2>&- & pid=$!
	wait_until grep -q 'jit-1.dump' /proc/$pid/maps
	replay dump <<-END || return
		memory $pid 0x7f0000001001
		memory $pid 0x7f0000002001
		memory $pid 0x7f0000002009
		memory $pid 0x7f0000009001
		run kill $pid
	END
	same "first
second
third
[no symbol]" jit_names dump
}

# The memory does not depend on the number of functions, or of processes with large maps; files that
# are too large, or too large together, are not read.
large_maps() {
	local pid pids=() i
	for i in {1..5}; do
		sleep 1000 >&- 2>&- & pid=$!
		pids+=("$pid")
		echo "/tmp/perf-$pid.map" >>"$tmp/leftovers"
		printf '%s\n' "memory $pid 0x7f0000001000" "memory $pid 0x7f0000002001"
	done >"$tmp/large"
	for i in 0 1 2; do
		{ yes '7f0000001000 1 f' | head -c 40M; echo; echo "7f0000002000 10 last$i"; } \
			>"/tmp/perf-${pids[i]}.map"
	done
	(ulimit -v 100000 && "$tmp/replay.plain" "$tmp/large.data" <"$tmp/large")
	same "f
last0
last1
last2" eval "jit_names large | grep -v 'no symbol' | sort" || { kill "${pids[@]}"; return 1; }
	truncate -s 2G "/tmp/perf-${pids[0]}.map"
	"$tmp/replay.plain" "$tmp/large.data" <"$tmp/large" >"$tmp/got" 2>&1
	for pid in "${pids[@]}"; do
		truncate -s 250M "/tmp/perf-$pid.map"
	done
	"$tmp/replay.plain" "$tmp/large.data" <"$tmp/large" >>"$tmp/got" 2>&1
	kill "${pids[@]}"
	same "replay.plain: files that are too large: 1
replay.plain: files that are too large: 1" cat "$tmp/got"
}

# The time does not depend on the product of the numbers of functions and of places.
slow_maps() {
	local pid line number fine=true
	sleep 1000 >&- 2>&- & pid=$!
	echo "/tmp/perf-$pid.map" >>"$tmp/leftovers"
	for number in {0..9999}; do
		echo "memory $pid $((0x7f0000001000 + 16 * number))"
	done >"$tmp/slow"
	# These functions contain no place, and all.
	for line in '0 1 f' '0 ffffffffffff f'; do
		yes "$line" | head -c 30M >"/tmp/perf-$pid.map"
		timeout 60 "$tmp/replay.plain" "$tmp/slow.data" <"$tmp/slow" &&
		same "[no symbol]" eval "jit_names slow | uniq" || fine=false
	done
	kill $pid
	$fine
}

# inlined_source FILE: writes a program whose function work() is inlined in outer().
inlined_source() {
	cat >"$1" <<-'END'
		int sink;
		static inline __attribute__((always_inline)) void work(int n)
		{
			for (int i = 0; i < n; i++)
				sink += i * n;
		}
		void outer(int n)
		{
			work(n);
			sink++;
		}
		void _start(void) { for (;;) outer(sink); }
	END
}

# Source lines and inlined functions, with the debug information in the program or in a separate
# file.
source_lines() {
	local flags=(-O1 -g -nostdlib -static-libgcc -no-pie) where separate
	inlined_source "$tmp/lines.c" &&
	gcc "${flags[@]}" -o "$tmp/lines" "$tmp/lines.c" -Wl,--build-id &&
	cp "$tmp/lines" "$tmp/lines.unstripped" &&
	where=$(at lines outer 'lines.c:5') &&
	make_ticks lines lines "@lines:outer+$where" 30 @lines:_start+0 10 || return
	for separate in no yes; do
		same "lines.c:5  outer
lines.c:12  _start" rows lines -s srcline,symbol &&
		same "work (inlined)
_start" rows lines -s symbol --inline &&
		same "work (inlined)" rows lines -s symbol --inline --symbol work || return
		[ $separate = yes ] || {
			objcopy --only-keep-debug "$tmp/lines" "$tmp/lines.debug" &&
			objcopy --strip-all --add-gnu-debuglink="$tmp/lines.debug" "$tmp/lines"
		} || return
	done
}

check "links to debug files" debug_links
check "links to a FIFO, a device and a directory" special_files
check "a program that is written during the report" rebuilt
check "names of programs that are gone or have changed" kept_names
check "names of a program that was deleted before its first tick" deleted_before
check "names of a program that was stripped later" stripped_later
check "other files with the same path" other_files
check "many processes with generated code" many_processes
check "names of processes in exec" names_in_exec
check "a task that was reaped before its last tick" reaped_before_last_tick
check "reasons for unknown memory" unknown_memory
check "names of system calls" system_call_names
check "many samples" many_samples
check "a large note in a sparse file" large_note
check "demangled names of D and Ada, and long ones" mangled_names
check "debug information with loops" looping_lines
check "debug information with many ranges" many_ranges
check "binaries in another directory" other_root
check "source lines and inlined functions" source_lines
if "$root/selftests/need" debuginfod libdebuginfod1 >/dev/null 2>&1; then
	check "files from a debuginfod server" downloads
else
	skip "files from a debuginfod server" "debuginfod cannot be installed"
fi
check "functions in perf-PID.map" maps_of_processes
check "files that are not of the process" maps_of_others
check "functions in perf-PID.map from before the clock was set" maps_before_clock
check "functions in perf-PID.map of ancestors" maps_of_ancestors
check "functions in perf-PID.map of processes that have ended" maps_of_the_ended
check "functions in perf-PID.map of a container" maps_in_namespaces
check "functions in jit-PID.dump" dumps
check "large files of JIT compilers" large_maps
check "files of JIT compilers with many functions at a place" slow_maps
