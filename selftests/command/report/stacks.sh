# SPDX-License-Identifier: GPL-2.0
#
# Tests of call chains.

# A program whose unwind table is known. Comments are the offsets in a function.
stacks_program() {
	cat >"$tmp/macros.s" <<-'END'
		.macro function name
			.globl \name
			.type \name, @function
		\name:
			.cfi_startproc
		.endm
		.macro end name
			.cfi_endproc
			.size \name, . - \name
		.endm
	END
	cat >"$tmp/calls.s" <<-'END'
		.include "macros.s"
		# push %rbp; mov %rsp, %rbp; call; pop %rbp; ret: at 0, 1, 4, 9, 10
		.macro framed name callee
			function \name
			push %rbp
			.cfi_def_cfa_offset 16
			.cfi_offset 6, -16
			mov %rsp, %rbp
			.cfi_def_cfa_register 6
			call \callee
			pop %rbp
			.cfi_def_cfa 7, 8
			ret
			end \name
		.endm
		framed main middle
		framed middle leaf
		framed again again
		framed other leaf
		# no frame: at 0, 1
		function leaf
			nop
			ret
		end leaf
		# one word on the stack: at 0, 4, 5, 9
		function spilled
			sub $8, %rsp
			.cfi_def_cfa_offset 16
			nop
			add $8, %rsp
			.cfi_def_cfa_offset 8
			ret
		end spilled
		# three words: at 0, 4, 5, 9, 10, 14
		function large
			sub $24, %rsp
			.cfi_def_cfa_offset 32
			nop
			call leaf
			add $24, %rsp
			.cfi_def_cfa_offset 8
			ret
		end large
		# the frame pointer is used for other data: at 0, 1, 2, 3
		function other_data
			push %rbp
			.cfi_def_cfa_offset 16
			.cfi_offset 6, -16
			nop
			pop %rbp
			.cfi_def_cfa_offset 8
			.fill 32, 1, 0x90
			ret
		end other_data
		# no caller: at 0, 5
		function start
			.cfi_undefined 16
			call main
			call leaf
		end start
	END
	# As Go compiles it: the table does not have the frame pointer.
	cat >"$tmp/go.s" <<-'END'
		.cfi_sections .debug_frame
		.section .gopclntab, "a"
		.byte 0
		.text
		.include "macros.s"
		.macro framed name callee
			function \name
			push %rbp
			.cfi_def_cfa_offset 16
			mov %rsp, %rbp
			call \callee
			pop %rbp
			.cfi_def_cfa_offset 8
			ret
			end \name
		.endm
		framed main.outer main.inner
		framed main.inner main.outer
		function runtime.goexit
			nop
			call main.outer
			nop
		end runtime.goexit
		function main.leaf
			nop
			ret
		end main.leaf
	END
	cd "$tmp" && as --64 -o go.o go.s && ld -m elf_x86_64 -e main.outer -o go go.o &&
	objcopy -R .debug_frame go go.bare && as --64 -o calls.o calls.s &&
	ld -m elf_x86_64 --build-id -e main -o calls calls.o && cp calls calls.gone
}

# chain STACK FUNCTION+N [PROGRAM [END]]: prints the functions of a sample at this place, with a
# stack that is written as for generate.c.
chain() {
	make_data chain <<-END && folded chain
		stacks
		file 1 @@/${3:-calls}
		name 2 [anon]
		stack 1 ${4:-0} $1
		sample 1 1 @${3:-calls}:$2 0 1 0 1
	END
}

stacks_recording() {
	make_data calls <<-'END'
		stacks
		thread 1 7 100 0 a
		thread 2 8 200 0 b
		file 1 @@/calls
		name 2 [anon]
		symbol 0x80000001 0x5000 0x5100 jitted
		stack 1 0 0:0 0:0 1:@calls:middle+9 1:@calls:main+9
		stack 2 0 0:0 0:0 1:@calls:again+9 1:@calls:again+9 1:@calls:again+9 1:@calls:main+9
		stack 3 1 0:0 0:0 1:@calls:other+9 2:0x5010 1:@calls:main+9
		stack 4 0 0:0 0:0 0:0x1234 1:@calls:main+9
		sample 1 1 @calls:other+4 0 10 0 1
		sample 1 1 @calls:again+4 0 40 0 2
		sample 1 1 @calls:other+4 0 20 5 3
		sample 1 1 @calls:other+4 0 5 0 4
		sample 1 1 @calls:main+4 0 10 0
		sample 2 1 @calls:other+4 0 10 0 1
	END
}

stacks_folded() {
	same "a;main 10
a;main;[unknown];other 5
a;main;again;again;again;again 40
a;main;jitted;other;other 25
a;main;middle;other 10
b;main;middle;other 10" folded calls
}

# Each sample counts once for a function, however often the function is in its chain.
stacks_children() {
	same "children     +-     self  binary     symbol
 100.00%  0.00%   10.00%  calls      main
  50.00%  5.00%   50.00%  calls      other
  40.00%  4.90%   40.00%  calls      again
  25.00%  4.33%    0.00%  [jit]      jitted
  20.00%  4.00%    0.00%  calls      middle
   5.00%  2.18%    0.00%  [unknown]  [unknown]" table calls --children &&
	same "children     +-     self  binary  symbol
 100.00%  0.00%   10.00%  calls   main
  50.00%  5.00%   50.00%  calls   other
          in 4 more" table calls --children -n 2 &&
	same "children     +-     self  binary  symbol
 100.00%  0.00%  100.00%  calls   other
 100.00%  0.00%    0.00%  calls   main
 100.00%  0.00%    0.00%  calls   middle" table calls --children --comm b
}

stacks_trees() {
	same "   share     +-  binary     symbol
  50.00%  5.00%  calls      other
  25.00%  4.33%  [jit]        jitted
  25.00%  4.33%  calls          main
  20.00%  4.00%  calls        middle
  20.00%  4.00%  calls          main
   5.00%  2.18%  [unknown]    [unknown]
   5.00%  2.18%  calls          main" table calls --callers other &&
	same "   share     +-  binary  symbol
  40.00%  4.90%  calls   again
  40.00%  4.90%  calls     main" table calls --callers again &&
	same "   share     +-  binary     symbol
 100.00%  0.00%  calls      main
  40.00%  4.90%  calls        again
  40.00%  4.90%  calls          again
  40.00%  4.90%  calls            again
  40.00%  4.90%  calls              again
  25.00%  4.33%  [jit]        jitted
  25.00%  4.33%  calls          other
  25.00%  4.33%  calls            other
  20.00%  4.00%  calls        middle
  20.00%  4.00%  calls          other
   5.00%  2.18%  [unknown]    [unknown]
   5.00%  2.18%  calls          other
  10.00%  3.00%               [self]" table calls --callees main &&
	same "   share     +-  binary  symbol
  40.00%  4.90%  calls   again" table calls --callees 'ag*n' &&
	refusals report -i "$tmp/calls.data" <<-END
		1 --callers nothing | $tmp/calls.data: no function matches nothing
		1 --callees nothing | $tmp/calls.data: no function matches nothing
	END
}

stacks_heading() {
	same "note: 5.00% have a caller in unknown memory
  (code without frame pointers, or the process ended too early)
note: 25.00% have more callers than were recorded
  (the outermost ones are missing)
note: 10.00% have no callers
  (the thread stayed in the kernel, or was ending)" notes calls --children &&
	same "" notes calls
}

# Where the unwind table says so, the return address comes from the words at the stack pointer.
stacks_repair() {
	local main=1:@calls:main+9 other=1:@calls:other+9 again=1:@calls:again+9
	same "a;main;other;leaf 1" chain "$other $main $main" leaf+0 &&
	same "a;main;other;leaf 1" chain "$other $main $main" leaf+1 &&
	same "a;main;other;middle 1" chain "$other $main $main" middle+0 &&
	same "a;main;other;middle 1" chain "$main $other $main" middle+1 &&
	same "a;main;middle 1" chain "$other $other $main" middle+4 &&
	same "a;main;middle 1" chain "$other $other $main" middle+9 &&
	same "a;main;other;middle 1" chain "$other $main $main" middle+10 &&
	same "a;main;other;spilled 1" chain "$main $other $main" spilled+4 &&
	same "a;main;other;spilled 1" chain "$other $main $main" spilled+9 &&
	same "a;main;large 1" chain "$other $other $main" large+4 &&
	same "a;main;other;other_data 1" chain "$other $main $main" other_data+0 &&
	same "a;main;other_data 1" chain "$other $other $main" other_data+1 &&
	same "a;main;again;again;again 1" chain "0:0 $again $again $main" again+1 &&
	same "a;main;leaf 1" chain "0:0 $other $main" leaf+0 &&
	same "a;other;leaf 1" chain "$other $main" leaf+0
}

# lacks STACK FUNCTION+N: succeeds if the heading says that the sample lacks a caller.
lacks() {
	chain "$@" >/dev/null && head_of chain --children | grep -q "^note: 100.00% lack a caller"
}

# is_complete STACK FUNCTION+N: succeeds if the heading says that it lacks none.
is_complete() {
	chain "$@" >/dev/null && head_of chain --children | grep -q "^call stacks: 100.00%"
}

stacks_lost() {
	local main=1:@calls:main+9 other=1:@calls:other+9 large=1:@calls:large+10
	lacks "0:0 $other $main" leaf+0 && lacks "0:0 0:0" leaf+0 &&
	lacks "$other $other $main" large+4 && lacks "$other $other $main" other_data+1 &&
	lacks "$large 0:0 $main" leaf+0 && lacks "0:0 0:0 $large $main" middle+4 &&
	! lacks "$other $main $main" leaf+0 &&
	! lacks "$main $other $main" middle+1 && ! lacks "0:0 0:0 $main" middle+4 &&
	! lacks "0:0 0:0" middle+4 || return
	# If the binary has changed, there is no table.
	cp "$tmp/calls" "$tmp/calls.kept" && cp "$tmp/fixed" "$tmp/calls" &&
	same "note: 100.00% may lack the innermost caller" \
		eval "head_of chain --children | grep lack" || return
	mv "$tmp/calls.kept" "$tmp/calls"
}

# A stack that ended with the frame pointer 0 is complete only if its outermost function can be one.
stacks_cut_off() {
	local main=1:@calls:main+9 large=1:@calls:large+10 start=1:@calls:start+5
	local outer=1:@go:main.outer+9 goexit=1:@go:runtime.goexit+6
	lacks "0:0 0:0 $large" middle+4 && lacks "0:0 0:0 $main $large" middle+4 &&
	lacks "0:0 0:0 $main 1:@calls:spilled+5" middle+4 &&
	lacks "0:0 0:0 $main 2:0x5010" middle+4 && is_complete "0:0 0:0 2:0x5010 $main" middle+4 &&
	is_complete "0:0 0:0 $main $start" middle+4 && is_complete "0:0 0:0" start+0 &&
	is_complete "$start $main" start+0 && is_complete "0:0 0:0 $outer $goexit" main.inner+4 go &&
	is_complete "0:0 0:0 $main" middle+4 || return
	# The innermost word gave the only caller.
	lacks "$large 0:0" leaf+0 && lacks "2:0x5010 0:0" leaf+0 && is_complete "$main 0:0" leaf+0 &&
	is_complete "1:@calls:start+10 0:0" leaf+0 && is_complete "$goexit 0:0" main.leaf+0 go || return
	# The table of the outermost function has led to the return address 0.
	is_complete "0:0 0:0 $large" middle+4 calls 9 || return
	# Another end has another reason.
	! lacks "0:0 0:0 $large" middle+4 calls 5 && same "note: 100.00% end where there is no frame
  (code without frame pointers, before its table was there, or on another stack)" \
		eval "head_of chain --children | grep -A 1 ^note:"
}

# In a function of Go, only a return address that is also in the frame tells that there is a frame.
stacks_go() {
	local outer=1:@go:main.outer+9 inner=1:@go:main.inner+9
	same "a;main.outer;main.inner;main.leaf 1" chain "$inner $outer $outer" main.leaf+0 go &&
	same "a;main.inner;main.outer;main.inner 1" \
		chain "$outer $inner $inner" main.inner+0 go &&
	same "a;main.outer;main.inner;main.outer 1" \
		chain "$outer $inner $outer" main.outer+1 go &&
	same "a;main.outer;main.inner 1" chain "$inner $outer $outer" main.inner+4 go &&
	same "" eval "head_of chain --children | grep lack" &&
	chain "0:0 0:0 $outer $inner $outer" main.inner+4 go >"$tmp/got" &&
	same "" eval "head_of chain --children | grep lack" &&
	same "a;main.outer;main.leaf 1" chain "$inner $outer $outer" main.leaf+0 go.bare &&
	same "note: 100.00% may lack the innermost caller" \
		eval "head_of chain --children | grep lack"
}

# The functions that are inlined at a call are functions of the chain.
stacks_inlined() {
	cat >"$tmp/inlines.c" <<-'END'
		int sink;
		__attribute__((noinline)) void callee(int n) { sink += n; }
		static inline __attribute__((always_inline)) void inlined(int n)
		{
			callee(n);
			sink++;
		}
		void outer(int n)
		{
			inlined(n);
			sink++;
		}
	END
	gcc -O1 -g -shared -fPIC -nostdlib -fno-omit-frame-pointer -fcf-protection=none \
		-o "$tmp/inlines.so" "$tmp/inlines.c" &&
	make_data inlines <<-END || return
		stacks
		file 1 @@/inlines.so
		stack 1 0 0:0 0:0 1:@inlines.so:outer+$(at inlines.so outer call call)
		sample 1 1 @inlines.so:callee+0 0 4 0 1
	END
	same "children     +-     self  binary      symbol
 100.00%  0.00%  100.00%  inlines.so  callee
 100.00%  0.00%    0.00%  inlines.so  inlined (inlined)
 100.00%  0.00%    0.00%  inlines.so  outer" table inlines --children --inline &&
	same "   share     +-  binary      symbol
 100.00%  0.00%  inlines.so  outer
 100.00%  0.00%  inlines.so    callee" table inlines --callees outer
}

stacks_options() {
	local a b
	for a in --children "--callers f" "--callees f"; do
		for b in --children "--callers f" "--callees f" --csv "--html $tmp/page" \
			"-s symbol" "-s symbol,dso,comm"; do
			# shellcheck disable=SC2086 # words
			[ "$a" = "$b" ] || wrong $a $b || return
		done
	done
	wrong --callers && wrong --callees && refusals report -i "$tmp/plain.data" <<-END
		1 --children | $tmp/plain.data: there are no stacks; record with --stacks
		1 --callers f | $tmp/plain.data: there are no stacks; record with --stacks
		1 --callees f | $tmp/plain.data: there are no stacks; record with --stacks
		2 --children --callers f | --children and --callers exclude each other
		2 --callers f --callees f | --callers and --callees exclude each other
		2 -s dso --callees f | --callees and --sort exclude each other
	END
}

# What the kernel did is a row of its own key, and is called by the function of the pc.
stacks_kernel() {
	make_data kernel <<-'END' || return
		stacks
		file 1 @@/calls
		stack 1 0 0:0 0:0 1:@calls:middle+9 1:@calls:main+9
		call 1 0 0xc000003e read
		call 2 -1 0 page\x20fault
		call 3 0 0xc000003e read
		call 4 1 0xc000003e \x1b[2J;
		sample 1 1 @calls:other+4 0 55 20 1 1
		sample 1 1 @calls:other+4 0 0 10 1 2
		sample 1 1 @calls:other+4 0 0 5 1 3
		sample 1 1 @calls:main+4 0 0 5 0 4
		sample 1 1 @calls:main+4 0 0 4 0 99
		tick 1 0 0 0 0 0 1 3
	END
	same "   share     +-  system call
  55.00%  4.97%  [user mode]
  25.00%  4.33%  read
  10.00%  3.00%  page fault
   5.00%  2.18%  \x1b[2J;
   4.00%  1.96%  [unknown]
   1.00%  0.99%  [exec]" table kernel -s syscall &&
	same "read  other
page fault  other" eval "rows kernel -s syscall,symbol --symbol other | grep -v user" &&
	same "   share     +-  binary  symbol
  90.00%  3.00%  calls   other
   9.00%  2.86%  calls   main
   1.00%  0.99%  a       [exec]" table kernel &&
	same "a;[exec] 1
a;main 4
a;main;[\x1b[2J\x3b] 5
a;main;middle;other 55
a;main;middle;other;[page fault] 10
a;main;middle;other;[read] 25" folded kernel &&
	same "children     +-     self  binary    symbol
  99.00%  0.99%    4.00%  calls     main
  90.00%  3.00%   55.00%  calls     other
  90.00%  3.00%    0.00%  calls     middle
  25.00%  4.33%   25.00%  [kernel]  [read]
  10.00%  3.00%   10.00%  [kernel]  [page fault]
   5.00%  2.18%    5.00%  [kernel]  [\x1b[2J;]
   1.00%  0.99%    1.00%  a         [exec]" table kernel --children &&
	same "   share     +-  binary    symbol
  25.00%  4.33%  [kernel]  [read]
  25.00%  4.33%  calls       other
  25.00%  4.33%  calls         middle
  25.00%  4.33%  calls           main" table kernel --callers '[read]' &&
	same "   share     +-  binary    symbol
  90.00%  3.00%  calls     other
  25.00%  4.33%  [kernel]    [read]
  10.00%  3.00%  [kernel]    [page fault]
  55.00%  4.97%              [self]" table kernel --callees other &&
	same "note: 9.09% have no callers" eval "head_of kernel --children | grep ^note:"
}

# A lost block of a stack loses only its callers.
stacks_damaged() {
	local at nr
	make_data block <<-'END'
		stacks
		file 1 @@/calls
		stack 1 0 0:0 0:0 1:@calls:main+9
		sample 1 1 @calls:middle+4 0 1 0 1
	END
	at=$(grep -abo PROF "$tmp/block.data" | sed -n '6s/:.*//p')
	same "a;main;middle 1" folded block || return
	overwrite block $((at + 20)) x
	same "a;middle 1" eval "folded damaged 2>/dev/null" &&
	same "note: 100.00% lack a caller" eval "head_of damaged --children | grep lack" || return
	# The sum is right, but the block has fewer frames than it says.
	change_blocks block damaged 'block = blocks[4]
block[1] = block[1][:8] + struct.pack("<I", 2) + block[1][12:]' &&
	same "warning: the file is damaged; 80 bytes in 1 place cannot be read" \
		eval "head_of damaged --children | head -n 1" || return
	# A stack has at most 127 frames.
	for nr in 127 128; do
		change_blocks block deep$nr "nr, block = $nr, blocks[4]
block[1] = struct.pack('<IIII', 1, 0, nr, 0) + bytes(32) + nr * block[1][-16:]" || return
	done
	same "a;$(printf 'main;%.0s' {1..127})middle 1" folded deep127 &&
	same "warning: the file is damaged; 2112 bytes in 1 place cannot be read" \
		eval "head_of deep128 --children | head -n 1"
}

# Files of version 2 have shorter samples.
stacks_older_version() {
	change_blocks plain version2 'version = 2
for block in blocks:
    if block[0] == 5:
        block[1] = b"".join(block[1][i:i + 32] for i in range(0, len(block[1]), 40))' &&
	same "$(report plain -v)" report version2 -v
}

# walks TIME END [ADDRESS...]...: prints as what the recorder counts ticks, each with these words.
walks() {
	printf "walk $$ $tmp/calls 0x1000 %s\n" "$@" >"$tmp/description" &&
	XDG_CACHE_HOME=/proc/none "$tmp/replay" "$tmp/walks.data" <"$tmp/description" | xargs
}

# The table comes after the ticks with the time 0.
stacks_early() {
	# No address was found.
	same "lost lost lost lost lost" walks "0 0" "0 2" "0 3" "0 4" "0 5" &&
	same "end 1 end 6 end 7 end 8" walks "0 1" "0 6" "0 7" "0 8" &&
	same "complete end 2 end 3 end 4 end 5 end 8" walks "9 0" "9 2" "9 3" "9 4" "9 5" "9 8" || return
	# The frame pointer was followed from the pc, from a caller, and from the last one.
	same "lost lost lost" walks "0 0 0x1009" "0 0 0x1009t 0x1010" "0 0 0x1009t 0x1010t" &&
	same "lost lost lost lost" walks "0 2 0x1009t" "0 3 0x1009t" "0 4 0x1009t" "0 5 0x1009t" &&
	same "end 1 end 8" walks "0 1 0x1009t" "0 8 0x1009t" &&
	same "complete complete" walks "0 9 0x1009t" "9 9" &&
	same "complete end 2 end 5 end 8" walks "9 0 0x1009t" "9 2 0x1009t" "9 5 0x1009t" "9 8 0x1009t" &&
	# A tick that comes later has the same stack.
	same "lost complete lost" walks "0 0 0x1009t" "9 0 0x1009t" "0 0 0x1009t"
}

# The recorder keeps a bounded number of stacks. One that it has forgotten is written again. The id
# is larger than that of any process, so the recorder spends no time in /proc.
stacks_forgotten() {
	replay forgotten <<-END || return
		stacks 4194305 @@/calls 0x1000 3 2
		stacks 4194305 @@/calls 0x1100 20000 120
	END
	same "20005 1" eval "'$tmp/plain' export --format folded -i '$tmp/forgotten.data' 2>'$tmp/err' |
		awk '{ n += \$NF } END { print n, (NR > 1) }'" || return
	sed -i "s/20000/40000/" "$tmp/description"
	bounded 60 48 "$tmp/replay.plain" "$tmp/forgotten.data" <"$tmp/description"
}

# The same for mappings, of one process.
stacks_mappings() {
	bounded 60 80 "$tmp/replay.plain" "$tmp/mappings.data" <<<"mappings 4194305 400000" &&
	same "400000 1" eval "'$tmp/plain' export --format folded -i '$tmp/mappings.data' 2>/dev/null |
		awk '{ n += \$NF } END { print n, (NR > 0) }'" &&
	rm "$tmp/mappings.data"
}

if [ "$(uname -m)" != x86_64 ]; then
	skip "call chains" "the program for them is one of x86"
	return
fi
check "stacks: a program is assembled, and a recording is written" \
	eval "stacks_program && stacks_recording"
check "stacks: folded chains" stacks_folded
check "stacks: inclusive shares, in which recursion counts once" stacks_children
check "stacks: trees of callers and callees" stacks_trees
check "stacks: the heading says which callers are missing" stacks_heading
check "stacks: the caller of a function without a frame" stacks_repair
check "stacks: the caller of a function is lost" stacks_lost
check "stacks: the outermost function that was found has a caller" stacks_cut_off
check "stacks: functions of Go" stacks_go
check "stacks: inlined callers" stacks_inlined
check "stacks: what the kernel did" stacks_kernel
check "stacks: options that exclude each other" stacks_options
check "stacks: a damaged stack" stacks_damaged
check "stacks: a file of version 2" stacks_older_version
check "stacks: ticks before the table, as the recorder counts them" stacks_early
check "stacks: more than the recorder keeps" stacks_forgotten
check "stacks: more mappings than the recorder keeps" stacks_mappings
