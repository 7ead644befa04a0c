// SPDX-License-Identifier: GPL-2.0-or-later
/* Source lines */

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
