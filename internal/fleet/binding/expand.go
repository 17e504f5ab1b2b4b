package binding

import "strings"

// MaxLength is how many bytes a value may have. It keeps bindings that double each
// other from growing without bounds.
const MaxLength = 64 << 10

// Escape is text that expands to s.
func Escape(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// Names are those that texts refer to.
func Names(texts ...string) map[string]bool {
	names := map[string]bool{}
	for _, text := range texts {
		expand(text, func(name string) string {
			names[name] = true
			return ""
		})
	}
	return names
}

// expand replaces each $(NAME) by what value says, by the rules that Kubernetes
// has for the command of a container. It ends soon after [MaxLength].
func expand(text string, value func(name string) string) string {
	var b strings.Builder
	for {
		if b.Len() > MaxLength {
			return b.String()
		}
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = after
		name, rest, closed := strings.Cut(strings.TrimPrefix(text, "("), ")")
		switch {
		case strings.HasPrefix(text, "$"): // an escape
			b.WriteString("$")
			text = text[1:]
		case strings.HasPrefix(text, "(") && closed:
			b.WriteString(value(name))
			text = rest
		default: // a $ that refers to nothing is only a $
			b.WriteString("$")
		}
	}
}
