package binding

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/message"
)

// ClusterName is bound to the name of the cluster, unless a binding of that name
// says otherwise.
const ClusterName = "CLUSTER_NAME"

// Binding gives a name a value, or the value of a field.
type Binding struct {
	// Name is what $(NAME) refers to.
	Name string
	// Value is text. It is used if there is no Field.
	Value string
	// Field is where the value is to be found, nil if it is Value.
	Field *Field
}

// Field refers to a field of an object. All of it is text with references.
type Field struct {
	Object

	// Path is a JSON pointer (RFC 6901) such as /data/region.
	Path string
}

// Object names an object in the namespace of the bindings.
type Object struct{ APIVersion, Kind, Name string }

// String is how sentences call the object: "ConfigMap region".
func (o Object) String() string { return o.Kind + " " + o.Name }

// Known are the objects that were looked at.
type Known map[Object]Look

// Look is what came of looking at an object.
type Look struct {
	// Content is that of the object, nil if it does not exist.
	Content map[string]any
	// Refused says why it may not be looked at, as a clause; empty if it may.
	Refused string
}

// Result is what bindings come to.
type Result struct {
	// Values are those of the bindings that could be evaluated, by name.
	Values Values
	// Needs are the objects that must be read before all is known, sorted.
	// While there are any, Values and Err are not final.
	Needs []Object
	// Err joins one *[Error] for each binding that must be fixed, sorted by
	// name; nil if there is none.
	Err error
}

// Error is what is wrong with one binding.
type Error struct {
	// Binding is its name.
	Binding string
	// Reason says what is wrong, and where it can how to fix it.
	Reason string
	// Waits is true if the binding is in order, and what it refers to does not exist.
	Waits bool
}

// Values are the values of bindings, by name.
type Values map[string]string

// Expand replaces each $(NAME) in text by its value. It is an error if what comes
// out is longer than [MaxLength].
func (v Values) Expand(text string) (string, error) {
	expanded := expand(text, func(name string) string { return v[name] })
	if len(expanded) > MaxLength {
		return "", errTooLong
	}
	return expanded, nil
}

var errTooLong = fmt.Errorf("longer than %d bytes", MaxLength)

// Literal are the values as bindings that evaluate to just these, sorted by name.
func (v Values) Literal() []Binding {
	literal := make([]Binding, 0, len(v))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		literal = append(literal, Binding{Name: name, Value: Escape(v[name])})
	}
	return literal
}

// Evaluate evaluates bindings. The predefined are values that stand for
// themselves; a binding of the same name takes the place of one.
func Evaluate(bindings []Binding, predefined Values, known Known) Result {
	e := &evaluation{
		bindings: map[string]Binding{}, predefined: predefined, known: known,
		done: map[string]*outcome{}, needs: map[Object]bool{}, errs: map[string]*Error{},
	}
	for _, b := range bindings {
		e.add(b)
	}
	names := slices.Sorted(maps.Keys(e.bindings))
	for _, name := range names {
		e.value(name)
	}
	return e.result(names)
}

// evaluation is one run over all bindings.
type evaluation struct {
	bindings   map[string]Binding
	predefined Values
	known      Known
	// done are the bindings that are evaluated, or being so.
	done map[string]*outcome
	// path are the bindings that are being evaluated, outermost first.
	path  []string
	needs map[Object]bool
	errs  map[string]*Error
}

// outcome is the value of a binding, if it has one.
type outcome struct {
	value string
	// evaluating is true while it is not known.
	evaluating bool
	// lacking is true if there is no value: something must be fixed, or read.
	lacking bool
}

func (e *evaluation) add(b Binding) {
	switch _, twice := e.bindings[b.Name]; {
	case b.Name == "":
		e.failf(b.Name, "a name is missing")
	case strings.Contains(b.Name, ")"):
		e.failf(b.Name, "nothing could refer to a name with a parenthesis")
	case twice:
		e.failf(b.Name, "duplicate name; remove one")
	}
	e.bindings[b.Name] = b
}

func (e *evaluation) result(names []string) Result {
	r := Result{Values: maps.Clone(e.predefined), Needs: slices.SortedFunc(maps.Keys(e.needs), compareObjects)}
	if r.Values == nil {
		r.Values = Values{}
	}
	for _, name := range names {
		delete(r.Values, name) // of a predefined one
		if o := e.done[name]; !o.lacking && e.errs[name] == nil {
			r.Values[name] = o.value
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(e.errs)) {
		errs = append(errs, e.errs[name])
	}
	r.Err = errors.Join(errs...)
	return r
}

// Sorted returns a set of objects in an order that does not change.
func Sorted(objects map[Object]bool) []Object {
	return slices.SortedFunc(maps.Keys(objects), func(x, y Object) int {
		return slices.Compare([]string{x.APIVersion, x.Kind, x.Name}, []string{y.APIVersion, y.Kind, y.Name})
	})
}

func compareObjects(a, b Object) int {
	return slices.Compare([]string{a.APIVersion, a.Kind, a.Name}, []string{b.APIVersion, b.Kind, b.Name})
}

// expand is not ok if a name in the text has no value (yet).
func (e *evaluation) expand(text string) (expanded string, ok bool) {
	ok = true
	expanded = expand(text, func(name string) string {
		value, known := e.value(name)
		ok = ok && known
		return value
	})
	return expanded, ok
}

// value is the value of a name. It is not ok if there is none (yet).
func (e *evaluation) value(name string) (value string, ok bool) {
	b, bound := e.bindings[name]
	if !bound {
		return e.predefined[name], true
	}
	o := e.done[name]
	switch {
	case o == nil:
		return e.evaluate(b)
	case o.evaluating:
		e.failf(name, "refers to itself: %s", e.cycle(name))
		return "", false
	default:
		return o.value, !o.lacking
	}
}

// cycle is the way from a name back to it.
func (e *evaluation) cycle(name string) string {
	from := slices.Index(e.path, name)
	return strings.Join(append(slices.Clone(e.path[from:]), name), " -> ")
}

func (e *evaluation) evaluate(b Binding) (value string, ok bool) {
	o := &outcome{evaluating: true}
	e.done[b.Name] = o
	e.path = append(e.path, b.Name)
	if b.Field == nil {
		value, ok = e.expand(b.Value)
	} else {
		value, ok = e.field(b.Name, *b.Field)
	}
	e.path = e.path[:len(e.path)-1]
	if len(value) > MaxLength {
		e.failf(b.Name, "%s", errTooLong)
		value = ""
	}
	*o = outcome{value: value, lacking: !ok || e.errs[b.Name] != nil}
	return o.value, !o.lacking
}

func (e *evaluation) field(name string, f Field) (value string, ok bool) {
	ok = true
	for _, part := range []*string{&f.APIVersion, &f.Kind, &f.Name, &f.Path} {
		var known bool
		*part, known = e.expand(*part)
		ok = ok && known
	}
	if !ok {
		return "", false
	}
	if f.APIVersion == "" || f.Kind == "" || f.Name == "" {
		e.failf(name, "objectFieldRef needs an apiVersion, a kind and a name; it has %s, %s and %s",
			message.Quote(f.APIVersion), message.Quote(f.Kind), message.Quote(f.Name))
		return "", false
	}
	look, looked := e.known[f.Object]
	switch {
	case !looked:
		e.needs[f.Object] = true
	case look.Refused != "":
		e.failf(name, "%s %s", f.Object, look.Refused)
	case look.Content == nil:
		e.waitf(name, "%s does not exist", f.Object)
	default:
		return e.read(name, f, look.Content)
	}
	return "", false
}

func (e *evaluation) read(name string, f Field, content map[string]any) (value string, ok bool) {
	at, err := lookup(content, f.Path)
	if err != nil && isUnset(err) {
		e.waitf(name, "%s: fieldPath %s: %s", f.Object, message.Quote(f.Path), err)
		return "", false
	}
	if err != nil {
		e.failf(name, "%s: fieldPath %s: %s", f.Object, message.Quote(f.Path), err)
		return "", false
	}
	value, err = text(at)
	if err != nil {
		e.failf(name, "%s: fieldPath %s: %s", f.Object, message.Quote(f.Path), err)
		return "", false
	}
	return value, true
}

// waitf notes that what a binding refers to does not exist.
func (e *evaluation) waitf(name, format string, args ...any) {
	if e.errs[name] == nil {
		e.failf(name, format, args...)
		e.errs[name].Waits = true
	}
}

// failf notes the first thing that is wrong with a binding.
func (e *evaluation) failf(name, format string, args ...any) {
	if e.errs[name] == nil {
		e.errs[name] = &Error{Binding: name, Reason: message.Sentence(fmt.Sprintf(format, args...))}
	}
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("binding %s: %s", message.Quote(e.Binding), e.Reason)
}

// text is a value as text: strings as they are, all else as JSON.
func text(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("it cannot be written as text: %w", err)
	}
	return string(raw), nil
}
