// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The page of profil diff --html: the graph of the second recording, and the functions whose change
 * is significant
 */

/* In a change: its binary, its function, the values, their difference, its error, p, the label */
const OF_BINARY = 0, OF_FUNCTION = 1, BEFORE = 2, AFTER = 3, CHANGE = 4, ERROR = 5, CHANCE = 6,
      OF_LABEL = 7;
/* A change by less than these factors has a colour of its own. */
const FACTORS = [1.25, 2];

/* The lists of changes: without callees, and with them, which needs stacks in both recordings */
const OWN = 0, ALL = 1;

/* For each list and each function of the graph, the index of its change, or -1 */
const changeOf = data.lists.map(() => []);

const state = {
	list: OWN,		/* that is shown */
	row: null,		/* the selected change in this list */
};

function changes()
{
	return data.lists[state.list].changes;
}

function ownTicks()
{
	return data.own;
}

function wholeTicks()
{
	return data.own;
}

function allTicks(index)
{
	return data.all[index];
}

function amount(value, sign)
{
	const text = data.shares ? (100 * value).toFixed(2) + '%' : value.toFixed(3) + ' s';

	return (sign && value > 0 ? '+' : '') + text;
}

/* As in the text of profil diff */
function chance(value)
{
	return value < 1e-99 ? '<1e-99' : value.toExponential(0);
}

/* Returns the class of a change: its direction, and its size. */
function styleOfChange(change)
{
	const low = Math.min(change[BEFORE], change[AFTER]);
	const high = Math.max(change[BEFORE], change[AFTER]);
	const size = FACTORS.findIndex((factor) => high < factor * low);

	return (change[CHANGE] > 0 ? 'slower' : 'faster') + (size < 0 ? FACTORS.length : size);
}

function styleOf(index)
{
	const change = index < 0 ? -1 : changeOf[state.list][index];

	return change < 0 ? 'rest' : styleOfChange(changes()[change]);
}

function describeChange(change, list)
{
	return (list === OWN ? 'without its callees ' : 'with its callees ') +
		amount(change[BEFORE], false) + ' in A, ' + amount(change[AFTER], false) + ' in B';
}

/* Both changes are said, whichever the colours show. */
function note(index)
{
	return data.lists.map(({ changes: all }, list) => {
		const change = all[index < 0 ? -1 : changeOf[list][index]];

		return change ? '; ' + describeChange(change, list) : '';
	}).join('');
}

/* As in profil diff, a function is the same if its binary has the same name in any directory. */
function findChanges()
{
	data.lists.forEach(({ changes: all }, list) => {
		const places = new Map(all.map((change, i) =>
			[change[OF_BINARY] + '\n' + change[OF_FUNCTION], i]));

		for (let i = 0; i < nrFunctions(); i++) {
			const key = textOf(i, BINARY).replace(/^\/.*\/(?=.)/, '') + '\n' +
				textOf(i, NAME);

			changeOf[list][i] = isFunction(i) && places.has(key) ? places.get(key) : -1;
		}
	});
}

function showSelectedRow()
{
	for (const line of find('body').children)
		line.ariaCurrent = Number(line.dataset.row) === state.row ? 'true' : 'false';
}

/* Selects a function in the graph, or none (-1), and its change. */
function select(index)
{
	const row = index < 0 ? -1 : changeOf[state.list][index];

	state.row = row < 0 ? null : row;
	showSelected(index);
	showSelectedRow();
}

/* Selects a change, or none (null), and its function. */
function selectRow(row)
{
	const change = changes()[row];

	state.row = row;
	showSelectedRow();
	if (data.flame) {
		showSelected(row === null ? -1 : changeOf[state.list].indexOf(row));
		find('graph').querySelector('.selected')?.scrollIntoView({ block: 'nearest' });
	}
	if (change)
		showText(change[OF_FUNCTION] + ' (' + change[OF_BINARY] + ')',
			 ': ' + describeChange(change, state.list));
	else
		showText('', '');
}

function toggleRow(line)
{
	const row = Number(line.dataset.row);

	selectRow(state.row === row ? null : row);
}

/* Returns the cells of the change, the values and the factor. */
function cellsOf(before, after)
{
	return [amount(after - before, true), amount(before, false), amount(after, false),
		before > 0 ? 'x ' + (after / before).toFixed(2) : 'new']
		.map((text) => element('td', text, 'number'));
}

/* All CPU time is the first row. All shares are 100%. */
function showTotal()
{
	const line = element('tr');

	line.append(...cellsOf(...data.totals), element('td'), element('td'),
		    element('td', 'all functions', 'name'));
	find('total').append(line);
}

/* Says how many changes are in the list, and how small p is. */
function showCounts()
{
	const { functions, significant } = data.lists[state.list], nr = changes().length;
	const slower = changes().filter((change) => change[CHANGE] > 0).length;
	const words = data.shares ? ['has a larger share', 'have a larger share', 'a smaller one'] :
				    ['became slower', 'became slower', 'faster'];
	let text = counted(slower, 'function') + ' ' + words[Number(slower !== 1)] + ', and ' +
		number(nr - slower) + ' ' + words[2] + ', of ' + number(functions) +
		' (p is at most ' + data.chance + ')';

	if (significant > nr)
		text += '; ' + number(significant - nr) + ' more changes are significant';
	find('counts').textContent = text;
}

function showChanges()
{
	const all = changes(), order = [...all.keys()];

	/* The slower ones come first. */
	order.sort((a, b) => (all[b][CHANGE] > 0) - (all[a][CHANGE] > 0) || a - b);
	find('body').replaceChildren(...order.map((row, place) => {
		const change = all[row], line = element('tr');

		line.append(...cellsOf(change[BEFORE], change[AFTER]),
			    element('td', amount(change[ERROR], false), 'number'),
			    element('td', chance(change[CHANCE]), 'number'),
			    nameCell(change[OF_FUNCTION], change[OF_LABEL],
				     ' (' + change[OF_BINARY] + ')'));
		line.firstChild.prepend(element('span', undefined,
						'swatch ' + styleOfChange(change)));
		line.dataset.row = row;
		line.tabIndex = place ? -1 : 0;
		return line;
	}));
	showCounts();
	showSelectedRow();
}

/* Shows the other list, in which the selected function can have a change, too. */
function setList()
{
	state.list = find('with-callees').checked ? ALL : OWN;

	const row = graph.selected < 0 ? -1 : changeOf[state.list][graph.selected];

	state.row = row < 0 ? null : row;
	showColours();
	showChanges();
	drawGraph();
}

function showHeading()
{
	data.recordings.forEach(({ path, warnings, about }, i) => {
		const side = 'AB'[i];

		fillList(find('warnings'), warnings.map((text) => side + ': ' + text));
		fillList(find('about-' + side.toLowerCase()), [side + ': ' + path].concat(about));
	});
	document.title = 'profil diff: ' + data.recordings.map(({ path }) => path).join(', ');
	find('title').textContent = 'profil diff: changes from A to B';
	fillList(find('notes'), data.notes);
	if (!data.flame) {
		fillList(find('notes'), ['There is no flame graph, because B has no stacks.']);
		find('changes').append(find('frame-text'));
	}
}

/* The changes that a colour stands for */
function legendOf(direction, word)
{
	return [[direction + '0', word + ': by less than 25%'],
		[direction + '1', 'less than twice'], [direction + '2', 'twice or more']];
}

function showColours()
{
	const which = state.list === OWN ? 'without' : 'with';

	showLegend([['', 'Colour: change ' + which + ' callees'], ...legendOf('slower', 'slower'),
		    ...legendOf('faster', 'faster'), ['rest', 'no significant change']]);
}

showHeading();
if (!data.shares)
	showTotal();
showChanges();
if (data.flame) {
	findChanges();
	find('flame').hidden = false;
	find('flame-title').textContent = 'Flame graph of B';
	showColours();
	startGraph();
	drawGraph();
	scrollToRoot();
}
find('lists').hidden = data.lists.length === 1;
for (const id of ['without-callees', 'with-callees'])
	find(id).addEventListener('change', setList);
find('body').addEventListener('click', (event) => toggleRow(event.target.closest('tr')));
find('body').addEventListener('keydown', (event) =>
	moveRow(event, toggleRow, () => selectRow(null)));
