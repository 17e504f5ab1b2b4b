package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// A release is compiled for three systems, and tests run on one. So the types of what the
// program consists of are checked for the other two, which compiles nothing.
func TestOtherSystems(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range []string{"darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			config := &packages.Config{
				Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
				Env:  append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
				ParseFile: func(set *token.FileSet, name string, text []byte) (*ast.File, error) {
					file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
					if file != nil && !strings.HasPrefix(name, root+string(filepath.Separator)) {
						withoutBodies(file)
					}
					return file, err
				},
			}
			loaded, err := packages.Load(config, ".")
			if err != nil {
				t.Fatal(err)
			}
			packages.Visit(loaded, nil, func(p *packages.Package) {
				if !strings.HasPrefix(p.PkgPath, "github.com/spillway-dev/spillway/") {
					return
				}
				for _, err := range p.Errors {
					t.Errorf("for %s: %v", system, err)
				}
			})
		})
	}
}

// withoutBodies leaves the declarations of a file: what others' functions do is not checked.
func withoutBodies(file *ast.File) {
	for _, declaration := range file.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok {
			f.Body = nil
		}
	}
}
