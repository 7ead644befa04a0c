// SPDX-License-Identifier: GPL-2.0-or-later
/* What is selected: an interval and a lane of the timeline, and a row or a frame */

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
