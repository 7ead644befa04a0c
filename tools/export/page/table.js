// SPDX-License-Identifier: GPL-2.0-or-later
/* The table */

/* A function with ticks of its own has a row, unless there are too many. */
const HAS_TICKS = 2;
/* A browser takes too long for more rows, unless somebody wants to see them. */
const ROWS_SHOWN = 100;
const LABEL_MAX = 60;		/* LABEL_MAX_COLUMNS */

const table = {
	rows: data.rows.slice(),	/* then functions that have only called others */
	functions: [],			/* for each row: the index of its function, or -1 */
	isByFunction: false,
};

function readTable()
{
	table.functions = data.rows.map(() => -1);
	table.isByFunction = !!data.flame && !!data.flame.row_functions;
	if (!table.isByFunction)
		return;
	table.functions = data.flame.row_functions.slice();
	for (let i = 0; i < data.flame.counted; i++) {
		if (!isFunction(i) || flagsOf(i) & HAS_TICKS)
			continue;
		table.rows.push([textOf(i, BINARY), textOf(i, NAME), shortName(i)]);
		table.functions.push(i);
	}
	numbers.push({ title: 'with callees', value: (sum) => sum.all,
		       text: (sum, total) => percent(sum.all, total.ticks) });
}

/* As html_write_label() */
function shortName(index)
{
	const label = textOf(index, LABEL);

	return label.length > LABEL_MAX ? textOf(index, LABEL + 1) : label;
}

/* Returns the index of the column that has the width that the others leave. */
function wideColumn()
{
	const symbol = data.columns.indexOf('symbol');

	return symbol < 0 ? data.columns.length - 1 : symbol;
}

/* Returns a text of a row as the table shows it. */
function shownText(row, column)
{
	return table.rows[row][data.columns[column] === 'symbol' ? data.columns.length : column];
}

function newSum()
{
	return { nr: 0, ticks: 0, squares: 0, all: 0 };
}

/* Adds up the cells of each row in the selection. The rows that the page does not have are one. */
function countRows()
{
	const total = newSum(), rest = newSum(), rows = table.rows.map(newSum);

	forCells(selectedGroups(state.timeline.rows), ROW_CELL, (index, group, at) => {
		for (const sum of [total, index < data.rows.length ? rows[index] : rest]) {
			sum.nr += group[at];
			sum.ticks += group[at] + group[at + 1];
			sum.squares += group[at] + group[at + 2];
		}
	});
	if (table.isByFunction) {
		const ticks = sumTicks(selectedGroups(state.timeline.functions),
				       data.flame.counted);

		table.functions.forEach((index, row) => {
			rows[row].all = ticks[index];
		});
	}
	return { rows, rest, total };
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
		order = collator.compare(shownText(a, column), shownText(b, column));
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
		const cell = element('th', undefined, i < numbers.length ? 'number' :
					      i !== numbers.length + wideColumn() ? 'short' : '');
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

function textCell(row, column)
{
	const text = table.rows[row][column];

	if (column !== wideColumn()) {
		const cell = element('td', text, 'short');

		cell.title = text;
		return cell;
	}
	return nameCell(text, shownText(row, column));
}

/* Shows the rows of the selection, if the table can be seen. */
function showTable(counts)
{
	const wanted = find('filter').value.toLowerCase();
	const body = find('body'), foot = find('foot'), { rest } = counts;
	const all = [...table.rows.keys()].filter((i) => counts.rows[i].nr || counts.rows[i].all);
	const shown = all.filter((i) =>
		table.rows[i].some((text) => text.toLowerCase().includes(wanted)));
	const ticks = shown.reduce((sum, i) => sum + counts.rows[i].ticks, 0);

	[...find('titles').children].forEach((cell, i) => {
		if (i === state.column)
			cell.ariaSort = state.descending ? 'descending' : 'ascending';
		else
			cell.ariaSort = 'none';
	});
	shown.sort((a, b) => compareRows(a, b, counts));
	const lines = shown.filter((i, place) =>
		place < ROWS_SHOWN || state.allRows || i === state.row);

	find('all-rows').hidden = lines.length === shown.length;
	find('all-rows').textContent = 'Show all ' + counted(shown.length, 'row');
	find('no-filter').hidden = !wanted;
	body.replaceChildren(...lines.map((i, place) => {
		const line = element('tr');

		line.append(...cellsOf(counts.rows[i], counts.total));
		line.append(...data.columns.map((title, column) => textCell(i, column)));
		line.dataset.row = i;
		line.tabIndex = place ? -1 : 0;
		return line;
	}));
	foot.replaceChildren();
	if (rest.nr) {
		const line = element('tr'), cell = element('td', 'in ' + number(data.more) +
							   ' more rows of the recording');

		cell.colSpan = data.columns.length;
		line.append(...cellsOf(rest, counts.total), cell);
		foot.append(line);
	}
	showSelectedRow();
	find('shown').textContent = counted(shown.length, 'row') + ' of ' + number(all.length) +
		', ' + percent(ticks, counts.total.ticks) + ' of the ticks in the selection' +
		(table.isByFunction ? ', without callees' : '') +
		(lines.length < shown.length ? '; ' + lines.length + ' are shown' : '');
}

/* Filters the rows by a text, or shows those of all texts. */
function setFilter(text)
{
	find('filter').value = text;
	showRows();
}

function showAllRows()
{
	state.allRows = true;
	showTable(countRows());
}

/* Shows the numbers of the selection. */
function showRows()
{
	const counts = countRows();

	state.ticks = counts.total.ticks;
	if (!find('main').hidden)
		showTable(counts);
	if (data.flame) {
		drawGraph();
		showBinaryShares();
	}
	showSelection(counts.total);
	showLines(state.ticks);
}

/* Marks the selected row. */
function showSelectedRow()
{
	for (const line of find('body').children)
		line.ariaCurrent = Number(line.dataset.row) === state.row ? 'true' : 'false';
	find('around').hidden = !data.flame || graph.selected < 0;
}

/* Selects a row, or none if it is selected: its ticks get another colour in the timeline. */
function toggleRow(line)
{
	const row = Number(line.dataset.row);

	selectRow(state.row === row ? null : row);
}
