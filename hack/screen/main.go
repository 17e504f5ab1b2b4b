// Command screen makes a moving picture of what a program writes, for README and the site:
//
//	bin/spillway demo | go run ./hack/screen docs/pictures/demo.svg
//
// It reads the lines of the demo as they come. A line of a workload or a zone replaces the one
// that it wrote before, as the demo does on a terminal; each moment is one image. Readers who
// want no motion see the last one.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "screen:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, echo io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: screen FILE.svg")
	}
	r := &recording{}
	begin := time.Now() //nolint:forbidigo // a recording is of real time
	for lines := bufio.NewScanner(in); lines.Scan(); {
		_, _ = fmt.Fprintln(echo, lines.Text())
		r.read(lines.Text(), time.Since(begin)) //nolint:forbidigo // the same
	}
	svg, err := r.svg()
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[0], []byte(svg), 0o644); err != nil { //nolint:gosec // one of the sources
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}
