package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/kube"
)

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

// unitFields are the fields that units are sorted by.
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
