// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
/* The numbers of a cell: lane, interval, number of ticks, weighted ticks, squares of the weights */
const CELL = 5;
const LANE_MIN = 18, LANE_MAX = 44, CHART = 88;
const collator = new Intl.Collator('en', { numeric: true });

const state = {
	timeline: data.timelines[0],
	lane: null,		/* the index of the selected lane */
	from: 0,		/* the selected interval: indexes */
	to: data.intervals,
	cursor: 0,		/* of the keyboard */
	anchor: 0,		/* the other end of its selection */
	row: null,		/* the marked row */
	column: 0,		/* of the order */
	descending: true,
	bar: null,		/* of the histogram */
	node: -1,		/* of the flame graph: the one with the whole width; -1: the root */
	focus: -1,		/* its node for the keyboard */
	ticks: 0,		/* in the selected interval and lane */
};

function find(id)
{
	return document.getElementById(id);
}

function element(name, text, style)
{
	const node = document.createElement(name);

	if (text !== undefined)
		node.textContent = text;
	if (style)
		node.className = style;
	return node;
}

function percent(part, whole)
{
	return (whole ? 100 * part / whole : 0).toFixed(2) + '%';
}

function number(value)
{
	return value.toLocaleString('en-US');
}

function counted(value, noun)
{
	return number(value) + ' ' + noun + (value === 1 ? '' : 's');
}

/* The time at the start of an interval, in seconds */
function seconds(index)
{
	const ns = data.from + index * data.interval;

	return (data.to && ns > data.to ? data.to : ns) / 1e9;
}

function duration(ns)
{
	return ns < 1e9 ? ns / 1e6 + ' ms' : ns / 1e9 + ' s';
}

function isWhole()
{
	return state.from === 0 && state.to === data.intervals;
}

function colour(name)
{
	return getComputedStyle(document.documentElement).getPropertyValue('--' + name);
}

/* ---- the recording ---- */

function showHeading()
{
	for (const line of data.warnings)
		find('warnings').append(element('li', line));
	for (const line of data.about.slice(1))
		find('about').append(element('li', line));
	find('title').textContent = data.about[0];
	document.title = 'profil report: ' + data.about[0];
}

/* ---- the table ---- */

/* Adds up the cells of each row in the selected interval and lane. */
function countRows()
{
	const total = { nr: 0, ticks: 0, squares: 0 };
	const rows = state.timeline.cells.map((cells) => {
		const sum = { nr: 0, ticks: 0, squares: 0 };

		for (let i = 0; i < cells.length; i += CELL) {
			if (cells[i + 1] < state.from || cells[i + 1] >= state.to)
				continue;
			if (state.lane !== null && cells[i] !== state.lane)
				continue;
			sum.nr += cells[i + 2];
			sum.ticks += cells[i + 3];
			sum.squares += cells[i + 4];
		}
		total.nr += sum.nr;
		total.ticks += sum.ticks;
		total.squares += sum.squares;
		return sum;
	});

	return { rows, total };
}

/* The standard error of the share: see profil-report(1). */
function errorOf(sum, total)
{
	const share = total.ticks ? sum.ticks / total.ticks : 0;

	return total.ticks ? Math.sqrt(share * (1 - share) * total.squares) : 0;
}

const numbers = [
	{ title: 'share', value: (sum) => sum.ticks,
	  text: (sum, total) => percent(sum.ticks, total.ticks) },
	{ title: '+-', value: errorOf,
	  text: (sum, total) => percent(errorOf(sum, total), total.ticks) },
	{ title: 'samples', value: (sum) => sum.nr, text: (sum) => number(sum.nr) },
];

/* Compares two rows by the column of the order; then those with more ticks come first. */
function compareRows(a, b, counts)
{
	const column = state.column - numbers.length;
	let order;

	if (column >= 0) {
		order = collator.compare(data.rows[a][column], data.rows[b][column]);
	} else {
		const value = numbers[state.column].value;

		order = value(counts.rows[a], counts.total) - value(counts.rows[b], counts.total);
	}
	if (state.descending)
		order = -order;
	return order || counts.rows[b].ticks - counts.rows[a].ticks || a - b;
}

function showTitles()
{
	const titles = numbers.map((column) => column.title).concat(data.columns);

	titles.forEach((title, i) => {
		const cell = element('th', undefined, i < numbers.length ? 'number' : '');
		const button = element('button', title);

		button.type = 'button';
		button.addEventListener('click', () => {
			state.descending = i === state.column ? !state.descending :
							       i < numbers.length;
			state.column = i;
			showRows();
		});
		cell.scope = 'col';
		cell.append(button);
		find('titles').append(cell);
	});
}

function cellsOf(sum, total)
{
	return numbers.map((column) => element('td', column.text(sum, total), 'number'));
}

/* The last column is as wide as the others leave. */
function textCell(text, column)
{
	const isShort = column < data.columns.length - 1;
	const cell = element('td', text, isShort ? 'short' : '');

	if (isShort)
		cell.title = text;
	return cell;
}

function showRows()
{
	const counts = countRows();
	const wanted = find('filter').value.toLowerCase();
	const body = find('body'), foot = find('foot');
	const all = [...data.rows.keys()].filter((i) => counts.rows[i].nr);
	const shown = all.filter((i) =>
		data.rows[i].some((text) => text.toLowerCase().includes(wanted)));
	const rest = counts.rows[data.rows.length];
	let ticks = 0;

	[...find('titles').children].forEach((cell, i) => {
		if (i === state.column)
			cell.ariaSort = state.descending ? 'descending' : 'ascending';
		else
			cell.ariaSort = 'none';
	});
	shown.sort((a, b) => compareRows(a, b, counts));
	body.replaceChildren(...shown.map((i, place) => {
		const line = element('tr');

		ticks += counts.rows[i].ticks;
		line.append(...cellsOf(counts.rows[i], counts.total));
		line.append(...data.rows[i].map((text, column) => textCell(text, column)));
		line.dataset.row = i;
		line.tabIndex = place ? -1 : 0;
		if (i === state.row)
			line.ariaCurrent = 'true';
		return line;
	}));
	foot.replaceChildren();
	if (rest && rest.nr) {
		const line = element('tr'), cell = element('td', 'in ' + number(data.more) +
							   ' more rows of the recording');

		cell.colSpan = data.columns.length;
		line.append(...cellsOf(rest, counts.total), cell);
		foot.append(line);
	}
	drawGraph();
	find('shown').textContent = counted(shown.length, 'row') + ' of ' + number(all.length) +
		', ' + percent(ticks, counts.total.ticks) + ' of the ticks in the selection';
	showSelection(counts.total);
	state.ticks = counts.total.ticks;
	showLines(state.ticks);
}

/* Marks a row: its ticks get another colour in the timeline, and its source lines are shown. */
function markRow(line)
{
	const row = Number(line.dataset.row);

	state.row = state.row === row ? null : row;
	for (const other of find('body').children)
		other.ariaCurrent = Number(other.dataset.row) === state.row ? 'true' : 'false';
	drawChart();
	showLines(state.ticks);
}

function moveRow(event)
{
	const line = event.target.closest('tr');
	const next = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling };

	if (event.key === 'Enter' || event.key === ' ') {
		markRow(line);
	} else if (next[event.key]) {
		line.tabIndex = -1;
		next[event.key].tabIndex = 0;
		next[event.key].focus();
	} else {
		return;
	}
	event.preventDefault();
}

/* ---- the timeline ---- */

/* Returns an array for each lane, with the ticks of each interval. @only: the cells of these rows. */
function ticksByTime(only)
{
	const lanes = state.timeline.lanes.map(() => new Float64Array(data.intervals));

	for (const cells of only)
		for (let i = 0; i < cells.length; i += CELL)
			lanes[cells[i]][cells[i + 1]] += cells[i + 3];
	return lanes;
}

function laneHeight()
{
	const nr = state.timeline.lanes.length || 1;

	return Math.max(LANE_MIN, Math.min(LANE_MAX, Math.floor(CHART / nr)));
}

/* Makes a canvas as large as it is shown. Returns its context, which uses CSS pixels. */
function prepare(canvas, height)
{
	const ratio = window.devicePixelRatio || 1, context = canvas.getContext('2d');

	if (height)
		canvas.style.height = height + 'px';
	canvas.width = Math.round(canvas.clientWidth * ratio);
	canvas.height = Math.round(canvas.clientHeight * ratio);
	context.scale(ratio, ratio);
	return context;
}

/* Returns a step of 1, 2 or 5 times a power of ten, so that there are at most @nr of them. */
function niceStep(length, nr)
{
	const power = 10 ** Math.floor(Math.log10(length / nr));

	return power * [1, 2, 5, 10].find((factor) => length / (power * factor) <= nr);
}

function drawAxis()
{
	const canvas = find('axis'), context = prepare(canvas), width = canvas.clientWidth;
	const start = seconds(0), length = data.intervals * data.interval / 1e9;
	const step = length ? niceStep(length, Math.max(2, width / 90)) : 0;

	context.fillStyle = colour('faint');
	context.font = '11px system-ui, sans-serif';
	for (let i = Math.ceil(start / step); step && i * step < start + length; i++) {
		const x = (i * step - start) / length * width;

		context.fillRect(x, 10, 1, 6);
		if (x < width - 40)
			context.fillText(Number((i * step).toPrecision(12)) + ' s', x + 3, 11);
	}
}

function drawBars(context, lanes, most, width)
{
	const height = laneHeight(), step = width / data.intervals;

	lanes.forEach((ticks, lane) => ticks.forEach((value, i) => {
		const size = value / most * (height - 2);

		if (value)
			context.fillRect(i * step, (lane + 1) * height - size, Math.max(step, 1),
					 size);
	}));
}

function drawChart()
{
	const canvas = find('chart'), height = laneHeight(), nr = state.timeline.lanes.length;
	const context = prepare(canvas, nr * height), width = canvas.clientWidth;
	const lanes = ticksByTime(state.timeline.cells);
	const most = lanes.reduce((all, lane) => lane.reduce((a, b) => Math.max(a, b), all), 0);
	const x = (index) => index / data.intervals * width;

	context.fillStyle = colour('line');
	for (let i = 1; i < nr; i++)
		context.fillRect(0, i * height, width, 1);
	context.fillStyle = colour('bar');
	drawBars(context, lanes, most, width);
	if (state.row !== null) {
		context.fillStyle = colour('mark');
		drawBars(context, ticksByTime([state.timeline.cells[state.row]]), most, width);
	}
	context.fillStyle = colour('select');
	if (!isWhole()) {
		context.globalAlpha = 0.25;
		context.fillRect(x(state.from), 0, x(state.to - state.from), nr * height);
		context.globalAlpha = 1;
		context.fillRect(x(state.from), 0, 1, nr * height);
		context.fillRect(x(state.to) - 1, 0, 1, nr * height);
	}
	if (document.activeElement === canvas)
		context.fillRect(x(state.cursor), 0, 2, nr * height);
	find('scale').textContent = nr ? 'Each column is ' + duration(data.interval) +
		', and the highest one has ' + counted(most, 'tick') +
		'. An interval has whole columns, and its numbers are exact.' : 'There are no samples.';
}

function showLanes()
{
	const names = find('names');
	const sums = state.timeline.lanes.map(() => 0);

	for (const cells of state.timeline.cells)
		for (let i = 0; i < cells.length; i += CELL)
			sums[cells[i]] += cells[i + 3];
	names.style.setProperty('--lane', laneHeight() + 'px');
	names.replaceChildren(...state.timeline.lanes.map((name, i) => {
		const button = element('button');
		const text = state.timeline.name === 'CPU' ? 'CPU ' + name : name;

		button.type = 'button';
		button.title = text + ': select it, or all';
		button.ariaPressed = i === state.lane ? 'true' : 'false';
		button.append(element('span', text),
			      element('span', percent(sums[i], data.ticks)));
		button.addEventListener('click', () => {
			state.lane = state.lane === i ? null : i;
			[...names.children].forEach((other, j) => {
				other.ariaPressed = j === state.lane ? 'true' : 'false';
			});
			showRows();
		});
		return button;
	}));
}

function showSelection(total)
{
	let text = number(total.nr) + (total.nr === 1 ? ' sample' : ' samples');

	if (state.lane !== null)
		text += ' of ' + find('names').children[state.lane].firstChild.textContent;
	if (!isWhole())
		text += ', as with --from ' + seconds(state.from) + ' --to ' + seconds(state.to);
	find('selection').textContent = text;
	find('from').value = seconds(state.from);
	find('to').value = seconds(state.to);
}

/* Selects the intervals from one to another, which is also selected. Shows this in the timeline. */
function selectIntervals(one, other)
{
	const last = data.intervals - 1;

	state.from = Math.max(0, Math.min(one, other, last));
	state.to = Math.min(data.intervals, Math.max(one, other, 0) + 1);
	drawChart();
}

function selectWhole()
{
	state.from = 0;
	state.to = data.intervals;
	drawChart();
	showRows();
}

/* Reads the times that the user has written. They become the borders of columns around them. */
function readTimes()
{
	const index = (id) => (Number(find(id).value) * 1e9 - data.from) / data.interval;
	const from = Math.floor(index('from') + 1e-6), to = Math.ceil(index('to') - 1e-6);

	if (from < to && from < data.intervals && to > 0)
		selectIntervals(from, to - 1);
	showRows();
}

function dragTimeline()
{
	const chart = find('chart');
	let start = null, moved = false;
	const indexAt = (event) => {
		const box = chart.getBoundingClientRect();

		return Math.floor((event.clientX - box.left) / box.width * data.intervals);
	};

	chart.addEventListener('pointerdown', (event) => {
		if (event.button !== 0 || !data.intervals)
			return;
		start = { x: event.clientX, index: indexAt(event) };
		moved = false;
		chart.setPointerCapture(event.pointerId);
	});
	chart.addEventListener('pointermove', (event) => {
		if (!start || (!moved && Math.abs(event.clientX - start.x) < 3))
			return;
		moved = true;
		selectIntervals(start.index, indexAt(event));
	});
	chart.addEventListener('pointerup', () => {
		if (!start)
			return;
		if (moved)
			showRows();
		else
			selectWhole();
		state.cursor = state.anchor = Math.max(0, start.index);
		drawChart();
		start = null;
	});
	chart.addEventListener('pointercancel', () => {
		start = null;
		showRows();
	});
}

function moveCursor(event)
{
	const last = data.intervals - 1;
	const to = { ArrowLeft: state.cursor - 1, ArrowRight: state.cursor + 1, Home: 0, End: last,
		     PageUp: state.cursor - 16, PageDown: state.cursor + 16 }[event.key];

	if (event.key === 'Escape') {
		selectWhole();
	} else if (to !== undefined && last >= 0) {
		state.cursor = Math.max(0, Math.min(last, to));
		if (event.shiftKey) {
			selectIntervals(state.anchor, state.cursor);
			showRows();
		} else {
			state.anchor = state.cursor;
			drawChart();
		}
	} else {
		return;
	}
	event.preventDefault();
}

function setTimeline(index)
{
	state.timeline = data.timelines[index];
	state.lane = null;
	showLanes();
	drawChart();
	showRows();
}

/* ---- the flame graph ---- */

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

/* ---- the code of a binary ---- */

function binary()
{
	return data.binaries[find('binary').selectedIndex];
}

function address(code, bar)
{
	return '0x' + (BigInt(code.start) + (BigInt(bar) << BigInt(code.shift))).toString(16);
}

function drawHistogram()
{
	const canvas = find('histogram'), context = prepare(canvas), code = binary();
	const width = canvas.clientWidth, height = canvas.clientHeight;

	if (!code)
		return;
	const nr = code.bars[code.bars.length - 3] + 1, step = width / nr;
	const mark = colour('mark'), bar = colour('bar');
	let most = 0;

	for (let i = 0; i < code.bars.length; i += 3)
		most = Math.max(most, code.bars[i + 1]);
	for (let i = 0; i < code.bars.length; i += 3) {
		const size = code.bars[i + 1] / most * (height - 2);

		context.fillStyle = i === state.bar ? mark : bar;
		context.fillRect(code.bars[i] * step, height - size, Math.max(step - (step > 3), 1),
				 size);
	}
}

function showBar(index)
{
	const code = binary();

	state.bar = index;
	drawHistogram();
	if (index === null) {
		find('bar-text').textContent = '';
		return;
	}
	const [bar, ticks, name] = code.bars.slice(index, index + 3);

	find('bar-text').textContent = address(code, bar) + ' to ' + address(code, bar + 1) + ': ' +
		counted(ticks, 'tick') + ' (' + percent(ticks, data.ticks) + '), most in ' +
		data.names[name];
}

function showBinary()
{
	const code = binary();

	find('binary').title = code.path;
	find('binary-text').textContent = counted(code.ticks, 'tick') + ' (' +
		percent(code.ticks, data.ticks) + ') at ' + (code.offsets ? 'offsets ' : '') +
		address(code, 0) + ' to ' + address(code, code.bars[code.bars.length - 3] + 1) +
		', ' + counted(2 ** code.shift, 'byte') + ' in a bar';
	showBar(null);
}

/* Returns the index of the bar that is the nearest one to a place on the screen. */
function barAt(event)
{
	const box = find('histogram').getBoundingClientRect(), bars = binary().bars;
	const place = (event.clientX - box.left) / box.width * (bars[bars.length - 3] + 1) - 0.5;
	let nearest = 0;

	for (let i = 0; i < bars.length; i += 3)
		if (Math.abs(bars[i] - place) < Math.abs(bars[nearest] - place))
			nearest = i;
	return nearest;
}

function moveBar(event)
{
	const last = binary().bars.length - 3;
	const at = state.bar === null ? -3 : state.bar;

	if (event.key === 'ArrowRight')
		showBar(Math.min(last, at + 3));
	else if (event.key === 'ArrowLeft')
		showBar(Math.max(0, at - 3));
	else if (event.key === 'Enter')
		filterByBar();
	else
		return;
	event.preventDefault();
}

/* Filters the table by the function of the bar. */
function filterByBar()
{
	if (state.bar === null || !data.columns.includes('symbol'))
		return;
	find('filter').value = data.names[binary().bars[state.bar + 2]];
	showRows();
}

function showBinaries()
{
	const histogram = find('histogram');

	if (!data.binaries.length) {
		find('binary').hidden = true;
		find('binary-text').textContent = 'No tick is in a binary.';
		return;
	}
	for (const code of data.binaries)
		find('binary').append(element('option', code.name));
	find('binary').addEventListener('change', showBinary);
	histogram.addEventListener('pointermove', (event) => showBar(barAt(event)));
	histogram.addEventListener('click', filterByBar);
	histogram.addEventListener('keydown', moveBar);
	showBinary();
}

/* ---- source lines ---- */

/* The numbers of a cell: line, lane, interval, ticks */
const LINE_CELL = 4;
const LINES_SHOWN = 100;

/* Returns the function whose lines are shown, or null for all. */
function selectedFunction()
{
	const column = data.columns.indexOf('symbol');

	if (!find('flame').hidden)
		return state.node < 0 || parentOf(state.node) < 0 ? null : nameOf(state.node);
	return state.row === null || column < 0 ? null : data.rows[state.row][column];
}

/* Returns the ticks of each line in the selected interval and lane. */
function countLines()
{
	const cells = state.timeline.lines, ticks = new Float64Array(data.lines.length);

	for (let i = 0; i < cells.length; i += LINE_CELL) {
		if (cells[i + 2] < state.from || cells[i + 2] >= state.to)
			continue;
		if (state.lane !== null && cells[i + 1] !== state.lane)
			continue;
		ticks[cells[i]] += cells[i + 3];
	}
	return ticks;
}

function showLine(index, share)
{
	const [source, line, name] = data.lines[index], row = element('tr');
	const place = element('td', source.replace(/.*\//, '') + ':' + line, 'short');

	place.title = source + ':' + line;
	row.append(element('td', share, 'number'), place, element('td', name));
	return row;
}

/* @all: the ticks of the selection */
function showLines(all)
{
	const ticks = countLines(), wanted = selectedFunction();
	const found = [...ticks.keys()].filter((i) => ticks[i] &&
		(wanted === null || data.lines[i][2] === wanted));

	found.sort((a, b) => ticks[b] - ticks[a] || a - b);
	find('lines').replaceChildren(...found.slice(0, LINES_SHOWN).map((i) =>
		showLine(i, percent(ticks[i], all))));
	find('hot-function').textContent = wanted === null ? '' : 'of ' + wanted;
	if (!data.lines.length)
		find('hot-text').textContent = 'There is no line information for these ticks.';
	else if (!found.length)
		find('hot-text').textContent = 'No tick of the selection has a line there.';
	else if (found.length > LINES_SHOWN || (data.more_lines && wanted === null))
		find('hot-text').textContent = 'the first ' + Math.min(found.length, LINES_SHOWN) +
			' of ' + number(found.length + data.more_lines);
	else
		find('hot-text').textContent = '';
}

/* ---- the page ---- */

function draw()
{
	drawAxis();
	drawChart();
	drawHistogram();
}

showHeading();
showTitles();
showBinaries();
setTimeline(0);
draw();
showGraph();
dragTimeline();
find('by-thread').addEventListener('change', () => setTimeline(0));
find('by-cpu').addEventListener('change', () => setTimeline(1));
find('from').addEventListener('change', readTimes);
find('to').addEventListener('change', readTimes);
find('whole').addEventListener('click', selectWhole);
find('filter').addEventListener('input', showRows);
find('body').addEventListener('click', (event) => markRow(event.target.closest('tr')));
find('body').addEventListener('keydown', moveRow);
find('chart').addEventListener('keydown', moveCursor);
find('chart').addEventListener('focus', drawChart);
find('chart').addEventListener('blur', drawChart);
window.addEventListener('resize', draw);
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
