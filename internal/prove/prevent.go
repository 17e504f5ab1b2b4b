package prove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/policy"
)

// remedy is a change of one setting that might prevent that a rule is broken.
type remedy struct {
	// text says what to write where.
	text string
	// kind, namespace and name are the object that gets it; creates reports whether it is created if there is none.
	kind, namespace, name string
	creates               bool
	edit                  func(u *unstructured.Unstructured) error
}

// soak is how long a first stage waits in a remedy, and soakSeconds the same of a module.
const (
	soak        = "5m"
	soakSeconds = int64(300)
)

// mostRemedied is for how many broken rules a remedy is looked for: each costs as much as the exploration.
const mostRemedied = 3

// Prevent finds for each broken rule the first change of one setting that prevents it, if one of those does that are tried. What
// is found was explored: with it, that rule is not broken, and neither is any other that was not before.
func Prevent(ctx context.Context, o Options, r *Report) error {
	for i := range r.Counterexamples[:min(len(r.Counterexamples), mostRemedied)] {
		c := &r.Counterexamples[i]
		for _, m := range remediesOf(c) {
			if !r.Complete || o.Over != nil && o.Over() {
				return nil
			}
			is, err := m.try(ctx, o)
			if ctx.Err() != nil {
				return ctx.Err() //nolint:wrapcheck // it ends the command
			}
			if err != nil || !is.Complete || !isBetter(is, r, c) {
				continue // what cannot be applied prevents nothing
			}
			c.Action, c.Verified = m.text, fmt.Sprintf("explored with that: %d states, and this rule is not broken", is.States)
			break
		}
	}
	return nil
}

// isBetter reports whether all rules that are broken were so before, except one.
func isBetter(is, was *Report, except *Counterexample) bool {
	same := func(a, b *Counterexample) bool {
		return a.Rule == b.Rule && a.Object == b.Object && a.Namespace == b.Namespace
	}
	return !slices.ContainsFunc(is.Counterexamples, func(c Counterexample) bool {
		return same(&c, except) || !slices.ContainsFunc(was.Counterexamples, func(k Counterexample) bool { return same(&k, &c) })
	})
}

// remediesOf returns what to try, the least first.
func remediesOf(c *Counterexample) []remedy {
	kind, name, _ := strings.Cut(c.Object, "/")
	if c.Rule != RuleBadStops {
		return nil
	}
	set := func(value any, path ...string) func(*unstructured.Unstructured) error {
		return func(u *unstructured.Unstructured) error { return unstructured.SetNestedField(u.Object, value, path...) }
	}
	stages := func(of, pause string, length any) (text string, value []any) {
		return fmt.Sprintf("[{name: first, %s: 1, %s: %v}, {name: rest}]", of, pause, length),
			[]any{map[string]any{"name": "first", of: int64(1), pause: length}, map[string]any{"name": "rest"}}
	}
	configText, config := stages("workloads", "soak", soak)
	moduleText, module := stages("clusters", "soakSeconds", soakSeconds)
	switch kind {
	case strings.ToLower(policy.Kind), strings.ToLower(policy.ClusterKind):
		return []remedy{
			{"set spec.soak: " + soak + " in " + c.Object, kind, c.Namespace, name, false, set(soak, "spec", "soak")},
			{"begin spec.stages of " + c.Object + " with one workload and a soak: " + configText, kind, c.Namespace, name, false, set(config, "spec", "stages")},
		}
	case "module", "bootstrapmodule":
		return []remedy{
			{fmt.Sprintf("set soakSeconds: %d in the first stage of %s", soakSeconds, c.Object), kind, c.Namespace, name, false, soakFirst},
			{"write into spec.rollout.stages of " + c.Object + ": " + moduleText, kind, c.Namespace, name, false, set(module, "spec", "rollout", "stages")},
		}
	case "rolloutgroup":
		return []remedy{{"set spec.soak: " + soak + " in RolloutGroup " + name, "RolloutGroup", c.Namespace, name, true, set(soak, "spec", "soak")}}
	default:
		return []remedy{{
			"add a ConfigPolicy to namespace " + c.Namespace + " with spec.stages: " + configText,
			policy.Kind, c.Namespace, "one-first", true, set(config, "spec", "stages"),
		}}
	}
}

// soakFirst has the first stage of a module soak.
func soakFirst(u *unstructured.Unstructured) error {
	stages, _, err := unstructured.NestedSlice(u.Object, "spec", "rollout", "stages")
	if err != nil || len(stages) == 0 {
		return errors.New("there are no stages")
	}
	first, ok := stages[0].(map[string]any)
	if !ok {
		return errors.New("the first stage is none")
	}
	first["soakSeconds"] = soakSeconds
	return unstructured.SetNestedSlice(u.Object, stages, "spec", "rollout", "stages") //nolint:wrapcheck // it is not shown
}

// try explores the change with a remedy: in all manifests of the object, and in base if it has none.
func (m *remedy) try(ctx context.Context, o Options) (*Report, error) {
	found := false
	for _, all := range []*[]*unstructured.Unstructured{&o.Base, &o.Change} {
		*all = slices.Clone(*all)
		for i, u := range *all {
			if !strings.EqualFold(u.GetKind(), m.kind) || u.GetName() != m.name || u.GetNamespace() != "" && u.GetNamespace() != m.namespace {
				continue
			}
			found, (*all)[i] = true, u.DeepCopy()
			if err := m.edit((*all)[i]); err != nil {
				return nil, err
			}
		}
	}
	if !found {
		made := &unstructured.Unstructured{}
		made.SetAPIVersion(v1alpha1.GroupVersion.String())
		made.SetKind(m.kind)
		made.SetNamespace(m.namespace)
		made.SetName(m.name)
		if o.Base = append(o.Base, made); !m.creates || m.edit(made) != nil {
			return nil, errors.New("there is no " + m.kind + " " + m.name)
		}
	}
	return Run(ctx, o)
}
