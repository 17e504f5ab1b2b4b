// Mutate changes a package in one small way after another and reports each change
// that its tests do not notice. It writes nothing into the tree: each mutant is
// compiled with go test -overlay.
//
//	go run ./hack/mutate -run 'TestRules|TestNarratives' ./rollout
//
// With -run the named tests try each mutant first, and all tests those that survive,
// unless -only is given; those that survive these as well are tried by the tests of
// another package with -also, such as a simulation:
//
//	go run ./hack/mutate -files plan -also './internal/fleet/sim -run Simulation -seeds=300' ./internal/fleet/hub/decision
//
// A mutant that does not compile is skipped; one that takes
// longer than -timeout counts as noticed.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	pkg, run, files string
	only            bool
	every           int
	offset, limit   int
	timeout         time.Duration
	args, also      string
}

func main() {
	var o options

	flag.StringVar(&o.run, "run", "", "tests that try each mutant first")
	flag.BoolVar(&o.only, "only", false, "run only the tests of -run")
	flag.StringVar(&o.files, "files", "", "mutate only files whose name matches this expression")
	flag.IntVar(&o.every, "every", 1, "try only each n-th mutant")
	flag.IntVar(&o.offset, "offset", 0, "begin with this mutant")
	flag.IntVar(&o.limit, "limit", 0, "try at most this many mutants (default: all)")
	flag.DurationVar(&o.timeout, "timeout", time.Minute, "how long the tests of one mutant may take")
	flag.StringVar(&o.args, "args", "", "arguments for the test binary, separated by spaces")
	flag.StringVar(&o.also, "also", "", "package, and arguments of go test, that tries what survives")
	flag.Parse()

	o.pkg = flag.Arg(0)

	survivors, err := mutate(&o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}

	if survivors > 0 {
		os.Exit(1)
	}
}

// mutate tries the mutants of a package and returns how many survive.
func mutate(o *options) (int, error) {
	mutants, err := mutantsOf(o)
	if err != nil {
		return 0, err
	}

	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 0, err //nolint:wrapcheck // it names the folder
	}
	defer os.RemoveAll(work) //nolint:errcheck // a temporary folder

	t := tester{options: o, work: work}
	if out, verdict := t.test(nil, ""); verdict != survived {
		return 0, fmt.Errorf("the tests fail without a mutant:\n%s", out)
	}

	counts := map[verdict]int{}

	for i := o.offset; i < len(mutants) && (o.limit == 0 || i < o.offset+o.limit*max(1, o.every)); i += max(1, o.every) {
		m := &mutants[i]

		v := t.try(m)
		counts[v]++

		if v == survived {
			fmt.Printf("mutant %d: %s\n", i, m)
		}
	}

	fmt.Printf("%d mutants survived, %d were noticed, %d do not compile, of %d\n", counts[survived], counts[noticed], counts[invalid], len(mutants))

	return counts[survived], nil
}

// mutantsOf are the mutants of all source files of the package.
func mutantsOf(o *options) ([]mutant, error) {
	wanted, err := regexp.Compile(o.files)
	if err != nil {
		return nil, fmt.Errorf("-files: %w", err)
	}

	names, err := filepath.Glob(filepath.Join(o.pkg, "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no Go files in %q", o.pkg)
	}

	var mutants []mutant

	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(filepath.Base(name), "zz_generated") || !wanted.MatchString(name) {
			continue
		}

		more, err := mutantsIn(name)
		if err != nil {
			return nil, err
		}

		mutants = append(mutants, more...)
	}

	return mutants, nil
}
