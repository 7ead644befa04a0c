# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions that print the results of tests as TAP. Scripts read this file.

number=0 failed=0

# verdict STATUS NAME: prints a result, which is good if STATUS is 0. Returns STATUS.
verdict() {
	local result=ok
	number=$((number + 1))
	[ "$1" -eq 0 ] || { failed=$((failed + 1)) && result='not ok'; }
	echo "$result $number $2"
	return "$1"
}

# check NAME COMMAND...: runs one test, in a subshell. If COMMAND fails, prints the end of its output.
check() {
	local name=$1 output status=0
	shift
	output=$("$@" 2>&1 </dev/null) || status=$?
	[ $status -eq 0 ] || printf '%s\n' "$output" | tail -n 200 | sed 's/^/# /'
	verdict $status "$name"
}

# skip NAME REASON
skip() {
	number=$((number + 1))
	echo "ok $number $1 # SKIP $2"
}

# finish: prints the number of tests. Returns 0 if none has failed.
finish() {
	echo "1..$number"
	[ $failed -eq 0 ]
}
