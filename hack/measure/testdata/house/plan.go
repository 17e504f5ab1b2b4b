// Package house has each of what is counted.
package house

// Exported is documented.
type Exported struct{}

type Bare struct{}

// Plan uses what stands below it, in this file and in another.
func Plan() int {
	var text = `two
lines`
	return below(len(text)) + detail(0)
}

func below(n int) int {
	if n == 0 {
		return Plan() // back up, in this file
	}
	return n
}
