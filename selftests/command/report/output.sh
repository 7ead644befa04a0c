# SPDX-License-Identifier: GPL-2.0
#
# Tests of the contents and the layout of reports: widths, weights, warnings, filters, CSV, the
# terminal.

# named_samples FILE <NAMES: prints a function of the file and samples for each name. Each function
# has fewer samples than the one before it.
named_samples() {
	local name number=0
	while IFS= read -r name; do
		number=$((number + 16))
		echo "symbol $1 $number $((number + 1)) ${name// /\\x20}"
		echo "sample 1 1 $number 0 $((300 - number)) 0"
	done
}

# The names are those of a JIT compiler, because these can be any text.
widths() {
	local width profil=$profil
	cat >"$tmp/long" <<-'END'
		app::compute(int, char const*)
		std::vector<int, std::allocator<int> >::push_back(int const&)
		std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char)
		bool operator< <int>(foo<int> const&, foo<int> const&)
		void run<&A::operator>, (2)>(1)>(int, int (*)(char))
		auto f(int)::{lambda(int, long)#1}::operator()<char*>(char*) const [clone .cold]
		decltype ((forward<int>)(declval<int>())) pass<int, 3>(int&&, int&&)
		(anonymous namespace)::worker(std::string const&, std::string const&)
		main.(*Type[go.shape.int,go.shape.string]).Work.func1.deferwrap2
		<fn(u8) -> u32 as core::ops::function::FnOnce<(u8,)>>::call_once
		core::ops::<impl core::ops::FnMut<A> for core::option::Option<A>>::call_mut
		mycrate::run::<alloc::vec::Vec<u8>, fn(u8) -> u32>::{closure#0}::{closure#1}
		LazyCompile:*compute /srv/users/project/with/a/long/path/app.js:123:45
		日本語の関数の名前はとても長いので、この報告では短くしなければならない。
		std::map<int, std::vector<int> >::find(int const&) const (inlined)
		unbalanced<(int, int, int>::operator<<<, and now it is long enough to be cut
		std::istream& std::operator>><char, std::allocator<char> >(std::istream&, char&)
	END
	{
		echo "name 1 [anon]"
		named_samples 0x80000001 <"$tmp/long"
	} | make_data widths || return
	same "$(cat "$tmp/long")" eval "rows widths --full-names -s symbol" &&
	COLUMNS=62 same "app::compute(int, char const*)
std::vector<...>::push_back(...)
std::operator<< <std::char_traits<...> >(...)
operator< <int>(...)
run<&A::operator>, (2)>(1)>(...)
auto f(int)::{...::operator()<...>(...) const
decltype (...) pass<int, 3>(...)
(anonymous namespace)::worker(...)
main.(*Type[go.shap...).Work.func1.deferwrap2
<fn(u8) -> u32 as core::ops::fu...::call_once
core::ops::<impl core::ops::FnMu...::call_mut
mycrate::run::<...>::{closure#0}::{closure#1}
LazyCompile:*comput...long/path/app.js:123:45
日本語の関数の名前...くしなければならない。
std::map<...>::find(...) const (inlined)
unbalanced<(int, in...s long enough to be cut
std::operator>><...>(...)" rows widths -s symbol || return
	profil=$tmp/plain
	for width in {40..120}; do
		COLUMNS=$width table widths -s process,thread,cpu,symbol,dso | wc -L
	done >"$tmp/got"
	same "$(printf '%s\n' {40..120})" cat "$tmp/got"
}

# Names that would look the same keep the words that differ.
twins() {
	local string='std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >'
	local sort='void std::sort<It<@*, std::vector<@, std::allocator<@> > >, Less>(It<@*>, It<@*>)'
	local tree='std::_Rb_tree<@, std::pair<@ const, int>, std::less<@> >::find(@ const&)'
	local loop='void std::__introsort_loop<It<@*, std::vector<@> >, long>(It<@*>, It<@*>) [clone .isra.0]'
	printf '%s\n' "${loop//@/char}" "${loop//@/short}" "${sort//@/double}" \
		"${sort//@/int}" "${sort//@/$string}" "${tree//@/A}" "${tree//@/B}" \
		"compute(unsigned int, a_type_with_a_long_name const&)" \
		"compute(unsigned long, a_type_with_a_long_name const&)" \
		"a::namespace_with_a_long_name::and_another_one::Class::function(A const&)" \
		"$string::_M_mutate(unsigned long, unsigned long, char const*)" >"$tmp/long"
	: >"$tmp/a_library_with_a_long_name.so"
	{
		echo "file 1 @@/a_library_with_a_long_name.so"
		named_samples 1 <"$tmp/long"
	} | make_data twins || return
	COLUMNS=60 same "std::__introsort_loop<...char*...>(...)
std::__introsort_loop<...short*...>(...)
std::sort<It<double*...>, Less>(...)
std::sort<It<int*...>, Less>(...)
std::sort<It<std::string*...>, Less>(...)
std::_Rb_tree<A...>::find(...)
std::_Rb_tree<B...>::find(...)
compute(...int...)
compute(...long...)
...::and_another_one::Class::function(...)
std::string::_M_mutate(...)" rows twins -s symbol || return
	# A name that can be short leaves room for the other columns.
	COLUMNS=67 same "a_library_with_a_long_name.so std::sort<...>(...)" \
		eval "rows twins --symbol '*sort*double*' | xargs"
}

# The lines before the table lose their middle, too, unless all of it is wanted.
long_lines() {
	local long=$tmp/a_directory_with_a_long_name_and_more/another_directory_with_a_long_name width
	mkdir -p "$long/x" && cp "$tmp/stripped" "$long/x/program" &&
	cp "$tmp/stripped" "$long/program" && make_data lines <<-END || return
		meta 2 3 host 6.1 $long/x/program --option
		file 1 $long/x/program
		sample 1 1 @fixed:alpha+4 0 4 0
		file 2 $long/program
		sample 1 2 @fixed:alpha+4 0 4 0
		detached 100 $long/sudo
	END
	for width in 40 80 100 120; do
		COLUMNS=$width head_of lines --dso "$tmp/*" >"$tmp/got"
		[ "$(wc -L <"$tmp/got")" = $((width < 80 ? 80 : width)) ] && continue
		cat "$tmp/got"
		return 1
	done
	grep '^warning: not followed: /tmp/.*[.][.][.].*/sudo gains privilege (1 exec)$' "$tmp/got" &&
	head_of lines --full-names | grep "^  $long/program 50.00%$" &&
	head_of lines -v | grep "^command: $long/x/program --option$"
}

weights() {
	make_data weights <<-'END'
		meta 2 3 host 6.1 ./sort text
		thread 1 7 100 100 sort
		thread 2 7 100 101 worker
		thread 3 8 102 102 sh
		file 1 @@/fixed
		tick 1 1 @fixed:alpha+4 0 0 0 1 0
		tick 1 1 @fixed:alpha+4 0 500 1 5 0
		tick 2 1 @fixed:beta+4 0 1000 1 1 1
		tick 2 0 0 0 1500 0 1 4
		tick 1 0 0 0 2000 0 1 5
		tick 3 0 0 0 2000 0 1 2
		detached 103 /usr/bin/sudo
		detached 104 /usr/bin/su
		detached 105 /usr/bin/sudo
		detached 106 ./secret 1
		account 8 0 6 1 3 3 4 3 1
	END
	# One tick stands for 5 of the 10 periods. The errors are those of 10 * 10 / 30 ticks. More
	# ticks were missed than there are in the CPU time.
	same "   share     +-  binary  symbol
  60.00% 26.83%  fixed   alpha
  10.00% 16.43%  fixed   beta
  10.00% 16.43%  sh      [exec]
  10.00% 16.43%  sort    [exit]
  10.00% 16.43%  worker  [exit]" table weights &&
	same "   share     +-  process   symbol
  60.00% 26.83%  sort 100  alpha
  20.00% 21.91%  sort 100  [exit]
  10.00% 16.43%  sort 100  beta
  10.00% 16.43%  sh 102    [exec]" table weights -s process,symbol &&
	same "   share     +-  binary
  70.00% 25.10%  fixed
  20.00% 21.91%  [exit]
  10.00% 16.43%  [exec]" table weights -s dso &&
	same "   share     +-  CPU
  60.00% 26.83%  1
  40.00% 26.83%  0" table weights -s cpu &&
	same "   share     +-  second
  60.00% 26.83%  0
  20.00% 21.91%  1
  20.00% 21.91%  2" table weights -s time &&
	same "warning: not followed: ./secret is not readable (1 exec)
warning: not followed: /usr/bin/su gains privilege (1 exec)
warning: not followed: /usr/bin/sudo gains privilege (2 execs)
warning: 4 of 12 ticks (33.33%) were missed;
  each counts with the next sample: shares can be wrong by more than +- says
command: ./sort text
6 samples at 250 Hz: 0.01 s of CPU time" head_of weights
}

# Lost ticks cause a warning only if they can change a share by more than its error.
losses() {
	local sample="sample 1 0 0x10 0 10000 0"

	printf '%s\n' "$sample" "account 10049 0 10000 49 10000 0 50 10060" | make_data few_lost
	printf '%s\n' "$sample" "account 10060 0 10000 60 10000 0 60 10120" | make_data lost
	same "" eval "head_of few_lost | grep warning" &&
	same "warning: 60 of 10,060 ticks (0.60%) left no sample
warning: 60 of 10,120 ticks (0.59%) were missed;
  each counts with the next sample: shares can be wrong by more than +- says
command: a
10,000 samples at 250 Hz: 40.48 s of CPU time
note: 100.00% have no symbol: [unknown]
  (unmapped before the interrupted thread returned to user mode)" head_of lost
}

attached() {
	make_data attached <<-'END'
		meta 6 3 host 6.1
		end 0 3
	END
	same "process 100: /usr/bin/program
no samples: it used no CPU time" report attached || return
	# The detached program can be the reason, too.
	make_data detached <<-'END'
		meta 2 3 host 6.1 sudo make
		detached 100 /usr/bin/sudo
	END
	same "warning: not followed: /usr/bin/sudo gains privilege (1 exec)
command: sudo make
0 samples at 250 Hz: 0.00 s of CPU time" report detached
}

# The processes that outlive the command are in no recording of the machine or of -p.
left() {
	local flags
	for flags in 2 6 8; do
		make_data left$flags <<-END
			meta $flags 3 host 6.1 a
			account 0 0 0 0 0 0 0 0 0 2
		END
	done
	same "command: a
no samples: it used no CPU time
note: 2 processes of the command still ran when the recording ended" \
		report left2 &&
	same "" eval "report left6 | grep still" &&
	same "" eval "report left8 | grep still"
}

# The CPU time of the machine is not measured, so the heading and the accounting line have none.
machine() {
	make_data machine <<-'END'
		meta 8 3 host 6.1 the whole machine (2 CPUs), during: sleep 1
		thread 1 0x8000000000000007 100 0 sleep
		thread 2 0x8000000000000007 200 0 other
		sample 1 0 0x10 0 30 0
		sample 2 0 0x20 0 10 0
		account 42 0 42 0 42 0 0 42 2
	END
	same "the whole machine (2 CPUs), during: sleep 1
40 samples at 250 Hz" eval "report machine | head -n 2" &&
	same "ticks 42: hit 0 outside 42 saturated 0 dropped 0, missed 0; user 42 system 0" eval \
		"report machine -v | grep ticks" &&
	same "sleep 100
other 200" rows machine -s process &&
	echo "meta 8 3 host 6.1 the whole machine (1 CPU)
account 0 0 0 0 0 0 0 0
end 0 3" | make_data idle &&
	same "the whole machine (1 CPU)
0 samples at 250 Hz" report idle
}

# summary WANT TICKS OWN EXPECTED MISSED UNSELECTED DETACHED FLAGS SAMPLES [MACHINE [refused]]:
# checks the summary of profil record.
summary() {
	same "$1" "$tmp/summary" "${@:2}"
}

summaries() {
	local none="profil record: no samples"
	summary "$none: process 1 (a) used no CPU time, or less than 1 ms" 0 0 0 &&
	summary "$none: process 1 (a) used no CPU time, or less than 3 ms" 1 1 3 &&
	summary "$none: process 1 (a) used no CPU time, or less than 3001 ms" 0 0 3000 &&
	summary "$none" 0 0 3000 0 3000 &&
	summary "$none" 3 3 3 0 0 0 0 0 "the whole machine (2 CPUs)" &&
	summary "profil record: 98 samples at 1,000 Hz of the whole machine (2 CPUs)." \
		100 2 100 0 0 0 0 98 "the whole machine (2 CPUs)" &&
	summary "$none
profil record: not followed: ./secret gains privilege (1 exec)" 3 3 3 0 0 1 0 &&
	summary "profil record: 100 samples at 1,000 Hz, 0.1 s of CPU time.
profil record: not followed: ./secret is not readable (1 exec)" 100 0 101 1 0 1 1 100 &&
	summary "profil record: 98 samples at 1,000 Hz, 0.1 s of CPU time; 1 more not written.
profil record: warning: 2 of 101 ticks (2%) were missed: the timer came late.
Each one is counted with the next sample, which can be in other code." 99 0 101 2 0 0 0 98 &&
	summary "profil record: 98 samples at 1,000 Hz of the whole machine (2 CPUs).
profil record: warning: the module has refused unwind tables: this user has too many, or
there is too little memory. Some stacks are incomplete." \
		100 2 100 0 0 0 0 98 "the whole machine (2 CPUs)" refused
}

# only DATA WANT FILTER...: checks the heading and the rows that the filter leaves.
only() {
	local data=$1 want=$2
	shift 2
	same "only $*: $want" eval "head_of $data $(printf ' %q' "$@") | grep only
		rows $data $(printf ' %q' "$@")"
}

filters() {
	# The percentages are relative to the 10 periods.
	only weights "2 of 6 ticks (20.00%)
fixed  beta
worker  [exit]" --comm worker &&
	only weights "3 of 6 ticks (70.00%)
fixed  alpha
fixed  beta" --dso fixed &&
	only weights "3 of 6 ticks (70.00%)
fixed  alpha
fixed  beta" --dso "$tmp/*" &&
	only weights "1 of 6 ticks (10.00%)
sh  [exec]" --symbol '[exec]' &&
	only weights "2 of 6 ticks (20.00%)
fixed  beta
worker  [exit]" --thread 101 &&
	only weights "1 of 6 ticks (10.00%)
fixed  alpha" --cpu 0 --symbol 'al*' &&
	only weights "2 of 6 ticks (60.00%)
fixed  alpha
fixed  beta" --from 0.5 --to 1.001 &&
	only names "5 of 15 ticks (33.33%)
fixed  app::compute(int, char const*)" --symbol app::compute || return
	same "profil report: $tmp/weights.data: no sample matches --comm none --cpu 1" \
		eval "report weights --comm none --cpu 1 2>&1 >'$tmp/out'" ||
		return
	! report weights --from 2.001 >/dev/null 2>&1
}

csv() {
	make_data csv <<-'END'
		thread 1 7 100 0 a"b,\x0a\x20c
		file 1 @@/fixed
		sample 1 1 @fixed:_ZN3app7computeEiPKc+1 0 2 1
		tick 1 1 @fixed:beta+1 0 0 0 5 1
		account 4 0 4 0 2 2 2 6
	END
	report csv --csv -s symbol,comm >"$tmp/csv" 2>"$tmp/err" &&
	same "warning: 2 of 6 ticks (33.33%) were missed;
  each counts with the next sample: shares can be wrong by more than +- says" \
		cat "$tmp/err" &&
	same "{'share': '0.62500000', 'error': '0.32021721', 'samples': '1', 'user': '0', \
'system': '5', 'comm': 'a\"b,\\\\x0a c', 'symbol': 'beta'}
{'share': '0.37500000', 'error': '0.32021721', 'samples': '3', 'user': '2', \
'system': '1', 'comm': 'a\"b,\\\\x0a c', 'symbol': 'app::compute(int, char const*)'}" \
		python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1], newline=""), strict=True): print(row)' "$tmp/csv"
}

# in_colour LINE PATTERN ARGUMENT...: checks the line of the output of profil that matches: on a
# terminal with colours; without them; and without the pager. The pager gets the output.
in_colour() {
	local line=$1 plain pattern=$2 command="$tmp/profil ${*:3}"
	plain=$(sed 's/\^\[[0-9]*m//g' <<<"$line")
	same "$line" eval "on_terminal 100 'TERM=xterm PAGER=cat $command' | grep '$pattern'" &&
	same "$plain" eval "on_terminal 100 'NO_COLOR=1 PAGER=cat $command' | grep '$pattern'" &&
	same "$plain" eval "on_terminal 100 'TERM=dumb PAGER=false $command --no-pager' |
		grep '$pattern'" &&
	same "paged" on_terminal 100 "export TERM=dumb PAGER='sed -n 1s/.*/paged/p'; $command"
}

terminal() {
	local command="TERM=xterm PAGER=cat $tmp/profil report -i $tmp/weights.data" table
	local plain="  60.00% 26.83%  fixed   alpha" colour="^[31m  60.00%^[m 26.83%  fixed   alpha"

	same "^[33mwarning: not followed: ./secret is not readable (1 exec)" \
		eval "on_terminal 80 '$command' | head -n 1" &&
	same "^[mcommand: ./sort text" eval "on_terminal 80 '$command' | grep command" &&
	in_colour "$colour" alpha report -i "$tmp/weights.data" &&
	same "$colour" eval "on_terminal 80 'NO_COLOR= $command' | grep alpha" &&
	same "$plain" eval "on_terminal 80 'TERM=dumb; export TERM; ${command#* }' | grep alpha" &&
	same "$plain" eval "$command | grep alpha" &&
	# Warnings are on standard error, and have no colours between the values.
	same "" eval "on_terminal 80 '$command --csv' | grep -F '^['" || return
	# The pager gets all lines, and profil waits for it.
	command="$tmp/profil report -i $tmp/weights.data"
	table=$(table weights --comm sh | tail -n 1)
	same "paged: $table
end" on_terminal 80 "export TERM=dumb PAGER='sleep 1; tail -n 1 | sed s/^/paged:\ /'
		$command --comm sh && echo end" &&
	same "$table" on_terminal 80 "export TERM=dumb PAGER='echo no'
		$command --comm sh --no-pager | cat | tail -n 1" &&
	same "$table" on_terminal 80 "export TERM=dumb PAGER=false
		$command --comm sh --no-pager >$tmp/out; tail -n 1 $tmp/out" &&
	same "0" on_terminal 80 "PAGER=true $command; echo \$?" || return
	# Options of less that the user has set do not prevent colours.
	same "$colour" eval "on_terminal 80 'TERM=xterm PAGER=less LESS=-iFX $command' |
		grep alpha | sed 's/\^\[m\$//'"
}

check "long names and narrow terminals" widths
check "long names that look the same" twins
check "long lines before the table" long_lines
check "weighted ticks, exec, exit and programs that were not followed" weights
check "warnings of lost and missed ticks" losses
check "a process that used no CPU time" attached
check "a recording of the machine" machine
check "processes that outlive the command" left
check "the summary of profil record" summaries
check "filters" filters
check "comma-separated values" csv
check "colours and the pager of a terminal" terminal
