package dependency_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/packages/dependency"
)

// write writes a package that needs others, named as in a task.
func write(t *testing.T, name string, needs ...string) {
	t.Helper()
	text := "name: " + filepath.Base(name) + "\noperatorVersion: 1.0.0\nappVersion: \"2\"\nplans: {deploy: {}}\ntasks:\n"
	for i, needed := range needs {
		text += "- {name: t" + string(rune('0'+i)) + ", kind: KudoOperator, spec: {package: " + needed + "}}\n"
	}
	if err := os.MkdirAll(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(name, "operator.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func local(_ context.Context, r dependency.Reference) (*packages.Package, error) {
	return packages.Load(r.Package)
}

func resolve(t *testing.T, name string, load dependency.Load) (string, *packages.Package, error) {
	t.Helper()
	p, err := packages.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	found, err := dependency.Resolve(t.Context(), p, load)
	var names []string
	for _, f := range found {
		names = append(names, f.VersionName())
	}
	return strings.Join(names, " "), p, err
}

// What others need comes before them, once, and is pinned.
func TestResolve(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "app", "./needs/db", "cache")
	write(t, "app/needs/db", "../../../cache")
	write(t, "cache")
	names, p, err := resolve(t, "app", local)
	if err != nil || names != "cache-2-1.0.0 db-2-1.0.0" {
		t.Errorf("it needs %s, %v", names, err)
	}
	if s := p.Operator.Tasks[0].Spec; s.Package != "db" || s.AppVersion != "2" || s.OperatorVersion != "1.0.0" {
		t.Errorf("the task is not pinned: %v", s)
	}
	v, err := p.VersionObject()
	if err != nil || v.Spec.Tasks[1].Spec.OperatorVersion != "1.0.0" {
		t.Errorf("the OperatorVersion is not pinned: %v, %v", v, err)
	}
}

func TestCircle(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "app", "../a")
	write(t, "a", "../b")
	write(t, "b", "../a")
	_, _, err := resolve(t, "app", local)
	if err == nil || err.Error() != "packages need each other in a circle: a-2-1.0.0 needs b-2-1.0.0 needs a-2-1.0.0; remove one of the KudoOperator tasks" {
		t.Errorf("it says %v", err)
	}
	write(t, "self", "../self")
	if _, _, err = resolve(t, "self", local); err == nil || !strings.Contains(err.Error(), "self-2-1.0.0 needs self-2-1.0.0") {
		t.Errorf("it says %v", err)
	}
}

// What is installed is not read; what is not found is named, with the task.
func TestLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "app", "kafka")
	installed := func(context.Context, dependency.Reference) (*packages.Package, error) { return nil, nil } //nolint:nilnil // none is an answer
	if names, _, err := resolve(t, "app", installed); err != nil || names != "" {
		t.Errorf("it needs %q, %v", names, err)
	}
	absent := func(context.Context, dependency.Reference) (*packages.Package, error) {
		return nil, errors.New("not found")
	}
	if _, _, err := resolve(t, "app", absent); err == nil || err.Error() != "app: task t0: not found" {
		t.Errorf("it says %v", err)
	}
}
