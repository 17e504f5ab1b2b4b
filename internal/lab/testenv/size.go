package testenv

import "os"

// wholeVariable has tests run at their whole size, before a release.
const wholeVariable = "FULL"

// Size is how much a test does: less on every run, and all of it where FULL is set.
func Size(small, whole int) int {
	if os.Getenv(wholeVariable) != "" {
		return whole
	}
	return small
}
