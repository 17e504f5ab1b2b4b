package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// verdict is what became of a mutant.
type verdict int

const (
	survived verdict = iota
	noticed
	invalid
)

// tester runs the tests of the package.
type tester struct {
	*options
	work string
}

// try runs the named tests against a mutant, all tests if it survives these, and then those
// of the other package.
func (t *tester) try(m *mutant) verdict {
	_, v := t.test(m, t.run)
	if v == survived && t.run != "" && !t.only {
		_, v = t.test(m, "")
	}

	if v == survived && t.also != "" {
		other := tester{options: &options{pkg: t.also, timeout: t.timeout}, work: t.work}
		_, v = other.test(m, "")
	}

	return v
}

// test runs tests of the package with a mutant, without one if it is nil.
func (t *tester) test(m *mutant, run string) (string, verdict) {
	args := []string{"test", "-count=1", "-failfast", "-vet=off", "-timeout=" + t.timeout.String()}

	if m != nil {
		overlay, err := t.overlay(m)
		if err != nil {
			return err.Error(), invalid
		}

		args = append(args, "-overlay="+overlay)
	}

	if run == "" && t.only {
		run = t.run
	}

	if run != "" {
		args = append(args, "-run="+run)
	}

	pkg, more, _ := strings.Cut(t.pkg, " ")
	args = append(append(args, "./"+filepath.Clean(pkg)), strings.Fields(more+" "+t.args)...)

	ctx, cancel := context.WithTimeout(context.Background(), t.timeout+time.Minute) //nolint:forbidigo // a tool of developers
	defer cancel()

	command := exec.CommandContext(ctx, "go", args...) //nolint:gosec // what a developer asks for
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }

	out, err := command.CombinedOutput()

	switch {
	case err == nil:
		return "", survived
	case bytes.Contains(out, []byte("[build failed]")):
		return string(out), invalid
	default:
		return string(out), noticed
	}
}

// overlay writes a mutant, and the file that makes go test compile it.
func (t *tester) overlay(m *mutant) (string, error) {
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err //nolint:wrapcheck // it never fails where there is a folder
	}

	changed, overlay := filepath.Join(t.work, "mutant.go"), filepath.Join(t.work, "overlay.json")

	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err //nolint:wrapcheck // strings can be encoded
	}

	if err := os.WriteFile(changed, m.text(), 0o600); err != nil {
		return "", err //nolint:wrapcheck // it names the file
	}

	return overlay, os.WriteFile(overlay, replace, 0o600) //nolint:wrapcheck // it names the file
}
