<?php // SPDX-License-Identifier: GPL-2.0
// hot.php ROUNDS: hot() has nearly all of the time. Its code is generated with opcache.jit.
function hot(int $n): int
{
	$sum = 0;
	for ($i = 0; $i < $n; $i++)
		$sum = ($sum * 31 + $i) & 0xffff;
	return $sum;
}

$sum = 0;
for ($round = 0; $round < (int)$argv[1]; $round++)
	$sum += hot(200000);
echo $sum, "\n";
