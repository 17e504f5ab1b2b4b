package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spillway-dev/spillway/internal/cli/mistakes"
)

// The table of mistakes is between these lines; the rest of its page is written by hand.
const (
	mistakesBegin = "<!-- Generated from internal/cli/testdata/mistakes/record.txt by make generate. -->\n"
	mistakesEnd   = "<!-- The end of what is generated. -->\n"
)

// writeMistakes writes the table of mistakes into its page.
func writeMistakes(path string) error {
	all, err := mistakes.Read(filepath.Join("internal", "cli", "testdata", "mistakes", "record.txt"))
	if err != nil {
		return err
	}
	page, err := os.ReadFile(path) //nolint:gosec // it is of this repository
	if err != nil {
		return fmt.Errorf("read the page with the mistakes: %w", err)
	}
	head, rest, hasBegin := strings.Cut(string(page), mistakesBegin)
	_, tail, hasEnd := strings.Cut(rest, mistakesEnd)
	if !hasBegin || !hasEnd {
		return fmt.Errorf("%s lacks the lines %q and %q", path, mistakesBegin, mistakesEnd)
	}
	if err := os.WriteFile(path, []byte(head+mistakesBegin+mistakes.Tables(all)+"\n"+mistakesEnd+tail), 0o600); err != nil { //nolint:gosec // the path is a constant of this program
		return fmt.Errorf("write the page with the mistakes: %w", err)
	}
	return nil
}
