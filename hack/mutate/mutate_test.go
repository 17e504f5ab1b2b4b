package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMutantsIn is every kind of mutant, in a file that has one place for each.
func TestMutantsIn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.go")
	source := "package a\n\nvar untouched = 1 < 2\n\nfunc f(n int) bool {\n\tif n < 1 && n == 7 {\n\t\treturn true\n\t}\n\n\tn = 0\n\tg(n + n)\n\n\treturn false\n}\n"

	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}

	mutants, err := mutantsIn(name)
	if err != nil {
		t.Fatal(err)
	}

	seen := map[string]bool{}
	for i := range mutants {
		seen[mutants[i].String()[len(name):]] = true
	}

	want := []string{
		":6\n- if n < 1 && n == 7 {\n+ if !(n < 1 && n == 7) {",
		":6\n- if n < 1 && n == 7 {\n+ if n < 1 || n == 7 {",
		":6\n- if n < 1 && n == 7 {\n+ if n <= 1 && n == 7 {",
		":6\n- if n < 1 && n == 7 {\n+ if n < 0 && n == 7 {",
		":6\n- if n < 1 && n == 7 {\n+ if n < 1 && n != 7 {",
		":6\n- if n < 1 && n == 7 {\n+ if n < 1 && n == 8 {",
		":7\n- return true\n+",
		":7\n- return true\n+ return false",
		":10\n- n = 0\n+",
		":10\n- n = 0\n+ n = 1",
		":11\n- g(n + n)\n+ g(n - n)",
		":11\n- g(n + n)\n+",
		":13\n- return false\n+",
		":13\n- return false\n+ return true",
	}
	for _, w := range want {
		if !seen[w] && !seen[w+" "] {
			t.Errorf("there is no mutant %q", w)
		}
	}

	if len(mutants) != len(want) {
		t.Errorf("%d mutants, want %d: %v", len(mutants), len(want), seen)
	}
}
