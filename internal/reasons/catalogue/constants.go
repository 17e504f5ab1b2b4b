package catalogue

import (
	"go/ast"
	"go/constant"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// mendMark begins the line of a comment that says what to do.
const mendMark = "Action: "

// collectConstants finds the constants that a file declares.
func (s *sources) collectConstants(p *packages.Package, file *ast.File) {
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range decl.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			doc := values.Doc
			if !decl.Lparen.IsValid() {
				doc = decl.Doc
			}
			s.collectSpec(p, values, doc.Text())
		}
	}
}

// collectSpec takes down what a line declares, if it is a reason. The empty word is
// none.
func (s *sources) collectSpec(p *packages.Package, spec *ast.ValueSpec, doc string) {
	for i, name := range spec.Names {
		c, ok := p.TypesInfo.Defs[name].(*types.Const)
		if !ok || !s.isReason(c.Type()) || constant.StringVal(c.Val()) == "" {
			continue
		}
		if i < len(spec.Values) {
			if other := namedConstant(p.TypesInfo, spec.Values[i]); other != nil && s.isReason(other.Type()) {
				s.aliases[c] = other
				continue
			}
		}
		s.declare(p, c, doc)
	}
}

// namedConstant is the constant that an expression names, nil if it is no name.
func namedConstant(info *types.Info, e ast.Expr) *types.Const {
	var name *ast.Ident
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		name = e
	case *ast.SelectorExpr:
		name = e.Sel
	default:
		return nil
	}
	c, _ := info.Uses[name].(*types.Const)
	return c
}

// declare takes down a constant, and what is wrong with its comment.
func (s *sources) declare(p *packages.Package, c *types.Const, doc string) {
	word := constant.StringVal(c.Val())
	entry := Entry{Word: word, Name: p.Name + "." + c.Name(), Ring: ringOf(p.PkgPath)}
	var said bool
	if entry.Cause, entry.Action, said = parse(c.Name(), doc); !said {
		s.complainf(c.Pos(), "the comment of %s has to be \"%s: \", the cause, and then a line \"// %s\" with what a person does about it", c.Name(), c.Name(), mendMark)
	}
	if first := s.words[word]; first != nil {
		s.complainf(c.Pos(), "%s is the word %q, as %s is; declare it once, and the other as that one", c.Name(), word, first.Name)
		return
	}
	s.words[word] = &declared{Entry: entry, object: c}
	s.constants = append(s.constants, s.words[word])
}

// parse takes a comment apart.
func parse(name, doc string) (cause, action string, ok bool) {
	before, after, marked := strings.Cut(doc, "\n"+mendMark)
	before, named := strings.CutPrefix(before, name+": ")
	cause, action = sentence(before), sentence(after)
	return cause, action, marked && named && cause != "" && action != ""
}

// sentence is text in one line, without the full stop at its end.
func sentence(text string) string {
	return strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
}
