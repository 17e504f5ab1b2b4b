package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
)

// mutant is a file with one part replaced.
type mutant struct {
	file       string
	line       int
	source     []byte
	start, end int
	by         string
}

// text is the file as the mutant has it.
func (m *mutant) text() []byte {
	return []byte(string(m.source[:m.start]) + m.by + string(m.source[m.end:]))
}

// String is where the mutant is, and its lines before and after.
func (m *mutant) String() string {
	first := bytes.LastIndexByte(m.source[:m.start], '\n') + 1

	last := len(m.source)
	if i := bytes.IndexByte(m.source[m.end:], '\n'); i >= 0 {
		last = m.end + i
	}

	before := string(m.source[first:last])
	after := string(m.source[first:m.start]) + m.by + string(m.source[m.end:last])

	return fmt.Sprintf("%s:%d\n- %s\n+ %s", m.file, m.line, strings.TrimSpace(before), strings.TrimSpace(after))
}

// operators are what each operator becomes: comparisons at their boundary, the
// others their opposite.
var operators = map[token.Token]string{
	token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=", token.NEQ: "==",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+",
}

// finder collects the mutants of one file.
type finder struct {
	files   *token.FileSet
	name    string
	source  []byte
	mutants []mutant
}

// mutantsIn are the mutants of a file.
func mutantsIn(name string) ([]mutant, error) {
	source, err := os.ReadFile(name) //nolint:gosec // named on the command line
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}

	f := finder{files: token.NewFileSet(), name: name, source: source}

	parsed, err := parser.ParseFile(f.files, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}

	for _, d := range parsed.Decls {
		if _, isFunc := d.(*ast.FuncDecl); isFunc {
			ast.Inspect(d, f.find)
		}
	}

	return f.mutants, nil
}

// find adds the mutants of one node.
func (f *finder) find(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if by, known := operators[n.Op]; known {
			f.replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), by)
		}
	case *ast.IfStmt:
		f.replace(n.Cond.Pos(), n.Cond.End(), "!("+f.text(n.Cond)+")")
	case *ast.BasicLit:
		f.constant(n)
	case *ast.Ident:
		if opposite, known := map[string]string{"true": "false", "false": "true"}[n.Name]; known {
			f.replace(n.Pos(), n.End(), opposite)
		}
	case *ast.BlockStmt:
		f.drop(n.List)
	case *ast.CaseClause:
		f.drop(n.Body)
	}

	return true
}

// constant makes 0 of 1, and one more of any other number.
func (f *finder) constant(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}

	value, err := strconv.Atoi(n.Value)

	switch {
	case err != nil:
	case value == 1:
		f.replace(n.Pos(), n.End(), "0")
	default:
		f.replace(n.Pos(), n.End(), strconv.Itoa(value+1))
	}
}

// drop leaves statements out, one at a time.
func (f *finder) drop(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.ReturnStmt, *ast.BranchStmt:
			f.replace(s.Pos(), s.End(), "")
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				f.replace(s.Pos(), s.End(), "")
			}
		}
	}
}

func (f *finder) replace(from, to token.Pos, by string) {
	at := f.files.Position(from)
	f.mutants = append(f.mutants, mutant{
		file: f.name, line: at.Line, source: f.source,
		start: at.Offset, end: f.files.Position(to).Offset, by: by,
	})
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.files.Position(n.Pos()).Offset:f.files.Position(n.End()).Offset])
}
