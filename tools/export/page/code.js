// SPDX-License-Identifier: GPL-2.0-or-later
/* The code of a binary, by address */

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
		percent(code.ticks, data.ticks) + ' of the whole recording) at ' + (code.offsets ? 'offsets ' : '') +
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
	setFilter(data.names[binary().bars[state.bar + 2]]);
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
