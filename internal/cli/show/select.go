package show

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/describe"
)

// selection narrows and sorts what is rolled, as kubectl's flags of the same names do.
type selection struct{ labels, fields, sortBy string }

func (s *selection) addFlags(flags *pflag.FlagSet) {
	flags.StringVarP(&s.labels, "selector", "l", "", "only what has these labels, such as app=web,tier!=test")
	flags.StringVar(&s.fields, "field-selector", "", "only what has these fields, such as metadata.name=web")
	flags.StringVar(&s.sortBy, "sort-by", "", "sort by a field of the JSON: name, namespace, phase, since, kind or reason")
}

// sortable are the fields that units can be sorted by.
var sortable = map[string]func(u *describe.Unit) string{
	"name": func(u *describe.Unit) string { return u.Name }, "namespace": func(u *describe.Unit) string { return u.Namespace },
	"kind": func(u *describe.Unit) string { return u.Kind }, "phase": func(u *describe.Unit) string { return string(u.Phase) },
	"reason": func(u *describe.Unit) string { return string(u.Reason) },
	"since": func(u *describe.Unit) string {
		if u.Since == nil {
			return "~" // after all that have one
		}
		return u.Since.UTC().Format("2006-01-02T15:04:05.000000000")
	},
}

// check refuses what cannot be understood before anybody is asked.
func (s *selection) check() error {
	if _, err := labels.Parse(s.labels); err != nil {
		return fmt.Errorf("--selector: %q cannot be read: %w; write it as app=web,tier!=test", s.labels, err)
	}
	if err := s.checkFields(); err != nil {
		return err
	}
	if field := s.field(); field != "" && sortable[field] == nil {
		return fmt.Errorf("--sort-by: there is no field %q; use name, namespace, phase, since, kind or reason", s.sortBy)
	}
	return nil
}

// checkFields refuses fields that the API server does not select by: those of the kinds that
// are rolled have only two.
func (s *selection) checkFields() error {
	selector, err := fields.ParseSelector(s.fields)
	if err != nil {
		return fmt.Errorf("--field-selector: %q cannot be read; write it as metadata.name=web", s.fields)
	}
	for _, r := range selector.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return fmt.Errorf("--field-selector: %q cannot be selected by; use metadata.name or metadata.namespace", r.Field)
		}
	}
	return nil
}

// field is the name of the field to sort by, however it is written: name, .name, {.name} or
// {.metadata.name}.
func (s *selection) field() string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.Trim(s.sortBy, "{}"), "."), "metadata.")
}

// apply narrows and sorts the units. Where they are sorted, each stands alone, and not
// beneath the config that it waits for.
func (s *selection) apply(ctx context.Context, c client.Client, namespace string, units []describe.Unit) ([]describe.Unit, error) {
	if s.labels != "" || s.fields != "" {
		found, err := s.find(ctx, c, namespace, units)
		if err != nil {
			return nil, err
		}
		units = kept(units, found)
	}
	if by := sortable[s.field()]; by != nil {
		units = describe.Rolled(units)
		slices.SortStableFunc(units, func(a, b describe.Unit) int { return cmp.Compare(by(&a), by(&b)) })
	}
	return units, nil
}

// find asks the API server which objects of the kinds that are rolled are meant.
func (s *selection) find(ctx context.Context, c client.Client, namespace string, units []describe.Unit) (map[describe.Ref]bool, error) {
	selector, err := labels.Parse(s.labels)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	field, err := fields.ParseSelector(s.fields)
	if err != nil {
		return nil, fmt.Errorf("--field-selector: %w", err)
	}
	found, asked := map[describe.Ref]bool{}, map[string]bool{}
	for _, u := range describe.Rolled(units) {
		if asked[u.Kind] {
			continue
		}
		asked[u.Kind] = true
		i := slices.IndexFunc(command.Rolled, func(k schema.GroupVersionKind) bool { return k.Kind == u.Kind })
		if i < 0 {
			continue
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(command.Rolled[i])
		if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.MatchingFieldsSelector{Selector: field}); err != nil {
			return nil, fmt.Errorf("list %s: %w", u.Kind, err)
		}
		for i := range list.Items {
			found[describe.Ref{Kind: u.Kind, Namespace: list.Items[i].Namespace, Name: list.Items[i].Name}] = true
		}
	}
	return found, nil
}

// kept are the units that were found, and of causes those beneath them.
func kept(units []describe.Unit, found map[describe.Ref]bool) []describe.Unit {
	var rest []describe.Unit
	for i := range units {
		u := units[i]
		if u.Cause {
			if u.Units = kept(u.Units, found); len(u.Units) > 0 {
				rest = append(rest, u)
			}
			continue
		}
		if found[describe.Ref{Kind: u.Kind, Namespace: u.Namespace, Name: u.Name}] {
			rest = append(rest, u)
		}
	}
	return rest
}
