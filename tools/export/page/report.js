// SPDX-License-Identifier: GPL-2.0-or-later
/* The page of profil report --html */

function showHeading()
{
	for (const line of data.warnings)
		find('warnings').append(element('li', line));
	for (const line of data.about.slice(1))
		find('about').append(element('li', line));
	find('title').textContent = data.about[0];
	document.title = 'profil report: ' + data.about[0];
}

function draw()
{
	drawAxis();
	drawChart();
	drawHistogram();
}

showHeading();
showTitles();
showBinaries();
setTimeline(0);
draw();
showGraph();
dragTimeline();
find('by-thread').addEventListener('change', () => setTimeline(0));
find('by-cpu').addEventListener('change', () => setTimeline(1));
find('from').addEventListener('change', readTimes);
find('to').addEventListener('change', readTimes);
find('whole').addEventListener('click', selectWhole);
find('filter').addEventListener('input', showRows);
find('body').addEventListener('click', (event) => markRow(event.target.closest('tr')));
find('body').addEventListener('keydown', moveRow);
find('chart').addEventListener('keydown', moveCursor);
find('chart').addEventListener('focus', drawChart);
find('chart').addEventListener('blur', drawChart);
window.addEventListener('resize', draw);
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
