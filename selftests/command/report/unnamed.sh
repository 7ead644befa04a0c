# SPDX-License-Identifier: GPL-2.0
#
# Tests of code without symbols: functions that have only an entry in the unwind table, and stubs of
# linkage tables.

# A program of three functions, and what strip leaves of it: two of them have no symbol. Code that no
# compiler made has no entry in the unwind table. The table can be .debug_frame, compressed.
unnamed_programs() {
	local kind flags=(-O1 -fcf-protection=none -fPIC -shared -nostdlib -static-libgcc
		-Wl,--build-id)
	cat >"$tmp/unnamed.c" <<-'END'
		int sink;
		#define FUNCTION(name) __attribute__((noinline)) int name(int n) \
			{ for (int i = 0; i < n; i++) sink += i * n; return sink + 1; }
		static FUNCTION(inner)
		static __attribute__((noinline)) int middle(int n) { return inner(n) + sink; }
		int outer(int n) { return middle(n) + sink; }
		__asm__(".text; .type bare, @function; bare: .fill 32, 1, 0x90; .size bare, 32");
	END
	for kind in 64 32; do
		gcc -m$kind "${flags[@]}" -fasynchronous-unwind-tables -o "$tmp/whole$kind.so" \
			"$tmp/unnamed.c" &&
		strip -o "$tmp/un$kind.so" "$tmp/whole$kind.so" || return
	done
	gcc "${flags[@]}" -g -gz -fno-asynchronous-unwind-tables -o "$tmp/wholeframe.so" \
		"$tmp/unnamed.c" &&
	strip --keep-section=.debug_frame -o "$tmp/unframe.so" "$tmp/wholeframe.so"
}

# Each function is a row, also in files of 32 bits. The note counts them, and code without an entry.
function_ranges() {
	local kind
	unnamed_programs || return
	for kind in 64 32 frame; do
		make_data un$kind <<-END || return
			file 1 @@/un$kind.so
			sample 1 1 @whole$kind.so:inner+0 0x10000000 20 0
			sample 1 1 @whole$kind.so:inner+9 0x10000000 20 0
			sample 1 1 @whole$kind.so:middle+1 0x10000000 30 0
			sample 1 1 @whole$kind.so:outer+1 0x10000000 20 0
			sample 1 1 @whole$kind.so:bare+0 0x10000000 6 0
			sample 1 1 @whole$kind.so:bare+31 0x10000000 4 0
		END
		same "  40.00%  4.90%  un$kind.so  un$kind.so+$(address "$tmp/whole$kind.so" inner)
  30.00%  4.58%  un$kind.so  un$kind.so+$(address "$tmp/whole$kind.so" middle)
  20.00%  4.00%  un$kind.so  outer
  10.00%  3.00%  un$kind.so  [no symbol]" eval "table un$kind | sed 1d" &&
		same "note: 80.00% have no symbol: un$kind.so" \
			eval "head_of un$kind | grep 'no symbol'" || return
	done
}

# In another place, the file has the same names. So they can be filtered, compared and annotated.
range_names() {
	local name
	name=un64.so+$(address "$tmp/whole64.so" inner)
	make_data moved <<-'END' || return
		thread 1 8 200 0 b
		file 1 @@/un64.so
		sample 1 1 @whole64.so:inner+5 0x7f0000000000 90 0
		sample 1 1 @whole64.so:middle+2 0x7f0000000000 10 0
	END
	same "un64.so  $name" rows moved --symbol "$name" &&
	same "$name" eval "'$tmp/profil' diff '$tmp/un64.data' '$tmp/moved.data' |
		sed -n 's/.* +0.200 .*  //p'" &&
	same "$name in un64.so: 40 ticks, 40.00% +- 4.90%" \
		eval "'$tmp/profil' annotate -i '$tmp/un64.data' '$name' | sed '1,/^$/d' | head -n 1" &&
	# All instructions of the function are there, and no other.
	same "$(objdump -d --no-show-raw-insn "$tmp/whole64.so" |
		sed -n '/<inner>:/,/^$/s/^ *\([0-9a-f]*\):.*/\1/p')" \
		eval "'$tmp/profil' annotate -i '$tmp/un64.data' '$name' |
		sed -n 's/^  .* \\([0-9a-f]\\{4,\\}\\)  .*/\\1/p' | sort -u"
}

# The names are in chains and in exports, and pprof, which does not know binaries, distinguishes them.
range_chains() {
	local inner middle
	inner=un64.so+$(address "$tmp/whole64.so" inner)
	middle=un64.so+$(address "$tmp/whole64.so" middle)
	make_data unchained <<-'END' || return
		stacks
		file 1 @@/un64.so
		stack 1 0 0:0 0:0 1:@whole64.so:middle+4 1:@whole64.so:outer+4
		sample 1 1 @whole64.so:inner+9 0x10000000 40 0 1
	END
	same "a;outer;$middle;$inner 40" \
		"$tmp/profil" export -i "$tmp/unchained.data" --format folded --output - &&
	same "un64.so  outer
un64.so  $inner
un64.so  $middle" eval "rows unchained --children | sed 's/^[^%]*%  //' | LC_ALL=C sort" &&
	same "1" eval "report unchained --callers '$inner' |
		grep -c '  $middle'" &&
	same "\"function\": \"$inner\", \"linkage_name\": null" eval \
		"'$tmp/profil' export -i '$tmp/unchained.data' --format json |
		grep -o '\"function\": \"$inner\", [^,]*'" &&
	same "1" eval "'$tmp/profil' export -i '$tmp/unchained.data' --format pprof |
		gzip -dcf | grep -aFc '$inner'" &&
	same "0" eval "'$tmp/profil' export -i '$tmp/unchained.data' --format pprof |
		gzip -dcf | grep -aFc 'un64.so $inner'"
}

# The recorder writes the names of a program that is gone at the report.
recorded_ranges() {
	cp "$tmp/un64.so" "$tmp/away.so" && replay away <<-END || return
		file 100 @@/away.so @whole64.so:inner+3
		file 100 @@/away.so @whole64.so:inner+5
		file 100 @@/away.so @whole64.so:outer+1
		run rm @@/away.so
	END
	same "away.so  away.so+$(address "$tmp/whole64.so" inner)
away.so  outer" rows away &&
	same "note: 66.67% have no symbol: away.so
  (only some of its functions were recorded)" notes away
}

# Each stub has the name of the function that it calls, as objdump finds it: at its first byte, and
# inside. In these files, offsets are addresses.
stubs() {
	local kind where name offsets want
	for kind in lazy now ibt narrow; do
		offsets=() want=()
		while read -r where name; do
			offsets+=("0x$where" 1 "$((0x$where + 6))" 1)
			want+=("$((0x$where))  $name" "$((0x$where + 6))  $name")
		done < <(objdump -d "$tmp/$kind.so" |
			sed -n 's/^0*\([0-9a-f]*\) <\(.*@plt\)>:$/\1 \2/p')
		[ ${#offsets[@]} -ge 16 ] || { echo "$kind: no stubs"; return 1; }
		make_ticks "$kind" "$kind.so" "${offsets[@]}" &&
		same "$(printf '%s\n' "${want[@]}" | sed 's/_ZN3app4doitEv/app::doit()/' | sort -n)" \
			eval "rows $kind -s offset,symbol | while read -r where name; do
				echo \"\$((where))  \$name\"; done | sort -n" && continue
		echo "$kind"
		return 1
	done
	same "_ZN3app4doitEv@plt
out1@plt
out2@plt
out3@plt" eval "rows narrow -s symbol --no-demangle | sort"
}

# section FILE NAME: prints the address and the size of a section, as numbers for the shell.
section() {
	readelf -SW "$1" | sed -n "s/^ *\[ *[0-9]*\] \\$2  *[A-Z]* *\([0-9a-f]*\) [0-9a-f]* \([0-9a-f]*\) .*/0x\1 0x\2/p"
}

# With lazy binding and branch tracking, a second table has the stubs that are used once. The code
# before the first stub of a table has the name of the table, and a table of other tables too.
lazy_stubs() {
	local start size name=ibt_lazy
	cd "$tmp" && gcc -O1 -fPIC -shared -nostdlib -static-libgcc calls.c -o $name.so \
		-fcf-protection=full -Wl,-z,ibtplt,-z,lazy && strip $name.so &&
	read -r start size < <(section $name.so .plt) &&
	make_ticks $name $name.so $((start)) 1 $((start + 16)) 1 $((start + 32)) 1 $((start + 48)) 1 &&
	same "[plt]
$(readelf -rW $name.so | awk '/JUMP_SLO/ { print $5 "@plt" }' | sed 's/_ZN3app4doitEv/app::doit()/' |
		head -n 3)" eval "rows $name -s offset,symbol | LC_ALL=C sort | sed 's/.*  //'"
}

# A library calls a function of its own that is chosen at run time: only its address, or its local
# symbol, tells which one.
own_stubs() {
	local start size kind
	cat >"$tmp/chosen.c" <<-'END'
		static int work(int n) { return n + 1; }
		static int (*choose(void))(int) { return work; }
		__attribute__((visibility("hidden"), ifunc("choose"))) int chosen(int n);
		int use(int n) { return chosen(n) + 1; }
	END
	cd "$tmp" && gcc -O1 -fPIC -shared -nostdlib -static-libgcc -fcf-protection=none -o chosen.so \
		chosen.c && cp chosen.so chosen_stripped.so && strip chosen_stripped.so || return
	for kind in chosen chosen_stripped; do
		read -r start size < <(section $kind.so .plt)
		make_ticks $kind $kind.so $((start + size - 16)) 1 || return
	done
	same "chosen@plt" rows chosen -s symbol &&
	same "chosen_stripped.so+$(address chosen.so choose)@plt" rows chosen_stripped -s symbol
}

# Other machines, and another linker. The order of relocations is that of the stubs.
foreign_stubs() {
	local target first start size want
	cd "$tmp" || return
	for target in x86_64:16 i386:16 aarch64:32 riscv64:32; do
		first=${target#*:} target=${target%:*}
		clang --target=$target-linux-gnu -fuse-ld=lld -O1 -fPIC -shared -nostdlib \
			-o foreign.so calls.c && llvm-strip foreign.so &&
		read -r start size < <(section foreign.so .plt) || return
		want=$(readelf -rW foreign.so | grep JUMP_SLO | sed 's/.* \([^ ]*\) + 0$/\1/; s/.* //;
			s/$/@plt/; s/_ZN3app4doitEv/app::doit()/')
		# Offsets differ from addresses.
		start=$((start - ($(readelf -lW foreign.so | awk '/LOAD.* E / { print $3 "-" $2 }'))))
		first=$((start + first))
		make_ticks foreign foreign.so $start 1 $first 1 $((first + 16)) 1 \
			$((first + 32)) 1 $((first + 48)) 1 &&
		same "[plt]
$want" eval "rows foreign -s offset,symbol | LC_ALL=C sort | sed 's/.*  //'" && continue
		echo "$target"
		return 1
	done
}

check "functions without symbols" function_ranges
check "names of functions without symbols" range_names
check "functions without symbols in chains" range_chains
check "functions without symbols in the recording" recorded_ranges
check "stubs of linkage tables" stubs
check "stubs with branch tracking and lazy binding" lazy_stubs
check "stubs of a library for its own functions" own_stubs
if "$root/selftests/need" clang lld llvm >/dev/null 2>&1; then
	check "stubs of other machines and linkers" foreign_stubs
else
	skip "stubs of other machines and linkers" "clang cannot be installed"
fi
