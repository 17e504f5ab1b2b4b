package packages

import (
	"fmt"
	"slices"
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/spillway-dev/spillway/internal/source"
)

// booleans are the words that YAML 1.1, and so Kubernetes and KUDO, read as true or false
// where they stand without quotes.
var booleans = []string{
	"y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "True", "TRUE",
	"n", "N", "no", "No", "NO", "off", "Off", "OFF", "False", "FALSE",
}

// checkNames refuses names of parameters that are not read as they are written.
func (p *Package) checkNames() error {
	for i := range p.Parameters {
		if err := p.checkName(p.Parameters[i].Name, paramsFile, "parameters", strconv.Itoa(i), "name"); err != nil {
			return err
		}
	}
	for i := range p.Operator.Tasks {
		if err := p.checkName(p.Operator.Tasks[i].Spec.Parameter, operatorFile, "tasks", strconv.Itoa(i), "spec", "parameter"); err != nil {
			return err
		}
	}
	return nil
}

func (p *Package) checkName(name, file string, path ...string) error {
	if !isBoolean(name) {
		return nil
	}
	if e := unquoted(nodeAt(p.files[file], path...)); e != nil {
		return about(fileIn(p.From, file), e)
	}
	return nil
}

func isBoolean(name string) bool { return name == "true" || name == "false" }

// unquoted says in which line a word is that YAML reads as a boolean, nil if it does not.
func unquoted(n *yamlv3.Node) *source.Error {
	if n == nil || n.Kind != yamlv3.ScalarNode || n.Style != 0 || !slices.Contains(booleans, n.Value) {
		return nil
	}
	e := refuse(fmt.Sprintf("write it in quotes: %q", n.Value), "parameter %s: YAML reads the word as a boolean", n.Value)
	e.Line = n.Line
	return e
}

// nodeAt is a field of a file, nil if there is none. An item of a list has its number.
func nodeAt(raw []byte, path ...string) *yamlv3.Node {
	var document yamlv3.Node
	if yamlv3.Unmarshal(raw, &document) != nil || len(document.Content) == 0 {
		return nil
	}
	n := document.Content[0]
	for _, field := range path {
		if n = childOf(n, field); n == nil {
			return nil
		}
	}
	return n
}

func childOf(n *yamlv3.Node, field string) *yamlv3.Node {
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	if i, err := strconv.Atoi(field); err == nil && n.Kind == yamlv3.SequenceNode && i < len(n.Content) {
		return n.Content[i]
	}
	for i := 0; n.Kind == yamlv3.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == field {
			return n.Content[i+1]
		}
	}
	return nil
}
