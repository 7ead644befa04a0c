// SPDX-License-Identifier: GPL-2.0
//! hot ROUNDS: typical work of Rust programs. Most of the time is in one function.

use std::collections::HashMap;

mod numbers {
    #[inline(never)]
    pub fn longest<T: Into<u64> + Copy>(limits: &[T]) -> u64 {
        let mut best = 0;
        for limit in limits {
            for first in 1..(*limit).into() {
                let (mut n, mut steps) = (first, 0);
                while n != 1 {
                    n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
                    steps += 1;
                }
                best = best.max(steps);
            }
        }
        best
    }
}

#[inline(never)]
fn count(n: u32) -> usize {
    let mut counts: HashMap<String, u32> = HashMap::new();
    let mut words: Vec<String> = (0..n).map(|i| format!("word{}", i * 7919 % 1000)).collect();
    words.sort();
    for word in words {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts.len()
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).map_or(1, |word| word.parse().unwrap());
    let (mut steps, mut words) = (0, 0);
    for round in 0..rounds {
        steps += numbers::longest(&[20000 + round, 10000]);
        words += count(1000);
    }
    println!("{} {}", steps, words);
}
