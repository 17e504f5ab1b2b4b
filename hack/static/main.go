// Command static fails if a program needs a loader or libraries of the machine that it
// runs on: an image of it would need more than the one file.
package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"strings"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "%s: %s\n", path, err)
			os.Exit(1)
		}
	}
}

// check is an error if the program is not static. One that is not for Linux is not for an
// image.
func check(path string) error {
	f, err := elf.Open(path)
	if _, other := errors.AsType[*elf.FormatError](err); other {
		return nil
	}
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	defer func() { _ = f.Close() }()
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("it needs a loader; build it with CGO_ENABLED=0")
		}
	}
	if libraries, err := f.ImportedLibraries(); err == nil && len(libraries) > 0 {
		return fmt.Errorf("it needs %s; build it with CGO_ENABLED=0", strings.Join(libraries, ", "))
	}
	return nil
}
