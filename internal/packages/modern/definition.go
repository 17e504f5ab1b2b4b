package modern

import (
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/spillway-dev/spillway/internal/packages/lines"
)

// definition moves what apiextensions/v1 has for each version into the versions: the
// schema, the subresources and the columns.
func (o *edit) definition() {
	key, spec := pair(o.place.node, "spec")
	if !isBlock(spec) {
		o.manual(o.place.version, "spec is not in lines of its own: write spec.versions with a schema for each version, as apiextensions.k8s.io/v1 wants it")
		return
	}
	if from, to := o.rangeOf(key, spec); o.hasActions(from, to) {
		o.manual(key, "spec depends on actions of the template: write spec.versions with a schema for each version, as apiextensions.k8s.io/v1 wants it")
		return
	}
	o.approve(field(spec, "group"))
	version, versions := field(spec, "version"), field(spec, "versions")
	switch {
	case versions != nil && !isBlock(versions), version == nil && versions == nil:
		o.manual(key, "spec.versions is not a list in lines of its own: write it so, with a schema for each version")
	case versions != nil:
		o.versions(spec, versions)
		if version != nil {
			o.cut(spec, "version")
		}
	default:
		o.version(spec, version)
	}
}

// approval is an annotation without which no API server takes a definition of a group of the
// Kubernetes community from apiextensions/v1 on.
const approval = "api-approved.kubernetes.io"

// approve adds that annotation where it is missing: the definition was not approved, and says so.
func (o *edit) approve(group *yamlv3.Node) {
	if group == nil || !strings.HasSuffix("."+group.Value, ".k8s.io") && !strings.HasSuffix("."+group.Value, ".kubernetes.io") {
		return
	}
	const line = approval + `: "unapproved, as with apiextensions.k8s.io/v1beta1"`
	what := "annotation " + approval + " is added: group " + group.Value + " is protected"
	key, metadata := pair(o.place.node, "metadata")
	annotations, existing := pair(metadata, "annotations")
	switch {
	case field(existing, approval) != nil:
	case isBlock(existing):
		o.addAfter(o.line(annotations), spaces(existing.Column-1)+line)
		o.note(key, what, false)
	case existing == nil && isBlock(metadata):
		o.addAfter(o.line(key), spaces(metadata.Column-1)+"annotations:", spaces(metadata.Column+1)+line)
		o.note(key, what, false)
	default:
		o.manual(group, "group "+group.Value+" is protected: add the annotation "+line)
	}
}

// version writes the list of versions where only one was named.
func (o *edit) version(spec, version *yamlv3.Node) {
	key, _ := pair(spec, "version")
	column := key.Column - 1
	more := o.perVersion(spec, nil, column+2)
	line := o.line(key)
	o.addBefore(line, append([]string{
		spaces(column) + "versions:",
		spaces(column) + "- name: " + strings.TrimSpace(string([]rune(o.page.lines[line])[version.Column-1:])),
		spaces(column) + "  served: true",
		spaces(column) + "  storage: true",
	}, more...)...)
	o.remove(line, line+1)
	o.note(key, "spec.version becomes a list of versions", false)
}

// versions adds to each version what it has of its own from now on.
func (o *edit) versions(spec, versions *yamlv3.Node) {
	for _, item := range versions.Content {
		if !isBlock(item) {
			o.manual(item, "the version is not in lines of its own: write it so, with a schema")
			return
		}
		column := item.Column - 1
		if more := o.perVersion(spec, item, column); len(more) > 0 {
			last := lines.End(o.page.masked, o.line(item), column-1, false) - 1
			o.addAfter(last, more...)
		}
	}
}

// perVersion are the lines that a version gets, at a column.
func (o *edit) perVersion(spec, item *yamlv3.Node, column int) []string {
	var lines []string
	if field(item, "schema") == nil {
		lines = append(lines, o.schema(spec, column)...)
	}
	for _, name := range []string{"subresources", "additionalPrinterColumns"} {
		key, value := pair(spec, name)
		if key == nil {
			continue
		}
		from, to := o.rangeOf(key, value)
		for _, line := range o.indented(from, to, column-(key.Column-1)) {
			lines = append(lines, strings.Replace(line, "JSONPath:", "jsonPath:", 1))
		}
		o.cutOnce(key, value, "spec."+name+" moves into each version")
	}
	return lines
}

// schema are the lines of the schema of a version. What it does not mention was kept by
// apiextensions/v1beta1 unless that was switched off, and is kept.
func (o *edit) schema(spec *yamlv3.Node, column int) []string {
	keeps := true
	if key, preserve := pair(spec, "preserveUnknownFields"); preserve != nil {
		if keeps = preserve.Value != "false"; keeps {
			o.cutOnce(key, preserve, "spec.preserveUnknownFields moves into the schema")
		}
	}
	lines := []string{spaces(column) + "schema:", spaces(column+2) + "openAPIV3Schema:"}
	validation, value := pair(spec, "validation")
	root := field(value, "openAPIV3Schema")
	if field(root, "type") == nil {
		lines = append(lines, spaces(column+4)+"type: object")
	}
	if keeps && field(root, "x-kubernetes-preserve-unknown-fields") == nil {
		lines = append(lines, spaces(column+4)+"x-kubernetes-preserve-unknown-fields: true")
	}
	if validation == nil {
		o.noteOnce(o.place.version, "a schema is added that keeps all fields")
		return lines
	}
	if root == nil || !isBlock(root) {
		o.manual(validation, "the schema is not in lines of its own: move it into each version, as schema.openAPIV3Schema")
		return nil
	}
	key, _ := pair(value, "openAPIV3Schema")
	from, to := o.rangeOf(key, root)
	lines = append(lines, o.typed(root, from+1, to, column+4-(root.Column-1))...)
	o.cutOnce(validation, value, "spec.validation becomes the schema of each version")
	return lines
}

// typed are the lines of a schema, with the types that apiextensions/v1 wants for each
// level.
func (o *edit) typed(root *yamlv3.Node, from, to, by int) []string {
	missing := map[int]string{}
	for _, child := range content(root) {
		o.untyped(child, missing)
	}
	var lines []string
	for i := from; i < to; i++ {
		if text, ok := missing[i]; ok {
			lines = append(lines, shifted(text, by))
		}
		lines = append(lines, shifted(o.page.lines[i], by))
	}
	return lines
}

// untyped finds the schemas without a type, by their first line.
func (o *edit) untyped(schema *yamlv3.Node, missing map[int]string) {
	if schema.Kind == yamlv3.MappingNode && field(schema, "type") == nil {
		kind := ""
		switch {
		case field(schema, "properties") != nil, field(schema, "additionalProperties") != nil:
			kind = "object"
		case field(schema, "items") != nil:
			kind = "array"
		}
		switch {
		case kind != "" && isBlock(schema):
			missing[o.line(schema)] = spaces(schema.Column-1) + "type: " + kind
		case field(schema, "x-kubernetes-int-or-string") == nil && field(schema, "x-kubernetes-preserve-unknown-fields") == nil && field(schema, "$ref") == nil:
			o.manual(schema, "a part of the schema has no type: add it")
		}
	}
	for _, child := range content(schema) {
		o.untyped(child, missing)
	}
}

// content are the schemas of the properties and the items of a schema.
func content(schema *yamlv3.Node) []*yamlv3.Node {
	var all []*yamlv3.Node
	if properties := field(schema, "properties"); properties != nil {
		for i := 1; i < len(properties.Content); i += 2 {
			all = append(all, properties.Content[i])
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if child := field(schema, name); child != nil && child.Kind == yamlv3.MappingNode {
			all = append(all, child)
		}
	}
	return all
}

// cut removes a field.
func (o *edit) cut(of *yamlv3.Node, name string) {
	if key, value := pair(of, name); key != nil {
		o.remove(o.rangeOf(key, value))
	}
}

// cutOnce removes a field that several versions get, and says so once.
func (o *edit) cutOnce(key, value *yamlv3.Node, what string) {
	o.remove(o.rangeOf(key, value))
	o.noteOnce(key, what)
}

func (o *edit) noteOnce(node *yamlv3.Node, what string) {
	if !slices.ContainsFunc(o.changes, func(c Change) bool { return c.What == what }) {
		o.note(node, what, false)
	}
}
