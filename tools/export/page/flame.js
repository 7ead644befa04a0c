// SPDX-License-Identifier: GPL-2.0-or-later
/* The flame graph */

/* In the array of nodes: index of the parent, or -1; indexes of the texts of its name and binary */
const NODE = 3;
/* The numbers of a cell: node, lane, interval, ticks */
const FLAME_CELL = 4;
const FRAME = 18;		/* pixels */

const flame = {
	levels: [],		/* for each node, the number of its callers, with the root */
	children: new Map(),	/* for each node that has some: its children, by name */
	ticks: [],		/* for each node, its ticks in the selection, with its callees */
	own: [],		/* and without them */
	total: 0,
	frames: new Map(),	/* for each node that is shown: its element */
};

function parentOf(node)
{
	return data.flame.nodes[node * NODE];
}

function nameOf(node)
{
	return node < 0 ? 'all' : data.flame.texts[data.flame.nodes[node * NODE + 1]];
}

function levelOf(node)
{
	return node < 0 ? 0 : flame.levels[node];
}

/* A node comes after its parent. */
function readGraph()
{
	const nr = data.flame.nodes.length / NODE;

	for (let i = 0; i < nr; i++) {
		const parent = parentOf(i), children = flame.children.get(parent) || [];

		flame.levels[i] = levelOf(parent) + 1;
		children.push(i);
		flame.children.set(parent, children);
	}
	for (const children of flame.children.values())
		children.sort((a, b) => collator.compare(nameOf(a), nameOf(b)) || a - b);
}

function countGraph()
{
	const cells = state.timeline.flame, nr = flame.levels.length;

	flame.own = new Float64Array(nr);
	flame.total = 0;
	for (let i = 0; i < cells.length; i += FLAME_CELL) {
		if (cells[i + 2] < state.from || cells[i + 2] >= state.to)
			continue;
		if (state.lane !== null && cells[i + 1] !== state.lane)
			continue;
		flame.own[cells[i]] += cells[i + 3];
		flame.total += cells[i + 3];
	}
	flame.ticks = flame.own.slice();
	for (let i = nr - 1; i >= 0; i--)
		if (parentOf(i) >= 0)
			flame.ticks[parentOf(i)] += flame.ticks[i];
}

function ticksOf(node)
{
	return node < 0 ? flame.total : flame.ticks[node];
}

function describe(node)
{
	const binary = node < 0 ? '' : data.flame.texts[data.flame.nodes[node * NODE + 2]];
	let text = nameOf(node) + (binary ? ' (' + binary + ')' : '') + ': ' +
		percent(ticksOf(node), flame.total) + ', ' + counted(ticksOf(node), 'tick');

	if (node >= 0 && flame.own[node] && flame.own[node] !== flame.ticks[node])
		text += ', ' + percent(flame.own[node], flame.total) + ' without its callees';
	return text;
}

function isMatch(node, wanted)
{
	return node >= 0 && wanted !== '' && nameOf(node).toLowerCase().includes(wanted);
}

/* Returns the ticks with a frame that matches. Each tick counts once. */
function countMatches(wanted)
{
	const open = [-1];
	let ticks = 0;

	while (open.length) {
		const node = open.pop();

		if (isMatch(node, wanted))
			ticks += ticksOf(node);
		else
			open.push(...flame.children.get(node) || []);
	}
	return ticks;
}

/* Functions with the same name have the same colour. */
function hue(name)
{
	let hash = 0;

	for (let i = 0; i < name.length; i++)
		hash = (hash * 31 + name.charCodeAt(i)) % 997;
	return 12 + hash % 44;
}

function addFrame(node, left, width, wanted)
{
	const narrow = width < 20, frame = element('div', narrow ? '' : nameOf(node), 'frame');

	frame.dataset.node = node;
	frame.title = describe(node);
	frame.tabIndex = -1;
	frame.role = 'treeitem';
	frame.ariaLabel = frame.title;
	frame.ariaLevel = levelOf(node) + 1;
	frame.style.left = left + 'px';
	frame.style.width = Math.max(width, 1) + 'px';
	frame.style.bottom = levelOf(node) * FRAME + 'px';
	frame.style.setProperty('--hue', hue(nameOf(node)));
	frame.classList.toggle('narrow', narrow);
	frame.classList.toggle('outer', levelOf(node) < levelOf(state.node));
	frame.classList.toggle('match', isMatch(node, wanted));
	flame.frames.set(node, frame);
}

/* Shows the node of the state with the whole width, its callers below it, and its callees. */
function drawGraph()
{
	const graph = find('graph'), wanted = find('search').value.toLowerCase();
	const width = graph.clientWidth, open = [];
	let top = 0;

	if (find('flame').hidden)
		return;
	countGraph();
	flame.frames.clear();
	if (!ticksOf(state.node))
		state.node = -1;
	for (let node = state.node; node >= 0; node = parentOf(node))
		open.unshift([parentOf(node), 0]);
	for (const [node] of open)
		addFrame(node, 0, width, wanted);
	open.splice(0, open.length, [state.node, 0]);
	while (open.length && flame.total) {
		const [node, left] = open.pop(), size = ticksOf(node) / ticksOf(state.node) * width;
		let next = left;

		if (size < 0.4)
			continue;
		addFrame(node, left, size, wanted);
		top = Math.max(top, levelOf(node));
		for (const child of flame.children.get(node) || []) {
			open.push([child, next]);
			next += ticksOf(child) / ticksOf(state.node) * width;
		}
	}
	graph.replaceChildren(...flame.frames.values());
	graph.style.height = (top + 1) * FRAME + 'px';
	find('flame-scroll').scrollTop = graph.clientHeight;
	find('reset').disabled = state.node < 0;
	find('matched').textContent = wanted === '' ? '' :
		percent(countMatches(wanted), flame.total) + ' of the ticks in the selection match';
	focusNode(flame.frames.has(state.focus) ? state.focus : state.node, false);
}

/* Sets the frame that the keyboard uses. @move: move the focus there, too. */
function focusNode(node, move)
{
	const before = flame.frames.get(state.focus), frame = flame.frames.get(node);

	state.focus = node;
	if (before)
		before.tabIndex = -1;
	if (!frame)
		return;
	frame.tabIndex = 0;
	if (move)
		frame.focus();
}

function zoom(node)
{
	const move = find('graph').contains(document.activeElement);

	state.node = state.focus = node;
	drawGraph();
	focusNode(node, move);
	showLines(state.ticks);
}

function nodeOf(event)
{
	const frame = event.target.closest('.frame');

	return frame ? Number(frame.dataset.node) : null;
}

function showFrame(event)
{
	const node = nodeOf(event);

	find('frame-text').textContent = node === null ? '' : describe(node);
}

/* Returns the shown child with the most ticks; undefined if there is none. */
function largestChild(node)
{
	const children = (flame.children.get(node) || []).filter((i) => flame.frames.has(i));

	return children.sort((a, b) => ticksOf(b) - ticksOf(a))[0];
}

function moveFrame(event)
{
	const node = nodeOf(event);
	const level = [...flame.frames.keys()].filter((i) => levelOf(i) === levelOf(node))
		.sort((a, b) => flame.frames.get(a).offsetLeft - flame.frames.get(b).offsetLeft);
	const to = { ArrowUp: largestChild(node), ArrowDown: node < 0 ? undefined : parentOf(node),
		     ArrowLeft: level[level.indexOf(node) - 1],
		     ArrowRight: level[level.indexOf(node) + 1] };

	if (event.key === 'Enter' || event.key === ' ')
		zoom(node);
	else if (event.key === 'Escape')
		zoom(-1);
	else if (to[event.key] !== undefined)
		focusNode(to[event.key], true);
	else
		return;
	event.preventDefault();
}

function setView()
{
	find('flame').hidden = !find('view-flame').checked;
	find('main').hidden = find('view-flame').checked;
	find(find('view-flame').checked ? 'flame' : 'main').append(find('hot'));
	draw();
	drawGraph();
	showLines(state.ticks);
}

function showGraph()
{
	const graph = find('graph');

	if (!data.flame)
		return;
	readGraph();
	if (data.flame.more)
		find('flame-more').textContent = number(data.flame.more) +
			' frames are too small to be in this page';
	find('views').hidden = false;
	graph.addEventListener('click', (event) => nodeOf(event) !== null && zoom(nodeOf(event)));
	graph.addEventListener('keydown', moveFrame);
	graph.addEventListener('pointerover', showFrame);
	graph.addEventListener('focusin', showFrame);
	find('search').addEventListener('input', drawGraph);
	find('reset').addEventListener('click', () => zoom(-1));
	find('view-flame').addEventListener('change', setView);
	find('view-table').addEventListener('change', setView);
	window.addEventListener('resize', drawGraph);
	setView();
}
