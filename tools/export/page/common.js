// SPDX-License-Identifier: GPL-2.0-or-later
'use strict';

/* What all parts of the pages use. Names in the data are untrusted: they are only text. */

const data = JSON.parse(document.getElementById('data').textContent);
const collator = new Intl.Collator('en', { numeric: true });

function find(id)
{
	return document.getElementById(id);
}

function element(name, text, style)
{
	const node = document.createElement(name);

	if (text !== undefined)
		node.textContent = text;
	if (style)
		node.className = style;
	return node;
}

/* Adds to the label of a function what labels lack. */
function markedLabel(name, label)
{
	const mark = ' (inlined)';

	return label + (name.endsWith(mark) ? mark : '');
}

/* A function in a table: its short name, in one line. */
function nameCell(name, label, after = '')
{
	const cell = element('td', markedLabel(name, label) + after, 'name');

	cell.title = name + after;
	return cell;
}

function percent(part, whole)
{
	return (whole ? 100 * part / whole : 0).toFixed(2) + '%';
}

function number(value)
{
	return value.toLocaleString('en-US');
}

function counted(value, noun)
{
	return number(value) + ' ' + noun + (value === 1 ? '' : 's');
}

function colour(name)
{
	return getComputedStyle(document.documentElement).getPropertyValue('--' + name);
}

/* Adds an item for each text to a list. */
function fillList(list, texts)
{
	list.append(...texts.map((text) => element('li', text)));
}

/*
 * The key / moves to the search, or to the filter, and Escape shows the whole graph; except from
 * where text is written, and where the key has another meaning.
 */
function useKey(event)
{
	const isGraph = !find('flame').hidden, input = find(isGraph ? 'search' : 'filter');

	if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey ||
	    (event.target.tagName === 'INPUT' && event.target.type === 'text'))
		return;
	if (event.key === '/' && input)
		input.focus();
	else if (event.key === 'Escape' && isGraph)
		showAll();
	else
		return;
	event.preventDefault();
}

document.addEventListener('keydown', useKey);

/* Moves the focus to another row of a table. @choose and @leave: for Enter and Escape */
function moveRow(event, choose, leave)
{
	const line = event.target.closest('tr');
	const next = { ArrowDown: line.nextElementSibling, ArrowUp: line.previousElementSibling };

	if (event.key === 'Enter' || event.key === ' ') {
		choose(line);
	} else if (event.key === 'Escape') {
		leave();
	} else if (next[event.key]) {
		line.tabIndex = -1;
		next[event.key].tabIndex = 0;
		next[event.key].focus();
	} else {
		return;
	}
	event.preventDefault();
}
