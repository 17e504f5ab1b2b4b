package render

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	// maxOutput is how long the result of a template may be. An object in etcd is
	// at most half as long.
	maxOutput = 3 << 20
	maxRange  = 100_000
	maxIndent = 1_000
)

// Context is what a template can refer to.
type Context struct {
	// Name and Namespace are the Instance's.
	Name, Namespace string
	// OperatorName, OperatorVersion and AppVersion are those of the package.
	OperatorName, OperatorVersion, AppVersion string
	// PlanName, PhaseName and StepName are where the task stands.
	PlanName, PhaseName, StepName string
	// Params are the parameters, Pipes the names of what Pipes have kept.
	Params map[string]any
	Pipes  map[string]string
}

// data is what the template sees: maps of its own, since it can change them.
func (c *Context) data() map[string]any {
	pipes := map[string]any{}
	for k, v := range c.Pipes {
		pipes[k] = v
	}
	params, _ := deepCopy(c.Params).(map[string]any)
	return map[string]any{
		"Name": c.Name, "Namespace": c.Namespace, "OperatorName": c.OperatorName, "OperatorVersion": c.OperatorVersion,
		"AppVersion": c.AppVersion, "PlanName": c.PlanName, "PhaseName": c.PhaseName, "StepName": c.StepName,
		"Params": params, "Pipes": pipes,
	}
}

func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			m[k] = deepCopy(e)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = deepCopy(e)
		}
		return list
	default:
		return v
	}
}

// Render executes a template. The name is that of its file, for errors.
func Render(name, text string, c Context) (string, error) {
	t, err := compile(name, text)
	if err != nil {
		return "", err
	}
	out := &bounded{}
	if err := t.Execute(out, c.data()); err != nil {
		return "", fmt.Errorf("template %s cannot be rendered: %w", name, err)
	}
	return out.String(), nil
}

// Verify finds what is wrong with a template without executing it: that it
// cannot be parsed, or names a function that is refused.
func Verify(name, text string) error {
	_, err := compile(name, text)
	return err
}

func compile(name, text string) (*template.Template, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(functions()).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("template %s cannot be parsed: %w", name, err)
	}
	if err := verify(t); err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	return t, nil
}

// verify looks for functions that are refused, in this template and in all that
// are defined in it, executed or not.
func verify(t *template.Template) error {
	var names []string
	for _, each := range t.Templates() {
		if each.Tree != nil {
			walk(each.Root, func(name string) { names = append(names, name) })
		}
	}
	var errs []error
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if _, isRefused := refusals()[name]; isRefused {
			errs = append(errs, refusal(name))
		}
	}
	return errors.Join(errs...)
}

// walk visits the functions that are named anywhere in a tree.
func walk(n parse.Node, visit func(name string)) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			each(n.Nodes, visit)
		}
	case *parse.ActionNode:
		walk(n.Pipe, visit)
	case *parse.PipeNode:
		if n != nil {
			each(n.Cmds, visit)
		}
	case *parse.CommandNode:
		each(n.Args, visit)
	case *parse.ChainNode:
		walk(n.Node, visit)
	case *parse.IdentifierNode:
		visit(n.Ident)
	case *parse.IfNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.RangeNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.WithNode:
		walkBranch(&n.BranchNode, visit)
	case *parse.TemplateNode:
		walk(n.Pipe, visit)
	}
}

func walkBranch(b *parse.BranchNode, visit func(string)) {
	walk(b.Pipe, visit)
	walk(b.List, visit)
	walk(b.ElseList, visit)
}

func each[N parse.Node](nodes []N, visit func(string)) {
	for _, n := range nodes {
		walk(n, visit)
	}
}

// bounded is output that cannot grow for ever.
type bounded struct{ strings.Builder }

var _ io.Writer = &bounded{}

// Write refuses what is too much.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		return 0, fmt.Errorf("the result is longer than %d bytes", maxOutput)
	}
	n, err := b.Builder.Write(p)
	if err != nil {
		return n, fmt.Errorf("write: %w", err)
	}
	return n, nil
}
