// SPDX-License-Identifier: GPL-2.0
// bench.js ROUNDS: typical work of JavaScript programs. Each part is a function that is compiled at
// run time, or that calls functions which V8 contains in compiled form.
'use strict';

class Body {
	constructor(i) {
		this.x = Math.sin(i); this.y = Math.cos(i); this.z = Math.sin(2 * i);
		this.vx = 0; this.vy = 0; this.vz = 0;
		this.mass = 1 + i % 3;
	}
}

function attract(bodies) {
	for (const a of bodies) {
		for (const b of bodies) {
			if (a === b)
				continue;
			const dx = b.x - a.x, dy = b.y - a.y, dz = b.z - a.z;
			const d2 = dx * dx + dy * dy + dz * dz + 0.01;
			const f = b.mass / (d2 * Math.sqrt(d2));
			a.vx += f * dx; a.vy += f * dy; a.vz += f * dz;
		}
	}
	for (const a of bodies) {
		a.x += 1e-3 * a.vx; a.y += 1e-3 * a.vy; a.z += 1e-3 * a.vz;
	}
}

function countWords(text) {
	const counts = new Map();
	for (const [word] of text.matchAll(/[a-z]+/g))
		counts.set(word, (counts.get(word) || 0) + 1);
	return counts;
}

function life(cells, size) {
	const next = new Uint8Array(size * size);
	for (let y = 1; y < size - 1; y++) {
		for (let x = 1; x < size - 1; x++) {
			let n = 0;
			for (let dy = -size; dy <= size; dy += size)
				for (let dx = -1; dx <= 1; dx++)
					n += cells[y * size + x + dy + dx];
			const at = y * size + x;
			n -= cells[at];
			next[at] = n === 3 || (n === 2 && cells[at]) ? 1 : 0;
		}
	}
	return next;
}

function objects(n) {
	const list = [];
	for (let i = 0; i < n; i++)
		list.push({ id: i, name: `name${i % 97}`, tags: [i % 3, i % 5], nested: { even: i % 2 === 0 } });
	const copy = JSON.parse(JSON.stringify(list));
	copy.sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : b.id - a.id);
	return copy.filter((o) => o.nested.even).map((o) => o.id).reduce((a, b) => a + b, 0);
}

const rounds = Number(process.argv[2] || 10);
const bodies = Array.from({ length: 60 }, (_, i) => new Body(i));
const text = Array.from({ length: 20000 }, (_, i) => 'the quick brown fox jumps over'.split(' ')[i * 7 % 6] + i % 10).join(' ');
const size = 200;
let cells = Uint8Array.from({ length: size * size }, (_, i) => (i * 2654435761 >>> 13) & 1);
let sum = 0;

for (let round = 0; round < rounds; round++) {
	for (let i = 0; i < 30; i++)
		attract(bodies);
	sum += countWords(text).size;
	for (let i = 0; i < 5; i++)
		cells = life(cells, size);
	sum += objects(3000);
}
console.log(sum, cells.reduce((a, b) => a + b), bodies[0].x.toFixed(6));
