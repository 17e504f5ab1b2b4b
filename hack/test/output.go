//go:build unix

package main

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// failure is a test that failed, or a package without saying which of its tests did.
type failure struct{ pkg, test string }

var (
	// failedTest matches a test that failed, or that ran when the time was over.
	failedTest = regexp.MustCompile(`^(?:--- FAIL: |\t\t)((?:Test|Fuzz|Example)\w*) \(`)
	// ended matches the line that ends what a package has printed.
	ended = regexp.MustCompile(`^(ok  |FAIL)\t(\S+)(?:\t(\S+)| \[.*\])`)
)

// failures returns what go test says has failed.
func failures(log string) []failure {
	var failed, of []failure
	for line := range strings.Lines(log) {
		if m := failedTest.FindStringSubmatch(line); m != nil {
			of = append(of, failure{test: m[1]})
		}
		m := ended.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if m[1] == "FAIL" && len(of) == 0 {
			of = []failure{{}}
		}
		if m[1] == "FAIL" {
			for _, f := range of {
				failed = append(failed, failure{pkg: m[2], test: f.test})
			}
		}
		of = nil
	}
	slices.SortFunc(failed, func(a, b failure) int { return cmp.Or(strings.Compare(a.pkg, b.pkg), strings.Compare(a.test, b.test)) })
	return slices.Compact(failed)
}

// duration is how long the tests of a package ran.
type duration struct{ pkg, seconds string }

// slowest returns the packages whose tests ran longest, of those that were run.
func slowest(log string, most int) []duration {
	var all []duration
	for line := range strings.Lines(log) {
		if m := ended.FindStringSubmatch(line); m != nil && strings.HasSuffix(m[3], "s") {
			all = append(all, duration{m[2], m[3]})
		}
	}
	slices.SortStableFunc(all, func(a, b duration) int { return cmp.Compare(seconds(b), seconds(a)) })
	return all[:min(most, len(all))]
}

func seconds(d duration) float64 {
	s, _ := strconv.ParseFloat(strings.TrimSuffix(d.seconds, "s"), 64) // it is printed so
	return s
}
