package catalogue

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"
)

// node is where a value may be: a variable, a field, a parameter or a constant, which
// are [types.Object]s; a [result]; or a [Use], which is an end.
type node any

// result is what a function, or a literal of one, returns in one place.
type result struct {
	of    any
	place int
}

// flow is where values go from each node.
type flow map[node][]node

// flowing finds the flow of one package. A container is one with what is in it, and a
// field is the same in all values of its type.
type flowing struct {
	*sources

	info *types.Info
	flow flow
}

func (f *flowing) add(from []node, to ...node) {
	for _, n := range from {
		f.flow[n] = append(f.flow[n], to...)
	}
}

// visit looks at one node of the syntax tree.
func (f *flowing) visit(n ast.Node, above []ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		f.assign(n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		names := make([]ast.Expr, len(n.Names))
		for i := range n.Names {
			names[i] = n.Names[i]
		}
		f.assign(names, n.Values)
	case *ast.RangeStmt:
		for _, to := range []ast.Expr{n.Key, n.Value} {
			if to != nil {
				f.add(f.nodes(n.X), f.nodes(to)...)
			}
		}
	case *ast.IndexExpr: // a key is in its map
		f.add(f.nodes(n.Index), f.nodes(n.X)...)
	case *ast.CompositeLit:
		f.composite(n)
	case *ast.CallExpr:
		f.call(n)
	case *ast.ReturnStmt:
		f.returns(n, above)
	}
	return true
}

func (f *flowing) assign(to, from []ast.Expr) {
	for i := range to {
		switch {
		case len(from) == len(to):
			f.add(f.nodes(from[i]), f.nodes(to[i])...)
		case len(from) == 1:
			f.add(f.at(from[0], i), f.nodes(to[i])...)
		}
	}
}

// composite brings the fields of a struct their values.
func (f *flowing) composite(n *ast.CompositeLit) {
	shape, ok := types.Unalias(f.info.TypeOf(n)).Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, e := range n.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			f.add(f.nodes(pair.Value), f.nodes(pair.Key)...)
		} else {
			f.add(f.nodes(e), f.target(shape.Field(i)))
		}
	}
}

// call brings the parameters of a function their values. What is called of others
// ends there, in an Event or in the label of a metric if it is that.
func (f *flowing) call(n *ast.CallExpr) {
	callee := typeutil.Callee(f.info, n)
	fn, ok := callee.(*types.Func)
	if !ok {
		return
	}
	if at, use := shows(fn); use != "" {
		for i, arg := range n.Args {
			if at < 0 || at == i {
				f.add(f.nodes(arg), use)
			}
		}
	}
	parameters := fn.Origin().Signature().Params()
	for i, arg := range n.Args {
		if parameters.Len() > 0 {
			f.add(f.nodes(arg), parameters.At(min(i, parameters.Len()-1)))
		}
	}
}

// ringPath is the package by which rings emit Events and show gauges.
const ringPath = "/internal/ring"

// shows tells in which place a function of others takes a reason that it shows, less
// than 0 for all of them.
func shows(fn *types.Func) (place int, use Use) {
	if fn.Pkg() == nil {
		return 0, ""
	}
	switch path, name := fn.Pkg().Path(), fn.Name(); {
	case strings.HasPrefix(path, "k8s.io/client-go/tools/") && name == "Eventf":
		return slices.IndexFunc(slices.Collect(fn.Signature().Params().Variables()), isReasonParameter), UsedInEvent
	case strings.HasSuffix(path, ringPath) && (name == "Normal" || name == "Warning"):
		return slices.IndexFunc(slices.Collect(fn.Signature().Params().Variables()), isReasonParameter), UsedInEvent
	case path == "github.com/prometheus/client_golang/prometheus" && name == "WithLabelValues", strings.HasSuffix(path, ringPath) && name == "SeriesOf":
		return -1, UsedInMetric
	default:
		return 0, ""
	}
}

func isReasonParameter(v *types.Var) bool { return v.Name() == "reason" }

// returns brings the results of the function around a statement their values.
func (f *flowing) returns(n *ast.ReturnStmt, above []ast.Node) {
	fn, signature := f.around(above)
	if fn == nil {
		return
	}
	results := signature.Results()
	for i := range results.Len() {
		to := result{fn, i}
		switch len(n.Results) {
		case results.Len():
			f.add(f.nodes(n.Results[i]), to)
		case 0:
			f.add([]node{results.At(i)}, to)
		default:
			f.add(f.at(n.Results[0], i), to)
		}
	}
}

// around is the function that a statement stands in.
func (f *flowing) around(above []ast.Node) (any, *types.Signature) {
	for _, n := range slices.Backward(above) {
		switch n := n.(type) {
		case *ast.FuncLit:
			signature, _ := f.info.TypeOf(n).(*types.Signature)
			return n, signature
		case *ast.FuncDecl:
			if fn, ok := f.info.Defs[n.Name].(*types.Func); ok {
				return fn, fn.Signature()
			}
		}
	}
	return nil, nil
}

// at is the value of an expression in one place, where it has several.
func (f *flowing) at(e ast.Expr, place int) []node {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return f.nodes(e)
	}
	switch fn := typeutil.Callee(f.info, call).(type) {
	case *types.Func:
		return []node{result{fn.Origin(), place}}
	case *types.Builtin: // append has in it what it was given
		return f.all(call.Args)
	default:
		return nil
	}
}

// nodes are where the value of an expression is.
func (f *flowing) nodes(e ast.Expr) []node {
	switch e := e.(type) {
	case *ast.Ident:
		return f.named(e)
	case *ast.SelectorExpr:
		return f.named(e.Sel)
	case *ast.ParenExpr:
		return f.nodes(e.X)
	case *ast.StarExpr:
		return f.nodes(e.X)
	case *ast.IndexExpr:
		return f.nodes(e.X)
	case *ast.SliceExpr:
		return f.nodes(e.X)
	case *ast.TypeAssertExpr:
		return f.nodes(e.X)
	case *ast.UnaryExpr:
		return f.nodes(e.X)
	case *ast.CompositeLit:
		return f.elements(e)
	case *ast.CallExpr:
		if f.info.Types[e.Fun].IsType() {
			return f.nodes(e.Args[0])
		}
		return f.at(e, 0)
	default:
		return nil
	}
}

func (f *flowing) all(list []ast.Expr) []node {
	var all []node
	for _, e := range list {
		all = append(all, f.nodes(e)...)
	}
	return all
}

// elements are what is in a list or a map; what is in a struct is in its fields.
func (f *flowing) elements(e *ast.CompositeLit) []node {
	if _, ok := f.info.TypeOf(e).Underlying().(*types.Struct); ok {
		return nil
	}
	var all []node
	for _, element := range e.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			all = append(all, f.nodes(pair.Key)...)
			element = pair.Value
		}
		all = append(all, f.nodes(element)...)
	}
	return all
}

func (f *flowing) named(name *ast.Ident) []node {
	object := f.info.ObjectOf(name)
	switch object.(type) {
	case *types.Var, *types.Const:
		return []node{f.target(object)}
	default:
		return nil
	}
}

// target is the node of an object. What shows a reason leads to where it is shown.
func (f *flowing) target(object types.Object) node {
	if use := f.sinks[object]; use != "" && !slices.Contains(f.flow[object], node(use)) {
		f.flow[object] = append(f.flow[object], use)
	}
	return object
}

// usesOf are the ends that a constant flows to.
func (s *sources) usesOf(c types.Object) []Use {
	names := s.namesOf(c)
	reached, queue := map[node]bool{}, make([]node, 0, len(names))
	for _, name := range names {
		queue = append(queue, name)
	}
	flows := s.flowsOf(c, names)
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if reached[n] {
			continue
		}
		reached[n] = true
		for _, f := range flows {
			queue = append(queue, f[n]...)
		}
	}
	return slices.DeleteFunc([]Use{UsedInHold, UsedInCondition, UsedInEvent, UsedInMetric, UsedInChain}, func(u Use) bool { return !reached[u] })
}

// namesOf are a constant and its aliases.
func (s *sources) namesOf(c types.Object) []types.Object {
	names := []types.Object{c}
	for alias, of := range s.aliases {
		if of == c {
			names = append(names, s.namesOf(alias)...)
		}
	}
	return names
}

// flowsOf are the flows of the engine, of the packages that mention one of the names,
// and of what these import of the same ring. What the engine says everybody does.
func (s *sources) flowsOf(c types.Object, names []types.Object) []flow {
	wanted := map[string]bool{enginePath: true}
	for _, name := range names {
		wanted[name.Pkg().Path()] = true
		for _, pkg := range s.mentions[name] {
			wanted[pkg] = true
		}
	}
	var flows []flow
	for _, p := range s.packages {
		if c.Pkg().Path() == enginePath || wanted[p.PkgPath] || slices.ContainsFunc(s.packages, func(by *packages.Package) bool {
			return wanted[by.PkgPath] && by.Imports[p.PkgPath] != nil && ringOf(by.PkgPath) == ringOf(p.PkgPath)
		}) {
			flows = append(flows, s.flows[p.PkgPath])
		}
	}
	return flows
}
