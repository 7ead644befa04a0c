// SPDX-License-Identifier: GPL-2.0-or-later
/* Source lines */

const LINES_SHOWN = 100;

/* Returns the names and the binary of the function whose lines are shown; null: any. */
function selectedFunction()
{
	const cell = (title) => state.row === null || !data.columns.includes(title) ? null :
				table.rows[state.row][data.columns.indexOf(title)];
	const name = cell('symbol');

	if (data.flame && graph.selected >= 0)
		return { name: textOf(graph.selected, NAME), label: shortName(graph.selected),
			 binary: textOf(graph.selected, BINARY) };
	return { name, binary: cell('binary'),
		 label: name && shownText(state.row, data.columns.indexOf('symbol')) };
}

function showLine(index, shares)
{
	const [source, line, name, , label] = data.lines[index], row = element('tr');
	const place = element('td', source.replace(/.*\//, '') + ':' + line, 'short');

	place.title = source + ':' + line;
	row.append(...shares.map((share) => element('td', share, 'number')), place,
		   nameCell(name, label));
	return row;
}

/*
 * Shows the hottest lines. Those of a function include its calls, and come in the order of the
 * ticks with callees. @all: the ticks of the selection
 */
function showLines(all)
{
	const { timeline } = state, nr = data.lines.length;
	const own = sumTicks(selectedGroups(timeline.lines), nr);
	const total = data.flame ? sumTicks(selectedGroups(timeline.calls), nr) : own;
	const { name, label, binary } = selectedFunction(), order = name === null ? own : total;
	const found = [...order.keys()].filter((i) => order[i] &&
		(name === null || data.lines[i][2] === name) &&
		(binary === null || data.lines[i][3] === binary));

	found.sort((a, b) => order[b] - order[a] || own[b] - own[a] || a - b);
	find('hot').classList.toggle('empty', !nr);
	find('calls-title').hidden = !data.flame;
	find('lines').replaceChildren(...found.slice(0, LINES_SHOWN).map((i) =>
		showLine(i, (data.flame ? [own[i], total[i]] : [own[i]])
			.map((ticks) => percent(ticks, all)))));
	find('hot-function').textContent = name === null || !nr ? '' :
					     'of ' + markedLabel(name, label);
	find('hot-function').title = name === null ? '' : name;
	find('lines').closest('.scroll').hidden = !found.length;
	if (!nr)
		find('hot-text').textContent = 'There is no line information for these ticks.';
	else if (!found.length)
		find('hot-text').textContent = 'No tick of the selection has a line there.';
	else if (found.length > LINES_SHOWN ||
		 (data.more_lines && name === null && binary === null))
		find('hot-text').textContent = 'the first ' + Math.min(found.length, LINES_SHOWN) +
			' of ' + number(found.length + data.more_lines);
	else
		find('hot-text').textContent = '';
}
