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

// Assets returns the folder with the binaries of the control plane. It builds
// them if it has to and can, telling of its progress.
func Assets(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		return dir, complete(dir)
	}
	script, err := buildScript()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, script)
	cmd.Stdout, cmd.Stderr = &out, progress
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return lines[len(lines)-1], nil
}

// complete is an error if a binary that cannot be done without is missing.
func complete(dir string) error {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%s=%s: %w", assetsVariable, dir, err)
		}
	}
	return nil
}

// buildScript looks for the script in this folder and those above it.
func buildScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w", err)
	}
	for {
		script := filepath.Join(dir, "hack", "k8s", "build.sh")
		if _, err := os.Stat(script); err == nil {
			return script, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no control plane to start: set " + assetsVariable +
				" to a folder with etcd and kube-apiserver, or run this inside a checkout of Spillway, which builds them")
		}
		dir = filepath.Dir(dir)
	}
}
