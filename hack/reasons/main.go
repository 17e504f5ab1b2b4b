// Reasons writes what is generated from the reasons in the sources: docs/reasons.md
// and the table of package reasons. It is run in the root of the module.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spillway-dev/spillway/internal/reasons/catalogue"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "reasons:", err)
		os.Exit(1)
	}
}

func run() error {
	c, err := catalogue.Read(".", "./...")
	if err != nil {
		return err
	}
	if len(c.Problems) > 0 {
		return errors.New(strings.Join(c.Problems, "\n"))
	}
	table, err := c.Table()
	if err != nil {
		return err
	}
	return errors.Join(write(catalogue.PageFile, c.Page()), write(catalogue.TableFile, table))
}

func write(name string, content []byte) error {
	return os.WriteFile(name, content, 0o644) //nolint:wrapcheck,gosec // it names the file, which is one of the sources
}
