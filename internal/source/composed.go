package source

import (
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

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
