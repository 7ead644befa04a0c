// SPDX-License-Identifier: GPL-2.0-or-later
/* The table */

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
