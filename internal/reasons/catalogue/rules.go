package catalogue

import (
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// reasonLabel is the label of metrics that is a reason.
const reasonLabel = "reason"

// check finds what breaks the rules.
func (s *sources) check() {
	for _, p := range s.packages {
		c := checker{sources: s, info: p.TypesInfo, labels: map[types.Object]int{}}
		for _, file := range p.Syntax {
			ast.PreorderStack(file, nil, c.findLabels)
		}
		for _, file := range p.Syntax {
			ast.PreorderStack(file, nil, c.visit)
		}
	}
}

// checker checks one package.
type checker struct {
	*sources

	info *types.Info
	// labels are the places of the label "reason" of the metrics that have it.
	labels map[types.Object]int
}

// visit looks at one node of the syntax tree.
func (c *checker) visit(n ast.Node, above []ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			c.stored(c.fieldAt(to), n.Rhs, i, len(n.Lhs))
		}
	case *ast.CompositeLit:
		c.composite(n)
	case *ast.CallExpr:
		c.called(n)
		c.converted(n)
	case *ast.Ident:
		c.metricNamed(n, above)
	}
	if e, ok := n.(ast.Expr); ok {
		c.literal(e, above)
	}
	return true
}

// literal complains of a reason that is not the name of a constant, but where one is
// declared. What is part of a larger expression is complained of once.
func (c *checker) literal(e ast.Expr, above []ast.Node) {
	tv := c.info.Types[e]
	if tv.Value == nil || !c.isReason(tv.Type) || constant.StringVal(tv.Value) == "" {
		return
	}
	if named := namedConstant(c.info, e); named != nil && c.isReason(named.Type()) || c.isPart(above) || isDeclaration(above) {
		return
	}
	c.complainf(e.Pos(), "%s is a reason without a constant; declare it with its cause and its fix", tv.Value)
}

// isPart is true within an expression that is itself a constant reason.
func (c *checker) isPart(above []ast.Node) bool {
	e, ok := above[len(above)-1].(ast.Expr)
	return ok && c.info.Types[e].Value != nil && c.isReason(c.info.TypeOf(e))
}

func isDeclaration(above []ast.Node) bool {
	return slices.ContainsFunc(above, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		return ok && decl.Tok.String() == "const"
	})
}

// converted complains of text that is made a reason, unless it is one that was
// written into a status before and is read back.
func (c *checker) converted(n *ast.CallExpr) {
	if !c.info.Types[n.Fun].IsType() || !c.isReason(c.info.TypeOf(n)) || c.info.Types[n].Value != nil {
		return
	}
	if c.sinks[c.fieldAt(n.Args[0])] == "" && !c.isReason(c.info.TypeOf(n.Args[0])) {
		c.complainf(n.Pos(), "text is made a reason; only what a status says of itself may be read back so")
	}
}

// fieldAt is the field that an expression selects, nil if it is something else.
func (c *checker) fieldAt(e ast.Expr) types.Object {
	selector, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	return c.info.Uses[selector.Sel]
}

// stored checks what goes into a field, if that shows reasons.
func (c *checker) stored(field types.Object, values []ast.Expr, i, n int) {
	switch {
	case c.sinks[field] == "":
	case len(values) == n:
		c.shown(values[i])
	default:
		c.complainf(values[0].Pos(), "a reason is shown that is not seen to be one; assign it by itself")
	}
}

func (c *checker) composite(n *ast.CompositeLit) {
	shape, ok := c.info.TypeOf(n).Underlying().(*types.Struct)
	if !ok {
		c.labelMap(n)
		return
	}
	for i, e := range n.Elts {
		pair, keyed := e.(*ast.KeyValueExpr)
		switch {
		case !keyed:
			c.stored(shape.Field(i), []ast.Expr{e}, 0, 1)
		default:
			if key, ok := pair.Key.(*ast.Ident); ok {
				c.stored(c.info.Uses[key], []ast.Expr{pair.Value}, 0, 1)
			}
		}
	}
}

// labelMap checks the label in a map of the labels of a metric.
func (c *checker) labelMap(n *ast.CompositeLit) {
	if c.info.TypeOf(n).String() != "github.com/prometheus/client_golang/prometheus.Labels" {
		return
	}
	for _, e := range n.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok && c.isLabel(pair.Key) {
			c.shown(pair.Value)
		}
	}
}

// called checks what is shown by a call.
func (c *checker) called(n *ast.CallExpr) {
	fn, ok := typeutil.Callee(c.info, n).(*types.Func)
	if !ok {
		return
	}
	at, use := shows(fn)
	switch {
	case use == UsedInEvent && at < len(n.Args):
		c.shown(n.Args[at])
	case use == UsedInMetric:
		c.labelled(n)
	case fn.Name() == "WithReason" && len(n.Args) == 1: // as in k8s.io/client-go/applyconfigurations
		c.shown(n.Args[0])
	}
}

// labelled checks the label of a metric.
func (c *checker) labelled(n *ast.CallExpr) {
	selector, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	name, ok := selector.X.(*ast.Ident)
	if !ok {
		return
	}
	if place, has := c.labels[c.info.Uses[name]]; has && place < len(n.Args) {
		c.shown(n.Args[place])
	}
}

// shown complains of what is shown as a reason and is none: it has to be of the type,
// a conversion of the type, or what another such field says.
func (c *checker) shown(e ast.Expr) {
	if c.isReason(c.info.TypeOf(e)) || c.sinks[c.fieldAt(e)] != "" {
		return
	}
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && c.info.Types[call.Fun].IsType() && c.isReason(c.info.TypeOf(call.Args[0])) {
		return
	}
	c.complainf(e.Pos(), "%s is shown as a reason, and is not of type rollout.Reason", types.ExprString(e))
}

// findLabels finds the metrics with the label.
func (c *checker) findLabels(n ast.Node, _ []ast.Node) bool {
	spec, ok := n.(*ast.ValueSpec)
	if !ok || len(spec.Names) != len(spec.Values) {
		return true
	}
	for i, value := range spec.Values {
		call, ok := value.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 || !strings.HasPrefix(types.ExprString(call.Fun), "prometheus.New") {
			continue
		}
		if labels, ok := call.Args[1].(*ast.CompositeLit); ok {
			place := slices.IndexFunc(labels.Elts, c.isLabel)
			if place >= 0 {
				c.labels[c.info.Defs[spec.Names[i]]] = place
			}
		}
	}
	return true
}

func (c *checker) isLabel(e ast.Expr) bool {
	value := c.info.Types[e].Value
	return value != nil && constant.StringVal(value) == reasonLabel
}

// metricNamed checks a metric with the label that is handed on together with the
// values of its labels: of those, all that is text has to be reasons.
func (c *checker) metricNamed(name *ast.Ident, above []ast.Node) {
	if _, has := c.labels[c.info.Uses[name]]; !has {
		return
	}
	literal, ok := above[len(above)-1].(*ast.CompositeLit)
	if !ok {
		return
	}
	if _, ok := c.info.TypeOf(literal).Underlying().(*types.Struct); !ok {
		return
	}
	for _, e := range literal.Elts {
		if values, ok := e.(*ast.CompositeLit); ok {
			for _, value := range values.Elts {
				c.shown(value)
			}
		}
	}
}
