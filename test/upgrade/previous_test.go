//go:build upgrade

package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// version is one that is installed.
type version struct {
	name    string
	program string
	chart   string
	// root, if any, is that of the image that holds the program: its path begins there.
	root string
}

// command runs the program with a kubeconfig, and an image's in a root that holds nothing else.
func (v version) command(t *testing.T, kubeconfig string, args ...string) *exec.Cmd {
	t.Helper()
	if v.root == "" {
		return exec.Command(v.program, append([]string{args[0], "--kubeconfig=" + kubeconfig}, args[1:]...)...)
	}
	raw, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(v.root, "kubeconfig-")
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(raw)
	if err := errors.Join(err, file.Chmod(0o444), file.Close()); err != nil {
		t.Fatal(err)
	}
	return alone(v.root, v.program, append([]string{args[0], "--kubeconfig=/" + filepath.Base(file.Name())}, args[1:]...)...)
}

// current is this version, compiled for the test.
func current(t *testing.T) version {
	t.Helper()
	folder := t.TempDir()
	v := version{name: "this version", program: filepath.Join(folder, "spillway"), chart: filepath.Join(root, "charts", "spillway")}
	compile(t, root, v.program, "./cmd/spillway")
	return v
}

// previous is the version before, which is built once into the cache.
func previous(t *testing.T) version {
	t.Helper()
	commit := before(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(cache, "spillway", "previous", commit)
	v := version{name: "version before", program: filepath.Join(folder, "spillway"), chart: filepath.Join(folder, "source", "charts", "spillway")}
	if _, err := os.Stat(v.program); err == nil {
		return v
	}
	source := filepath.Join(folder, "source")
	if err := errors.Join(os.RemoveAll(source), os.MkdirAll(source, 0o755)); err != nil {
		t.Fatal(err)
	}
	sh(t, root, `git archive "$1" | tar -x -C "$2"`, commit, source)
	compile(t, source, v.program+".new", "./cmd/spillway")
	if err := os.Rename(v.program+".new", v.program); err != nil { // only a complete one has the name
		t.Fatal(err)
	}
	return v
}

// before is the commit of the version before: of the environment, of the last tag, or of the
// file. A clone that lacks it cannot be tested, and that is no success.
func before(t *testing.T) string {
	t.Helper()
	named := os.Getenv("PREVIOUS")
	if named == "" {
		if tag, err := exec.Command("git", "-C", root, "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^").Output(); err == nil {
			named = strings.TrimSpace(string(tag))
		}
	}
	if named == "" {
		raw, err := os.ReadFile("previous")
		if err != nil {
			t.Fatal(err)
		}
		named = strings.TrimSpace(string(raw))
	}
	out, err := exec.Command("git", "-C", root, "rev-parse", "--verify", "--quiet", named+"^{commit}").Output()
	if err != nil {
		t.Fatalf("this clone has no commit %s, the version before, so that no upgrade from it can be tried: clone it with its history (git fetch --unshallow --tags)", named)
	}
	return strings.TrimSpace(string(out))
}

// certified is this version with the module of Go that is certified by FIPS 140-3, compiled
// as a release compiles it.
func certified(t *testing.T) version {
	t.Helper()
	v := version{name: "the FIPS variant of this version", program: filepath.Join(t.TempDir(), "spillway")}
	compile(t, root, v.program, "./cmd/spillway", "GOFIPS140=certified")
	return v
}

// compile builds a program in an environment that has some variables more.
func compile(t *testing.T, folder, program, what string, variables ...string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, what)
	cmd.Dir, cmd.Env = folder, append(append(os.Environ(), "CGO_ENABLED=0"), variables...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v: %s", what, err, out)
	}
}

func sh(t *testing.T, folder, script string, args ...string) {
	t.Helper()
	cmd := exec.Command("bash", append([]string{"-euo", "pipefail", "-c", script, "bash"}, args...)...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// helm is the real Helm, of the module in which releases are made.
type helm struct {
	program, namespace string
	env                []string
}

func newHelm(t *testing.T, kubeconfig, namespace string) helm {
	t.Helper()
	h := helm{program: filepath.Join(t.TempDir(), "helm"), namespace: namespace}
	compile(t, filepath.Join(root, "hack", "release"), h.program, "helm.sh/helm/v4/cmd/helm")
	home := t.TempDir()
	h.env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	return h
}

func (h helm) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, h.program, append(args, "--namespace="+h.namespace)...)
	cmd.Env = h.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

func (h helm) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := h.run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
