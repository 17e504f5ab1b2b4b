// Package nearest finds the known name that a person may have meant by another.
package nearest

import "strings"

// Of returns the known name that is most like another, and how many letters differ. It
// returns the first of several, and "" where none is known.
func Of(name string, known []string) (near string, distance int) {
	distance = len(name) + 1
	for _, k := range known {
		if d := difference(name, k); d < distance {
			near, distance = k, d
		}
	}
	return near, distance
}

// Meant returns the known name that a person has probably mistyped, "" if there is none:
// at most a third of the letters differ, or it begins only one of them.
func Meant(name string, known []string) string {
	if near, distance := Of(name, known); distance <= max(1, len(name)/3) {
		return near
	}
	return begun(name, known)
}

// shortest is how many letters begin a name at least.
const shortest = 3

// begun is the only known name that begins so, "" if there are none or several.
func begun(name string, known []string) string {
	found := ""
	for _, k := range known {
		switch {
		case len(name) < shortest || !strings.HasPrefix(k, name):
		case found != "":
			return ""
		default:
			found = k
		}
	}
	return found
}

// difference is how many letters must be inserted, removed, replaced or swapped with the
// next one to make one text the other.
func difference(a, b string) int {
	var before []int // the row before the last one
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
