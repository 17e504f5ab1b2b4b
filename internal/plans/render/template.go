package render

import (
	"errors"
	"fmt"
	"io"
	"maps"
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

// execute renders a template in this process. Nothing ends it but its own end.
func execute(name, text string, c *Context) (string, error) {
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

// data is what the template sees. It can change the maps: they are those of one request.
func (c *Context) data() map[string]any {
	pipes := map[string]any{}
	for k, v := range c.Pipes {
		pipes[k] = v
	}
	return map[string]any{
		"Name": c.Name, "Namespace": c.Namespace, "OperatorName": c.OperatorName, "OperatorVersion": c.OperatorVersion,
		"AppVersion": c.AppVersion, "PlanName": c.PlanName, "PhaseName": c.PhaseName, "StepName": c.StepName,
		"Params": map[string]any(c.Params), "Pipes": pipes,
	}
}

// compile makes a template that knows the functions that it names, and no others.
func compile(name, text string) (*template.Template, error) {
	named, err := names(name, text)
	if err != nil {
		return nil, fmt.Errorf("template %s cannot be parsed: %w", name, err)
	}
	known := template.FuncMap{}
	var errs []error
	for _, f := range named {
		if _, isRefused := refusals()[f]; isRefused {
			errs = append(errs, fmt.Errorf("template %s: %w", name, refusal(f)))
		} else if function, ok := functions()[f]; ok {
			known[f] = function
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(known).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("template %s cannot be parsed: %w", name, err)
	}
	return t, nil
}

// names are the functions that a template names, in it and in all that are
// defined in it, executed or not; sorted.
func names(name, text string) ([]string, error) {
	trees, err := parsed(name, text)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, tree := range trees {
		walk(tree.Root, func(function *parse.IdentifierNode) { found[function.Ident] = true })
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// parsed are a template and all that are defined in it.
func parsed(name, text string) (map[string]*parse.Tree, error) {
	root := parse.New(name)
	root.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	_, err := root.Parse(text, "", "", trees)
	return trees, err //nolint:wrapcheck // the caller says which template
}

// walk visits the functions that a tree names.
func walk(n parse.Node, visit func(*parse.IdentifierNode)) {
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
		visit(n)
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

func walkBranch(b *parse.BranchNode, visit func(*parse.IdentifierNode)) {
	walk(b.Pipe, visit)
	walk(b.List, visit)
	walk(b.ElseList, visit)
}

func each[N parse.Node](nodes []N, visit func(*parse.IdentifierNode)) {
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
