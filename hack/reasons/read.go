package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const (
	module     = "github.com/spillway-dev/spillway"
	reasonType = module + "/rollout.Reason"
	// actionMark begins the line of a comment that says what to do.
	actionMark = "Action: "
)

// entry is one reason: a constant of type rollout.Reason. The cause and the action
// are sentences without a full stop.
type entry struct{ word, section, cause, action string }

// catalog has all reasons of some packages, and what breaks the rules that the
// doc of package reasons states.
type catalog struct {
	entries  []entry
	problems []string

	files *token.FileSet
	// declared has the constants by word, used those that some code mentions.
	declared map[string]*types.Const
	used     map[types.Object]bool
}

// read reads the packages that match the patterns, as the go command understands
// them in a folder. Code that does not compile is an error.
func read(folder string, patterns ...string) (*catalog, error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: folder}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", strings.Join(patterns, " "), err)
	}
	c := &catalog{declared: map[string]*types.Const{}, used: map[types.Object]bool{}}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		c.files = p.Fset
		c.collect(p)
	}
	for word, object := range c.declared {
		if !c.used[object] {
			c.complainf(object.Pos(), "%s (%s) is used nowhere; remove it", object.Name(), word)
		}
	}
	slices.SortFunc(c.entries, func(a, b entry) int { return cmp.Compare(a.word, b.word) })
	return c, nil
}

// collect reads the constants that a package declares, notes those that it mentions,
// and complains of reasons that are literals.
func (c *catalog) collect(p *packages.Package) {
	for _, object := range p.TypesInfo.Uses {
		c.used[object] = true
	}
	for _, file := range p.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			if decl, ok := n.(*ast.GenDecl); ok && decl.Tok == token.CONST {
				for _, spec := range decl.Specs {
					c.collectSpec(p, decl, spec.(*ast.ValueSpec)) //nolint:forcetypeassert // a const declaration has no other
				}
				return false
			}
			return c.checkText(p.TypesInfo, n)
		})
	}
}

// checkText complains of a constant expression that is a reason and does not name a
// constant, and of text that becomes a reason, unless an object's field Reason has it,
// which is read back. The empty reason is none.
func (c *catalog) checkText(info *types.Info, n ast.Node) (descend bool) {
	e, ok := n.(ast.Expr)
	if !ok {
		return true
	}
	value := info.Types[e]
	if call, ok := e.(*ast.CallExpr); ok && value.Value == nil && info.Types[call.Fun].IsType() && isReason(value.Type) {
		if field, ok := call.Args[0].(*ast.SelectorExpr); !ok || field.Sel.Name != "Reason" {
			c.complainf(e.Pos(), "text becomes a reason; only the field Reason of an object may")
		}
	}
	if value.Value == nil || !isReason(value.Type) || constant.StringVal(value.Value) == "" {
		return true
	}
	if !namesReason(info, e) {
		c.complainf(e.Pos(), "%s is a reason without a constant; declare one with its cause and its action", value.Value)
	}
	return false
}

// collectSpec reads the constants of one line, unless it gives another name to a
// constant of another package.
func (c *catalog) collectSpec(p *packages.Package, decl *ast.GenDecl, spec *ast.ValueSpec) {
	doc := spec.Doc
	if !decl.Lparen.IsValid() {
		doc = decl.Doc
	}
	for i, name := range spec.Names {
		object, ok := p.TypesInfo.Defs[name].(*types.Const)
		if !ok || !isReason(object.Type()) || constant.StringVal(object.Val()) == "" {
			continue
		}
		if i < len(spec.Values) && namesReason(p.TypesInfo, spec.Values[i]) {
			continue
		}
		c.declare(p.PkgPath, object, doc.Text())
	}
}

// namesReason is true of the name of a constant of the type.
func namesReason(info *types.Info, e ast.Expr) bool {
	var name *ast.Ident
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		name = e
	case *ast.SelectorExpr:
		name = e.Sel
	default:
		return false
	}
	object, ok := info.Uses[name].(*types.Const)
	return ok && isReason(object.Type())
}

func (c *catalog) declare(path string, object *types.Const, doc string) {
	e := entry{word: constant.StringVal(object.Val()), section: sectionOf(path)}
	if first := c.declared[e.word]; first != nil {
		c.complainf(object.Pos(), "%s is the word %q, as %s.%s is; declare it once, and the other as that one",
			object.Name(), e.word, first.Pkg().Name(), first.Name())
		return
	}
	c.declared[e.word] = object
	var ok bool
	if e.cause, e.action, ok = parse(object.Name(), doc); !ok {
		c.complainf(object.Pos(), "the comment of %s must be \"%s: CAUSE.\", then a line \"%sACTION.\"", object.Name(), object.Name(), actionMark)
	}
	c.entries = append(c.entries, e)
}

// parse reads the cause and the action from a comment.
func parse(name, doc string) (cause, action string, ok bool) {
	before, after, marked := strings.Cut(doc, "\n"+actionMark)
	before, named := strings.CutPrefix(before, name+": ")
	cause, action = sentence(before), sentence(after)
	return cause, action, marked && named && cause != "" && action != ""
}

// sentence is text in one line, without the full stop at its end.
func sentence(text string) string {
	return strings.TrimSuffix(strings.Join(strings.Fields(text), " "), ".")
}

func isReason(t types.Type) bool { return types.TypeString(t, nil) == reasonType }

// complainf notes a problem with its place: the folder, the file and the line.
func (c *catalog) complainf(at token.Pos, format string, args ...any) {
	position := c.files.Position(at)
	folder, file := filepath.Split(position.Filename)
	c.problems = append(c.problems, fmt.Sprintf("%s/%s:%d: %s", filepath.Base(folder), file, position.Line, fmt.Sprintf(format, args...)))
}
