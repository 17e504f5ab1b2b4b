package rollout_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// A fleet of five clusters: the canary first, and then two at a time.
func Example() {
	cluster := func(name, runs string, h rollout.Health) rollout.Unit {
		return rollout.Unit{Name: name, Leaf: rollout.Leaf{Current: runs, Target: "v2", Health: h}}
	}
	plan := rollout.Decide(rollout.Observed{Now: time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC), Root: rollout.Unit{
		Policy: rollout.Policy{Order: rollout.Series},
		Children: []rollout.Unit{
			{Name: "canary", Children: []rollout.Unit{cluster("a", "v2", rollout.Healthy)}},
			{Name: "rest", Policy: rollout.Policy{MaxUnavailable: rollout.Number(2)}, Children: []rollout.Unit{
				cluster("b", "v2", rollout.Progressing), cluster("c", "v1", rollout.Healthy), cluster("d", "v1", rollout.Healthy),
			}},
		},
	}})
	fmt.Println(plan.Phase)
	for _, step := range plan.Steps {
		fmt.Println(step.Path, "goes to", step.To)
	}
	for _, hold := range plan.Holds {
		fmt.Println(hold.Message)
	}
	// Output:
	// Progressing
	// rest/c goes to v2
	// b is on its way: it is not ready yet
	// d waits, number 1 in the queue: 2 of at most 2 in rest are down or on their way (b is not ready yet)
}

// What the engine exports is all here.
func TestNothingIsMissing(t *testing.T) {
	here := exported(t, ".")
	for name := range exported(t, "../internal/rollout") {
		if !here[name] {
			t.Errorf("rollout.%s is missing", name)
		}
	}
}

// exported are the names that a package declares for others, but for methods.
func exported(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			declared(d, func(name string) { names[name] = ast.IsExported(name) })
		}
	}
	for name, is := range names {
		if !is {
			delete(names, name)
		}
	}
	return names
}

func declared(d ast.Decl, tell func(string)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			tell(d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				tell(s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					tell(name.Name)
				}
			}
		}
	}
}
