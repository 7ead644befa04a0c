# SPDX-License-Identifier: GPL-2.0
#
# Tests of the flame graphs of profil report --html and profil diff --html.

# A program with frame pointers, so its stacks are complete, and with an inlined function
flame_program() {
	cat >"$tmp/framed.c" <<-'END'
		volatile int sink;
		#define FUNCTION(name) __attribute__((noinline)) void name(int n)
		static inline __attribute__((always_inline)) void inner(int n)
		{
			for (int i = 0; i < n; i++)
				sink += i * n;
		}
		FUNCTION(outer)
		{
			inner(n);
			sink--;
		}
		FUNCTION(twin)
		{
			outer(n);
			sink++;
		}
		FUNCTION(middle)
		{
			twin(n);
			outer(n + 1);
			sink++;
		}
		void _start(void) { for (;;) middle(sink); }
	END
	sed '/^void _start/,$d' "$tmp/framed.c" >"$tmp/library.c" &&
	set -- -O1 -g -fcf-protection=none -fno-omit-frame-pointer -nostdlib -static-libgcc &&
	gcc "$@" -no-pie -o "$tmp/framed" "$tmp/framed.c" &&
	gcc "$@" -fPIC -shared -o "$tmp/library.so" "$tmp/library.c"
}

# flame_graph_data N: writes the recording graphN. It has ticks of two functions with the same name,
# in the program and in a library, one in each second. In the program it calls itself. N of its 100
# ticks have an incomplete stack.
flame_graph_data() {
	{
		cat <<-END
			meta 18 3 host 6.1 ./framed
			thread 1 7 100 0 framed
			thread 2 7 100 101 worker
			file 1 @@/framed
			file 2 @@/library.so
			call 1 0 3221225534 read
			stack 1 0 1:@framed:twin+9 0:0 1:@framed:middle+9 1:@framed:_start+9
			stack 2 0 1:@framed:middle+9 0:0 1:@framed:_start+9
			stack 3 0 2:@library.so:middle+9 0:0 1:@framed:_start+9
			stack 4 0 0:0 0:0 1:@framed:middle+9 1:@framed:_start+9
			stack 6 0 0:0 0:0 1:@framed:_start+9
			stack 5 3 0:0 0:0
			tick 1 1 @framed:outer+20 0 0 0 10 0 1
			tick 1 1 @framed:outer+44 0 100 0 10 0 2
			tick 2 1 @framed:twin+9 0 200 1 $((30 - $1)) 0 4
			tick 2 2 @library.so:outer+24 0 1000 1 40 0 3
			tick 1 1 @framed:middle+9 0 2000 0 10 1 6 1
		END
		[ "$1" = 0 ] || echo "tick 2 1 @framed:twin+9 0 300 1 $1 0 5"
	} | make_data "graph$1"
}

flame_data() {
	flame_program && flame_graph_data 0 && flame_graph_data 20 && flame_graph_data 21 &&
		flame_high_data
}

# The orders of the graph, and with it the inlined functions
flame_orders() {
	browse graph0 <<-'END'
		kernel, inner = "[read]", "inner (inlined)"
		stacks = [["all", 1, 1000], ["framed", 2, 1000], ["_start", 3, 1000]]
		inlined = stacks + [["middle", 4, 400], ["middle", 4, 600], ["[read]", 5, 100],
		    ["outer", 5, 100], ["outer", 5, 400], ["twin", 5, 400], [inner, 6, 400],
		    ["outer", 6, 100], [inner, 7, 100]]
		same(frames(), inlined)
		same(texts(".frame.inlined"), ["inner", "inner"])
		click("#inlined")
		without = [frame for frame in inlined if frame[0] != inner]
		same(frames(), without)
		same(texts(".frame.inlined"), [])
		point(frame("outer (library.so)", 5), 0.5)
		same(text("#frame-text"), "outer (library.so): 40.00%, 40 ticks")
		click("#inlined")
		point(frame("outer (library.so)", 5), 0.5)
		same(text("#frame-text"), "outer (library.so): 40.00%, 40 ticks")
		# The share without callees is that of the table.
		def own(name, row):
		    point(frame(name, row), 0.5)
		    return text("#frame-text").split("ticks")[1]
		share = {(row[4], row[5]): row[0] for row in table()}
		same(texts("#flame fieldset label"), [" callers first (top down)", " callees first (bottom up)",
		                                      " one function"])
		same(share["framed", "middle"], "10.00%")
		same([own("middle (framed)", 4), own("middle (library.so)", 4)],
		     [", 10.00% without its callees (10.00% in the kernel)", ""])
		same([own("twin (framed)", 5), own("[read]", 5), share["framed", "twin"]],
		     [", 30.00% without its callees", "", "30.00%"])
		same([own("_start", 3), own("framed", 2)], ["", ""])
		# Callees first: the function of the pc is at the bottom, and its callers are above it.
		click("#callees-first")
		pcs = [["all", 1, 1000], ["[read]", 2, 100], [inner, 2, 100], [inner, 2, 400],
		       ["outer", 2, 100], ["twin", 2, 300]]
		same(frames()[:6], pcs)
		same([name for name, row, width in frames() if width == 300],
		     ["twin", "middle", "_start", "framed"])
		same([name for name, row, width in frames() if width == 400],
		     [inner, "outer", "middle", "_start", "framed"])
		click(frame("twin (framed)", 2))
		same(frames(), [["all", 1, 1000], ["twin", 2, 1000], ["middle", 3, 1000],
		                ["_start", 4, 1000], ["framed", 5, 1000]])
		click("#reset")
		# One function: all its callers are above it, and all its callees below it.
		js("document.querySelector('#flame-scroll').style.cssText = 'flex: none; height: 60px'")
		js("document.querySelector('#flame-scroll').scrollTop = 1000")
		click("#one-function")
		same(frames(), [])
		assert text("#no-function").startswith("Select a function"), text("#no-function")
		same(js("""(() => { const a = document.querySelector("#no-function").getBoundingClientRect();
		    const b = document.querySelector("#flame-scroll").getBoundingClientRect();
		    return a.height > 10 && a.top >= b.top && a.bottom <= b.bottom; })()"""), True)
		js("document.querySelector('#flame-scroll').style.cssText = ''")
		click("#callers-first")
		assert get("#no-function", "hidden")
		click(frame("twin (framed)", 5))
		click("#one-function")
		same(frames(), [[inner, 1, 250], ["outer", 2, 250], ["twin", 3, 1000],
		                ["middle", 4, 1000], ["_start", 5, 1000], ["framed", 6, 1000]])
		click(frame("outer (framed)", 2))
		same([frame[:2] for frame in frames() if frame[1] <= 3],
		     [[inner, 1], ["outer", 2], ["middle", 3], ["twin", 3]])
		same(sum(frame[2] for frame in frames() if frame[0] == "framed"), 1000)
		same(sorted(name for name, row, width in frames() if row >= 2 and name != "framed"),
		     sorted(row[-1] for row in tree("--callers", "outer", "--dso", "framed")))
		# The selection of the timeline
		drag("#chart", 0.0, 0.02)
		assert "without" not in str(get(frame("middle", 3), "title"))
		click("#whole")
	END
}

# If a function calls itself, its outermost call has the callers, and its innermost one the callees.
flame_recursion() {
	make_data again <<-'END' && browse again <<-'END'
		stacks
		name 1 [anon]
		symbol 0x80000001 0x1000 0x1010 main
		symbol 0x80000001 0x1010 0x1020 f
		symbol 0x80000001 0x1020 0x1030 g
		stack 1 0 0:0 0:0 1:0x1015 1:0x1025 1:0x1015 1:0x1005
		sample 1 1 0x1020 0 3 0 1
	END
		same([name for name, row, width in frames()], ["all", "a", "main", "f", "g", "f", "g"])
		click("#view-table")
		same(sorted([row[3], row[5]] for row in table()),
		     [["100.00%", "f"], ["100.00%", "g"], ["100.00%", "main"]])
		click("#view-flame")
		click(frame("f", 4))
		click("#one-function")
		same(frames(), [["g", 1, 1000], ["f", 2, 1000], ["main", 3, 1000], ["a", 4, 1000]])
	END
}

flame_search() {
	browse graph0 <<-'END'
		def found(text_, share):
		    write("#search", text_)
		    same([text("#matched"), get("#search", "ariaInvalid")],
		         [share + "% of the ticks in the selection match, with callees", "false"])
		    return sorted(texts(".frame.match"))
		same(found("^(twin|inner)", "80.00"), ["inner", "inner", "twin"])
		same(len(texts(".frame.other")), len(frames()) - 3)
		same(found("^INNER", "50.00"), ["inner", "inner"])
		same(found("read\\]$", "10.00"), ["[read]"])
		same(found("nothing", "0.00"), [])
		key("Enter")
		same([current(), text("#frame-text")], [[[], []], ""])
		# Enter goes from match to match, from the widest frame on.
		found("middle|outer|read|framed", "100.00")
		for wanted in ("framed", "middle (framed)", "middle (library.so)", "outer (library.so)",
		               "outer (framed)", "[read] ([kernel])", "framed"):
		    key("Enter")
		    same(text("#frame-text").split(":")[0], wanted)
		    same([current()[1], active()],
		         [[wanted.split(" ")[0]] if " " in wanted else [], "search"])
		write("#search", "middle|twin", "Enter")
		same([current(), text("#frame-text").split(":")[0]], [[["middle"], ["middle"]], "middle (framed)"])
		click("#reset")
		# Each tick counts once, in each order.
		for order in "#callees-first", "#callers-first":
		    click(order)
		    same(set(found("middle|outer", "100.00")), {"middle", "outer"})
		click("#inlined")
		same(found("inner", "0.00"), [])
		click("#inlined")
		same(found("inner", "50.00"), ["inner", "inner"])
		drag("#chart", 0.0, 0.03)
		same(text("#matched"), "20.00% of the ticks in the selection match, with callees")
		click("#whole")
		# A part of an expression is not valid; the message disappears with its reason.
		for wrong in "(", "[a", "*":
		    write("#search", wrong)
		    same([text("#matched")[:41], texts(".frame.match"), texts(".frame.other"),
		          get("#search", "ariaInvalid"),
		          get("#matched", "classList.contains('note')")],
		         ["This is not a valid regular expression: " + text("#matched")[40], [], [], "true", True])
		    assert box("#matched")[2] > 100 and box("#matched")[3] > 10
		same(found("twin", "40.00"), ["twin"])
		# Escape clears the search, and the character / goes there.
		key("Escape")
		same([value("#search"), text("#matched"), texts(".frame.match"), texts(".frame.other")],
		     ["", "", [], []])
		focus(".frame[tabindex=\"0\"]", "/")
		same(active(), "search")
		click("#view-table")
		focus("#body tr", "/")
		same([active(), value("#filter")], ["filter", ""])
	END
}

# What is selected in the graph is selected in the table, and the other way round.
flame_selection() {
	browse graph0 <<-'END'
		def view(name):
		    click("#view-" + name)
		def rows():
		    return sorted([row[0], row[3], row[4], row[5]] for row in table())
		view("table")
		same(texts("#titles button"), ["share", "+-", "samples", "with callees", "binary", "symbol"])
		# The row of a tick in the kernel is that of the function of the pc.
		want = children()
		for row in want:
		    if row[3] in ("[read]", "middle") and row[2] in ("framed", "[kernel]"):
		        row[0] = {"[read]": "0.00%", "middle": "10.00%"}[row[3]]
		same(rows(), sorted(want))
		write("#filter", "outer")
		same(text("#shown"), "2 rows of %d, 10.00%% of the ticks in the selection, without callees" % len(want))
		click("#no-filter")
		same([[row[0], row[1], row[2]] + row[4:] for row in table() if row[2] != "0"],
		     report("--inline"))
		click("#titles th:nth-child(4) button")
		same([row[5] for row in table()][:2], ["_start", "middle"])
		same(js("(() => { const b = document.querySelector('#titles th:nth-child(4) button');"
		        "return b.scrollWidth <= b.clientWidth; })()"), True)
		# From the table to the graph
		twin = 1 + [row[5] for row in table()].index("twin")
		click("#body tr:nth-child(%d)" % twin)
		view("flame")
		same(current(), [["twin"], ["twin"]])
		same([text("#hot-function"), {row[3] for row in lines()}], ["of twin", {"twin"}])
		# From the graph to the table: the function of the library has the same name and lines.
		click(frame("inner (inlined) (library.so)", 6))
		same([text("#hot-function"), [row[0] for row in lines()]],
		     ["of inner (inlined)", ["40.00%"]])
		view("table")
		same(texts("#body tr[aria-current=true] td:nth-child(5)"), ["library.so"])
		same([row[0] for row in lines()], ["40.00%"])
		view("flame")
		click("#reset")
		same([current(), text("#hot-function")], [[[], []], ""])
		# Lines include the calls there, those of inlined functions, too.
		same(sorted((row[1], row[3]) for row in lines() if row[0] == "40.00%"),
		     [("40.00%", "inner (inlined)")])
		click(frame("outer (library.so)", 5))
		same([row[:2] + row[3:] for row in lines()], [["0.00%", "40.00%", "outer"]])
		click("#reset")
		click(frame("twin", 5))
		same([row[:2] + row[3:] for row in lines()],
		     [["30.00%", "30.00%", "twin"], ["0.00%", "10.00%", "twin"]])
		click("#reset")
		click(frame("inner (inlined) (framed)", 7))
		same([row[0] for row in lines()], ["10.00%"])
		same(current(), [["inner (inlined)"], ["inner"]])
		# A function without ticks of its own has a row, and a place in the timeline.
		click("#reset")
		before = pixels()
		click(frame("_start", 3))
		same([current(), pixels() != before], [[["_start"], ["_start"]], True])
		# All follow the timeline.
		click("#reset")
		drag("#chart", 0.0, 0.03)
		part = selection()
		view("table")
		want = children(*part)
		same(rows(), want)
		view("flame")
		click(frame("middle", 4))
		same([row[1] for row in lines()], [row[1] for row in want if row[3] == "middle"])
		click("#reset")
		same([width for name, row, width in frames() if name == "twin"],
		     [round(10 * float(row[1][:-1])) for row in want if row[3] == "twin"])
		same(text("#names button span"), "worker 101")
		click("#names button")
		view("table")
		same(rows(), children(*part, "--thread", "101"))
	END
}

# A graph that is higher than its place: functions that call each other, with names of 300 letters.
flame_high_data() {
	local nr=40
	{
		echo "clock 1000000"
		echo stacks
		echo "name 1 [anon]"
		for ((i = 0; i < nr; i++)); do
			echo "symbol 0x80000001 $((i * 16)) $((i * 16 + 16)) f$i$(printf '%0300d' 0)"
			echo "stack $((i + 1)) 0 0:0 0:0$(for ((j = i; j--;)); do printf ' 1:%d' $((j * 16 + 5)); done)"
			echo "sample 1 1 $((i * 16 + 1)) 0 $((1 + 10000 * (i == 0))) 0 $((i + 1))"
		done
	} | make_data high
}

flame_place() {
	in_both high <<-'END'
		def rectangle(selector):
		    return js("(() => { const b = document.querySelector('%s').getBoundingClientRect();"
		              "return [b.top, b.height, b.right]; })()" % selector)
		def places():
		    return [rectangle("#flame-scroll"), rectangle(".frame[data-key=\"0:0\"]"),
		            rectangle(".frame[data-key=\"0:11\"]")[0]]
		def inside():
		    return js("(() => { const e = document.querySelector('#flame-scroll');"
		              "return e.getBoundingClientRect().left + e.clientLeft + e.clientWidth; })()")
		assert box("#graph")[3] > get("#flame-scroll", "clientHeight")
		same(rectangle(".frame[data-key=\"0:0\"]")[2], inside())
		for height in 1200, 900:
		    size(1000, height)
		    place, root = places()[:2]
		    assert root[0] + root[1] <= place[0] + place[1], places()
		before, height = places(), box("#graph")[3]
		# Neither long names nor the lines of a function move the graph.
		for i in range(4):
		    point(".frame[data-key=\"0:%d\"]" % i, 0.5)
		    same(places(), before)
		assert rectangle("#frame-text")[1] < 25 and len(text("#frame-text")) > 300
		assert js("(() => { const [a, b] = document.querySelectorAll('#frame-text span'); return "
		          "b.getBoundingClientRect().right < 990 && a.scrollWidth > a.clientWidth; })()")
		same(get("#frame-text", "title"), text("#frame-text"))
		# The result of a search can need a line of its own. What is at the bottom remains there.
		def bottom():
		    return js("(() => { const e = document.querySelector('#flame-scroll');"
		              "return e.scrollHeight - e.clientHeight - e.scrollTop; })()")
		width = 1000
		write("#search", "no such function")
		while rectangle("#flame-scroll")[1] >= before[0][1] and width < 1600:
		    write("#search", "")
		    width += 20
		    size(width, 900)
		    before = places()
		    write("#search", "no such function")
		    drawn()
		assert width < 1600 and rectangle("#flame-scroll")[1] < before[0][1]
		same(bottom(), 0)
		write("#search", "")
		size(1000, 900)
		before = places()
		click(".frame[data-key=\"0:11\"]")
		same(places(), before)
		assert box("#graph")[3] > height + 50
		focus("#frame-text")
		assert rectangle("#frame-text")[1] > 25
	END
}

# The boxes of the heading are as high as their text, or as some whole lines of it.
flame_heading() {
	in_both high <<-'END'
		def check(selector):
		    return js("""(() => { const e = document.querySelector(%s), range = new Range();
		        range.selectNodeContents(e);
		        const bottom = e.getBoundingClientRect().bottom, lines = [...range.getClientRects()];
		        return [e.scrollHeight - e.clientHeight,
		        lines.filter((l) => l.height < 30 && l.top < bottom - 3 && l.bottom > bottom + 1).length]; })()"""
		        % json.dumps(selector))
		boxes = [box for box in ("#about", "#about-a", "#about-b") if texts(box)]
		size(1200, 1400)
		for selector in ["h1"] + boxes:
		    same(check(selector), [0, 0])
		for selector in boxes:
		    js("document.querySelector('%s').append(...Array.from({length: 30}, (x, i) => "
		       "element('li', 'note ' + i)))" % selector)
		js("document.querySelector('h1').textContent += ' word'.repeat(500)")
		for height in range(600, 1000, 45):
		    size(1000, height)
		    for selector in ["h1"] + boxes:
		        over, cut = check(selector)
		        assert over > 15 and not cut, (selector, height, over, cut)
	END
}

# The label of a frame becomes shorter with it, but always has the last component of the name.
flame_labels() {
	make_data labels <<-'END' &&
		stacks
		stack 1 0 0:0 0:0
		name 1 [anon]
		symbol 0x80000001 0x1000 0x1010 void\x20std::very_long_namespace::Container<int,\x20std::allocator<int>\x20>::insert_all<long>(std::map<int,\x20int>\x20const&)
		symbol 0x80000001 0x1010 0x1020 std::sort(int*,\x20int*)
		symbol 0x80000001 0x1020 0x1030 company.example/a_long_path/of_packages/store.(*Table).Find
		sample 1 1 0x1000 0 60 0 1
		sample 1 1 0x1010 0 20 0 1
		sample 1 1 0x1020 0 20 0 1
	END
	browse labels <<-'END'
		def labels(width):
		    size(width, 700)
		    return texts(".frame")[2:]
		full = "very_long_namespace::Container<int, allocator<int> >::insert_all<long>(map<int, int> const&)"
		same(sorted(labels(2600)), sorted([full, "sort(int*, int*)",
		     "company.example/a_long_path/of_packages/store.(*Table).Find"]))
		same(sorted(labels(900)), sorted(["very_long_namespace::Container<...>::insert_all<...>",
		     "sort(int*, int*)", "…store.(*Table).Find"]))
		same(sorted(labels(420)), sorted(["…insert_all<...>", "sort", "store.(*Table).Find"]))
		title = get(frame("void std::very_long", 3), "title")
		assert title.startswith("void std::very_long_namespace::Container<int, std::allocator<int> >"
		                        "::insert_all<long>(std::map<int, int> const&) ([jit]): 60.00%"), title
		# The search finds the names, and what is shown of them.
		for wanted in "^void std", "^very_long":
		    write("#search", wanted)
		    same(text("#matched"), "60.00% of the ticks in the selection match, with callees")
	END
}

# A long name of a function takes one line of a table, which shows a short one.
flame_names() {
	local name=_ZNSt6vectorISt4pairIiiESaIS1_EE17_M_realloc_insertIJS1_EEEvN9__gnu_cxx17__normal_iteratorIPS1_S3_EEDpOT_
	{
		echo "volatile int sink;"
		echo "int insert(int n) __asm__(\"$name\");"
		echo "int insert(int n) { for (int i = 0; i < n; i++) sink += i * n; return sink; }"
	} >"$tmp/named.c" &&
	gcc -O1 -g -fcf-protection=none -fPIC -shared -nostdlib -o "$tmp/named.so" "$tmp/named.c" &&
	for ms in 100 1000; do
		make_data "named$ms" <<-END || return
			clock 1000000
			stacks
			file 1 @@/named.so
			stack 1 0 0:0 0:0
			sample 1 1 @named.so:$name+1 0 $ms 0 1
		END
	done
	cat >"$tmp/names.py" <<-'END'
		name = "vector<...>::_M_realloc_insert<...>"
		def check(selector):
		    cells = js("""[...document.querySelectorAll("%s .name")].map((e) => {
		        const b = e.getBoundingClientRect();
		        const s = e.closest(".scroll").getBoundingClientRect();
		        return [e.textContent.startsWith(%s), e.title.startsWith("void std::vector<"),
		        b.height < 22, Math.min(b.right, s.right) - b.left > 140]; })"""
		        % (selector, json.dumps(name)))
		    assert cells, selector
		    same(cells, [4 * [True]] * len(cells))
		for width in 1000, 1200, 1400, 1800:
		    size(width, 800)
		    check("#lines")
		    if texts("#titles"):
		        click("#view-table")
		        check("#lines")
		    check("#body")
		    if texts("#titles"):
		        click("#view-flame")
		if texts("#titles"):
		    click("#view-table")
		    for text_, nr in (name, 1), ("void std::VECTOR<std::pair", 1), ("other", 0):
		        write("#filter", text_)
		        same(len(table()), nr)
	END
	browse named1000 <"$tmp/names.py" &&
	sed '/check("#lines")/d' "$tmp/names.py" | diff_page named100 named1000
}

# The page says so if less than 80% of the stacks are complete.
flame_completeness() {
	browse graph20 <<<'assert get("#incomplete", "hidden")' && browse graph21 <<-'END'
		note = "Only 79.00% of the call stacks are complete."
		assert text("#incomplete").startswith(note), text("#incomplete")
		assert box("#incomplete")[3] > 10
		# Other parts of the recording change nothing.
		click("#names button")
		assert text("#incomplete").startswith(note)
	END
}

# Each colour is explained, and text on it can be read.
flame_colours() {
	browse graph0 <<-'END'
		legend = ["framed 50.00%", "library.so 40.00%", "[kernel] 10.00%", "processes",
		          "italic: inlined"]
		same(texts("#legend li"), legend)
		def style(selector, name):
		    return js("getComputedStyle(document.querySelector('%s')).%s" % (selector, name))
		def brightness(colour):
		    parts = [int(part) / 255 for part in colour.strip("rgb()").split(",")]
		    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
		    return sum(p * weight for p, weight in zip(parts, [0.2126, 0.7152, 0.0722])) + 0.05
		def contrast(a, b):
		    return max(brightness(a) / brightness(b), brightness(b) / brightness(a))
		names = ["--binary%d" % i for i in range(6)] + ["--kernel", "--rest"]
		for name in "light", "dark":
		    scheme(name)
		    colours = [style("#legend li:nth-child(%d) .swatch" % i, "backgroundColor")
		               for i in range(1, 5)]
		    same(len(set(colours)), 4)
		    for title, row, nr in (["twin", 5, 0], ["outer (library", 5, 1], ["[read]", 5, 2],
		                           ["framed", 2, 3]):
		        same(style(frame(title, row), "backgroundColor"), colours[nr])
		        assert contrast(colours[nr], style(frame(title, row), "color")) > 4.5, title
		    for colour in names:
		        js("document.querySelector('#legend .swatch').style.background = 'var(%s)'" % colour)
		        assert contrast(style("#legend .swatch", "backgroundColor"),
		                        style(".frame", "color")) > 4.5, colour
		    js("document.querySelector('#legend .swatch').style.background = ''")
		    write("#search", "twin")
		    assert contrast(style(".frame.other", "backgroundColor"),
		                    style(".frame.other", "color")) > 4.5
		    key("Escape")
		same(style(".frame.inlined", "fontStyle"), "italic")
	END
}

flame_keyboard() {
	browse graph0 <<-'END'
		assert "Escape" in text("#keys") and box("#keys")[3] > 10
		focused = "document.activeElement.title.split(' ')[0].replace(':', '')"
		def press(*names):
		    key(*names)
		    return js(focused)
		def start():
		    focus(".frame[tabindex=\"0\"]")
		start()
		same(press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp"), "twin")
		same(press("ArrowLeft"), "outer")
		same(press("ArrowRight", "ArrowRight"), "outer")
		same(press("ArrowUp"), "inner")
		same([press("Enter"), current()], ["inner", [["inner (inlined)"], ["inner"]]])
		same([press("Escape"), current()], ["all", [[], []]])
		same(press("ArrowUp", "ArrowUp", " "), "_start")
		same(current(), [["_start"], ["_start"]])
		press("Escape")
		# Callees first
		focus("#callers-first", "ArrowRight")
		assert get("#callees-first", "checked")
		start()
		same(press("ArrowUp", "ArrowRight", "ArrowRight"), "outer")
		same(press("ArrowDown", "ArrowUp"), "inner")
		same([press("ArrowUp"), press("Enter")], ["outer", "outer"])
		# One function: the callers are above it, and the callees below it.
		focus("#callees-first", "ArrowRight")
		start()
		same(js(focused), "outer")
		same(press("ArrowUp", "ArrowUp"), "_start")
		same(press("ArrowDown", "ArrowDown", "ArrowDown"), "inner")
		same([press("ArrowUp"), press("ArrowDown", "Enter")], ["outer", "inner"])
		same(current(), [["inner (inlined)"], ["inner"]])
		# Escape shows the whole graph again, also from outside of it.
		press("Escape")
		same([current(), get("#callers-first", "checked")], [[[], []], True])
		same(frames()[0], ["all", 1, 1000])
		start()
		press("ArrowUp", "ArrowUp", "Enter")
		same(current()[1], ["_start"])
		focus("#inlined", "Escape")
		same([current()[1], frames()[0]], [[], ["all", 1, 1000]])
		# The rows of the table
		click("#view-table")
		focus("#body tr", "Enter")
		same(len(current()[0]), 1)
		# A button leads from there to the callers and callees.
		name = get("#body tr .name", "title")
		focus("#around", "Enter")
		same([get("#one-function", "checked"), frames()[0][0]], [True, name])
		click("#view-table")
		focus("#body tr", "Escape")
		same([current()[0], get("#around", "hidden")], [[], True])
	END
}

# The page of a large recording is small and fast. The times are those of the CPU, because a test
# need not be alone on the machine; the fastest of up to three times counts. The recording has two
# million samples of 16 threads, whose stacks share their beginnings. A few have most of the ticks.
# Each sample is there eight times, since the Python code would take most of the time.
flame_large() {
	python3 - <<-'END' | "$tmp/generate.hurried" "$tmp/large.data"
		import random
		samples, functions, stacks, threads = 250000, 3000, 20000, 16
		random.seed(1)
		chance = random.random
		print("clock 1000000\nstacks")
		for i in range(threads):
		    print("thread %d 7 100 %d worker%d" % (i + 1, 101 + i, i))
		print("name 1 [anon]")
		for i in range(functions):
		    print("symbol 0x80000001 %d %d void\\x20std::app%d::Engine<int,\\x20std::allocator<int>"
		          "\\x20>::step%d<long>(int,\\x20char\\x20const*)"
		          % (0x10000 + i * 16, 0x10010 + i * 16, i % 7, i))
		for i in range(stacks):
		    path, at = [], i % 3
		    for level in range(random.randint(8, 40)):
		        path.append("1:%d" % (0x10000 + at * 16 + 5))
		        at = (at * 7 + 1 + int(4 * chance() ** 2)) % functions
		    print("stack %d 0 0:0 0:0 %s" % (i + 1, " ".join(reversed(path))))
		ticks = []
		for i in range(samples):
		    stack = int(stacks * chance() ** 6)
		    leaf = (stack * 13 + int(4 * chance() ** 2)) % functions
		    ticks.append("tick %d 1 %d 0 %d %d 1 0 %d" % (1 + int(threads * chance()),
		                 0x10000 + leaf * 16 + 3, i * 600000 // samples, i % 8, 1 + stack))
		print("\n".join(8 * ticks))
	END
	"$tmp/plain" report -i "$tmp/large.data" --html "$tmp/large.html" &&
	[ "$(stat -c %s "$tmp/large.html")" -le 5000000 ] || { ls -l "$tmp"/large.*; return 1; }
	in_browser "$tmp/large.html" <<-'END'
		import re
		browser.call("Performance.enable", timeDomain="threadTicks")
		def cpu_ms():
		    drawn()
		    return 1000 * next(metric["value"] for metric in
		                       browser.call("Performance.getMetrics")["metrics"]
		                       if metric["name"] == "TaskDuration")
		def reload():
		    browser.events = []		# The times begin again with the page.
		    browser.call("Page.reload")
		    browser.wait("Page.loadEventFired")
		def measure(target):
		    if not target:
		        reload()
		        return cpu_ms()
		    box(target)
		    start = cpu_ms()
		    click(target)
		    return cpu_ms() - start
		reload()
		assert len(texts(".frame")) > 1000
		# On an idle machine, a click takes at most 100 ms; on a busy one, caches are cold.
		def slow():
		    return {name: ms for name, ms in best.items()
		            if ms > (2000 if name == "open" else 200)}
		best = {}
		for i in range(3):
		    for name, target in (
		            ("open", None), ("a frame", ".frame:nth-child(40)"), ("the whole graph", "#reset"),
		            ("callees first", "#callees-first"), ("a frame of these", ".frame:nth-child(20)"),
		            ("one function", "#one-function"), ("a caller", ".frame:nth-child(3)"),
		            ("callers first", "#callers-first"), ("a thread", "#names button"),
		            ("all threads", "#names button"), ("the table", "#view-table"),
		            ("a row", "#body tr:nth-child(5)"), ("the order", "#titles th:nth-child(4) button"),
		            ("the graph", "#view-flame"), ("CPUs", "#by-cpu"), ("threads", "#by-thread")):
		        ms = measure(target)
		        best[name] = min(best.get(name, ms), ms)
		    if not slow():
		        break
		print(", ".join("%s %.0f ms" % item for item in best.items()))
		assert not slow(), slow()
		# Frames that are not in the page have ticks of the function, which are in the table.
		def shares(row):
		    click("#view-table")
		    js("document.querySelector('#body tr:nth-child(%d)').click()" % row)
		    in_table = texts("#body tr:nth-child(%d) td" % row)[3]
		    click("#view-flame")
		    point(".frame[data-key='0:0']", 0.5)
		    in_graph = re.search(": ([0-9.]+%),", text("#frame-text")).group(1)
		    lacking = re.search(" not in this page, with ([0-9.]+%) of the ticks of this function$",
		                        text("#flame-more"))
		    return [float(part.rstrip("%")) for part in
		            (in_table, in_graph, lacking.group(1) if lacking else "0%")]
		click("#one-function")
		seen = [shares(row) for row in range(1, 8)]
		assert any(lacking > 1 for _, _, lacking in seen), seen
		assert all(abs(table * (1 - lacking / 100) - graph) < 0.03
		           for table, graph, lacking in seen), seen
		click("#callers-first")
		assert text("#flame-more").endswith(" not in this page"), text("#flame-more")
	END
}

# ---- profil diff --html ----

# diff_data NAME MS...: writes a recording in which these functions took these times. The first one
# calls the others, and the last one also calls itself.
diff_data() {
	local name=$1 address=0x1000 function
	shift
	{
		cat <<-'END'
			clock 1000000
			meta 18 3 host 6.1 ./prog
			thread 1 7 100 0 prog
			name 1 [anon]
			stack 1 0 0:0 0:0
			stack 2 0 0:0 0:0 1:0x1005
			stack 3 0 0:0 0:0 1:0x1065 1:0x1005
		END
		for function in main 'std::hot(int)' cold same gone new \
				'<img\x20src=x\x20onerror=window.hacked=1>'; do
			printf 'symbol 0x80000001 %d %d %s\n' $((address)) $((address + 16)) "$function"
			[ "$1" = 0 ] || printf 'sample 1 1 %d 0 %d 0 %d\n' $((address)) "$1" \
				$((address == 0x1000 ? 1 : address == 0x1060 ? 3 : 2))
			address=$((address + 16))
			shift
		done
	} | make_data "$name"
}

# diff_page A B [OPTION...] <CODE: as browse, with the page of the comparison.
diff_page() {
	local a=$tmp/$1.data b=$tmp/$2.data
	"$tmp/profil" diff --html "$tmp/diff.html" "${@:3}" "$a" "$b" &&
	A=$a B=$b in_browser "$tmp/diff.html"
}

# in_both DATA <CODE: runs it in the page of the recording, and in that of its comparison with
# itself.
in_both() {
	cat >"$tmp/code" && browse "$1" <"$tmp/code" && diff_page "$1" "$1" <"$tmp/code"
}

flame_diff() {
	diff_data before 100 1000 1000 1000 500 0 200 &&
	diff_data after 105 1400 200 1010 0 300 800 && diff_page before after <<-'END' || return
		image = "<img src=x onerror=window.hacked=1>"
		same(text("h1"), "profil diff: changes from A to B")
		same([texts("#about-%s li" % side)[0].split("/")[-1] for side in "ab"],
		     ["before.data", "after.data"])
		assert "3,800 samples" in text("#about-a") and "3,815 samples" in text("#about-b")
		same(text("#counts"), "3 functions became slower, and 2 faster, of 7 (p is at most 0.01)")
		assert text("#notes").startswith("note: A and B have the same CPU time in total; if"), text("#notes")
		want = changes()
		same([[row[0], row[1], row[2], row[6]] for row in table()],
		     [["%+.3f s" % float(row["change"]), "%.3f s" % float(row["a"]), "%.3f s" % float(row["b"]),
		       "%s (%s)" % (row["symbol"].replace("std::", ""), row["dso"])] for row in want])
		same([row["symbol"] for row in want],
		     [image, "std::hot(int)", "new", "cold", "gone"])
		same([row[5] == "<1e-99" for row in table()],
		     [float(row["p"]) < 1e-99 for row in want])
		# Widths are those of B, and only significant changes have a colour.
		total = 105 + 1400 + 200 + 1010 + 300 + 800
		width = lambda ms: round(1000 * ms / total)
		got = {name: size for name, row, size in frames()}
		for name, ms in (("all", total), ("main", total), ("std::hot(int)", 1400), ("cold", 200),
		                 ("same", 1010), ("new", 300), (image, 800)):
		    assert abs(got[name] - width(ms)) <= 1, name
		assert "gone" not in got
		same({name: style for name, style in styles().items() if ": " not in name},
		     {"main": "rest", "std::hot(int)": "slower1", "cold": "faster2", "same": "rest",
		      "new": "slower2", image: "slower2"})
		same(texts("#legend li")[-1], "no significant change")
		same([len(texts("#legend li")), texts("#legend li")[0]], [8, "Colour: change without callees"])
		same(texts("#total td"), ["+0.015 s", "3.800 s", "3.815 s", "x 1.00", "", "", "all functions"])
		same([row[3] for row in table()], ["x %.2f" % (float(row["b"]) / float(row["a"]))
		                                   if float(row["a"]) else "new" for row in want])
		point(frame("cold", 4), 0.5)
		same(text("#frame-text"), "cold ([jit]): 5.24%, 200 ticks; without its callees 1.000 s in A, "
		     "0.200 s in B; with its callees 1.000 s in A, 0.200 s in B")
		# With callees, a function that calls itself counts once.
		click("#with-callees")
		same({row[6]: row[1:3] for row in table()}[image + " ([jit])"], ["0.200 s", "0.800 s"])
		click("#without-callees")
		# The list and the graph have the same selection.
		click("#body tr:nth-child(2)")
		same([current(), text("#frame-text")], [[["hot(int) ([jit])"], ["std::hot(int)"]],
		     "std::hot(int) ([jit]): without its callees 1.000 s in A, 1.400 s in B"])
		click(frame("cold", 4))
		same(current(), [["cold ([jit])"], ["cold"]])
		same([name for name, row, size in frames() if size == 1000], ["all", "prog", "main", "cold"])
		click(frame("main", 3))
		same(current(), [[], ["main"]])
		click("#reset")
		focus("#body tr", "ArrowDown", "Enter")
		same(current(), [["hot(int) ([jit])"], ["std::hot(int)"]])
		click("#one-function")
		same([name for name, row, size in frames()], ["std::hot(int)", "main", "prog"])
		focus("#body tr", "Escape")
		same([current(), frames(), text("#frame-text")], [[[], []], [], ""])
		click("#body tr:last-child")
		same([current(), frames(), text("#frame-text")], [[["gone ([jit])"], []], [],
		     "gone ([jit]): without its callees 0.500 s in A, 0.000 s in B"])
		click("#callees-first")
		write("#search", "^hot")
		same(text("#matched"), "36.70% of the ticks in the selection match, with callees")
		same(js("[window.hacked, document.images.length]"), [None, 0])
	END
	diff_page before after --share <<-'END' || return
		same([[row[0], row[6]] for row in table()],
		     [["%+.2f%%" % (100 * float(row["change"])), "%s (%s)" % (row["symbol"].replace("std::", ""),
		                                                              row["dso"])]
		      for row in changes("--share")])
		same(texts("#total td"), [])
		assert "have a larger share" in text("#counts") and len(table()) > 2, text("#counts")
	END
	# A function can be slower because of those that it calls.
	diff_data grown 100 3000 1000 1000 500 0 200 && diff_page before grown <<-'END' || return
		same([styles()["main"], styles()["std::hot(int)"], len(table())], ["rest", "slower2", 1])
		point(frame("main", 3), 0.5)
		same(text("#frame-text"), "main ([jit]): 100.00%, 5,800 ticks, 1.72% without its callees; "
		     "with its callees 3.800 s in A, 5.800 s in B")
		click("#with-callees")
		same([styles()["main"], styles()["std::hot(int)"], styles()["same"]],
		     ["slower1", "slower2", "rest"])
		same(text("#counts"), "2 functions became slower, and 0 faster, of 6 (p is at most 0.01)")
		same([[row[0], row[3], row[6]] for row in table()],
		     [["+2.000 s", "x 3.00", "hot(int) ([jit])"], ["+2.000 s", "x 1.53", "main ([jit])"]])
		same(texts("#legend li")[0], "Colour: change with callees")
		click("#body tr:last-child")
		same([current(), text("#frame-text")],
		     [[["main ([jit])"], ["main"]], "main ([jit]): with its callees 3.800 s in A, 5.800 s in B"])
		# The selection remains if the function is in the other list, too.
		click("#without-callees")
		same([current(), texts("#legend li")[0]], [[[], ["main"]], "Colour: change without callees"])
		click("#body tr")
		click("#with-callees")
		same(current(), [["hot(int) ([jit])"], ["std::hot(int)"]])
	END
	# There need not be a change, or stacks.
	diff_page before before <<-'END' || return
		same([table(), text("#counts")], [[], "0 functions became slower, and 0 faster, of 6 (p is at most 0.01)"])
		assert text("#notes").startswith("no function changed significantly;"), text("#notes")
		same(set(each(".frame", "className")), {"frame rest"})
	END
	few flat 1000000 main 100 && diff_page before flat <<-'END'
		assert get("#flame", "hidden")
		same(text("#notes"), "There is no flame graph, because B has no stacks.")
		assert get("#lists", "hidden")
		click("#body tr")
		same(len(texts("#body tr[aria-current=true]")), 1)
		assert " in B" in text("#frame-text") and box("#frame-text")[3] > 10
	END
}

flame_diff_options() {
	local before=$tmp/before.data after=$tmp/after.data
	refusals diff --html <<-END &&
		2 $tmp/new --csv a b | --html and --csv exclude each other
		2 $after $before $after | $after: the output is the recording
		1 $tmp/none/new $before $after | $tmp/none/new: No such file or directory
	END
	same "" eval "'$tmp/profil' diff --html - '$before' '$after' |
		grep -c '</html>' | grep -v 1" &&
	same 600 stat -c %a "$tmp/diff.html"
}

check "flame graph: recordings are written" flame_data
check "flame graph: callers first, callees first, one function, inlined functions" flame_orders
check "flame graph: a function that calls itself" flame_recursion
check "flame graph: search" flame_search
check "flame graph: the graph, the table and the timeline have the same selection" flame_selection
check "flame graph: it fits, and stays where it is" flame_place
check "flame graph: the heading has whole lines" flame_heading
check "flame graph: labels" flame_labels
check "flame graph: long names in the tables" flame_names
check "flame graph: incomplete stacks" flame_completeness
check "flame graph: colours" flame_colours
check "flame graph: the keyboard" flame_keyboard
check "flame graph: two million samples" flame_large
check "flame graph: of a comparison" flame_diff
check "flame graph: options of a comparison, and how the file is written" flame_diff_options
