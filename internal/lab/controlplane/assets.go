package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// assetsVariable is the variable by which the field's test tools find binaries.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Programs are those that a control plane with nodes consists of.
var Programs = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

// Assets returns the folder with the binaries of the control plane. It fetches or builds
// them if necessary and possible, and writes its progress.
func Assets(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		return dir, complete(dir)
	}
	table, err := inCheckout("hack/controlplane/downloads.txt")
	if err != nil {
		return "", fmt.Errorf("no control plane to start: set %s to a folder with etcd and kube-apiserver, or run this where they can be fetched or built: %w", assetsVariable, err)
	}
	cmd := exec.CommandContext(ctx, "go", "run", ".")
	cmd.Dir = filepath.Dir(table)
	return lastLine(cmd, progress)
}

// Build builds the programs of one of the modules in the folder hack, unless the cache
// has them, and returns their folder.
func Build(ctx context.Context, module string, progress io.Writer) (string, error) {
	script, err := inCheckout("hack/" + module + "/build.sh")
	if err != nil {
		return "", err
	}
	return lastLine(exec.CommandContext(ctx, script), progress)
}

// lastLine runs a command, which prints the folder of what it has made.
func lastLine(cmd *exec.Cmd, progress io.Writer) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, progress
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w", cmd, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[len(lines)-1], nil
}

// complete is an error if a binary that cannot be done without is missing.
func complete(dir string) error {
	for _, name := range Programs[:2] {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s=%s: %w", assetsVariable, dir, err)
		}
	}
	return nil
}

// CompleteWithNodes is an error if a folder lacks a program for a control plane with nodes.
func CompleteWithNodes(dir string) error {
	var missing []string
	for _, name := range Programs {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s=%s lacks %s", assetsVariable, dir, strings.Join(missing, ", "))
	}
	return nil
}

// ErrNoScript is that there is nothing here to build programs from.
var ErrNoScript = errors.New("not a checkout of Spillway")

// inCheckout returns where a file of the repository is, looking in this folder and those above it.
func inCheckout(file string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s: %w", file, ErrNoScript)
		}
		dir = filepath.Dir(dir)
	}
}
