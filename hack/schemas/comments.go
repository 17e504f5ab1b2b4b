package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

const module = "github.com/spillway-dev/spillway/"

// comments are those of types and their fields, in the sources of the module.
type comments struct {
	root string
	// read are the comments of a package, by "Type" and "Type.Field".
	read map[string]map[string]string
}

// of is the comment of a type, or of a field of it; empty if there is none.
func (c *comments) of(t reflect.Type, field string) (string, error) {
	dir, ok := strings.CutPrefix(t.PkgPath(), module)
	if !ok {
		return "", nil // the type of this very program
	}
	if c.read[dir] == nil {
		texts, err := commentsIn(filepath.Join(c.root, dir))
		if err != nil {
			return "", err
		}
		if c.read == nil {
			c.read = map[string]map[string]string{}
		}
		c.read[dir] = texts
	}
	name := t.Name()
	if field != "" {
		name += "." + field
	}
	return c.read[dir][name], nil
}

func commentsIn(dir string) (map[string]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	texts := map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", path, err)
		}
		for _, d := range file.Decls {
			if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.TYPE {
				note(texts, decl)
			}
		}
	}
	return texts, nil
}

// note notes the comments of a declaration of types.
func note(texts map[string]string, decl *ast.GenDecl) {
	for _, s := range decl.Specs {
		spec, _ := s.(*ast.TypeSpec)
		texts[spec.Name.Name] = line(decl.Doc)
		of, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range of.Fields.List {
			for i, name := range field.Names {
				if i == 0 { // a comment stands before the first of several
					texts[spec.Name.Name+"."+name.Name] = line(field.Doc)
				}
			}
		}
	}
}

// line is a comment as one line.
func line(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
