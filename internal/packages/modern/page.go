package modern

import (
	"cmp"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// page is the text of a template, and what becomes of its lines.
type page struct {
	// lines are the template, and masked the same without actions.
	lines, masked []string
	// now are the lines that each line becomes.
	now     [][]string
	changes []Change
}

func newPage(text string) *page {
	p := &page{lines: strings.SplitAfter(text, "\n"), masked: strings.SplitAfter(masked(text), "\n")}
	for _, line := range p.lines {
		p.now = append(p.now, []string{line})
	}
	return p
}

func (p *page) text() string {
	var b strings.Builder
	for _, lines := range p.now {
		for _, line := range lines {
			b.WriteString(line)
		}
	}
	return b.String()
}

// masked is a template with a letter for each letter of an action, so that all else is
// where it was. A line that has nothing but actions becomes a comment.
func masked(text string) string {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		out.WriteString(maskedLine([]rune(line), &inside))
	}
	return out.String()
}

// maskedLine masks a line; inside is whether an action has begun and not ended yet.
func maskedLine(line []rune, inside *bool) string {
	mask, first, alone := make([]rune, len(line)), -1, true
	for i, r := range line {
		*inside = *inside || isPair(line, i, '{')
		switch {
		case r == '\n' || r == '\r':
		case *inside:
			r = 'x'
			if first < 0 {
				first = i
			}
		case r != ' ':
			alone = false
		}
		mask[i] = r
		*inside = *inside && !isPair(line, i-1, '}')
	}
	if alone && first >= 0 {
		mask[first] = '#'
	}
	return string(mask)
}

func isPair(runes []rune, i int, r rune) bool {
	return i >= 0 && i+1 < len(runes) && runes[i] == r && runes[i+1] == r
}

// document is one YAML document of a template, and the number of lines before it.
type document struct {
	root   *yamlv3.Node
	offset int
}

// documents are those that can be parsed.
func (p *page) documents() []document {
	var all []document
	begin := 0
	end := func(at int) {
		var root yamlv3.Node
		if yamlv3.Unmarshal([]byte(strings.Join(p.masked[begin:at], "")), &root) == nil && root.Kind != 0 {
			all = append(all, document{&root, begin})
		}
		begin = at + 1
	}
	for i, line := range p.masked {
		if strings.HasPrefix(line, "---") {
			end(i)
		}
	}
	end(len(p.masked))
	return all
}

// field is the value of a field of a map, nil if there is none.
func field(node *yamlv3.Node, path ...string) *yamlv3.Node {
	for _, name := range path {
		_, node = pair(node, name)
	}
	return node
}

func pair(node *yamlv3.Node, name string) (key, value *yamlv3.Node) {
	if node == nil || node.Kind != yamlv3.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

// replacement is a text in a line that becomes another.
type replacement struct {
	line, column int
	from, to     string
}

// apply makes the changes of an object, or names what a person must do.
func (p *page) apply(o *edit) {
	for _, r := range o.replacements {
		if runes := []rune(p.lines[r.line]); !strings.HasPrefix(string(runes[min(r.column, len(runes)):]), r.from) {
			o.manual(o.place.version, "the text is made by the template")
			break
		}
	}
	if slices.ContainsFunc(o.changes, func(c Change) bool { return c.Manual }) {
		p.changes = append(p.changes, slices.DeleteFunc(o.changes, func(c Change) bool { return !c.Manual })...)
		return
	}
	slices.SortFunc(o.replacements, func(a, b replacement) int { return cmp.Or(b.line-a.line, b.column-a.column) })
	for _, r := range o.replacements {
		runes := []rune(p.now[r.line][0])
		rest := strings.TrimPrefix(string(runes[r.column:]), r.from)
		p.now[r.line][0] = string(runes[:r.column]) + r.to + rest
	}
	for line := range o.removed {
		p.now[line][0] = ""
	}
	for line, added := range o.before {
		p.now[line] = append(slices.Clone(added), p.now[line]...)
	}
	for line, added := range o.after {
		p.now[line] = append(p.now[line], added...)
	}
	p.changes = append(p.changes, o.changes...)
}
