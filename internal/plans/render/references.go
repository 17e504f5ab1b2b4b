package render

import (
	"maps"
	"slices"
	"text/template/parse"
)

// References are what a template refers to, executed or not; names are sorted.
type References struct {
	// Params and Pipes are names that must exist, for the plan fails where they do not.
	Params []string `json:"params,omitempty"`
	Pipes  []string `json:"pipes,omitempty"`
	// Lookups are parameters that functions such as index look up, which may be missing.
	Lookups []string `json:"lookups,omitempty"`
	// All is true of a template that may refer to any parameter, as one that ranges over
	// them, or passes all of them to a function.
	All bool `json:"all,omitempty"`
}

// Uses is true if the template may refer to a parameter.
func (r *References) Uses(parameter string) bool {
	return r.All || slices.Contains(r.Params, parameter) || slices.Contains(r.Lookups, parameter)
}

// kind is what the value of a part of a template is, as far as it can be known: the data of
// the template, its parameters, or any other.
type kind int

const (
	other kind = iota
	whole
	params
)

// lookups are the functions that take from a map what strings name.
var lookups = []string{"index", "get", "hasKey", "pick", "pluck", "dig"}

// references are those of a template, and of all that are defined in it.
func references(name, text string) (*References, error) {
	trees, err := parsed(name, text)
	if err != nil {
		return nil, err
	}
	t := &tracer{wholes: map[string]bool{"$": true}, params: map[string]bool{}, pipes: map[string]bool{}, lookups: map[string]bool{}}
	for known := 0; known < len(t.wholes); { // until each variable is known that has all data
		known = len(t.wholes)
		for _, tree := range trees { // what is passed to one that is defined may be all data
			t.walk(tree.Root, whole)
		}
	}
	return &References{Params: sorted(t.params), Pipes: sorted(t.pipes), Lookups: sorted(t.lookups), All: t.all}, nil
}

func sorted(names map[string]bool) []string { return slices.Sorted(maps.Keys(names)) }

// tracer follows the data of a template to what refers to its parameters. In doubt, a
// template refers to all of them.
type tracer struct {
	// wholes are the variables that have all data in some place.
	wholes                 map[string]bool
	params, pipes, lookups map[string]bool
	all                    bool
}

// walk visits a node, with the kind of its dot.
func (t *tracer) walk(n parse.Node, dot kind) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, child := range n.Nodes {
				t.walk(child, dot)
			}
		}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			t.use(n.Pipe, dot)
		} else {
			t.pass(n.Pipe, dot)
		}
	case *parse.TemplateNode:
		t.pass(n.Pipe, dot)
	case *parse.IfNode:
		t.pass(n.Pipe, dot)
		t.branch(&n.BranchNode, dot, dot)
	case *parse.WithNode:
		inner := t.kindOf(n.Pipe, dot)
		if inner != params || len(n.Pipe.Decl) > 0 { // else the dot stands for them
			t.pass(n.Pipe, dot)
		}
		t.branch(&n.BranchNode, dot, inner)
	case *parse.RangeNode:
		t.use(n.Pipe, dot)
		t.branch(&n.BranchNode, dot, other)
	}
}

func (t *tracer) branch(b *parse.BranchNode, dot, inner kind) {
	t.walk(b.List, inner)
	t.walk(b.ElseList, dot)
}

// pass visits a pipe whose value is given to variables, to a template or to a condition:
// all data is not used where it is only passed on.
func (t *tracer) pass(p *parse.PipeNode, dot kind) {
	if p == nil {
		return
	}
	if t.kindOf(p, dot) != whole {
		t.use(p, dot)
		return
	}
	for _, variable := range p.Decl {
		t.wholes[variable.Ident[0]] = true
	}
}

// use visits a part of an expression whose value is used.
func (t *tracer) use(n parse.Node, dot kind) {
	switch n := n.(type) {
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			if !t.looksUp(command, dot) {
				for _, arg := range command.Args {
					t.use(arg, dot)
				}
			}
		}
	case *parse.DotNode:
		t.path(nil, dot)
	case *parse.FieldNode:
		t.path(n.Ident, dot)
	case *parse.VariableNode:
		t.path(n.Ident[1:], t.kindOf(&parse.VariableNode{Ident: n.Ident[:1]}, dot))
	case *parse.ChainNode:
		if from := t.kindOf(n.Node, dot); from != other {
			t.path(n.Field, from)
		} else {
			t.use(n.Node, dot)
		}
	}
}

// looksUp is true of a call of a function that takes from the parameters what strings name.
func (t *tracer) looksUp(command *parse.CommandNode, dot kind) bool {
	function, ok := command.Args[0].(*parse.IdentifierNode)
	if !ok || !slices.Contains(lookups, function.Ident) {
		return false
	}
	var names []string
	var maps int
	for _, arg := range command.Args[1:] {
		if text, isText := arg.(*parse.StringNode); isText {
			names = append(names, text.Text)
		} else if t.kindOf(arg, dot) == params {
			maps++
		}
	}
	if maps != 1 || len(names) == 0 || maps+len(names) != len(command.Args)-1 {
		return false
	}
	for _, name := range names {
		t.lookups[name] = true
	}
	return true
}

// path visits the fields that are taken from a value.
func (t *tracer) path(path []string, from kind) {
	switch {
	case from == params && len(path) > 0:
		t.params[path[0]] = true
	case len(path) > 1 && path[0] == "Params":
		t.params[path[1]] = true
	case len(path) > 1 && path[0] == "Pipes":
		t.pipes[path[1]] = true
	case from != other && len(path) == 0, len(path) == 1 && path[0] == "Params":
		t.all = true
	}
}

// kindOf is what the value of an expression is.
func (t *tracer) kindOf(n parse.Node, dot kind) kind {
	switch n := n.(type) {
	case *parse.PipeNode:
		if n != nil && len(n.Cmds) == 1 && len(n.Cmds[0].Args) == 1 {
			return t.kindOf(n.Cmds[0].Args[0], dot)
		}
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return fieldOf(n.Ident, dot)
	case *parse.ChainNode:
		return fieldOf(n.Field, t.kindOf(n.Node, dot))
	case *parse.VariableNode:
		if t.wholes[n.Ident[0]] {
			return fieldOf(n.Ident[1:], whole)
		}
	}
	return other
}

// fieldOf is what the fields of a value lead to.
func fieldOf(path []string, from kind) kind {
	switch {
	case len(path) == 0:
		return from
	case from == whole && len(path) == 1 && path[0] == "Params":
		return params
	default:
		return other
	}
}
