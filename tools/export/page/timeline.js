// SPDX-License-Identifier: GPL-2.0-or-later
/* The timeline */

const LANE_MIN = 18, LANE_MAX = 44, CHART = 88;

/* Returns an array for each lane, with a number for each interval. */
function newLanes()
{
	return state.timeline.lanes.map(() => new Float64Array(data.intervals));
}

/* Returns the ticks by lane and interval of an index, or of all (null), in these groups. */
function ticksByTime(groups, size, wanted)
{
	const lanes = newLanes();

	forCells(groups, size, (index, group, at) => {
		if (wanted === null || index === wanted)
			lanes[group[0]][group[1]] += group[at] +
				(size === ROW_CELL ? group[at + 1] : 0);
	});
	return lanes;
}

/* Returns the ticks of what is selected, with callees if they are known. */
function selectedByTime()
{
	if (data.flame && graph.selected >= 0)
		return ticksByTime(state.timeline.functions, CELL, graph.selected);
	return state.row === null ? newLanes() :
				    ticksByTime(state.timeline.rows, ROW_CELL, state.row);
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
	const lanes = ticksByTime(state.timeline.rows, ROW_CELL, null);
	const most = lanes.reduce((all, lane) => lane.reduce((a, b) => Math.max(a, b), all), 0);
	const x = (index) => index / data.intervals * width;

	context.fillStyle = colour('line');
	for (let i = 1; i < nr; i++)
		context.fillRect(0, i * height, width, 1);
	context.fillStyle = colour('bar');
	drawBars(context, lanes, most, width);
	context.fillStyle = colour('mark');
	drawBars(context, selectedByTime(), most, width);
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
	const sums = ticksByTime(state.timeline.rows, ROW_CELL, null)
		.map((ticks) => ticks.reduce((a, b) => a + b, 0));

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
