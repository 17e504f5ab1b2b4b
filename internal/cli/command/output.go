package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/kube"
)

// The forms of output for machines. A JSONPath follows its name, as for kubectl.
const (
	OutputJSON   = "json"
	OutputYAML   = "yaml"
	OutputName   = "name"
	OutputSchema = "json-schema"
	jsonPathLead = "jsonpath="
)

// OutputFlag adds the flag that asks for another form than text: json, yaml, a JSONPath,
// or one of some more.
func OutputFlag(cmd *cobra.Command, output *string, more ...string) {
	outputFlag(cmd, &form{output, append([]string{OutputJSON, OutputYAML}, more...), true})
}

// NameFlag adds the flag that asks for names alone.
func NameFlag(cmd *cobra.Command, output *string) {
	outputFlag(cmd, &form{output, []string{OutputName}, false})
}

func outputFlag(cmd *cobra.Command, f *form) {
	cmd.Flags().VarP(f, "output", "o", "output format: "+f.choices()+" (default: text)")
	cmd.Flags().Lookup("output").Annotations = map[string][]string{FlagWords: f.words}
}

// FlagWords is the annotation of flags that take one of a few words, for their completion.
const FlagWords = "spillway.dev/flag-words"

// form is the value of --output, which is refused before anything is asked or written.
type form struct {
	output *string
	words  []string
	path   bool
}

func (f *form) String() string { return *f.output }

// Type implements [pflag.Value].
func (f *form) Type() string { return "string" }

// Set implements [pflag.Value].
func (f *form) Set(output string) error {
	if path, ok := strings.CutPrefix(output, jsonPathLead); ok && f.path {
		if _, err := parsePath(path); err != nil {
			return err
		}
	} else if output != "" && !slices.Contains(f.words, output) {
		return formError(fmt.Sprintf("%q is not known; use %s, or leave it out", output, f.choices()))
	}
	*f.output = output
	return nil
}

func (f *form) choices() string {
	all := slices.Clone(f.words)
	if f.path {
		all = append(all, jsonPathLead+"TEMPLATE")
	}
	last := len(all) - 1
	if last == 0 {
		return all[0]
	}
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

type formError string

func (e formError) Error() string { return string(e) }

func parsePath(path string) (*jsonpath.JSONPath, error) {
	j := jsonpath.New("output").AllowMissingKeys(true)
	if err := j.Parse(path); err != nil {
		return nil, formError(fmt.Sprintf("%q is no JSONPath template: %s; write it as '{.name}'", path, err))
	}
	return j, nil
}

// Show writes a value for machines, or for people.
func Show(w io.Writer, output string, value any, forPeople func(io.Writer)) error {
	if output == "" {
		forPeople(w)
		return nil
	}
	w = display.Raw(w)
	switch path, isPath := strings.CutPrefix(output, jsonPathLead); {
	case isPath:
		return writePath(w, path, value)
	case output == OutputYAML:
		return writeYAML(w, value)
	default:
		return writeJSON(w, value, "  ")
	}
}

// ShowNext writes one of many values that come one after another: of JSON a line, of YAML a
// document.
func ShowNext(w io.Writer, output string, value any, forPeople func(io.Writer)) error {
	switch {
	case output == OutputJSON:
		return writeJSON(display.Raw(w), value, "")
	case output == OutputYAML:
		_, _ = fmt.Fprintln(w, "---")
	case strings.HasPrefix(output, jsonPathLead):
		defer func() { _, _ = fmt.Fprintln(w) }()
	}
	return Show(w, output, value, forPeople)
}

func writeYAML(w io.Writer, value any) error {
	raw, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = w.Write(raw)
	return err //nolint:wrapcheck // of the writer
}

func writeJSON(w io.Writer, value any, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", indent)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

func writePath(w io.Writer, path string, value any) error {
	j, err := parsePath(path)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	var content any
	if err := json.Unmarshal(raw, &content); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	if err := j.Execute(w, content); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

// Selection narrows and sorts a list, by the flags that kubectl has for it: -l, --field-selector and --sort-by.
type Selection struct {
	labels, fields, sortBy string
	// selectable are the fields to select by, sortable those to sort by.
	selectable, sortable []string
}

// NamedFields are what the objects that are rolled can be selected by.
func NamedFields(ref describe.Ref) fields.Set {
	return fields.Set{"metadata.name": ref.Name, "metadata.namespace": ref.Namespace}
}

// AddFlags adds the flags. selectable are the fields that can be selected by, sortable those
// that can be sorted by.
func (s *Selection) AddFlags(flags *pflag.FlagSet, selectable, sortable []string) {
	s.selectable, s.sortable = selectable, sortable
	flags.StringVarP(&s.labels, "selector", "l", "", "only objects with these labels, such as app=web,tier!=test")
	flags.StringVar(&s.fields, "field-selector", "", "only what has these fields, such as "+selectable[0]+"=web; of "+strings.Join(selectable, ", "))
	flags.StringVar(&s.sortBy, "sort-by", "", "sort by a field of the JSON: "+strings.Join(sortable, ", "))
	flags.Lookup("sort-by").Annotations = map[string][]string{FlagWords: sortable}
}

// Check refuses what cannot be understood, before anything is asked.
func (s *Selection) Check() error {
	if _, err := labels.Parse(s.labels); err != nil {
		return fmt.Errorf("--selector: %q cannot be read: %w; write it as app=web,tier!=test", s.labels, err)
	}
	selector, err := fields.ParseSelector(s.fields)
	if err != nil {
		return fmt.Errorf("--field-selector: %q cannot be read; write it as %s=web", s.fields, s.selectable[0])
	}
	for _, r := range selector.Requirements() {
		if !slices.Contains(s.selectable, r.Field) {
			return fmt.Errorf("--field-selector: %q cannot be selected by; use %s", r.Field, strings.Join(s.selectable, ", "))
		}
	}
	if field := s.field(); field != "" && !slices.Contains(s.sortable, field) {
		return fmt.Errorf("--sort-by: there is no field %q; use %s", s.sortBy, strings.Join(s.sortable, ", "))
	}
	return nil
}

// field is the name of the field to sort by, however it is written: name, .name, {.name} or
// {.metadata.name}.
func (s *Selection) field() string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.Trim(s.sortBy, "{}"), "."), "metadata.")
}

// Narrows is true if not everything is wanted.
func (s *Selection) Narrows() bool { return s.labels != "" || s.fields != "" }

// Sorts is true if an order was asked for.
func (s *Selection) Sorts() bool { return s.field() != "" }

// HasFields is true of what has the fields that were asked for.
func (s *Selection) HasFields(set fields.Set) bool {
	selector, err := fields.ParseSelector(s.fields)
	return err == nil && selector.Matches(set)
}

// Labeled asks the API server which of some objects have the labels that were asked for: all,
// unasked, if none were. Of each kind a list is read, without what the objects contain.
func (s *Selection) Labeled(ctx context.Context, c client.Reader, namespace string, refs []describe.Ref) (func(describe.Ref) bool, error) {
	if s.labels == "" {
		return func(describe.Ref) bool { return true }, nil
	}
	selector, err := labels.Parse(s.labels)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	found, asked := map[describe.Ref]bool{}, map[string]bool{}
	for _, ref := range refs {
		kind, known := describe.KindNamed(ref.Kind)
		if asked[ref.Kind] || !known {
			continue
		}
		asked[ref.Kind] = true
		list := kube.MetadataList(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
			return nil, fmt.Errorf("list %s: %w", ref.Kind, err)
		}
		for i := range list.Items {
			found[describe.RefTo(ref.Kind, &list.Items[i])] = true
		}
	}
	return func(ref describe.Ref) bool {
		return found[describe.Ref{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}]
	}, nil
}

// SortBy sorts items by the field that was asked for, if one was; fields are those that they
// have, as text.
func SortBy[T any](s *Selection, items []T, fields map[string]func(*T) string) {
	if by := fields[s.field()]; by != nil {
		slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(by(&a), by(&b)) })
	}
}

// The fields that units can be selected and sorted by.
var (
	unitSelectable = []string{"metadata.name", "metadata.namespace"}
	unitSortable   = []string{"name", "namespace", "kind", "phase", "reason", "since"}
)

var unitFields = map[string]func(u *describe.Unit) string{
	"name": func(u *describe.Unit) string { return u.Name }, "namespace": func(u *describe.Unit) string { return u.Namespace },
	"kind": func(u *describe.Unit) string { return u.Kind }, "phase": func(u *describe.Unit) string { return string(u.Phase) },
	"reason": func(u *describe.Unit) string { return string(u.Reason) },
	"since":  func(u *describe.Unit) string { return Sortable(u.Since) },
}

// Sortable is a time as text that sorts as times do, after all others if there is none.
func Sortable(at *time.Time) string {
	if at == nil {
		return "~"
	}
	return at.UTC().Format("2006-01-02T15:04:05.000000000")
}

// UnitSelection narrows and sorts what is rolled.
type UnitSelection struct{ Selection }

// AddFlags adds the flags.
func (s *UnitSelection) AddFlags(flags *pflag.FlagSet) {
	s.Selection.AddFlags(flags, unitSelectable, unitSortable)
}

// Apply narrows and sorts the units. Where they are sorted, each stands alone, and not
// beneath the config that it waits for.
func (s *UnitSelection) Apply(ctx context.Context, c client.Reader, namespace string, units []describe.Unit) ([]describe.Unit, error) {
	if s.Narrows() {
		rolled := describe.Rolled(units)
		refs := make([]describe.Ref, len(rolled))
		for i := range rolled {
			refs[i] = rolled[i].Ref
		}
		labeled, err := s.Labeled(ctx, c, namespace, refs)
		if err != nil {
			return nil, err
		}
		units = kept(units, func(ref describe.Ref) bool { return s.HasFields(NamedFields(ref)) && labeled(ref) })
	}
	if s.Sorts() {
		units = describe.Rolled(units)
		SortBy(&s.Selection, units, unitFields)
	}
	return units, nil
}

// kept are the units that are meant, and of causes those beneath them.
func kept(units []describe.Unit, meant func(describe.Ref) bool) []describe.Unit {
	var rest []describe.Unit
	for i := range units {
		u := units[i]
		if u.Cause {
			if u.Units = kept(u.Units, meant); len(u.Units) > 0 {
				rest = append(rest, u)
			}
			continue
		}
		if meant(u.Ref) {
			rest = append(rest, u)
		}
	}
	return rest
}
