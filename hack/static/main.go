// Command static fails if a program needs a loader or libraries of the machine that it
// runs on: an image of it would need more than the one file. It fails too if the program
// finds methods by names that the linker cannot know, since then every exported method of
// every type stays in it, and it is a third larger.
package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
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
	return small(f)
}

// evaluation is where Go's templates look for a method by its name.
const evaluation = "text/template.(*state).evalField"

// small is an error if templates of Go can be executed. A program without symbols cannot
// be told.
func small(f *elf.File) error {
	symbols, err := f.Symbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the symbols: %w", err)
	}
	if slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == evaluation }) {
		return errors.New("it executes templates of Go's text/template, which keeps all methods in it; " +
			"use internal/plans/render/template (docs/adr/0059)")
	}
	return nil
}
