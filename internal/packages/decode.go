package packages

import (
	"regexp"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/source"
)

// decode reads a file of a package. The error names the line.
func decode(file string, raw []byte, into any) error {
	err := yaml.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	if found := wrongType.FindStringSubmatch(err.Error()); found != nil {
		return mistyped(file, raw, strings.Split(found[2], "."), found[1], found[3])
	}
	line, problem := source.Locate(err)
	return &source.Error{File: file, Line: line, Problem: "invalid YAML: " + problem, Action: "fix the text there"}
}

// wrongType is how the decoder names a field whose value is of another type.
var wrongType = regexp.MustCompile(`cannot unmarshal (\w+).* into Go struct field \w+\.(\S+) of type (\S+)$`)

// mistyped says which field has a value of another type.
func mistyped(file string, raw []byte, path []string, is, want string) error {
	e := &source.Error{File: file, Problem: strings.Join(path, ".") + " is " + named(is), Action: "it must be " + wanted(want)}
	var document yamlv3.Node
	if yamlv3.Unmarshal(raw, &document) == nil && len(document.Content) > 0 {
		e.Line = lineOf(document.Content[0], path, is)
	}
	return e
}

// lineOf is the line of the first value at a path that is of a type of JSON, 0 if there is
// none. A path does not say which item of a list it leads through.
func lineOf(n *yamlv3.Node, path []string, is string) int {
	switch {
	case n.Kind == yamlv3.SequenceNode && (len(path) > 0 || is != "array"):
		for _, item := range n.Content {
			if line := lineOf(item, path, is); line > 0 {
				return line
			}
		}
	case len(path) == 0 && typeOf(n) == is:
		return n.Line
	case len(path) > 0 && n.Kind == yamlv3.MappingNode:
		return lineBelow(n, path, is)
	}
	return 0
}

// lineBelow is [lineOf] of a map. A path says nothing of the names of what may have any name,
// as plans do.
func lineBelow(n *yamlv3.Node, path []string, is string) int {
	for i := 0; i+1 < len(n.Content); i += 2 {
		below := path
		if n.Content[i].Value == path[0] {
			below = path[1:]
		}
		if line := lineOf(n.Content[i+1], below, is); line > 0 {
			return line
		}
	}
	return 0
}

// typeOf is the type that a value has in JSON, as the decoder names it.
func typeOf(n *yamlv3.Node) string {
	switch {
	case n.Kind == yamlv3.SequenceNode:
		return "array"
	case n.Kind == yamlv3.MappingNode:
		return "object"
	case n.Tag == "!!bool":
		return "bool"
	case n.Tag == "!!int", n.Tag == "!!float":
		return "number"
	default:
		return "string"
	}
}

// named is a type of JSON in words.
func named(is string) string {
	switch is {
	case "array":
		return "a list"
	case "object":
		return "a map"
	case "bool":
		return "true or false"
	default:
		return "a " + is
	}
}

// wanted is a type of Go in words.
func wanted(want string) string {
	switch {
	case strings.HasPrefix(want, "[]"):
		return "a list"
	case want == "bool":
		return "true or false"
	case want == "string":
		return "a string"
	case strings.HasPrefix(want, "int"):
		return "a whole number"
	default:
		return "a map"
	}
}
