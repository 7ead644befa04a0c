// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The flame graph
 *
 * The data has the nodes of one tree, in which callers come before their callees. Each order of the
 * graph is a tree of its own, which is made of the paths from the root to these nodes.
 *
 * A page defines these functions:
 *	ownTicks()		the ticks of each node without its callees, in the selection
 *	wholeTicks()		the same in the whole recording
 *	allTicks(index)		ticks of a function with its callees, in the selection; or undefined
 *	select(index)		a function has been selected; -1: none
 *	note(index)		what else there is to say about a function
 *	styleOf(index)		the class for its colour
 */

/* In the array of nodes: index of the parent, or -1; index of the function */
const NODE = 2;
/* In the array of functions: indexes of its name, its binary, and three forms of a label; flags */
const FUNCTION = 6, NAME = 0, BINARY = 1, LABEL = 2, LABELS = 3, FLAGS = 5;
const INLINED = 1;
const KERNEL = '[kernel]';	/* the binary of what the kernel did for a function */
const FRAME = 18, PADDING = 7, NARROW = 20, TINY = 4, HIDDEN = 1;		/* pixels */

const graph = {
	ranks: [],		/* of the functions, by name */
	trees: [],		/* that are shown; the second one has the callers of one function */
	frames: new Map(),	/* by key: the frames that are shown, see addFrame() */
	own: [],		/* ticks of the nodes in the selection */
	total: 0,		/* their sum */
	zoom: 0,		/* the node of the first tree that has the whole width */
	focus: '0:0',		/* the key of the frame for the keyboard */
	shown: null,		/* the key of the frame whose text is shown */
	selected: -1,		/* function */
	matches: null,		/* for each function: the search has found it; null: no search */
	match: -1,		/* the place of the last one that was chosen */
};

const context = document.createElement('canvas').getContext('2d');
const widths = new Map();

function parentOf(node)
{
	return data.flame.nodes[node * NODE];
}

function functionOf(node)
{
	return data.flame.nodes[node * NODE + 1];
}

function nrNodes()
{
	return data.flame.nodes.length / NODE;
}

function nrFunctions()
{
	return data.flame.functions.length / FUNCTION;
}

/* Returns one of the texts of a function. */
function textOf(index, which)
{
	return index < 0 ? 'all' : data.flame.texts[data.flame.functions[index * FUNCTION + which]];
}

function flagsOf(index)
{
	return data.flame.functions[index * FUNCTION + FLAGS];
}

/* Functions have a binary, and processes have none. */
function isFunction(index)
{
	return index >= 0 && textOf(index, BINARY) !== '';
}

function isShown(node)
{
	return find('inlined').checked || !(flagsOf(functionOf(node)) & INLINED);
}

/* ---- trees ---- */

/* A tree with a root. @up: children are above their parents. */
function newTree(root, up)
{
	return { up, functions: [root], parents: [-1], levels: [0], children: [[]],
		 index: new Map(), ends: new Int32Array(nrNodes()).fill(-1), ticks: [], own: [] };
}

/* Returns the child of a node with this function. A new node has the highest index. */
function childOf(tree, parent, index)
{
	const key = parent * nrFunctions() + index;
	let node = tree.index.get(key);

	if (node === undefined) {
		node = tree.functions.length;
		tree.index.set(key, node);
		tree.functions.push(index);
		tree.parents.push(parent);
		tree.levels.push(tree.levels[parent] + 1);
		tree.children.push([]);
		tree.children[parent].push(node);
	}
	return node;
}

function callersFirst()
{
	const tree = newTree(-1, true);

	for (let i = 0; i < nrNodes(); i++) {
		const parent = parentOf(i) < 0 ? 0 : tree.ends[parentOf(i)];

		tree.ends[i] = isShown(i) ? childOf(tree, parent, functionOf(i)) : parent;
	}
	return tree;
}

/* Adds the path from a node to the root of the data. Returns its end in the tree. */
function addCallers(tree, node)
{
	let end = 0;

	for (; node >= 0; node = parentOf(node))
		if (isShown(node))
			end = childOf(tree, end, functionOf(node));
	return end;
}

function calleesFirst()
{
	const tree = newTree(-1, true), whole = wholeTicks();

	for (let i = 0; i < nrNodes(); i++)
		if (whole[i])
			tree.ends[i] = addCallers(tree, i);
	return tree;
}

/*
 * The callees and the callers of a function. If it called itself, these are the callees of the
 * innermost call, and the callers of the outermost one.
 */
function aroundFunction(index)
{
	const below = newTree(index, false), above = newTree(index, true);

	for (let i = 0; i < nrNodes(); i++) {
		const parent = parentOf(i), isInside = parent >= 0 && below.ends[parent] >= 0;

		if (functionOf(i) === index)
			below.ends[i] = 0;
		else if (isInside)
			below.ends[i] = isShown(i) ?
				childOf(below, below.ends[parent], functionOf(i)) :
				below.ends[parent];
		if (isInside)
			above.ends[i] = above.ends[parent];
		else if (functionOf(i) === index)
			above.ends[i] = addCallers(above, parent);
	}
	return [below, above];
}

function makeTrees()
{
	const one = find('one-function').checked;

	if (one)
		graph.trees = graph.selected < 0 ? [] : aroundFunction(graph.selected);
	else
		graph.trees = [find('callees-first').checked ? calleesFirst() : callersFirst()];
	graph.zoom = 0;
	graph.focus = '0:0';
	if (graph.shown !== null)
		showText('', '');
}

/* Counts the ticks of the selection in a tree. */
function countTree(tree)
{
	const nr = tree.functions.length;

	tree.own = new Float64Array(nr);
	graph.own.forEach((ticks, node) => {
		if (ticks && tree.ends[node] >= 0)
			tree.own[tree.ends[node]] += ticks;
	});
	tree.ticks = tree.own.slice();
	for (let i = nr - 1; i > 0; i--)
		tree.ticks[tree.parents[i]] += tree.ticks[i];
}

/* ---- frames ---- */

/* Returns the name of a frame, and its numbers. */
function describe(tree, node)
{
	const index = tree.functions[node], ticks = tree.ticks[node];
	const inKernel = tree.children[node].reduce((sum, child) =>
		sum + (textOf(tree.functions[child], BINARY) === KERNEL ? tree.ticks[child] : 0), 0);
	const own = tree.own[node] + inKernel;
	let text = ': ' + percent(ticks, graph.total) + ', ' + counted(ticks, 'tick');

	/* As in the table, this includes the kernel's work for the function. */
	if (tree === graph.trees[0] && !find('callees-first').checked && isFunction(index) && own &&
	    (own !== ticks || inKernel)) {
		text += ', ' + percent(own, graph.total) + ' without its callees';
		if (inKernel)
			text += ' (' + percent(inKernel, graph.total) + ' in the kernel)';
	}
	return [textOf(index, NAME) + (isFunction(index) ? ' (' + textOf(index, BINARY) + ')' : ''),
		text + note(index)];
}

function widthOf(text)
{
	let width = widths.get(text);

	if (width === undefined) {
		width = context.measureText(text).width;
		widths.set(text, width);
	}
	return width;
}

/* Returns the longest form of the label that fits, or the last component of the name. */
function labelFor(index, width)
{
	const last = textOf(index, LABEL + LABELS - 1), room = width - PADDING;

	if (index < 0 || width < NARROW)
		return index < 0 ? 'all' : '';
	for (let i = 0; i < LABELS - 1; i++)
		if (widthOf(textOf(index, LABEL + i)) <= room)
			return textOf(index, LABEL + i);
	return last !== textOf(index, LABEL) && widthOf('…' + last) <= room ? '…' + last : last;
}

function sortedChildren(tree, node)
{
	return tree.children[node].sort((a, b) => graph.ranks[tree.functions[a]] -
						  graph.ranks[tree.functions[b]]);
}

/* Returns the frames to show: tree and node, place and size. */
function layOut(width)
{
	const places = [];

	graph.trees.forEach((tree, nr) => {
		const zoom = nr ? 0 : graph.zoom, open = [[zoom, 0]];

		for (let node = tree.parents[zoom]; node >= 0; node = tree.parents[node])
			places.push({ nr, tree, node, left: 0, size: width });
		while (open.length && tree.ticks[zoom]) {
			const [node, left] = open.pop();
			const size = tree.ticks[node] / tree.ticks[zoom] * width;
			let next = left;

			if (size < HIDDEN)
				continue;
			if (!nr || node)
				places.push({ nr, tree, node, left, size });
			for (const child of sortedChildren(tree, node)) {
				open.push([child, next]);
				next += tree.ticks[child] / tree.ticks[zoom] * width;
			}
		}
	});
	return places;
}

/* Describes a frame to people who point to it, or cannot see it. */
function describeFrame({ tree, node, element: frame })
{
	const index = tree.functions[node];

	frame.title = describe(tree, node).join('');
	frame.ariaLabel = frame.title;
	frame.role = 'treeitem';
	frame.ariaLevel = tree.levels[node] + 1;
	frame.ariaSelected = index >= 0 && index === graph.selected ? 'true' : 'false';
}

/* Makes the element of a place. Narrow ones are many. @lowest: the level at the bottom */
function addFrame(place, lowest)
{
	const { nr, tree, node, left, size } = place, index = tree.functions[node];
	const frame = element('div', labelFor(index, size)), key = nr + ':' + node;

	place.row = tree.up ? tree.levels[node] : -tree.levels[node];
	place.element = frame;
	place.style = 'frame ' + styleOf(index) + (size < TINY ? ' tiny' : size < NARROW ? ' narrow' : '');
	if (!nr && tree.levels[node] < tree.levels[graph.zoom])
		place.style += ' outer';
	if (index >= 0 && flagsOf(index) & INLINED)
		place.style += ' inlined';
	frame.dataset.key = key;
	frame.tabIndex = -1;
	frame.style.cssText = 'left:' + left + 'px;width:' + Math.max(size, 1) + 'px;bottom:' +
		(place.row - lowest) * FRAME + 'px';
	if (size >= NARROW)
		describeFrame(place);
	graph.frames.set(key, place);
}

/* Marks the frames of the selected function, and those that the search has found. */
function markFrames()
{
	for (const place of graph.frames.values()) {
		const index = place.tree.functions[place.node];
		let style = place.style;

		if (index >= 0 && index === graph.selected)
			style += ' selected';
		if (graph.matches)
			style += index >= 0 && graph.matches[index] ? ' match' : ' other';
		if (place.element.className !== style) {
			place.element.className = style;
			if (place.element.title)
				describeFrame(place);
		}
	}
	find('reset').disabled = !graph.zoom && graph.selected < 0;
}

/* Says how many frames the graph lacks, and how many ticks a view of one function lacks thereby. */
function showMore()
{
	const { more } = data.flame, [tree, callers] = graph.trees;
	let text = '';

	if (more)
		text = counted(more, 'frame') + ' with few ticks ' + (more === 1 ? 'is' : 'are') +
			' not in this page';
	if (more && callers) {
		const all = allTicks(graph.selected), lacking = all - tree.ticks[0];

		if (lacking > 0)
			text += ', with ' + percent(lacking, all) + ' of the ticks of this function';
	}
	find('flame-more').textContent = text;
}

/* Shows the graph of the selection. The root remains at its place. */
function drawGraph()
{
	const area = find('graph'), box = find('flame-scroll');
	const below = box.scrollHeight - box.scrollTop;
	let places, lowest = 0, highest = 0;

	if (find('flame').hidden)
		return;
	find('no-function').hidden = graph.trees.length > 0;
	area.hidden = !graph.trees.length;
	graph.own = ownTicks();
	graph.total = graph.own.reduce((a, b) => a + b, 0);
	graph.trees.forEach(countTree);
	if (graph.trees.length && !graph.trees[0].ticks[graph.zoom])
		graph.zoom = 0;
	places = layOut(area.clientWidth);
	for (const { tree, node } of places) {
		lowest = Math.min(lowest, tree.up ? 0 : -tree.levels[node]);
		highest = Math.max(highest, tree.up ? tree.levels[node] : 0);
	}
	graph.frames.clear();
	for (const place of places)
		addFrame(place, lowest);
	area.replaceChildren(...places.map((place) => place.element));
	area.style.height = (highest - lowest + 1) * FRAME + 'px';
	markFrames();
	showMatches();
	showMore();
	if (graph.shown !== null)
		showFrame(graph.frames.get(graph.shown));
	focusFrame(graph.frames.has(graph.focus) ? graph.focus : '0:' + graph.zoom, false);
	box.scrollTop = box.scrollHeight - below;
}

/* Scrolls to the root, or to the function between its callers and its callees. */
function scrollToRoot()
{
	const root = graph.frames.get('0:0'), box = find('flame-scroll');

	if (root)
		box.scrollTop = root.element.offsetTop - (graph.trees.length > 1 ?
			box.clientHeight / 2 : box.clientHeight - FRAME);
}

/* Keeps what is at the bottom of the graph there when the height of its box changes. */
function keepBottom()
{
	const box = find('flame-scroll');
	let below = 0;

	box.addEventListener('scroll', () => {
		below = box.scrollHeight - box.clientHeight - box.scrollTop;
	});
	new ResizeObserver(() => {
		box.scrollTop = box.scrollHeight - box.clientHeight - below;
	}).observe(box);
}

/* ---- search ---- */

/* Returns the ticks with a function that was found. Each tick counts once. */
function countMatches()
{
	const found = new Uint8Array(nrNodes());
	let ticks = 0;

	for (let i = 0; i < nrNodes(); i++) {
		found[i] = (parentOf(i) >= 0 && found[parentOf(i)]) ||
			   (isShown(i) && graph.matches[functionOf(i)]);
		if (found[i])
			ticks += graph.own[i];
	}
	return ticks;
}

function showMatches()
{
	if (graph.matches)
		find('matched').textContent = percent(countMatches(), graph.total) +
			' of the ticks in the selection match, with callees';
}

/* Selects the match with the widest frame, and then the next one. */
function chooseMatch()
{
	const places = new Map();

	for (const place of [...graph.frames.values()].sort((a, b) => b.size - a.size)) {
		const index = place.tree.functions[place.node];

		if (graph.matches && graph.matches[index] && !places.has(index))
			places.set(index, place);
	}
	if (!places.size)
		return;
	graph.match = (graph.match + 1) % places.size;
	const [index, place] = [...places][graph.match];

	if (!find('one-function').checked)
		select(isFunction(index) ? index : -1);
	focusFrame(place.element.dataset.key, false);
	showFrame(place);
	place.element.scrollIntoView({ block: 'nearest' });
}

/* Finds the functions whose name, or label, the regular expression matches. */
function search()
{
	const input = find('search');
	let pattern = null, problem = '';

	try {
		pattern = input.value === '' ? null : new RegExp(input.value, 'i');
	} catch (error) {
		problem = 'This is not a valid regular expression: ' + error.message.replace(/^.*: /, '');
	}
	graph.match = -1;
	graph.matches = pattern && [...Array(nrFunctions()).keys()].map((index) =>
		pattern.test(textOf(index, NAME)) || pattern.test(textOf(index, LABEL)));
	input.ariaInvalid = problem ? 'true' : 'false';
	find('matched').classList.toggle('note', problem !== '');
	find('matched').textContent = problem;
	showMatches();
	markFrames();
}

/* ---- the mouse and the keyboard ---- */

/* Sets the frame that the keyboard uses. @move: move the focus there, too. */
function focusFrame(key, move)
{
	const before = graph.frames.get(graph.focus), place = graph.frames.get(key);

	if (before)
		before.element.tabIndex = -1;
	if (!place)
		return;
	graph.focus = key;
	place.element.tabIndex = 0;
	if (move)
		place.element.focus();
}

function hasFocus()
{
	return find('graph').contains(document.activeElement);
}

/* Selects the function of a frame, and gives it the whole width. */
function chooseFrame({ tree, node })
{
	const index = tree.functions[node], move = hasFocus();

	if (find('one-function').checked) {
		if (isFunction(index))
			select(index);
	} else {
		graph.zoom = node;
		drawGraph();
		graph.focus = '0:' + node;
		select(isFunction(index) ? index : -1);
	}
	focusFrame(graph.focus, move);
}

function showAll()
{
	const move = hasFocus();

	if (find('one-function').checked)
		find('callers-first').checked = true;
	select(-1);
	makeTrees();
	drawGraph();
	scrollToRoot();
	focusFrame('0:0', move);
}

/* Shows that another function is selected. */
function showSelected(index)
{
	graph.selected = index;
	if (find('one-function').checked)
		setOrder();
	else
		markFrames();
}

function setOrder()
{
	makeTrees();
	drawGraph();
	scrollToRoot();
}

function placeOf(event)
{
	const frame = event.target.closest('.frame');

	return frame && graph.frames.get(frame.dataset.key);
}

/*
 * Shows a name and numbers below the graph. The height of the line is fixed, so that no frame moves
 * away from the mouse.
 */
function showText(name, numbers)
{
	find('frame-text').replaceChildren(element('span', name), element('span', numbers));
	find('frame-text').title = name + numbers;
	graph.shown = null;
}

/* Shows the text of a frame, or none if the graph no longer has the frame. */
function showFrame(place)
{
	if (!place) {
		showText('', '');
		return;
	}
	describeFrame(place);
	showText(...describe(place.tree, place.node));
	graph.shown = place.element.dataset.key;
}

/* Returns the key of the frame above or below one, or undefined. */
function nextLevel({ nr, tree, node }, up)
{
	const at = node ? nr : graph.trees.findIndex((other) => other.up === up);
	const from = graph.trees[at];

	if (!from)
		return undefined;
	if (from.up !== up)
		return node ? (from.parents[node] ? at : 0) + ':' + from.parents[node] : undefined;
	return from.children[node].map((child) => at + ':' + child)
		.filter((key) => graph.frames.has(key))
		.sort((a, b) => graph.frames.get(b).size - graph.frames.get(a).size)[0];
}

/* Returns the key of the frame beside one in its row, or undefined. */
function nextInRow(place, step)
{
	const row = [...graph.frames.values()].filter((other) => other.row === place.row)
		.sort((a, b) => a.left - b.left);
	const next = row[row.indexOf(place) + step];

	return next && next.element.dataset.key;
}

function moveFrame(event)
{
	const place = placeOf(event);
	let to;

	if (!place)
		return;
	if (event.key === 'ArrowUp' || event.key === 'ArrowDown')
		to = nextLevel(place, event.key === 'ArrowUp');
	else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight')
		to = nextInRow(place, event.key === 'ArrowLeft' ? -1 : 1);
	if (event.key === 'Enter' || event.key === ' ')
		chooseFrame(place);
	else if (event.key === 'Escape')
		showAll();
	else if (to !== undefined)
		focusFrame(to, true);
	else
		return;
	event.preventDefault();
}

/* ---- the start ---- */

/* @items: for each colour, the class of its frames, or none, and what they are. */
function showLegend(items)
{
	const nodes = items.map(([style, text]) => {
		const item = element('li', text);

		if (style)
			item.prepend(element('span', undefined, 'swatch ' + style));
		return item;
	});

	find('legend').replaceChildren(...nodes);
}

/* If many stacks lack callers, the graph looks as if their functions had no caller. */
function showCompleteness()
{
	const { complete, stacks } = data.flame, note = find('incomplete');

	note.hidden = !(complete < 0.8 * stacks);
	note.textContent = 'Only ' + percent(complete, stacks) +
		' of the call stacks are complete. The others lack callers, so their frames are ' +
		'too low, and those of the callers are too narrow.';
}

function startGraph()
{
	const area = find('graph'), order = [...Array(nrFunctions()).keys()];

	context.font = '12px ' + getComputedStyle(document.body).fontFamily;
	order.sort((a, b) => collator.compare(textOf(a, NAME), textOf(b, NAME)) || a - b);
	order.forEach((index, rank) => {
		graph.ranks[index] = rank;
	});
	showCompleteness();
	makeTrees();
	keepBottom();
	area.addEventListener('click', (event) => placeOf(event) && chooseFrame(placeOf(event)));
	area.addEventListener('keydown', moveFrame);
	for (const name of ['pointerover', 'focusin'])
		area.addEventListener(name, (event) => placeOf(event) && showFrame(placeOf(event)));
	for (const id of ['callers-first', 'callees-first', 'one-function', 'inlined'])
		find(id).addEventListener('change', setOrder);
	find('search').addEventListener('input', search);
	find('search').addEventListener('keydown', (event) => {
		if (event.key === 'Escape') {
			find('search').value = '';
			search();
		} else if (event.key === 'Enter') {
			chooseMatch();
		}
	});
	find('reset').addEventListener('click', showAll);
	window.addEventListener('resize', () => {
		drawGraph();
		scrollToRoot();
	});
}
