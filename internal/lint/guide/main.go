// Guide writes the page that documents the rules of spillway lint into a file.
package main

import (
	"fmt"
	"os"

	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/lint/rules"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: guide FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(report.GuidePage(rules.All())), 0o644); err != nil { //nolint:gosec // a page is for everybody to read
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
