package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// variant is what something is in one assignment.
type variant struct {
	in    assignment
	value any
}

// emitter writes the template of one object: what all assignments have in common as it is,
// and the rest under conditions.
type emitter struct {
	all  []option
	out  *bytes.Buffer
	used map[string]bool
	// of is the name of the object.
	of string
}

func (e *emitter) linef(indent int, format string, args ...any) {
	fmt.Fprintf(e.out, strings.Repeat(" ", indent)+format+"\n", args...)
}

// when writes something under a condition, if it is not in all variants.
func (e *emitter) when(among, in []variant, write func()) {
	condition := e.condition(among, in)
	if condition != "" {
		e.linef(0, "{{- if %s }}", bare(condition))
	}
	write()
	if condition != "" {
		e.linef(0, "{{- end }}")
	}
}

// bare takes the outer parentheses off, which the language of templates does not need.
func bare(condition string) string {
	if inner, ok := strings.CutPrefix(condition, "("); ok {
		return strings.TrimSuffix(inner, ")")
	}
	return condition
}

func (e *emitter) condition(among, in []variant) string {
	has := map[string]bool{}
	var inside, outside []assignment
	for _, v := range in {
		has[string(v.in)] = true
		inside = append(inside, v.in)
	}
	for _, v := range among {
		if !has[string(v.in)] {
			outside = append(outside, v.in)
		}
	}
	c := condition(e.all, inside, outside)
	for _, o := range e.all {
		if regexp.MustCompile(`\$` + o.name + `\b`).MatchString(c) {
			e.used[o.name] = true
		}
	}
	return c
}

// value writes a value behind a lead, which is the key of a field or the dash of an
// element.
func (e *emitter) value(variants []variant, lead string, indent int) error {
	groups := grouped(variants)
	if len(groups) == 1 {
		return e.same(groups[0], lead, indent)
	}
	rest := variants
	for i, group := range groups {
		switch c := e.condition(rest, group); {
		case i == 0:
			e.linef(0, "{{- if %s }}", bare(c))
		case c == "":
			e.linef(0, "{{- else }}")
		default:
			e.linef(0, "{{- else if %s }}", bare(c))
		}
		if err := e.same(group, lead, indent); err != nil {
			return err
		}
		rest = without(rest, group)
	}
	e.linef(0, "{{- end }}")
	return nil
}

func without(all, some []variant) []variant {
	return slices.DeleteFunc(slices.Clone(all), func(v variant) bool {
		return slices.ContainsFunc(some, func(s variant) bool { return bytes.Equal(v.in, s.in) })
	})
}

// grouped are variants that can be written as one: maps, lists, or equal values.
func grouped(variants []variant) [][]variant {
	var order []string
	groups := map[string][]variant{}
	for _, v := range variants {
		key := text(v.value)
		switch value := v.value.(type) {
		case map[string]any:
			if len(value) > 0 {
				key = "map"
			}
			if prefix, ok := value[joinKey]; ok {
				key = fmt.Sprint(prefix)
			}
		case []any:
			if len(value) > 0 {
				key = "list"
			}
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], v)
	}
	all := make([][]variant, 0, len(order))
	for _, key := range order {
		all = append(all, groups[key])
	}
	return all
}

func text(value any) string {
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(value); err != nil {
		panic(err) // what was made from typed objects can be written
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// same writes variants of one shape.
func (e *emitter) same(variants []variant, lead string, indent int) error {
	beneath := indent
	if strings.HasPrefix(lead, "- ") {
		beneath += 2 // what is beneath the first field of an element
	}
	switch first := variants[0].value.(type) {
	case map[string]any:
		if prefix, ok := first[joinKey].(string); ok {
			e.join(variants, prefix, lead, indent)
			return nil
		}
		if len(first) > 0 {
			return e.mapping(variants, lead, indent)
		}
	case []any:
		if len(first) > 0 {
			e.linef(indent, "%s", strings.TrimSuffix(lead, " "))
			return e.list(variants, beneath)
		}
	}
	e.linef(indent, "%s%s", lead, scalar(variants[0].value))
	return nil
}

// mapping writes the fields of maps. Behind a dash the first stands on its line, which
// works only if it always exists; then it must be one that does.
func (e *emitter) mapping(variants []variant, lead string, indent int) error {
	keys := map[string]int{}
	for _, v := range variants {
		for key := range v.value.(map[string]any) { //nolint:forcetypeassert // the caller grouped
			keys[key]++
		}
	}
	order := slices.Sorted(maps.Keys(keys))
	inner := indent + 2 //nolint:mnd // YAML
	switch lead {
	case "- ":
	case "":
		return e.fields(variants, order, indent)
	default:
		e.linef(indent, "%s", strings.TrimSuffix(lead, " "))
		if strings.HasPrefix(lead, "- ") {
			inner += 2
		}
		return e.fields(variants, order, inner)
	}
	i := slices.IndexFunc(order, func(key string) bool {
		return keys[key] == len(variants) && whole[key] == "" && len(grouped(field(variants, key))) == 1
	})
	if i < 0 { // a dash on a line of its own
		e.linef(indent, "-")
		return e.fields(variants, order, inner)
	}
	first := order[i]
	if err := e.value(field(variants, first), "- "+first+": ", indent); err != nil {
		return err
	}
	return e.fields(variants, slices.Delete(order, i, i+1), inner)
}

func field(variants []variant, key string) []variant {
	var with []variant
	for _, v := range variants {
		if value, ok := v.value.(map[string]any)[key]; ok {
			with = append(with, variant{v.in, value})
		}
	}
	return with
}

func (e *emitter) fields(variants []variant, keys []string, indent int) error {
	for _, key := range keys {
		with := field(variants, key)
		var err error
		e.when(variants, with, func() {
			if path := e.path(key); path != "" && regexp.MustCompile(`"[sS]ample"`).MatchString(text(with[0].value)) || key == "resources" && path != "" && !strings.HasPrefix(text(with[0].value), "[") {
				e.whole(key, path, with[0].value, indent)
				return
			}
			err = e.value(with, quotedKey(key)+": ", indent)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// path is the value that stands as it is under a key.
func (e *emitter) path(key string) string {
	if own, ok := wholeOf[e.of][key]; ok {
		return own
	}
	return whole[key]
}

var plainKey = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)

func quotedKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return text(key)
}

// whole writes what a user writes under a key, unless it is empty.
func (e *emitter) whole(key, path string, sample any, indent int) {
	e.linef(0, "{{- with $.Values.%s }}", path)
	if _, ok := sample.(string); ok {
		e.linef(indent, "%s: {{ . | quote }}", key)
	} else {
		e.linef(indent, "%s:", key)
		e.linef(indent+2, "{{- toYaml . | nindent %d }}", indent+2) //nolint:mnd // YAML
	}
	e.linef(0, "{{- end }}")
}

// list writes elements, each under the condition that it has.
func (e *emitter) list(variants []variant, indent int) error {
	order, classes, err := aligned(variants)
	if err != nil {
		return err
	}
	for _, key := range order {
		class := classes[key]
		e.when(variants, class, func() {
			for _, l := range lists {
				if class[0].value == l.sample {
					e.linef(0, "{{- range %s := %s }}", l.variable, l.list)
					defer e.linef(0, "{{- end }}")
				}
			}
			err = e.value(class, "- ", indent)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// aligned finds the elements of several lists that are the same, in an order that is that
// of all of them.
func aligned(variants []variant) (order []string, classes map[string][]variant, err error) {
	classes = map[string][]variant{}
	after := map[string]map[string]bool{} // what stands before each
	for _, v := range variants {
		previous, count := "", map[string]int{}
		for _, element := range v.value.([]any) { //nolint:forcetypeassert // the caller grouped
			key := identity(element)
			count[key]++
			key = fmt.Sprintf("%s#%d", key, count[key])
			if after[key] == nil {
				after[key] = map[string]bool{}
			}
			if previous != "" {
				after[key][previous] = true
			}
			previous = key
			classes[key] = append(classes[key], variant{v.in, element})
		}
	}
	for left := slices.Sorted(maps.Keys(after)); len(left) > 0; {
		i := slices.IndexFunc(left, func(key string) bool {
			return !slices.ContainsFunc(left, func(other string) bool { return after[key][other] })
		})
		if i < 0 {
			return nil, nil, fmt.Errorf("installations have %v in different orders", left)
		}
		order = append(order, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return order, classes, nil
}

// identity is what makes two elements the same although they differ.
func identity(element any) string {
	m, ok := element.(map[string]any)
	if !ok {
		return text(element)
	}
	if prefix, ok := m[joinKey].(string); ok {
		return prefix
	}
	if name, ok := m["name"].(string); ok {
		return "name:" + name
	}
	if names := text(m["resourceNames"]); strings.Contains(names, sample) {
		m = maps.Clone(m)
		delete(m, "resourceNames")
	}
	return text(m)
}

// join writes an argument whose value is a list.
func (e *emitter) join(variants []variant, prefix, lead string, indent int) {
	items := make([]variant, 0, len(variants))
	for _, v := range variants {
		items = append(items, variant{v.in, v.value.(map[string]any)["items"]}) //nolint:forcetypeassert // prepareArguments made it
	}
	order, classes, _ := aligned(sorted(items, joined[prefix]))
	e.linef(0, "{{- $list := list }}")
	for _, key := range order {
		class := classes[key]
		e.when(items, class, func() {
			item, _ := class[0].value.(string)
			for _, l := range lists {
				if item == l.sample {
					e.linef(0, "{{- $list = concat $list %s }}", l.list)
					return
				}
			}
			e.linef(0, "{{- $list = append $list %s }}", expression(item))
		})
	}
	order2 := "$list"
	if joined[prefix] {
		order2 = "(sortAlpha (uniq $list))"
	}
	e.linef(indent, `%s{{ printf "%s%%s" (join "," %s) | quote }}`, lead, prefix, order2)
}

// sorted puts the items into one order for all variants, where the order is that of the
// alphabet in the end.
func sorted(items []variant, sorts bool) []variant {
	if !sorts {
		return items
	}
	for i := range items {
		list, _ := items[i].value.([]any)
		items[i].value = slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(text(a), text(b)) })
	}
	return items
}

// expression is a string with samples as an expression.
func expression(value string) string {
	parts := split(value)
	if len(parts) == 1 && parts[0].sampled == "" {
		return text(value)
	}
	terms := []string{"(print"}
	for _, p := range parts {
		if p.sampled != "" {
			terms = append(terms, p.sampled)
		} else {
			terms = append(terms, text(p.literal))
		}
	}
	return strings.Join(terms, " ") + ")"
}

type part struct{ literal, sampled string }

// split separates the samples in a string from the rest.
func split(value string) []part {
	first, found := len(value), -1
	for i, s := range sampled {
		if at := strings.Index(value, s.sample); at >= 0 && at < first {
			first, found = at, i
		}
	}
	if found < 0 {
		return []part{{literal: value}}
	}
	var parts []part
	if first > 0 {
		parts = append(parts, part{literal: value[:first]})
	}
	parts = append(parts, part{sampled: sampled[found].template})
	if rest := value[first+len(sampled[found].sample):]; rest != "" {
		parts = append(parts, split(rest)...)
	}
	return parts
}

var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

// scalar is a value on one line.
func scalar(value any) string {
	s, ok := value.(string)
	if !ok {
		switch text(value) {
		case fmt.Sprint(samplePageReplicas):
			return "{{ $.Values.dashboard.replicas }}"
		case fmt.Sprint(sampleReplicas):
			return "{{ $.Values.replicas }}"
		}
		return text(value)
	}
	if slices.ContainsFunc(lists, func(l struct{ sample, variable, list string }) bool { return l.sample == s }) {
		return "{{ " + split(s)[0].sampled + " | quote }}"
	}
	if plain.MatchString(s) && !slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "Yes", "No", "On", "Off", "True", "False"}, s) {
		return filled(s, s)
	}
	return filled(s, text(s))
}

// filled puts the user's values into a string that is written already.
func filled(value, written string) string {
	if len(split(value)) == 1 && split(value)[0].sampled == "" {
		return escaped(written)
	}
	var b strings.Builder
	for _, p := range split(written) {
		if p.sampled != "" {
			b.WriteString("{{ " + strings.TrimSuffix(strings.TrimPrefix(p.sampled, "("), ")") + " }}")
		} else {
			b.WriteString(escaped(p.literal))
		}
	}
	return b.String()
}

// escaped keeps braces from being read as the language of templates.
func escaped(literal string) string { return strings.ReplaceAll(literal, "{{", `{{ "{{" }}`) }
