// Reasons writes what is generated from the reasons in the sources: docs/reasons.md
// and the table of package reasons. Run it in the root of the module.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "reasons:", err)
		os.Exit(1)
	}
}

// product are the packages whose reasons users see; examples have reasons of their own.
var product = []string{"./api/...", "./cmd/...", "./internal/...", "./rollout/..."}

func run() error {
	c, err := read(".", product...)
	if err != nil {
		return err
	}
	if len(c.problems) > 0 {
		return errors.New(strings.Join(c.problems, "\n"))
	}
	table, err := c.table()
	if err != nil {
		return err
	}
	return errors.Join(write("docs/reasons.md", c.page()), write("internal/reasons/zz_generated.reasons.go", table))
}

func write(name string, content []byte) error {
	return os.WriteFile(name, content, 0o644) //nolint:wrapcheck,gosec // it names the file, which is one of the sources
}
