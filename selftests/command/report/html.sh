# SPDX-License-Identifier: GPL-2.0
#
# Tests of profil report --html: browser.py opens the page in chromium, and uses it.

# browse DATA [OPTION...] <CODE: writes the page of a recording, and runs Python code in it.
browse() {
	report "$1" --html "$tmp/$1.html" "${@:2}" &&
	DATA=$tmp/$1.data in_browser "$tmp/$1.html"
}

browser=

# start_browser: starts chromium, for all pages.
start_browser() {
	local options=(--headless=new --remote-debugging-pipe --user-data-dir="$tmp/browser/home"
		--disable-gpu --disable-dev-shm-usage --no-first-run
		--disable-background-networking --lang=en-US
		# The pages take less time if they have one process.
		--renderer-process-limit=1 --disable-site-isolation-trials)
	[ "$(id -u)" -ne 0 ] || options+=(--no-sandbox)
	mkdir "$tmp/browser" && mkfifo "$tmp/browser/to" "$tmp/browser/from" || return
	chromium "${options[@]}" about:blank 3<>"$tmp/browser/to" 4<>"$tmp/browser/from" \
		</dev/null >/dev/null 2>&1 &
	browser=$!
}

stop_browser() {
	[ -z "$browser" ] || { kill "$browser"; wait "$browser"; } 2>/dev/null
	browser=
}

# in_browser PAGE <CODE: runs Python code in a page, as browser.py says.
in_browser() {
	kill -0 "$browser" || return
	PROFIL=$profil python3 "$here/browser.py" "$tmp/browser" "$1"
}

# Three threads on two CPUs, for 3 s. Each time has its functions, so a wrong interval is noticed.
html_data() {
	local ms name
	{
		echo "meta 2 3 host 6.1 ./prog it's"
		echo "thread 1 7 100 0 prog"
		echo "thread 2 7 100 101 worker"
		echo "thread 3 8 102 0 child"
		echo "file 1 @@/lined"
		echo "file 2 @@/shared.so"
		echo "name 3 [anon]"
		for ((ms = 0; ms < 3000; ms += 4)); do
			name=alpha
			[ $((ms % 7)) -gt 2 ] || name=beta
			[ $((ms / 500 % 3)) != 1 ] || name=gamma_
			echo "tick $((1 + ms % 3)) 1 @lined:$name+$((ms % 9)) 0 $ms $((ms / 4 % 2)) \
				$((ms % 92 ? 1 : 3)) $((ms % 5 == 0))"
			[ $((ms % 20)) != 0 ] ||
				echo "tick 1 2 @shared.so:delta+$((ms / 20 % 5)) 0 $ms 1 1 0"
		done
		echo "tick 2 3 0x7f0000000010 0x7f0000000000 1234 0 1 0"
		echo "account 901 0 901 0 800 101 20 970"
	} >"$tmp/ticks"
	gcc -O1 -g -fcf-protection=none -nostdlib -static-libgcc -no-pie -Wl,--build-id \
		-o "$tmp/lined" "$tmp/prog.c" &&
	gcc -O1 -fcf-protection=none -fPIC -shared -nostdlib -o "$tmp/shared.so" "$tmp/other.c" &&
	make_data html <"$tmp/ticks"
}

# A wrong hash would be a page that shows nothing.
html_policy() {
	report html --html "$tmp/html.html" &&
	"$tmp/profil" diff --html "$tmp/diff.html" "$tmp/html.data" "$tmp/html.data" 2>"$tmp/err" &&
	policy_of "$tmp/html.html" && policy_of "$tmp/diff.html"
}

policy_of() {
	same "" python3 - "$1" <<-'END'
		import base64, hashlib, re, sys
		page = open(sys.argv[1], encoding="utf-8").read()
		policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
		for name in "style", "script":
		    text, = re.findall(f"<{name}>(.*?)</{name}>", page, re.S)
		    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
		    if f"{name}-src 'sha256-{digest}'" not in policy:
		        print(f"the policy must have {name}-src 'sha256-{digest}'")
		if "default-src 'none'" not in policy or "unsafe" in policy:
		    print(policy)
	END
}

html_table() {
	browse html <<-'END' || return
		same(text("h1"), "command: ./prog it's")
		same(texts("#warnings li"), ["warning: 20 of 921 ticks (2.17%) were missed; "
		     "each counts with the next sample: shares can be wrong by more than +- says"])
		assert "901 samples at 250 Hz: 3.88 s of CPU time" in texts("#about li")
		assert texts("#about li")[1].startswith("on host (Linux 6.1), 2026-01-02 03:04:05")
		same(texts("#titles button"), ["share", "+-", "samples", "binary", "symbol"])
		same(table(), report())
		same(len(table()), 5)
		def column(i):
		    return [row[i] for row in table()]
		same(each("#titles th", "ariaSort"), ["descending"] + 4 * ["none"])
		click("#titles th:nth-child(1) button")
		same(table(), report()[::-1])
		click("#titles th:nth-child(5) button")
		same(each("#titles th", "ariaSort"), 4 * ["none"] + ["ascending"])
		same(column(4), ["[no symbol]", "alpha", "beta", "delta", "gamma_"])
		click("#titles th:nth-child(5) button")
		same(column(4), ["gamma_", "delta", "beta", "alpha", "[no symbol]"])
		click("#titles th:nth-child(3) button")
		samples = [int(n) for n in column(2)]
		same(samples, sorted(samples, reverse=True))
		same(text("#shown"), "5 rows of 5, 100.00% of the ticks in the selection")
		write("#filter", "SHARED")
		same(table(), report("-s", "dso,symbol")[-2:-1])
		assert text("#shown").startswith("1 row of 5, " + table()[0][0])
		click("#no-filter")
		same([len(table()), value("#filter"), get("#no-filter", "hidden"),
		      active()], [5, "", True, "filter"])
		write("#filter", "SHARED", "Escape")
		same([len(table()), value("#filter")], [5, ""])
		js("document.activeElement.blur()")
		key("/")
		same(active(), "filter")
		write("#filter", "a")
		same(sorted(column(4)), ["[no symbol]", "alpha", "beta", "delta", "gamma_"])
		write("#filter", "none")
		same(table(), [])
	END
	browse html -s mode,comm --comm 'w*' <<-'END' || return
		same(texts("#titles button")[3:], ["mode", "command"])
		same(table(), report("-s", "mode,comm", "--comm", "w*"))
		assert "only --comm w*: 251 of 901 ticks" in text("#about")
	END
	browse html -s time,dso <<-'END'
		same(texts("#titles button")[3:], ["second", "binary"])
		rows = report("-s", "time,dso")
		same(table(), rows)
		same(sorted({row[3] for row in rows}), ["0", "1", "2"])
	END
}

html_timeline() {
	browse html <<-'END' || return
		lanes = "#names button span:first-child"
		same(texts(lanes), ["prog 100", "worker 101", "child 102"])
		# The page ends at the end of the recording: 12.3 s, in 769 columns of 16 ms.
		same(selection(), ["--from", "0", "--to", "12.304"])
		for start, end in (0.02, 0.07), (0.13, 0.1), (0.05, 0.9), (0.0007, 0.2), (0.2, 1.1):
		    drag("#chart", start, end)
		    assert abs(float(value("#from")) - 12.304 * min(start, end)) < 0.05, selection()
		    same(table(), report(*selection()))
		    same(text("#selection"), "%s samples, as with %s" % (
		         sum(int(row[2]) for row in table()), " ".join(selection())))
		drag("#chart", 0.1, 0.2)
		click("#chart")
		same(selection(), ["--from", "0", "--to", "12.304"])
		same(table(), report())
		# Times are rounded to the borders around them.
		write("#from", "0.5", "Tab")
		write("#to", "1.01", "Tab")
		same(selection(), ["--from", "0.496", "--to", "1.024"])
		same(table(), report(*selection()))
		for wrong in "x", "99", "-":
		    write("#from", wrong, "Tab")
		    same(selection(), ["--from", "0.496", "--to", "1.024"])
		# One lane
		click("#names button:nth-child(2)")
		same(each("#names button", "ariaPressed"), ["false", "true", "false"])
		same(table(), report(*selection(), "--thread", "101"))
		click("#whole")
		same(table(), report("--thread", "101"))
		click("#names button:nth-child(2)")
		same(table(), report())
		# CPUs
		click("#by-cpu")
		same(sorted(texts(lanes)), ["CPU 0", "CPU 1"])
		same(table(), report())
		for nr in "12":
		    click("#names button:nth-child(%s)" % nr)
		    drag("#chart", 0.04, 0.11)
		    same(table(), report(*selection(), "--cpu", text("#names button:nth-child(%s) "
		                         "span" % nr)[4:]))
		click("#by-thread")
		same(table(), report(*selection()))
		# The keyboard
		focus("#chart", "Escape")
		same(table(), report())
		key("Home", *10 * ["ArrowRight"])
		key("ArrowRight", shift=True)
		key("PageDown", shift=True)
		same(selection(), ["--from", "0.16", "--to", "0.448"])
		same(table(), report(*selection()))
		key("ArrowLeft", shift=True)
		same(selection(), ["--from", "0.16", "--to", "0.432"])
		key("Home", shift=True)
		same(selection(), ["--from", "0", "--to", "0.176"])
		# A marked row has another colour in the timeline.
		click("#body tr:nth-child(1)")
		marked = pixels()
		click("#body tr:nth-child(1)")
		before = pixels()
		assert before != marked
		click("#body tr:nth-child(1)")
		assert pixels() == marked
		focus("#body tr", "ArrowDown", "Enter")
		same(each("#body tr", "ariaCurrent")[:2], ["false", "true"])
		assert pixels() not in (before, marked)
		scheme("dark")
		assert js("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
	END
	# The columns of a part of the recording begin with the part.
	browse html --from 0.3333 --to 2.1 <<-'END'
		same([value("#from"), value("#to")], ["0.3333", "2.1"])
		same(table(), report("--from", "0.3333", "--to", "2.1"))
		drag("#chart", 0.3, 1.1)
		assert value("#from").endswith("3"), value("#from")
		same(value("#to"), "2.1")
		same(table(), report("--from", value("#from"), "--to", "2.1"))
	END
}

html_code() {
	browse html <<-'END' || return
		same(texts("#binary option"), ["lined", "shared.so", "[anon]"])
		def choose(name):
		    focus("#binary")
		    browser.call("Input.insertText", text="")
		    at = texts("#binary option").index(name)
		    while get("#binary", "selectedIndex") != at:
		        key("ArrowDown")
		assert ", 1 byte in a bar" in text("#binary-text")
		choose("shared.so")
		ticks = sum(int(row[2]) for row in report("--dso", "shared.so"))
		assert text("#binary-text").startswith("%d ticks (" % ticks), text("#binary-text")
		start, end = (int(n, 16) for n in text("#binary-text").split(" at ")[1].split(",")[0]
		              .split(" to "))
		same(end - start, 5)
		for i in range(5):
		    point("#histogram", i / 5 + 0.1)
		    same(text("#bar-text").split(":")[0], "%#x to %#x" % (start + i, start + i + 1))
		    assert text("#bar-text").endswith(", most in delta")
		focus("#histogram", "ArrowLeft")
		same(text("#bar-text").split(" ")[0], "%#x" % (start + 3))
		key("Enter")
		same([value("#filter"), [row[4] for row in table()]], ["delta", ["delta"]])
		assert box("#no-filter")[2] > 50
		choose("[anon]")
		assert text("#binary-text").startswith("1 tick "), text("#binary-text")
		same(texts("#binary-text"), ["1 tick (0.10% of the whole recording) at 0x7f0000000010 to "
		                             "0x7f0000000011, 1 byte in a bar"])
		def expected(*options):
		    return sorted([row[0]] + row[3:] for row in report("-s", "srcline,symbol", *options)
		                  if row[3] != "[no line]")
		same(sorted(lines()), expected())
		assert lines()
		title = get("#lines td:nth-child(2)", "title")
		assert title[0] == "/" and title.endswith("/" + lines()[0][1]), title
		# The lines are those of the selected interval, lane and function.
		drag("#chart", 0.045, 0.075)
		assert float(value("#from")) > 0.4 and float(value("#to")) < 1.1, selection()
		same(sorted(lines()), expected(*selection()))
		assert "gamma_" in str(lines()) and "alpha" not in str(lines()), lines()
		click("#whole")
		click("#by-cpu")
		click("#names button")
		cpu = texts("#names button")[0].split()[1][0]
		same(sorted(lines()), expected("--cpu", cpu))
		click("#names button")
		write("#filter", "")
		click("#body tr")
		name = table()[0][4]
		same([text("#hot-function"), {line[2] for line in lines()}], ["of " + name, {name}])
		click("#body tr")
		same([text("#hot-function"), sorted(lines())], ["", expected()])
	END
	# One bar for several bytes: the ranges of addresses follow each other, and all ticks are there.
	make_data wide <<-'END' || return
		name 1 [anon]
		tick 1 1 0xffffffffffffff10 0 1 0 1 0
		tick 1 1 0xfffffffffffe0000 0 2 0 2 0
	END
	browse wide <<-'END'
		same(text("#binary-text"), "3 ticks (100.00% of the whole recording) at "
		     "0xfffffffffffe0000 to 0x10000000000000000, 256 bytes in a bar")
		point("#histogram", 0.01)
		same(text("#bar-text"), "0xfffffffffffe0000 to 0xfffffffffffe0100: 2 ticks (66.67%), "
		     "most in [no symbol]")
		same(text("#hot-text"), "There is no line information for these ticks.")
		same(texts("#lines tr"), [])
	END
}

# Two processes, whose chains differ in two threads and in time. The ticks: <b> 40: _start, <img...>,
# gamma_; prog 200: _start 100: sum, beta, alpha and 100: alpha, alpha, alpha.
html_flame() {
	{
		cat <<-'END'
			meta 18 3 host 6.1 ./prog
			thread 1 7 100 0 prog
			thread 2 7 100 101 worker
			thread 3 8 200 0 <b>
			file 1 @@/lined
			name 2 [anon]
			symbol 0x80000003 0x5000 0x5100 <img\x20src=x\x20onerror=window.hacked=1>
			stack 1 0 0:0 0:0 1:@lined:beta+1 1:@lined:sum+1 1:@lined:_start+1
			stack 2 0 0:0 0:0 1:@lined:alpha+1 1:@lined:alpha+1 1:@lined:_start+1
			stack 3 0 0:0 0:0 2:0x5010 1:@lined:_start+1
		END
		for ((ms = 0; ms < 1000; ms += 10)); do
			echo "tick 1 1 @lined:alpha+$((ms % 3)) 0 $ms 0 1 0 1"
			echo "tick $((1 + ms / 500)) 1 @lined:alpha+2 0 $ms 1 1 0 2"
			[ $((ms % 50)) != 0 ] || echo "tick 3 1 @lined:gamma_+1 0 $ms 0 2 1 3"
		done
	} | make_data flame && browse flame <<-'END'
		image = "<img src=x onerror=window.hacked=1>"
		whole = [["all", 1, 1000], ["<b>", 2, 167], ["prog", 2, 833], ["_start", 3, 167],
		         ["_start", 3, 833], [image, 4, 167], ["alpha", 4, 417], ["sum", 4, 417],
		         ["alpha", 5, 417], ["beta", 5, 417], ["gamma_", 5, 167], ["alpha", 6, 417],
		         ["alpha", 6, 417]]
		same(frames(), whole)
		# Callees are above their callers.
		same(box(frame("sum", 4))[::2], box(frame("beta", 5))[::2])
		same(get(frame(image, 4), "ariaLabel"), image + " ([jit]): 16.67%, 40 ticks")
		# Zoom: the callers remain below.
		click(frame("sum", 4))
		zoomed = [["all", 1, 1000], ["prog", 2, 1000], ["_start", 3, 1000], ["sum", 4, 1000],
		          ["beta", 5, 1000], ["alpha", 6, 1000]]
		same(frames(), zoomed)
		same(js("document.querySelectorAll('.frame.outer').length"), 3)
		click("#reset")
		same(frames(), whole)
		assert get("#reset", "disabled")
		click(frame("beta", 5))
		click(frame("prog", 2))
		same(frames()[1:3], [["prog", 2, 1000], ["_start", 3, 1000]])
		click(frame("all", 1))
		same(frames(), whole)
		write("#search", "<")
		same([text("#matched"), sorted(texts(".frame.match"))],
		     ["16.67% of the ticks in the selection match, with callees", ["<b>", image]])
		write("#search", "")
		# The selection in the timeline
		click("#names button:nth-child(2)")
		same(text("#names button:nth-child(2) span"), "worker 101")
		same(frames(), [["all", 1, 1000], ["prog", 2, 1000], ["_start", 3, 1000],
		                ["alpha", 4, 1000], ["alpha", 5, 1000], ["alpha", 6, 1000]])
		click("#names button:nth-child(2)")
		drag("#chart", 0.01, 0.03)
		ticks = dict(line.rsplit(" ", 1) for line in profil(
		    "export", "--format", "folded", "-i", os.environ["DATA"], *selection()))
		total = sum(int(n) for n in ticks.values())
		assert 0 < total < 240
		point(frame("sum", 4), 0.5)
		n = int(ticks["prog;_start;sum;beta;alpha"])
		same(text("#frame-text"), "sum (lined): %.2f%%, %d ticks" % (100 * n / total, n))
		click("#whole")
		same(frames(), whole)
		click("#by-cpu")
		click("#names button:nth-child(1)")
		same(sorted({name for name, level, size in frames()}), sorted(
		     {name for name, level, size in whole if level < 4 or name in ["sum", "beta",
		      "alpha", "gamma_", image]} if text("#names button span") == "CPU 0" else
		     {"all", "prog", "_start", "alpha"}))
		click("#by-thread")
		same(frames(), whole)
		# The keyboard
		focus(".frame[tabindex=\"0\"]", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight", "Enter")
		same(frames(), zoomed)
		key("Escape")
		same([frames(), js("document.activeElement.title")],
		     [whole, "all: 100.00%, 240 ticks"])
		# A click on a frame shows the source lines of its function.
		names = "#flame #lines td:nth-child(4)"
		assert {"alpha", "gamma_"} <= set(texts(names)), texts(names)
		click(frame("alpha", 5))
		same([text("#hot-function"), set(texts(names))], ["of alpha", {"alpha"}])
		click("#reset")
		# A function that has only called others has the lines of its calls.
		click(frame("sum", 4))
		same([texts("#lines td:nth-child(1)"), texts("#lines td:nth-child(2)"), texts(names)],
		     [["0.00%"], ["41.67%"], ["sum"]])
		click("#reset")
		click(frame(image, 4))
		same([text("#hot-text"), texts(names)], ["No tick of the selection has a line there.", []])
		click("#reset")
		# The table is as without stacks, and a small window is no problem.
		assert get("#main", "hidden")
		click("#view-table")
		same([[[row[0], row[1], row[2]] + row[4:] for row in table() if row[2] != "0"],
		      get("#flame", "hidden")], [report(), True])
		click("#view-flame")
		size(500, 400)
		same([frame[1] for frame in frames()], [frame[1] for frame in whole])
		same(js("[window.hacked, document.images.length, document.querySelectorAll('b').length]"),
		     [None, 0, 0])
	END
}

# More processes than there are frames: the last ones are not in the graph.
html_flame_processes() {
	{
		echo stacks
		echo "file 1 @@/lined"
		echo "stack 1 0 0:0 0:0 1:0x1001"
		for ((i = 1; i <= 5100; i++)); do
			echo "thread $i $i $i 0 process$i"
			echo "sample $i 1 0x1000 0 $((1 + (i <= 100))) 0 1"
		done
	} | make_data processes &&
	report processes --html "$tmp/processes.html" || return
	same "5000 frames, 10300 more" python3 - "$tmp/processes.html" <<-'END'
		import re, sys
		text = open(sys.argv[1]).read()
		flame = re.search(r'"flame": {"nodes": \[([^]]*)\], "more": (\d+)', text)
		print(len(flame[1].split(",")) // 2, "frames,", flame[2], "more")
	END
}

# Names are text, whatever they contain.
html_hostile() {
	local script='</script><script>window.hacked=1</script>'
	local image='<img\x20src=x\x20onerror=window.hacked=1>'
	cp "$tmp/lined" "$tmp/<b>&lt;\"'" &&
	make_data evil <<-END || return
		meta 2 3 host$script 6.1$image a $script <!--<script>
		thread 1 7 100 0 </title><b>\xff
		file 1 @@/<b>&lt;"'
		sample 1 1 @lined:alpha+1 0 5 0
		name 2 an"on\x5c\xe2\x80\xa8\xed\xa0\x80$script
		sample 1 2 0x7f0000001001 0x7f0000000000 30 0
		sample 1 2 0x7f0000001041 0x7f0000000000 20 0
		symbol 0x80000001 0x7f0000001001 0x7f0000001005 $script
		symbol 0x80000001 0x7f0000001041 0x7f0000001060 \x20$image\x0a\xe2\x80\xa8@DATA@
		detached 100 /usr/bin/$script
	END
	browse evil -s thread,dso,symbol 2>/dev/null <<-'END'
		script = "</script><script>window.hacked=1</script>"
		image = "<img src=x onerror=window.hacked=1>"
		same([row[3:] for row in table()], [row[3:] for row in
		     report("-s", "thread,dso,symbol")])
		same([row[5] for row in table()][:2], [script, " " + image + "\\x0a\\xe2\\x80\\xa8@DATA@"])
		same(table()[0][3:5], ["</title><b>\\xff 100", "[jit]"])
		same(table()[2][4], "<b>&lt;\"'")
		same(text("h1"), "command: a %s <!--<script>" % script)
		assert texts("#about li")[1].startswith("on host%s (Linux 6.1%s)" % (script, image))
		assert "/usr/bin/" + script in text("#warnings")
		assert "an\"on\\\\xe2\\x80\\xa8\\xed\\xa0\\x80" + script in texts("#binary option"), \
		    texts("#binary option")
		write("#filter", "<img")
		same(len(table()), 1)
		click("#by-cpu")
		focus("#histogram", "ArrowRight")
		same(js("[window.hacked, document.images.length, document.scripts.length, "
		        "document.querySelectorAll('b').length]"), [None, 0, 2, 0])
		# The browser refuses the script itself, too.
		js("document.body.insertAdjacentHTML('beforeend', %s)" % json.dumps(image))
		same(js("window.hacked"), None)
		assert problems(""), "the policy has no effect"
		browser.events = []
	END
}

html_empty() {
	make_data nothing <<-'END' || return
		meta 2 3 host 6.1 true
	END
	browse nothing <<-'END'
		same(text("h1"), "command: true")
		same(texts("#about li")[0], "no samples: it used no CPU time")
		same([table(), text("#scale"), text("#binary-text")],
		     [[], "There are no samples.", "No tick is in a binary."])
		same(text("#hot-text"), "There is no line information for these ticks.")
		drag("#chart", 0.1, 0.9) if get("#chart", "clientHeight") else 0
		click("#by-cpu")
		click("#whole")
		click("#titles button")
		write("#filter", "x")
		same(text("#shown"), "0 rows of 0, 0.00% of the ticks in the selection")
	END
}

# The page has a limit, and what is over it is added up.
html_limits() {
	local profil=$tmp/plain
	python3 - <<-'END' | "$tmp/generate.hurried" "$tmp/limits.data" || return
		import random
		random.seed(1)
		print("clock 1000000")
		for i in range(100):
		    print("thread %d 7 100 %d thread%d" % (i + 1, i + 100, i))
		print("name 1 [anon]")
		for i in range(1500):
		    print("symbol 0x80000001 %d %d function%d" % (i * 16, i * 16 + 16, i))
		# Few names have most ticks, so the others have few.
		for ms in range(0, 600000, 3):
		    name = int(1500 * random.random() ** 3)
		    thread = int(100 * random.random() ** 2)
		    print("tick %d 1 %d 0 %d %d 1 0" % (thread + 1, name * 16 + ms % 16, ms, thread % 70))
	END
	browse limits -s symbol <<-'END' || return
		same([len(table()), text("#all-rows")], [100, "Show all 1,000 rows"])
		assert text("#shown").startswith("1,000 rows of 1,000, ") and \
		    text("#shown").endswith("; 100 are shown"), text("#shown")
		write("#filter", "function10")
		same(len(table()), int(text("#shown").split(" ")[0]))
		assert get("#all-rows", "hidden")
		assert text("#shown").endswith("in the selection"), text("#shown")
		write("#filter", "function1")
		same(text("#all-rows"), "Show all %s rows" % text("#shown").split(" ")[0])
		click("#no-filter")
		same(len(table()), 100)
		click("#all-rows")
		same(len(table()), 1000)
		assert text("#shown").endswith("in the selection"), text("#shown")
		rows = report("-s", "symbol")
		assert len(rows) > 1000
		same([row[1:3] for row in table()], [row[1:3] for row in rows[:1000]])
		rest = texts("#foot td")
		same(int(rest[2].replace(",", "")), sum(int(row[2].replace(",", "")) for row in rows[1000:]))
		same(rest[3], "in %d more rows of the recording" % (len(rows) - 1000))
		lanes = texts("#names button span:first-child")
		same([len(lanes), lanes[-1]], [64, "37 more"])
		drag("#chart", 0.5, 0.6, 0.01)
		want = {row[3]: row[2] for row in report("-s", "symbol", *selection())}
		assert len(want) > 100
		for row in table():
		    same(row[2], want[row[3]])
		rest = texts("#foot td")
		same(int(rest[2].replace(",", "")), sum(int(n.replace(",", "")) for n in want.values()) -
		     sum(int(row[2].replace(",", "")) for row in table()))
	END
	[ "$(stat -c %s "$tmp/limits.html")" -le 5000000 ] || { ls -l "$tmp/limits.html"; return 1; }
}

html_options() {
	local warning
	mkfifo "$tmp/page.fifo" && ln -s page.target "$tmp/page.link" &&
	refusals report -i "$tmp/html.data" --html <<-END || return
		2 $tmp/new --csv | --html and --csv exclude each other
		2 $tmp/new -n 3 | --html and -n exclude each other
		2 $tmp/html.data | $tmp/html.data: the output is the recording
		1 $tmp/new --comm none | $tmp/html.data: no sample matches --comm none
		1 $tmp/none/new | $tmp/none/new: No such file or directory
		1 /dev/full | /dev/full: No space left on device
		1 $tmp/page.fifo | $tmp/page.fifo: no process has opened this FIFO for reading
		1 $tmp/page.link | $tmp/page.link: it is a symbolic link; remove it, or write to another file
	END
	rm "$tmp/page.fifo" "$tmp/page.link"
	# An existing file remains if there is an error, and only the user can read the new one.
	echo old >"$tmp/page" && chmod 644 "$tmp/page" &&
	same "profil report: $tmp/page: File too large
1" eval "ulimit -f 0; trap '' XFSZ
		report html --html '$tmp/page'; echo \$?" &&
	same old cat "$tmp/page" && same "" eval "ls '$tmp' | grep 'page\.'" || return
	warning=$(report html --html "$tmp/page" 2>&1 >"$tmp/got") &&
	same "warning: 20 of 921 ticks (2.17%) were missed;
  each counts with the next sample: shares can be wrong by more than +- says" printf '%s\n' "$warning" &&
	[ ! -s "$tmp/got" ] && same 600 stat -c %a "$tmp/page" &&
	same "" eval "report html --html - 2>/dev/null |
		cmp - '$tmp/page'"
}

check "html: a recording is written" html_data
check "html: the policy has the hashes of the script and the style" html_policy
check "html: options, and how the file is written" html_options
if ! "$root/selftests/need" chromium >/dev/null 2>&1; then
	skip "html: a browser" "chromium cannot be installed"
	return
fi
start_browser
check "html: the summary and the table, its order and filter" html_table
check "html: the timeline, and intervals with the numbers of --from and --to" html_timeline
check "html: addresses and lines" html_code
check "html: the flame graph" html_flame
check "html: a flame graph of many processes" html_flame_processes
check "html: hostile names" html_hostile
check "html: an empty recording" html_empty
check "html: many rows, threads and ticks" html_limits
