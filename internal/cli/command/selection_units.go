package command

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/describe"
)

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
