package main

import (
	"cmp"
	"go/types"
	"maps"
	"slices"
)

// first are the files of a ring that are read before all others.
var first = []string{"controller.go", "observe.go", "plan.go", "act.go", "status.go"}

// arrow is a use of one function by another.
type arrow struct{ from, to function }

// countArrows counts the arrows among functions, and those that run back up.
func countArrows(functions map[*types.Func]function) (all, back int) {
	var arrows []arrow
	for f, from := range functions {
		for _, used := range from.uses {
			if to, ok := functions[used]; ok && used != f {
				arrows = append(arrows, arrow{from, to})
			}
		}
	}
	order := readingOrder(arrows)
	for _, a := range arrows {
		if order[a.to.file] < order[a.from.file] || a.to.file == a.from.file && a.to.at < a.from.at {
			back++
		}
	}
	return len(arrows), back
}

// readingOrder is the place of each file. After the first ones, that file comes next
// of which the most arrows lead to those that are left, less those that come from them.
func readingOrder(arrows []arrow) map[string]int {
	left := map[string]bool{}
	for _, a := range arrows {
		left[a.from.file], left[a.to.file] = true, true
	}
	order := map[string]int{}
	place := func(file string) {
		order[file] = len(order)
		delete(left, file)
	}
	for _, file := range first {
		if left[file] {
			place(file)
		}
	}
	for len(left) > 0 {
		surplus := map[string]int{}
		for _, a := range arrows {
			if left[a.from.file] && left[a.to.file] && a.from.file != a.to.file {
				surplus[a.from.file]++
				surplus[a.to.file]--
			}
		}
		place(slices.MinFunc(slices.Sorted(maps.Keys(left)), func(a, b string) int { return cmp.Compare(surplus[b], surplus[a]) }))
	}
	return order
}
