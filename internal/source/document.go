package source

import (
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Document is one object of a manifest, and where it stands.
type Document struct {
	// File is the path of the file as it was given, or below the directory that was
	// given; [Stdin] for standard input.
	File string
	// Line is the one in which the object begins. The first line of a file is 1.
	Line int
	// Object is what stands there, with no defaults applied.
	Object *unstructured.Unstructured

	node  *yamlv3.Node
	chunk chunk
	// parts are those of a composed document.
	parts []placed
}

// IsComposed reports whether the object is that of a package.
func (d *Document) IsComposed() bool { return len(d.parts) > 0 }

// MistakeAt is an error about a field as Kubernetes writes it: spec.containers[0].image.
func (d *Document) MistakeAt(field, problem, action string) *Error {
	return d.Mistake(problem, action, pathOf(field)...)
}

// Mistake is an error about a field of the object.
func (d *Document) Mistake(problem, action string, path ...string) *Error {
	file, line := d.Where(path...)
	return &Error{File: file, Line: line, Field: joined(path), Problem: problem, Action: action}
}

// LineOf is the line of a field such as "metadata", "annotations", "x", or of the
// nearest of its parents that exists. An item of a list has its number, from "0", and a
// line of a text in lines of its own has its number, from "1".
func (d *Document) LineOf(path ...string) int {
	line, node := d.Line, d.node
	for _, field := range path {
		var at int
		if at, node = child(node, field); node == nil {
			return line
		}
		line = d.chunk.line(at)
	}
	return line
}

// joined is a path as Kubernetes writes it: spec.containers[0].image.
func joined(path []string) string {
	var b strings.Builder
	for _, field := range path {
		switch _, err := strconv.Atoi(field); {
		case err == nil && b.Len() > 0:
			b.WriteString("[" + field + "]")
		case b.Len() > 0:
			b.WriteString("." + field)
		default:
			b.WriteString(field)
		}
	}
	return b.String()
}

// child is a field of a map or an item of a list, and the line in which it begins;
// nil if there is none.
func child(node *yamlv3.Node, field string) (line int, _ *yamlv3.Node) {
	node = resolved(node)
	switch {
	case node == nil:
		return 0, nil
	case node.Kind == yamlv3.SequenceNode:
		return item(node, field)
	case node.Kind == yamlv3.MappingNode:
		return value(node, field)
	case node.Kind == yamlv3.ScalarNode && node.Style == yamlv3.LiteralStyle:
		return lineIn(node, field)
	default:
		return 0, nil
	}
}

// lineIn is a line of a text, from 1.
func lineIn(text *yamlv3.Node, number string) (line int, _ *yamlv3.Node) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return 0, nil
	}
	return text.Line + n, &yamlv3.Node{}
}

func item(list *yamlv3.Node, number string) (line int, _ *yamlv3.Node) {
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(list.Content) {
		return 0, nil
	}
	return list.Content[i].Line, list.Content[i]
}

// value finds a field. Of a map, the content is key after value.
func value(mapping *yamlv3.Node, field string) (line int, _ *yamlv3.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if key := resolved(mapping.Content[i]); key != nil && key.Value == field {
			return mapping.Content[i].Line, mapping.Content[i+1]
		}
	}
	return 0, nil
}

// resolved is what an alias stands for.
func resolved(node *yamlv3.Node) *yamlv3.Node {
	if node != nil && node.Kind == yamlv3.AliasNode {
		return node.Alias
	}
	return node
}

// Part is a field of an object that is written in a file of another format.
type Part struct {
	// Path is the field of the object, At the same in the file; empty for all of it.
	Path, At []string
	File     string
	Text     []byte
	// IsText is true if the file is the value of the field, as it is. A line of it has its
	// number, from "1".
	IsText bool
}

// Compose returns the document of an object whose parts stand in several files. What belongs
// to no part is found in the first line of the first.
func Compose(u *unstructured.Unstructured, parts ...Part) Document {
	d := Document{File: parts[0].File, Line: 1, Object: u}
	for _, part := range parts {
		p := placed{path: part.Path, file: part.File}
		if part.IsText {
			p.node = &yamlv3.Node{Kind: yamlv3.ScalarNode, Style: yamlv3.LiteralStyle}
		}
		var root yamlv3.Node
		if !part.IsText && yamlv3.Unmarshal(part.Text, &root) == nil && len(root.Content) == 1 {
			p.node, p.line = root.Content[0], 1
		}
		for _, field := range part.At {
			if line, node := child(p.node, field); node != nil {
				p.line, p.node = line, node
			}
		}
		d.parts = append(d.parts, p)
	}
	return d
}

// placed is a part, and where it begins.
type placed struct {
	path []string
	file string
	line int
	node *yamlv3.Node
}

// Where is the file and the line of a field, as [Document.LineOf].
func (d *Document) Where(path ...string) (file string, line int) {
	var at *placed
	for i := range d.parts {
		p := &d.parts[i]
		begins := len(path) >= len(p.path) && slices.Equal(path[:len(p.path)], p.path)
		if begins && (at == nil || len(p.path) > len(at.path)) {
			at = p
		}
	}
	if at == nil {
		return d.File, d.LineOf(path...)
	}
	inPart := Document{Line: max(at.line, 1), node: at.node, chunk: chunk{first: 1}}
	return at.file, inPart.LineOf(path[len(at.path):]...)
}
