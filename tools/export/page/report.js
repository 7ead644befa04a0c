// SPDX-License-Identifier: GPL-2.0-or-later
/* The page of profil report --html */

function showHeading()
{
	fillList(find('warnings'), data.warnings);
	fillList(find('about'), data.about.slice(1));
	find('title').textContent = data.about[0];
	document.title = 'profil report: ' + data.about[0];
}

/* ---- the flame graph ---- */

/* This many binaries have a colour of their own, see page.css. */
const COLOURS = 6;

const styles = new Map();	/* by binary: the class of its frames */

/* Returns the ticks of each binary. @own: the ticks of each node */
function countBinaries(own)
{
	const ticks = new Map();

	own.forEach((count, node) => {
		const binary = textOf(functionOf(node), BINARY);

		if (count)
			ticks.set(binary, (ticks.get(binary) || 0) + count);
	});
	return ticks;
}

/* The colours are those of the binaries with the most ticks in the whole recording. */
function setColours()
{
	const ticks = countBinaries(wholeTicks());

	[...ticks.keys()].filter((binary) => binary !== '' && binary !== KERNEL)
		.sort((a, b) => ticks.get(b) - ticks.get(a))
		.forEach((binary, i) => styles.set(binary, i < COLOURS ? 'binary' + i : 'rest'));
	if (ticks.has(KERNEL))
		styles.set(KERNEL, 'kernel');
}

/* The legend has the shares of the selection. */
function showBinaryShares()
{
	const ticks = countBinaries(ownTicks()), items = [];

	for (const [binary, style] of styles)
		if (style !== 'rest')
			items.push([style, binary + ' ' +
				    percent(ticks.get(binary) || 0, state.ticks)]);
	items.push(['rest', (styles.size > items.length ? 'other binaries, ' : '') + 'processes']);
	if (data.flame.functions.some((value, i) => i % FUNCTION === FLAGS && value & INLINED))
		items.push(['inlined', 'italic: inlined']);
	showLegend(items);
}

function styleOf(index)
{
	return (index >= 0 && styles.get(textOf(index, BINARY))) || 'rest';
}

function note()
{
	return '';
}

/* Shows the flame graph, or the table. The source lines are below both. */
function setView()
{
	find('flame').hidden = !find('view-flame').checked;
	find('main').hidden = find('view-flame').checked;
	find(find('view-flame').checked ? 'flame' : 'main').append(find('hot'));
	showRows();
	draw();
	scrollToRoot();
	if (state.row !== null)
		find('body').querySelector('[aria-current=true]')
			?.scrollIntoView({ block: 'nearest' });
}

/* Shows the callers and callees of the row that is selected in the table. */
function showAround()
{
	find('view-flame').checked = true;
	find('one-function').checked = true;
	setView();
	setOrder();
}

function startViews()
{
	setColours();
	startGraph();
	find('views').hidden = false;
	find('view-flame').addEventListener('change', setView);
	find('view-table').addEventListener('change', setView);
	find('around').addEventListener('click', showAround);
	setView();
}

/* ---- the page ---- */

function draw()
{
	drawAxis();
	drawChart();
	drawHistogram();
}

showHeading();
readTable();
showTitles();
showBinaries();
setTimeline(0);
draw();
if (data.flame)
	startViews();
dragTimeline();
find('by-thread').addEventListener('change', () => setTimeline(0));
find('by-cpu').addEventListener('change', () => setTimeline(1));
find('from').addEventListener('change', readTimes);
find('to').addEventListener('change', readTimes);
find('whole').addEventListener('click', selectWhole);
find('filter').addEventListener('input', showRows);
find('filter').addEventListener('keydown', (event) => event.key === 'Escape' && setFilter(''));
find('no-filter').addEventListener('click', () => {
	setFilter('');
	find('filter').focus();
});
find('all-rows').addEventListener('click', showAllRows);
find('body').addEventListener('click', (event) => toggleRow(event.target.closest('tr')));
find('body').addEventListener('keydown', (event) =>
	moveRow(event, toggleRow, () => selectRow(null)));
find('chart').addEventListener('keydown', moveCursor);
find('chart').addEventListener('focus', drawChart);
find('chart').addEventListener('blur', drawChart);
window.addEventListener('resize', draw);
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
