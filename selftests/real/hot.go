// SPDX-License-Identifier: GPL-2.0

// hot ROUNDS: typical work of Go programs, on all CPUs.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
)

type item struct {
	ID   int      `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

//go:noinline
func collatz(n int) int {
	steps := 0
	for n != 1 {
		if n%2 == 0 {
			n /= 2
		} else {
			n = 3*n + 1
		}
		steps++
	}
	return steps
}

func longest(limit int) int {
	best := 0
	for n := 1; n < limit; n++ {
		if steps := collatz(n); steps > best {
			best = steps
		}
	}
	return best
}

func encode(n int) int {
	items := make([]item, n)
	for i := range items {
		items[i] = item{i, "item" + strconv.Itoa(i*7919%n), strings.Split("a b c", " ")}
	}
	sort.Slice(items, func(a, b int) bool { return items[a].Name < items[b].Name })
	text, err := json.Marshal(items)
	if err != nil {
		panic(err)
	}
	var back []item
	if err := json.Unmarshal(text, &back); err != nil {
		panic(err)
	}
	sum := sha256.Sum256(text)
	return len(back) + int(sum[0])
}

func count(n int) int {
	counts := make(map[string]int)
	for i := 0; i < n; i++ {
		counts[strconv.Itoa(i%1000)]++
	}
	return len(counts)
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	var wait sync.WaitGroup
	sums := make(chan int, 3*rounds)
	run := func(work func(int) int, n int) {
		defer wait.Done()
		for i := 0; i < rounds; i++ {
			sums <- work(n)
		}
	}
	wait.Add(3)
	go run(longest, 30000)
	go run(encode, 1000)
	go run(count, 50000)
	wait.Wait()
	close(sums)
	total := 0
	for sum := range sums {
		total += sum
	}
	fmt.Println(total)
}
