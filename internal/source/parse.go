package source

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// parse reads the documents of one file, and the mistakes in it. Of a file that was not
// named, what is no manifest is left out.
func (r *reader) parse(file string, raw []byte) ([]Document, []error) {
	p := parser{file: file, skips: r.walking && r.Skip != nil}
	for _, c := range split(raw) {
		p.chunk(c)
	}
	if p.broken && p.skips && isOther(raw) {
		p.errs = nil
	}
	if p.skips && len(p.documents) == 0 && len(p.errs) == 0 {
		r.Skip(Skipped{Path: file, Why: "a file without manifests"})
	}
	return p.documents, p.errs
}

type parser struct {
	file string
	// skips is true if what is no object is left out, broken if something is no YAML.
	skips, broken bool
	documents     []Document
	errs          []error
}

// chunk reads one document twice: for where things stand, and for what they mean to
// Kubernetes, which reads an older YAML.
func (p *parser) chunk(c chunk) {
	root, ok := p.node(c)
	if !ok {
		return
	}
	raw, err := yaml.YAMLToJSONStrict(c.text)
	if err != nil {
		p.noYAML(c, err)
		return
	}
	if bytes.Equal(raw, []byte("null")) {
		return
	}
	u := &unstructured.Unstructured{}
	err = json.Unmarshal(raw, &u.Object)
	switch {
	case p.skips && (err != nil || isNoObject(u)):
		return
	case err != nil:
		p.fail(c.line(root.Line), "is not a Kubernetes object", fixObject)
		return
	}
	p.object(Document{File: p.file, Line: c.line(root.Line), Object: u, node: root, chunk: c})
}

// object takes a list apart, and checks what is to be an object.
func (p *parser) object(d Document) {
	if !d.Object.IsList() {
		if p.checked(&d) {
			p.documents = append(p.documents, d)
		}
		return
	}
	items, _ := d.Object.Object["items"].([]any)
	for i, item := range items {
		node := itemNode(d.node, i)
		fields, ok := item.(map[string]any)
		if node == nil || !ok {
			p.fail(d.Line, "has an item that is not a Kubernetes object", fixObject)
			continue
		}
		u := &unstructured.Unstructured{Object: fields}
		inherit(u, d.Object)
		p.object(Document{File: d.File, Line: d.chunk.line(node.Line), Object: u, node: node, chunk: d.chunk})
	}
}

func itemNode(list *yamlv3.Node, i int) *yamlv3.Node {
	_, items := child(list, "items")
	_, node := child(items, strconv.Itoa(i))
	return node
}

// node reads where things stand; it is not ok if there is nothing, or a mistake.
func (p *parser) node(c chunk) (*yamlv3.Node, bool) {
	var document, second yamlv3.Node
	decoder := yamlv3.NewDecoder(bytes.NewReader(c.text))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, false
	} else if err != nil {
		p.noYAML(c, err)
		return nil, false
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		p.broken = true
		p.fail(max(c.first, c.line(second.Line)), "another document begins without a line of its own", "put three dashes, ---, alone on a line before it")
		return nil, false
	}
	if len(document.Content) == 0 {
		return nil, false
	}
	return document.Content[0], true
}

func (p *parser) noYAML(c chunk, err error) {
	p.broken = true
	line, problem := c.located(err)
	if strings.HasPrefix(problem, `key "apiVersion" already set`) || strings.HasPrefix(problem, `key "kind" already set`) {
		p.fail(line, "another object begins without a separator", "put three dashes, ---, alone on a line before it")
		return
	}
	p.fail(line, "invalid YAML: "+problem, "fix the text there")
}

func (p *parser) fail(line int, problem, action string) {
	p.errs = append(p.errs, &Error{File: p.file, Line: line, Problem: problem, Action: action})
}

// inherit gives an item the kind that the list of it says: the items of a PodList
// that an API server has returned do not.
func inherit(item, list *unstructured.Unstructured) {
	kind, typed := strings.CutSuffix(list.GetKind(), "List")
	if item.GetKind() == "" && typed && kind != "" {
		item.SetKind(kind)
		item.SetAPIVersion(list.GetAPIVersion())
	}
}

// checked is true of an object that says what it is, and that can be read as one.
func (p *parser) checked(d *Document) bool {
	m, found := mistakeIn(d.Object)
	if found {
		p.errs = append(p.errs, d.Mistake(m.problem, m.action, m.path...))
	}
	return !found
}

const (
	fixObject = "give it apiVersion, kind and metadata.name, or leave the file out"
	fixText   = "put the value in quotes"
	fixMap    = "write it as a map of names to values"
)

// mistake is what keeps an object from being read as one.
type mistake struct {
	path            []string
	problem, action string
}

// identity is what says which object an object is.
var identity = [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}}

// mistakeIn is the first mistake in what every object has to have, and in what is
// read as a map of text later on, also of Pod templates.
func mistakeIn(u *unstructured.Unstructured) (mistake, bool) {
	if m, found := noMap(u, "metadata"); found {
		return m, true
	}
	for _, path := range identity {
		if m, found := noName(u, path); found {
			return m, true
		}
	}
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		for _, field := range []string{"labels", "annotations"} {
			if m, found := noTexts(u, append(slices.Clone(path), field)); found {
				return m, true
			}
		}
	}
	return mistake{}, false
}

// noName finds what is not said, or is no text. An object whose name is to be
// generated has none yet.
func noName(u *unstructured.Unstructured, path []string) (mistake, bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	text, isText := value.(string)
	field := strings.Join(path, ".")
	switch {
	case value != nil && !isText:
		return mistake{path, field + " is not a string", fixText}, true
	case text == "" && (field != "metadata.name" || u.GetGenerateName() == ""):
		return mistake{path, "has no " + field, fixObject}, true
	default:
		return mistake{}, false
	}
}

// noTexts finds values of labels or annotations that YAML takes for something else.
func noTexts(u *unstructured.Unstructured, path []string) (mistake, bool) {
	if m, found := noMap(u, path...); found {
		return m, true
	}
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	values, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if _, isText := values[key].(string); !isText {
			return mistake{append(path, key), strings.Join(path, ".") + ": the value of " + key + " is not a string", fixText}, true
		}
	}
	return mistake{}, false
}

func noMap(u *unstructured.Unstructured, path ...string) (mistake, bool) {
	value, _, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	_, isMap := value.(map[string]any)
	if err != nil || value == nil || isMap {
		return mistake{}, false
	}
	return mistake{path, strings.Join(path, ".") + " is not a map", fixMap}, true
}
