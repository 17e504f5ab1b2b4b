// Tiny is a program with one dependency, for images that are quickly made.
package main

import (
	"os"

	"golang.org/x/mod/semver"
)

func main() {
	if !semver.IsValid("v0.1.0") {
		os.Exit(1)
	}
}
