package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// folder is the source of one package, without its tests.
type folder struct {
	files []*ast.File
	// texts are its constants that are strings, by name.
	texts map[string]string
}

func parseFolder(dir string) (*folder, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	f, set := &folder{texts: map[string]string{}}, token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		f.files = append(f.files, file)
		eachSpec(file, token.CONST, func(_ *ast.GenDecl, spec *ast.ValueSpec) {
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					f.texts[name.Name], _ = f.text(spec.Values[i])
				}
			}
		})
	}
	return f, nil
}

// eachSpec visits the constants or the variables of a file.
func eachSpec(file *ast.File, kind token.Token, visit func(*ast.GenDecl, *ast.ValueSpec)) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != kind {
			continue
		}
		for _, spec := range decl.Specs {
			visit(decl, spec.(*ast.ValueSpec)) //nolint:forcetypeassert // such a declaration has no other
		}
	}
}

// text is the value of an expression that is a string: a literal, a constant of the package,
// or a sum of both.
func (f *folder) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		value, ok := f.texts[e.Name]
		return value, ok
	case *ast.BinaryExpr:
		left, ok := f.text(e.X)
		right, also := f.text(e.Y)
		return left + right, ok && also
	default:
		return "", false
	}
}

// cell is text in a table: one line, and nothing in it is a tag.
func cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;").Replace(text)
}

// field is a field of a composite literal that is a string, "" if it has none.
func (f *folder) field(e ast.Expr, name string) string {
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				value, _ := f.text(pair.Value)
				return value
			}
		}
	}
	return ""
}
