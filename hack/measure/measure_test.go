package main

import (
	"strings"
	"testing"
)

func TestMeasure(t *testing.T) {
	t.Parallel()
	rooms, err := measure("testdata/house")
	if err != nil {
		t.Fatal(err)
	}
	want := "| hack/measure/testdata/house | 3 | 23 | 0 | 0.00 | 4 | 6 | 6 | 0.0% | 66.7% | 5 | 2 |\n"
	if got := report(rooms); !strings.Contains(got, want) {
		t.Errorf("want\n%s, got\n%s", want, got)
	}
}

func TestTwice(t *testing.T) {
	t.Parallel()
	one := map[string]function{"pass.settle": {lines: 3}, "Reconcile": {lines: 5}, "observe": {lines: 7}}
	other := map[string]function{"pass.settle": {lines: 4}, "Reconcile": {lines: 6}, "reporter.settle": {lines: 7}}
	if n, a, b := twice(one, other); n != 2 || a != 8 || b != 10 {
		t.Error(n, a, b)
	}
}
