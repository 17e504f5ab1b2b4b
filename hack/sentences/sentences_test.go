package sentences

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reads are the functions of package strings that find something in their first argument. Taking the full stop from
// the end is none of them.
var reads = []string{"Contains", "HasPrefix", "HasSuffix", "Cut", "CutPrefix", "CutSuffix", "Index", "IndexByte", "LastIndex", "Split", "SplitN", "TrimPrefix", "Count"}

// sentences are the names of fields and variables that have a text for people.
var sentences = []string{"sentence", "message", "waitingfor", "waits", "why", "does", "root", "note", "said"}

// exceptions are the files that read a sentence, and why they may.
var exceptions = map[string]string{
	// The API server and its admission say what they refuse in a text alone.
	"internal/cli/command/failure.go":        "the API server's text",
	"internal/config/workload/rolling.go":    "the text of a controller of Kubernetes about a quota",
	"internal/describe/explain/forbidden.go": "the API server's text",
	"internal/describe/explain/refusal.go":   "the API server's text",
	"internal/fleet/outcome/refusal.go":      "the API server's text",
	"internal/plans/write/refusal.go":        "the API server's text",
	"internal/simulate/apply.go":             "the API server's text",
	"internal/simulate/manifests.go":         "the API server's text",
	// So do client-go, the parser of YAML, and Flux.
	"internal/cli/command/cluster.go":            "client-go's text",
	"internal/source/error.go":                   "the text of the parser of YAML",
	"internal/describe/explain/kustomization.go": "Flux's text",
	"internal/fleet/agent/settle.go":             "Flux's text",
	// Only the words that are shown depend on these, and nothing that is done.
	"internal/cli/display/chain.go":         "a name is not repeated on the screen",
	"internal/describe/explain/cluster.go":  "a name is not repeated on the screen",
	"internal/fleet/hub/model/record.go":    "a word of another cluster is not repeated in the sentence",
	"internal/plans/decision/conditions.go": "the message of a task that is retried stays",
	"internal/plans/render/sandbox.go":      "what the Go runtime prints when a process ends",
	"internal/lab/demo/fleet.go":            "the demo waits for the text that it shows",
}

// TestNoSentenceIsReadBack: a text for people is made from typed values, and no code takes it apart again.
func TestNoSentenceIsReadBack(t *testing.T) {
	found := map[string]bool{}
	for _, folder := range []string{"rollout", "api", "internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name := filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "..")+string(filepath.Separator)))
			for _, call := range readsIn(file) {
				found[name] = true
				if exceptions[name] == "" {
					t.Errorf("%s: strings.%s takes a sentence apart: use a typed value, such as a rollout.Cause, or give the reason among the exceptions of hack/sentences", files.Position(call.pos), call.name)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range exceptions {
		if !found[name] {
			t.Errorf("%s reads no sentence: it needs no exception", name)
		}
	}
}

type call struct {
	pos  token.Pos
	name string
}

// readsIn are the calls in a file that take a sentence apart.
func readsIn(file *ast.File) (calls []call) {
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 {
			return true
		}
		of, ok := c.Fun.(*ast.SelectorExpr)
		if !ok || nameOf(of.X) != "strings" || !slices.Contains(reads, of.Sel.Name) {
			return true
		}
		if slices.Contains(sentences, strings.ToLower(nameOf(inner(c.Args[0])))) {
			calls = append(calls, call{c.Pos(), of.Sel.Name})
		}
		return true
	})
	return calls
}

// inner is what a text is made from by a function, such as strings.TrimSpace.
func inner(e ast.Expr) ast.Expr {
	for {
		c, ok := e.(*ast.CallExpr)
		if !ok || len(c.Args) == 0 {
			return e
		}
		e = c.Args[0]
	}
}

// nameOf is the last name of an expression: that of a variable, or of a field.
func nameOf(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.ParenExpr:
		return nameOf(x.X)
	default:
		return ""
	}
}

// TestReadsAreFound: a call that takes a sentence apart is found, also around another function.
func TestReadsAreFound(t *testing.T) {
	const source = `package p
func f() {
	_ = strings.HasPrefix(u.Sentence, "x")
	_, _, _ = strings.Cut(strings.TrimSpace(s.WaitingFor), ":")
	_ = strings.TrimSuffix(u.Sentence, ".")
	_ = strings.HasPrefix(u.Name, "x")
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if calls := readsIn(file); len(calls) != 2 || calls[0].name != "HasPrefix" || calls[1].name != "Cut" {
		t.Errorf("%+v", calls)
	}
}
