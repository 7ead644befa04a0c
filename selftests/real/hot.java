// SPDX-License-Identifier: GPL-2.0
// Hot ROUNDS: typical work of Java programs. Most of the time is in one method, collatz.

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

final class Hot {
	static int collatz(long n) {
		int steps = 0;

		while (n != 1) {
			n = n % 2 == 0 ? n / 2 : 3 * n + 1;
			steps++;
		}
		return steps;
	}

	static int longest(int limit) {
		int best = 0;

		for (int n = 1; n < limit; n++)
			best = Math.max(best, collatz(n));
		return best;
	}

	static int count(int n) {
		Map<String, Integer> counts = new HashMap<>();
		List<String> words = new ArrayList<>();

		for (int i = 0; i < n; i++)
			words.add("word" + i * 7919 % 1000);
		Collections.sort(words);
		for (String word : words)
			counts.merge(word, 1, Integer::sum);
		return counts.size();
	}

	public static void main(String[] args) {
		long steps = 0, words = 0;

		for (int i = 0; i < Integer.parseInt(args[0]); i++) {
			steps += longest(30000);
			words += count(1000);
		}
		System.out.println(steps + " " + words);
	}
}
