package main

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// room is what was measured of one package.
type room struct {
	// path is that of the package in its module.
	path               string
	files, code, tests int
	// functions are all functions with a body, by "Type.Name" or "Name".
	functions map[string]function
	// exported names, and those of them with a comment.
	exported, documented int
	// arrows between functions of the package, and those of them that run back up.
	arrows, back int
}

// function is a function of the sources.
type function struct {
	lines int
	file  string
	at    token.Pos
	uses  []*types.Func
}

// measure reads the packages of a module.
func measure(folder string) ([]room, error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax | packages.NeedModule, Dir: folder}, "./...")
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", folder, err)
	}
	var rooms []room
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		r, err := measureRoom(p)
		if err != nil {
			return nil, err
		}
		rooms = append(rooms, r)
	}
	return rooms, nil
}

func measureRoom(p *packages.Package) (room, error) {
	r := room{path: strings.TrimPrefix(p.PkgPath, p.Module.Path+"/"), functions: map[string]function{}}
	arrows := map[*types.Func]function{}
	for _, file := range p.Syntax {
		name := p.Fset.Position(file.Pos()).Filename
		if ast.IsGenerated(file) || filepath.Base(name) == "doc.go" {
			continue
		}
		r.files++
		for _, decl := range file.Decls {
			r.declare(p, decl, filepath.Base(name), arrows)
		}
	}
	r.arrows, r.back = countArrows(arrows)
	return r, r.countLines(p)
}

// countLines counts the lines of a package with code on them, and of its tests.
func (r *room) countLines(p *packages.Package) error {
	if len(p.GoFiles) == 0 {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(p.GoFiles[0]), "*.go"))
	if err != nil {
		return fmt.Errorf("list %s: %w", p.PkgPath, err)
	}
	for _, name := range names {
		source, err := os.ReadFile(name) //nolint:gosec // it is a source of the package
		if err != nil {
			return fmt.Errorf("read a file: %w", err)
		}
		switch {
		case strings.HasSuffix(name, "_test.go"):
			r.tests += linesOf(source)
		case !strings.Contains(string(source), "\n// Code generated ") && !strings.HasPrefix(string(source), "// Code generated "):
			r.code += linesOf(source)
		}
	}
	return nil
}

// linesOf counts the lines on which a token begins or ends.
func linesOf(source []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	lines := map[int]bool{}
	for {
		at, tok, text := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue
		}
		for i := range 1 + strings.Count(text, "\n") {
			lines[file.Line(at)+i] = true
		}
	}
}

// declare takes down what one declaration adds.
func (r *room) declare(p *packages.Package, decl ast.Decl, file string, arrows map[*types.Func]function) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		receiver := receiverOf(d)
		r.count(d.Name.IsExported() && (receiver == "" || ast.IsExported(receiver)), d.Doc)
		object, ok := p.TypesInfo.Defs[d.Name].(*types.Func)
		if d.Body == nil || !ok {
			return
		}
		f := function{lines: p.Fset.Position(d.End()).Line - p.Fset.Position(d.Pos()).Line + 1, file: file, at: d.Pos(), uses: usesIn(p, d.Body)}
		arrows[object] = f
		r.functions[strings.TrimPrefix(receiver+"."+d.Name.Name, ".")] = f
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				r.count(spec.Name.IsExported(), spec.Doc, d.Doc)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					r.count(name.IsExported(), spec.Doc, spec.Comment, d.Doc)
				}
			}
		}
	}
}

// count counts an exported name, with or without a comment.
func (r *room) count(exported bool, comments ...*ast.CommentGroup) {
	if !exported {
		return
	}
	r.exported++
	if slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c.Text() != "" }) {
		r.documented++
	}
}

// receiverOf is the name of the type that a function is a method of.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	e := d.Recv.List[0].Type
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// usesIn are the functions of the same package that a function uses, each once.
func usesIn(p *packages.Package, body *ast.BlockStmt) []*types.Func {
	var uses []*types.Func
	ast.Inspect(body, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			if f, ok := p.TypesInfo.Uses[name].(*types.Func); ok && f.Pkg() == p.Types && !slices.Contains(uses, f.Origin()) {
				uses = append(uses, f.Origin())
			}
		}
		return true
	})
	return uses
}
