package modern

import (
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/spillway-dev/spillway/internal/packages/lines"
)

// edit is what is to become of one object. It is applied as a whole.
type edit struct {
	page         *page
	offset       int
	place        *place
	replacements []replacement
	// removed are lines that go away, before and after what is added at lines.
	removed       map[int]bool
	before, after map[int][]string
	changes       []Change
}

// line is where a node stands, from 0.
func (o *edit) line(node *yamlv3.Node) int { return o.offset + node.Line - 1 }

func (o *edit) note(node *yamlv3.Node, what string, manual bool) {
	o.changes = append(o.changes, Change{Line: o.line(node) + 1, Object: o.place.kind.Value, What: what, Manual: manual})
}

// manual names what a person must do. Nothing of the object is changed then.
func (o *edit) manual(node *yamlv3.Node, what string) { o.note(node, what, true) }

// replace writes another text for a scalar.
func (o *edit) replace(node *yamlv3.Node, to, what string) {
	column := node.Column - 1
	if node.Style == yamlv3.DoubleQuotedStyle || node.Style == yamlv3.SingleQuotedStyle {
		column++
	}
	o.replacements = append(o.replacements, replacement{line: o.line(node), column: column, from: node.Value, to: to})
	if what != "" {
		o.note(node, what, false)
	}
}

func (o *edit) remove(from, to int) {
	if o.removed == nil {
		o.removed = map[int]bool{}
	}
	for i := from; i < to; i++ {
		o.removed[i] = true
	}
}

func (o *edit) addBefore(line int, text ...string) {
	if o.before == nil {
		o.before = map[int][]string{}
	}
	o.before[line] = append(o.before[line], o.ended(text)...)
}

func (o *edit) addAfter(line int, text ...string) {
	if o.after == nil {
		o.after = map[int][]string{}
	}
	if !strings.HasSuffix(o.page.lines[line], "\n") { // the last line of the template
		o.after[line] = append(o.after[line], o.newline())
		text[len(text)-1] = strings.TrimRight(text[len(text)-1], "\r\n")
		o.after[line] = append(o.after[line], o.ended(text[:len(text)-1])...)
		o.after[line] = append(o.after[line], text[len(text)-1])
		return
	}
	o.after[line] = append(o.after[line], o.ended(text)...)
}

func (o *edit) newline() string {
	if strings.HasSuffix(o.page.lines[0], "\r\n") {
		return "\r\n"
	}
	return "\n"
}

func (o *edit) ended(text []string) []string {
	all := make([]string, len(text))
	for i, line := range text {
		all[i] = strings.TrimRight(line, "\r\n") + o.newline()
	}
	return all
}

// isBlock is true of a map or a list in lines of its own.
func isBlock(node *yamlv3.Node) bool {
	return node != nil && node.Style&yamlv3.FlowStyle == 0 && (node.Kind == yamlv3.MappingNode || node.Kind == yamlv3.SequenceNode) && len(node.Content) > 0
}

// rangeOf are the lines of a field.
func (o *edit) rangeOf(key, value *yamlv3.Node) (from, to int) {
	from = o.line(key)
	return from, lines.End(o.page.masked, from, key.Column-1, value.Kind == yamlv3.SequenceNode)
}

// hasActions is true if lines have some that are only actions, whose effect is not known.
func (o *edit) hasActions(from, to int) bool {
	for i := from; i < to; i++ {
		if strings.HasPrefix(strings.TrimSpace(o.page.lines[i]), "{{") && strings.HasPrefix(strings.TrimSpace(o.page.masked[i]), "#") {
			return true
		}
	}
	return false
}

// indented are lines with another indentation.
func (o *edit) indented(from, to, by int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, shifted(o.page.lines[i], by))
	}
	return all
}

func shifted(line string, by int) string {
	if strings.TrimSpace(line) == "" {
		return line
	}
	if by >= 0 {
		return strings.Repeat(" ", by) + line
	}
	return strings.Repeat(" ", max(len(line)-len(strings.TrimLeft(line, " "))+by, 0)) + strings.TrimLeft(line, " ")
}

func spaces(n int) string { return strings.Repeat(" ", n) }
