// Measure prints, as Markdown, the figures by which the layout of a checkout is
// judged:
//
//	go run ./hack/measure [FOLDER]
//
// FOLDER is the root of a module, this one by default; a checkout of another commit
// can be measured too. What is generated is not counted.
//
//   - Lines are those with code on them, not empty and not only a comment.
//   - A function is as long as the lines from its name to its closing brace.
//   - An exported name is documented if it has a comment of its own; fields and the
//     methods of unexported types are not counted.
//   - Two rings have a function twice if its name, and the name of the type that it
//     is a method of, are the same in both. Constructors and entry points that each
//     ring must have are counted too, so zero is not the aim.
//   - An arrow is one function that uses another of its package. It runs back up if
//     the other stands above it: earlier in the same file, or in a file that is read
//     earlier. Files are read in the order controller, observe, plan, act, status; the
//     rest follows in the order that leaves the fewest arrows back up, as a greedy
//     choice finds it.
package main

import (
	"fmt"
	"os"
)

func main() {
	folder := "."
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	rooms, err := measure(folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
	fmt.Print(report(rooms))
}
