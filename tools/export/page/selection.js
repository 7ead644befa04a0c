// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is selected: an interval and a lane of the timeline, and a function
 *
 * A function can be selected in the table and in the flame graph. A row need not be a function.
 */

const state = {
	timeline: data.timelines[0],
	lane: null,		/* the index of the selected lane */
	from: 0,		/* the selected interval: indexes */
	to: data.intervals,
	cursor: 0,		/* of the keyboard */
	anchor: 0,		/* the other end of its selection */
	row: null,		/* the selected row of the table */
	column: 0,		/* of the order */
	descending: true,
	allRows: false,		/* the table is longer than ROWS_SHOWN */
	bar: null,		/* of the histogram */
	ticks: 0,		/* in the selected interval and lane */
};

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

/*
 * The cells of a timeline are in groups. A group begins with its lane and its interval. A cell has
 * the difference of its index from the one before it, and its ticks. A cell of a row has the number
 * of its ticks, and by how much their weighted sum and the sum of the squares of their weights are
 * larger.
 */
const CELL = 2, ROW_CELL = 4;

/* Returns the groups in the selection. */
function selectedGroups(groups)
{
	return groups.filter(([lane, interval]) =>
		interval >= state.from && interval < state.to &&
		(state.lane === null || lane === state.lane));
}

/* Calls @add(index, cell) for each cell of these groups. @cell is the place of its numbers. */
function forCells(groups, size, add)
{
	for (const group of groups) {
		let index = 0;

		for (let i = 2; i < group.length; i += size) {
			index += group[i];
			add(index, group, i + 1);
		}
	}
}

/* Returns the ticks of each of @nr indexes in these groups. */
function sumTicks(groups, nr)
{
	const ticks = new Float64Array(nr);

	forCells(groups, CELL, (index, group, at) => {
		ticks[index] += group[at];
	});
	return ticks;
}

function ownTicks()
{
	return sumTicks(selectedGroups(state.timeline.flame), nrNodes());
}

function wholeTicks()
{
	return sumTicks(state.timeline.flame, nrNodes());
}

/* If there are too many functions, the page has the numbers of the first ones only. */
function allTicks(index)
{
	const { counted: nr } = data.flame;

	return index < nr ? sumTicks(selectedGroups(state.timeline.functions), nr)[index] : undefined;
}

/* Selects a row of the table, or none (null), and its function, if it has one. */
function selectRow(row)
{
	state.row = row;
	if (data.flame)
		showSelected(row === null ? -1 : table.functions[row]);
	showSelectedRow();
	drawChart();
	showLines(state.ticks);
}

/* Selects a function in the flame graph, or none (-1), and its row. */
function select(index)
{
	const row = index < 0 ? -1 : table.functions.indexOf(index);

	state.row = row < 0 ? null : row;
	showSelected(index);
	showSelectedRow();
	drawChart();
	showLines(state.ticks);
}
