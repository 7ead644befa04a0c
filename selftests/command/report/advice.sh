# SPDX-License-Identifier: GPL-2.0
#
# Tests of the notes that say how to get names.

# stand_in NAME <SCRIPT: makes a program NAME, which writes its arguments to $tmp/asked.
stand_in() {
	mkdir -p "$tmp/bin" && {
		echo '#!/bin/bash'
		printf 'printf "<%%s> " "${0##*/}" "$@" >>%q; echo >>%q\n' "$tmp/asked" "$tmp/asked"
		cat
	} >"$tmp/bin/$1" && chmod +x "$tmp/bin/$1"
}

# advice DATA [OPTION...]: prints the notes about symbols, with the stand-ins.
advice() {
	: >"$tmp/asked"
	PATH=$tmp/bin:$PATH report "$@" |
		sed -n '/^$/q; /have no symbol/,${/^note.*stacks\|^call/!p}'
}

# A program and a library of packages, with the names that packages can have.
packaged_programs() {
	local id_one id_two
	mkdir -p "$tmp/usr" && cp "$tmp/stripped" "$tmp/usr/one" && cp "$tmp/dynamic.so" "$tmp/usr/two.so" &&
	id_one=$(build_id "$tmp/usr/one") && id_two=$(build_id "$tmp/usr/two.so") &&
	make_data packaged <<-'END' || return
		file 1 @@/usr/one
		sample 1 1 @fixed:hidden+3 0 40 0
		file 2 @@/usr/two.so
		sample 1 2 @shared.so:hidden+3 0 60 0
	END
	stand_in dpkg-query <<-END
		case \$1 in
		--search) echo "diversion by other from: $tmp/usr/one"
			echo "one-base: $tmp/usr/one"; echo "libtwo1:$(dpkg --print-architecture): $tmp/usr/two.so" ;;
		--show) echo "one-base one"; echo "libtwo1:$(dpkg --print-architecture) two" ;;
		esac
	END
	printf 'Package: %s\nVersion: 2\nFilename: pool/x.deb\nBuild-Ids: 00 %s 11\n\n' one-debug "$id_one" \
		libtwo1-dbgsym "$id_two" >"$tmp/lists"
	stand_in apt-cache <<-END
		cat '$tmp/lists'
		exit 100
	END
}

# One note has all packages. Their names are in the lists, whatever they are.
packages_found() {
	packaged_programs &&
	same "note: 100.00% have no symbol: one 40.00%, two.so 60.00%
  (apt install one-debug libtwo1-dbgsym; or set DEBUGINFOD_URLS)" advice packaged &&
	sed -i 's/ $//' "$tmp/asked" && same "<dpkg-query> <--search> <--> <$tmp/usr/one> <$tmp/usr/two.so>
<dpkg-query> <--show> <--showformat=\${binary:Package} \${source:Package}\\n> <--> <one-base> <libtwo1:$(dpkg --print-architecture)>
<apt-cache> <show> <--> <one-base> <one-base-dbgsym> <one-base-dbg> <one-base-debug> <one-dbgsym> <one-dbg> <one-debug> <libtwo1:$(dpkg --print-architecture)> <libtwo1-dbgsym> <libtwo1-dbg> <libtwo1-debug> <two-dbgsym> <two-dbg> <two-debug>" \
		cat "$tmp/asked" &&
	same "  (apt install one-debug libtwo1-dbgsym)" \
		eval "DEBUGINFOD_URLS=/nothing advice packaged | tail -n 1" &&
	# An older version of the package has the file.
	sed -i '1i Package: one-debug\nVersion: 3\nBuild-Ids: 22\n' "$tmp/lists" &&
	same "  (apt install one-debug=2 libtwo1-dbgsym; or set DEBUGINFOD_URLS)" \
		eval "advice packaged | tail -n 1"
}

# The lists have only packages of another version, or none.
packages_missing() {
	packaged_programs &&
	printf 'Package: one-debug\nVersion: 2\nFilename: x.deb\nBuild-Ids: 00 11\n\n' >"$tmp/lists" &&
	same "note: 40.00% have no symbol: one
  (apt has another version: apt install one-base one-debug, and record again; or
  set DEBUGINFOD_URLS)
note: 60.00% have no symbol: two.so
  (add the archive of debug packages to apt's sources, and apt install
  libtwo1-dbgsym; or set DEBUGINFOD_URLS)" advice packaged &&
	# dpkg's status is not a list of apt.
	printf 'Package: one-base\nStatus: install ok installed\nVersion: 2\n\n' >"$tmp/lists" &&
	same "note: 100.00% have no symbol: one 40.00%, two.so 60.00%
  (apt has no lists of packages: apt update, and report again; or set
  DEBUGINFOD_URLS)" advice packaged
}

# A page is for other machines, and --symfs has files of others, so nothing is asked.
packages_not_asked() {
	packaged_programs && : >"$tmp/asked" &&
	PATH=$tmp/bin:$PATH report packaged --html "$tmp/page" &&
	same "" cat "$tmp/asked" && grep -q 'install its debug package; compile' "$tmp/page" &&
	mkdir -p "$tmp/root$tmp/usr" && cp "$tmp/usr/one" "$tmp/usr/two.so" "$tmp/root$tmp/usr" &&
	same "note: 100.00% have no symbol: one 40.00%, two.so 60.00%
  (install its debug package; compile programs of your own with -g, and do not
  strip them)" advice packaged --symfs "$tmp/root" && same "" cat "$tmp/asked" || return
	# A package is not of the recorded file if that has changed.
	cp "$tmp/sub/fixed" "$tmp/usr/one" && same "  (changed since the recording)" \
		eval "advice packaged | sed -n 2p" && ! grep one "$tmp/asked"
}

# Programs that hang, print without end, or are missing. The command waits for 1 s instead of 10 s.
packages_unknown() {
	local start=$SECONDS program profil=$tmp/hurried
	packaged_programs || return
	for program in 'sleep 1000' 'yes "Package: one-debug"'; do
		stand_in apt-cache <<<"$program"
		same "note: 100.00% have no symbol: one 40.00%, two.so 60.00%
  (set DEBUGINFOD_URLS to the debuginfod server of the distribution)" advice packaged || return
	done
	[ $((SECONDS - start)) -lt 60 ] || { echo "$((SECONDS - start)) s"; return 1; }
	mkdir -p "$tmp/no_programs" &&
	same "  (set DEBUGINFOD_URLS to the debuginfod server of the distribution)" \
		eval "PATH='$tmp/no_programs' report packaged | grep 'set DEB'"
}

# A path is an argument of a program, and never a pattern or a command.
packages_hostile() {
	local path
	packaged_programs && mkdir -p "$tmp/-n; touch ran" &&
	for path in "$tmp/-n; touch ran/\$(touch ran)" "$tmp/usr/t*" "$tmp/usr/new"$'\n'"line"; do
		cp "$tmp/stripped" "$path"
	done &&
	make_data hostile_packages <<-'END' || return
		file 1 @@/-n;\x20touch\x20ran/$(touch\x20ran)
		sample 1 1 @fixed:hidden+3 0 40 0
		file 2 @@/usr/t*
		sample 1 2 @fixed:hidden+3 0 40 0
		file 3 @@/usr/new\x0aline
		sample 1 3 @fixed:hidden+3 0 20 0
	END
	cd "$tmp" && same "note: 40.00% have no symbol: \$(touch ran)
  (compile with -g, and do not strip)
note: 60.00% have no symbol: t* 40.00%, new\\x0aline 20.00%
  (set DEBUGINFOD_URLS to the debuginfod server of the distribution)" \
		eval "advice hostile_packages" &&
	sed -i 's/ $//' "$tmp/asked" && same "<dpkg-query> <--search> <--> <$tmp/-n; touch ran/\$(touch ran)>" cat "$tmp/asked" &&
	[ ! -e ran ]
}

# What dpkg and apt of this machine know about a program of each Debian system
packages_here() {
	local file=/usr/bin/perl want i start
	unset DPKG_ADMINDIR
	start=$(readelf -lW $file | awk '/LOAD.* E / { print $2 }')
	{
		echo "file 1 $file"
		for ((i = 4096; i < 65536; i += 64)); do
			echo "sample 1 1 $((start + i)) 0 1 0"
		done
	} | make_data here &&
	same 1 eval "report here --symfs / |
		grep -c 'no symbol: perl'" || return
	want=$(apt-cache show perl-base perl-base-dbgsym perl-debug 2>/dev/null |
		awk -v id="$(build_id $file)" '/^Package: / { name = $2 }
			/^Build-Ids: / { kind = "another"; if (index($0, id)) { kind = name; exit } }
			/^Filename: / { lists = 1 }
			END { print kind ? kind : lists ? "archive" : "lists" }')
	case $want in
	another) want="apt has another version: apt install perl-base perl-debug" ;;
	archive) want="perl-base-dbgsym" ;;
	lists) want="apt update" ;;
	*) want="apt install $want" ;;
	esac
	report here >"$tmp/got" && sed -z 's/\n  / /g' "$tmp/got" |
		grep -qF "$want" || { echo "$want"; head "$tmp/got"; return 1; }
}

# With a symbol table, a debug file has no more names.
symbols_are_there() {
	make_ticks symbols_there fixed 0x20 40 || return
	same "note: 100.00% have no symbol: fixed
  (this code is not in the symbol table)" advice symbols_there && same "" cat "$tmp/asked"
}

check "advice: packages with debug files" packages_found
check "advice: packages that apt does not have" packages_missing
check "advice: not about files that are not here" packages_not_asked
check "advice: dpkg and apt that hang, or are missing" packages_unknown
check "advice: hostile paths" packages_hostile
check "advice: dpkg and apt of this machine" packages_here
check "advice: code that is not in the symbol table" symbols_are_there
