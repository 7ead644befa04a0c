# SPDX-License-Identifier: GPL-2.0
#
# Tests of profil diff.

# simulate NAME SEED HZ SECONDS [FUNCTION FACTOR]...: writes a recording of a program with 100
# functions, f0 to f99. The times of the functions are fixed, except that those of each FUNCTION are
# multiplied by FACTOR. The numbers of their ticks vary as those of real recordings.
simulate() {
	python3 - "${@:2}" <<-'END' | "$tmp/generate" "$tmp/$1.data"
		import math, random, sys
		seed, hz, seconds = (int(word) for word in sys.argv[1:4])
		factors = dict(zip(sys.argv[4::2], map(float, sys.argv[5::2])))
		chance = random.Random(seed)
		weights = [1 / (1 + i) for i in range(100)]
		print("clock", 10**9 // hz, "\nname 1 [anon]")
		for i, weight in enumerate(weights):
		    time = seconds * weight / 5.187378 * factors.get(f"f{i}", 1)
		    ticks, left = 0, hz * time + math.log(1 - chance.random())
		    while left > 0:
		        ticks, left = ticks + 1, left + math.log(1 - chance.random())
		    print(f"symbol 0x80000001 {16 * i + 16} {16 * i + 17} f{i}")
		    if ticks:
		        print(f"sample 1 1 {16 * i + 16} 0 {ticks} 0")
	END
}

# diff_of A B [OPTION...]: prints the comparison of two recordings without their headings.
diff_of() {
	"$tmp/profil" diff "${@:3}" "$tmp/$1.data" "$tmp/$2.data" | sed '1,/^$/d; s/ *$//'
}

# changed A B [OPTION...]: prints the names of the functions that have changed significantly.
changed() {
	diff_of "$@" | sed -n 's/^ .*\[jit\]  *//p'
}

# None of these comparisons of a program with itself may report a change.
same_program() {
	local seed
	for seed in {1..12}; do
		simulate one "$seed" 1000 8 && simulate two $((seed + 100)) 1000 8 || return
		same "no function changed significantly;" eval "diff_of one two | head -n 1" &&
		same "no function changed significantly;" \
			eval "diff_of one two --share | head -n 1" && continue
		echo "seed $seed"
		return 1
	done
}

slowed_function() {
	simulate slow 2 1000 10 f7 1.5 && simulate base 1 1000 10 &&
	same "1 of 100 functions changed significantly

    A (s)     B (s)    change     +-      p  binary  symbol
    0.234     0.368    +0.134  0.025  5e-06  [jit]   f7" diff_of base slow &&
	same "    0.368     0.234    -0.134  0.025  5e-06  [jit]   f7" \
		eval "diff_of slow base | tail -n 1" &&
	same "f7" changed base slow --share &&
	simulate twice 4 1000 10 f3 1.3 f60 0.1 && same "f3
f60" changed base twice
}

# The time is computed from the ticks, for any frequency and number.
other_frequencies() {
	simulate base 1 1000 10 && simulate slow 3 250 10 f2 1.8 &&
	same "f2" changed base slow && same "f2" changed slow base &&
	simulate same 5 250 10 && same "" changed base same || return
	# In a recording that is twice as long, all times differ, but the shares do not.
	simulate long 6 250 40 f9 1.7 &&
	same "f9" changed base long --share && same "f0" eval "changed base long | head -n 1"
}

# few NAME NS FUNCTION TICKS ...: writes a recording of these functions with few ticks.
few() {
	local name=$1 ns=$2 address=0
	shift 2
	{
		printf 'clock %s\nname 1 [anon]\n' "$ns"
		while [ $# -gt 0 ]; do
			address=$((address + 16))
			echo "symbol 0x80000001 $address $((address + 1)) $1"
			echo "sample 1 1 $address 0 $2 0"
			shift 2
		done
	} | make_data "$name"
}

# The probabilities are exact, and corrected for the number of functions.
probabilities() {
	few zero 1000000 f1 100 && few other 10000000 f2 100 && few one 10000000 f1 20 f2 100 &&
	few more 10000000 f1 40 f2 100 || return
	{
		for pair in "zero other" "zero one" "one more"; do
			read -r a b <<<"$pair"
			"$tmp/profil" diff --csv "$tmp/$a.data" "$tmp/$b.data"
			"$tmp/profil" diff --csv --share "$tmp/$a.data" "$tmp/$b.data"
		done | grep -v ^a,
	} 2>&1 | cut -d, -f1-4,5,6,8 >"$tmp/got"
	same 0 python3 -c "if True:
		from fractions import Fraction as F
		from math import comb
		def tail(p, b):
		    return 2 * min(sum(p(k) for k in p.ks if k >= b), sum(p(k) for k in p.ks if k <= b))
		class binomial:
		    def __init__(self, n, q): self.n, self.q, self.ks = n, q, range(n + 1)
		    def __call__(self, k): return comb(self.n, k) * self.q**k * (1 - self.q)**(self.n - k)
		class shares:
		    def __init__(self, n, a, b):
		        self.n, self.a, self.b, self.ks = n, a, b, range(max(0, n - a), min(n, b) + 1)
		    def __call__(self, k):
		        return F(comb(self.b, k) * comb(self.a, self.n - k), comb(self.a + self.b, self.n))
		wrong = 0
		rows = [line.strip().split(',') for line in open('$tmp/got')]
		want = []
		for f1, f2, q in [((100, 0), (0, 100), F(1, 11)), ((100, 20), (0, 100), F(1, 11)),
		                  ((20, 40), (100, 100), F(1, 2))]:
		    for share in (False, True):
		        chances = []
		        for a, b in (f1, f2):
		            p = shares(a + b, f1[0] + f2[0], f1[1] + f2[1]) if share else binomial(a + b, q)
		            chances.append(min(1, float(tail(p, b))))
		        low = min(1, 2 * min(chances))
		        want.append(sorted([low, max(low, max(chances))]))
		for i, pair in enumerate(want):
		    got = sorted(float(row[4]) for row in rows[2 * i:2 * i + 2])
		    if any(abs(g - w) > 0.006 * w for g, w in zip(got, pair)) or len(got) != 2:
		        print(i, got, pair)
		        wrong += 1
		print(wrong)"
}

# A tick that stands for many periods counts as one tick.
heavy_ticks() {
	few light 1000000 f1 900 &&
	make_data heavy <<-'END' || return
		clock 1000000
		name 1 [anon]
		symbol 0x80000001 32 33 f1
		sample 1 1 32 0 900 0
		symbol 0x80000001 48 49 f2
		tick 1 1 48 0 0 0 300 0
	END
	same "no function changed significantly;
  1.025 s instead of 0.900 s in f1, the hottest one, would be significant" diff_of light heavy &&
	same "no function changed significantly;
  no higher value instead of 100.00% in f1, the hottest one, would be significant" \
		diff_of light heavy --share
}

# The program was built again, elsewhere: @FILE:FUNCTION+N is another place.
rebuilt_program() {
	local program other
	for program in fixed sub/fixed; do
		# In one recording, there are two programs of this name.
		[ $program = fixed ] && other="file 2 @@/sub/fixed" || other=
		make_data "${program%/fixed}" <<-END || return
			meta 2 3 host 6.1 $program
			file 1 @@/$program
			$other
			sample 1 1 @$program:beta+4 0 300 0
			sample 1 1 @$program:gamma_+4 0 400 0
			sample 1 1 @$program:$([ $program = fixed ] && echo alpha || echo delta)+4 0 200 0
			sample 1 1 @$program:_ZN3app7computeEiPKc+1 0 300 0
		END
	done
	same "2 of 5 functions changed significantly
note: A and B have the same CPU time in total; if the program runs for a
  fixed time, a function that does less work seems to be faster

    A (s)     B (s)    change     +-      p  binary  symbol
    0.800     0.000    -0.800  0.057  6e-60  fixed   alpha
    0.000     0.800    +0.800  0.057  6e-60  fixed   delta" diff_of fixed sub
}

both_headings() {
	make_data damage <<-'END' || return
		meta 2 1 host 6.1 \x1b[2J
		sample 1 0 0x10 0 1000 0
		detached 103 /usr/bin/sudo
		cut
	END
	simulate base 1 1000 10 &&
	same "warning: only one of the recordings has ticks in the kernel
A: $tmp/base.data
command: a
10,000 samples at 1,000 Hz: 10.00 s of CPU time
B: $tmp/damage.data
warning: the recording was cut off; its last second may be missing
warning: not followed: /usr/bin/sudo gains privilege (1 exec)
command: \\x1b[2J
1,000 samples at 250 Hz
note: 100.00% have no symbol: [unknown]
  (unmapped before the interrupted thread returned to user mode)" eval "'$tmp/profil' diff '$tmp/base.data' '$tmp/damage.data' | sed '/^$/,\$d'" &&
	same "warning: only one of the recordings has ticks in the kernel
$tmp/damage.data:
warning: the recording was cut off; its last second may be missing
warning: not followed: /usr/bin/sudo gains privilege (1 exec)" eval \
		"'$tmp/profil' diff --csv '$tmp/base.data' '$tmp/damage.data' 2>&1 >'$tmp/out'"
}

# Recordings without samples are compared, too.
empty_recordings() {
	few none 1000000 && few some 1000000 f1 100 &&
	same "no function changed: there are no samples" diff_of none none &&
	same "    0.100     0.000    -0.100  0.010  2e-30  [jit]   f1" \
		eval "diff_of some none | tail -n 1" &&
	refuses 1 "profil diff: $tmp/none.data: there are no samples, so there are no shares" \
		diff --share "$tmp/some.data" "$tmp/none.data"
}

diff_errors() {
	few some 1000000 f1 100 && few still 0 f1 100 &&
	make_data lost <<-'END' || return
		sample 1 0 0x10 0 1 0
		cut
	END
	overwrite lost $(($(stat -c %s "$tmp/lost.data") - 24)) 'eight by'
	refusals diff <<-END &&
		2 | two recordings are needed
		2 $tmp/some.data | two recordings are needed
		2 a b c | unexpected argument "c"
		2 --sort | unrecognized option '--sort'\nSee "profil diff --help".
		1 $tmp/some.data $tmp/nothing | $tmp/nothing: No such file or directory
		1 $tmp/text $tmp/some.data | $tmp/text: not a recording of profil
		1 --symfs $tmp/nothing $tmp/some.data $tmp/some.data | $tmp/nothing: No such file or directory
		1 $tmp/some.data $tmp/still.data | $tmp/still.data: its frequency is not known; use --share
		1 $tmp/damaged.data $tmp/some.data | $tmp/damaged.data: no sample can be read
	END
	same "profil: standard output: No space left on device" \
		eval "'$tmp/profil' diff '$tmp/some.data' '$tmp/some.data' 2>&1 >/dev/full" &&
	same "no function changed significantly;" eval "diff_of some still --share | head -n 1" &&
	"$tmp/profil" diff --help | grep -q '^usage: profil diff'
}

diff_names() {
	local width
	few none 1000000 && few hostile 1000000 'f1\x1b[2J' 10 && make_data names <<-'END' || return
		clock 1000000
		thread 1 7 100 0 a
		thread 2 7 100 101 \x1b]0;x\x9b
		name 1 [an\x1b[31mon]
		sample 1 1 0x10 0 100 0
		name 2 \xe2\x80\xae/gpj.exe
		sample 1 2 0x10 0 100 0
		file 3 @@/fixed
		sample 1 3 @fixed:_ZN3app7computeEiPKc+1 0 100 0
		name 4 [anon]
		symbol 0x80000001 0x20 0x21 a"b\x0a\xff,\xe2\x82\xac
		sample 1 4 0x20 0x10 100 0
		tick 2 0 0 0 0 0 100 4
	END
	same "" eval "{ diff_of none names; diff_of hostile hostile; } | LC_ALL=C tr -d '\n -~\342\202\254'" &&
	same "fixed                 app::compute(...)" eval "COLUMNS=84 diff_of none names | grep -o 'fixed.*'" &&
	same "fixed                 _ZN3app7computeEiPKc" eval \
		"diff_of none names --no-demangle --full-names | grep -o 'fixed.*'" &&
	same "{'a': '0', 'b': '0.1', 'change': '0.1', 'error': '0.01', 'p': '7.89e-30', 'changed': '1', \
'dso': '[jit]', 'symbol': 'a\"b\\\\x0a\\\\xff,€'}" eval "'$tmp/profil' diff --csv '$tmp/none.data' '$tmp/names.data' |
		python3 -c 'import csv, sys
for row in csv.DictReader(sys.stdin, strict=True):
    if row[\"dso\"] == \"[jit]\": print(row)'" || return
	for width in 40 50 60 70 80 90; do
		diff_of none names --no-pager >/dev/null || return
		COLUMNS=$width diff_of none names | sed 1d | wc -L
	done >"$tmp/got"
	same "$(printf '%s\n' 49 50 60 70 77 84)" cat "$tmp/got"
}

diff_terminal() {
	few none 1000000 && few some 1000000 f1 100 &&
	in_colour "    0.000     0.100 ^[31m   +0.100^[m  0.010  2e-30  [jit]   f1" ' f1$' \
		diff "$tmp/none.data" "$tmp/some.data" &&
	in_colour "    0.100     0.000 ^[32m   -0.100^[m  0.010  2e-30  [jit]   f1" ' f1$' \
		diff "$tmp/some.data" "$tmp/none.data"
}

check "diff: a program and itself" same_program
check "diff: a slower function" slowed_function
check "diff: other frequencies and durations" other_frequencies
check "diff: probabilities" probabilities
check "diff: ticks that stand for many periods" heavy_ticks
check "diff: a program that was built anew" rebuilt_program
check "diff: both headings and all warnings" both_headings
check "diff: recordings without samples" empty_recordings
check "diff: hostile and long names" diff_names
check "diff: colours and the pager of a terminal" diff_terminal
check "diff: errors" diff_errors
