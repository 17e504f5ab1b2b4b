//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	// alone is how often a test that failed is run once more.
	alone = 5
	// most is of how many tests that is done: what fails more of them is no flake.
	most = 10
)

// again runs each test that failed alone, and says whether it is flaky or broken.
func (r *runner) again(ctx context.Context, failed []failure) error {
	if len(failed) > most {
		r.printf("%d tests failed: too many to run each alone\n", len(failed))
		return nil
	}
	for _, f := range failed {
		if f.test == "" {
			r.printf("broken: %s failed outside of its tests\n", f.pkg)
			continue
		}
		fails, _, err := r.repeat(ctx, f, alone)
		if err != nil {
			return err
		}
		verdict := fmt.Sprintf("flaky: passes %d of %d alone", alone-fails, alone)
		if fails == alone {
			verdict = fmt.Sprintf("broken: fails %d of %d alone", fails, alone)
		}
		r.printf("%s: %s in %s\n  make stress TEST=%[2]s PKG=%[3]s\n", verdict, f.test, f.pkg)
	}
	return nil
}

// stress runs a test many times while all processors are busy.
func (r *runner) stress(ctx context.Context, times int) error {
	at := slices.Index(r.flags, "-run") + 1
	if at == 0 || at == len(r.flags) || r.flags[at] == "" || len(r.packages) != 1 || r.packages[0] == "" {
		return errors.New("stress: name a test and its package: TEST=TestName PKG=./internal/config")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for range runtime.NumCPU() {
		go func() {
			for ctx.Err() == nil { // it keeps a processor busy
			}
		}()
	}
	f := failure{pkg: r.packages[0], test: r.flags[at]}
	fails, first, err := r.repeat(ctx, f, times)
	if err != nil {
		return err
	}
	r.printf("%s%d of %d failed\n", first, fails, times)
	if fails > 0 {
		return fmt.Errorf("%s fails", f.test)
	}
	return nil
}

// repeat runs a test alone in processes of its own, and returns how many of them failed and
// what the first of these printed.
func (r *runner) repeat(ctx context.Context, f failure, times int) (fails int, first string, err error) {
	folder, err := os.MkdirTemp("", "spillway-test-")
	if err != nil {
		return 0, "", fmt.Errorf("folder of the test: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is where temporary ones are
	binary := filepath.Join(folder, "test")
	var out bytes.Buffer
	if err := r.command(ctx, &out, "go", slices.Concat([]string{"test", "-c", "-o", binary}, r.flags, []string{f.pkg})...).Run(); err != nil {
		return 0, "", fmt.Errorf("compile the test: %w: %s", err, &out)
	}
	out.Reset()
	if err := r.command(ctx, &out, "go", "list", "-f", "{{.Dir}}", f.pkg).Run(); err != nil {
		return 0, "", fmt.Errorf("find the test: %w: %s", err, &out)
	}
	dir := strings.TrimSpace(out.String())
	for range times {
		out.Reset()
		cmd := r.command(ctx, &out, binary, "-test.run", "^"+f.test+"$", "-test.timeout", "15m")
		cmd.Dir = dir
		err := cmd.Run()
		if ctx.Err() != nil {
			return fails, first, fmt.Errorf("repeat %s: %w", f.test, ctx.Err())
		}
		if strings.Contains(out.String(), "no tests to run") {
			return fails, first, fmt.Errorf("there is no test %s in %s", f.test, f.pkg)
		}
		if err != nil {
			if fails++; fails == 1 {
				first = out.String()
			}
		}
	}
	return fails, first, nil
}
