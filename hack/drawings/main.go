// Command drawings makes a picture of each description in docs/drawings, which is text:
//
//	title: What it is about
//	alt: What it shows, for readers who do not see it.
//	box NAME COLUMN ROW STYLE first line / second line
//	arrow FROM TO label
//
// Columns and rows are counted from 0. The styles are plain, user, engine and outside. NAME.txt
// becomes NAME.svg, in light and dark as the reader has it.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(filepath.Join("docs", "drawings")); err != nil {
		fmt.Fprintln(os.Stderr, "drawings:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return fmt.Errorf("list the drawings: %w", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		if err != nil {
			return fmt.Errorf("read a drawing: %w", err)
		}
		d, err := parse(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := os.WriteFile(strings.TrimSuffix(path, ".txt")+".svg", []byte(d.svg()), 0o600); err != nil {
			return fmt.Errorf("write a drawing: %w", err)
		}
	}
	return nil
}
