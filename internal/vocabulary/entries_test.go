package vocabulary_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// TestEveryKeyIsAmongTheEntries reads the sources of the package: a new key
// must be added to the entries.
func TestEveryKeyIsAmongTheEntries(t *testing.T) {
	known := map[string]bool{}
	for _, e := range vocabulary.Entries() {
		for _, name := range e.Names() {
			if known[name] {
				t.Errorf("%s is listed twice", name)
			}
			known[name] = true
		}
		if e.Place == "" {
			t.Errorf("%s stands nowhere", e.Native)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		for _, name := range namesIn(t, file) {
			if !known[name] {
				t.Errorf("%s: %s is not among the entries", file, name)
			}
		}
	}
}

// namesIn are the native names and aliases of the keys that a file declares.
func namesIn(t *testing.T, file string) []string {
	t.Helper()
	if strings.HasSuffix(file, "_test.go") {
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if id, isName := literalType(literal); !ok || !isName || id != "Key" {
			return true
		}
		ast.Inspect(literal, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
				name, err := strconv.Unquote(text.Value)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, name)
			}
			return true
		})
		return false
	})
	return names
}

func literalType(literal *ast.CompositeLit) (string, bool) {
	if literal == nil {
		return "", false
	}
	id, ok := literal.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return id.Name, true
}
