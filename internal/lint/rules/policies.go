package rules

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func policyRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW113", Level: report.Error, Title: "A ConfigPolicy or ClusterConfigPolicy is invalid",
			Why:    "It rolls nothing that it is for, until it is corrected.",
			Action: "Correct the field that the message names.",
		}, invalidPolicies},
		{report.Rule{
			Code: "SPW114", Level: report.Warning, Title: "A policy, or a stage of it, that no workload is in",
			Why:    "No workload among the manifests that tracks its config is selected, so the policy or the stage has no effect on them. A selector may be misspelled.",
			Action: "Correct the selector, the namespaces or the objects, or remove it.",
		}, desertedPolicies},
		{report.Rule{
			Code: "SPW115", Level: report.Warning, Title: "Two policies for the same workloads",
			Why:    "One policy counts for a workload and an object: a ConfigPolicy before all ClusterConfigPolicies, then the higher priority, then the first by name.",
			Action: "Remove one of them, let their selectors differ, or set spec.priority.",
		}, competingPolicies},
		{report.Rule{
			Code: "SPW116", Level: report.Warning, Title: "A policy that rolls back workloads without pins",
			Why:    "Only a workload whose revisions keep their config can get the previous one back. Others keep what has failed.",
			Action: "Set spec.pinConfig to true, or annotate the workload with " + vocabulary.PinConfig.Native + ": \"true\".",
		}, unpinnedPolicies},
	}
}

// policyIn is a policy among the manifests.
type policyIn struct {
	*policy.Policy

	o    *manifest.Object
	spec *v1alpha1.ConfigPolicySpec
}

// policiesIn are all policies, in the order in which they count.
func policiesIn(m *manifest.Manifests) []policyIn {
	var all []policyIn
	for _, o := range m.Objects {
		switch t := o.Typed.(type) {
		case *v1alpha1.ConfigPolicy:
			all = append(all, policyIn{policy.Read(t), o, &t.Spec})
			all[len(all)-1].Namespace = o.Namespace()
		case *v1alpha1.ClusterConfigPolicy:
			all = append(all, policyIn{policy.Read(t), o, &t.Spec.ConfigPolicySpec})
		}
	}
	slices.SortStableFunc(all, func(a, b policyIn) int { return policy.Compare(a.Policy, b.Policy) })
	return all
}

func setIn(m *manifest.Manifests) policy.Set {
	var set policy.Set
	for _, p := range policiesIn(m) {
		set = append(set, p.Policy)
	}
	return set
}

// use is a use of an object that policies may be for.
type use struct {
	o      *manifest.Object
	w      *workload.Manifest
	object content.Object
}

func (u *use) labels() labels.Set { return u.o.Object.GetLabels() }

func (u *use) called() string { return u.o.Kind() + " " + u.o.Name() }

// usesIn are the uses of all workloads that track their config.
func usesIn(m *manifest.Manifests) []use {
	var all []use
	tracked(m, func(o *manifest.Object, w workload.Manifest) {
		for i := range w.Uses {
			all = append(all, use{o, &w, w.Uses[i].Object})
		}
	})
	return all
}

func (p *policyIn) covers(u *use) bool { return p.Covers(u.o.Namespace(), u.labels(), u.object) }

func invalidPolicies(m *manifest.Manifests, r *reporter) {
	for _, p := range policiesIn(m) {
		if p.Problem != "" {
			r.findf(p.o, manifest.Fields(p.Field), "%s", strings.TrimPrefix(p.Problem, "its spec is not valid: "))
		}
	}
}

// desertedPolicies finds selectors without workloads, where there are some that could be meant.
func desertedPolicies(m *manifest.Manifests, r *reporter) {
	uses := usesIn(m)
	for _, p := range policiesIn(m) {
		meant := slices.DeleteFunc(slices.Clone(uses), func(u use) bool { return p.Namespace != "" && p.Namespace != u.o.Namespace() })
		selected := slices.DeleteFunc(slices.Clone(meant), func(u use) bool { return !p.covers(&u) })
		switch {
		case p.Problem != "" || len(meant) == 0:
		case len(selected) == 0:
			r.findf(p.o, manifest.Fields("spec"), "it is for no workload among the manifests")
		default:
			p.desertedStages(r, selected)
		}
		p.desertedNamespaces(m, r)
	}
}

// desertedNamespaces finds stages of namespaces that select none, where there are some that could be meant.
func (p *policyIn) desertedNamespaces(m *manifest.Manifests, r *reporter) {
	if p.Problem != "" || !p.StagesNamespaces() {
		return
	}
	places := map[int]bool{}
	for _, o := range m.Objects {
		if n, ok := o.Typed.(*corev1.Namespace); ok {
			places[p.NamespaceStage(n.Labels)] = true
		}
	}
	for i := range p.NamespaceStages[:len(p.NamespaceStages)-1] {
		if len(places) > 0 && !places[i] {
			r.findf(p.o, manifest.Item("spec.namespaceStages", i, "namespaceSelector"), "no namespace among the manifests is in stage %s", p.NamespaceStages[i].Name)
		}
	}
}

func (p *policyIn) desertedStages(r *reporter, selected []use) {
	for i := range p.spec.Stages {
		isIn := func(u use) bool { return p.Selected(u.labels()) == i }
		if p.spec.Stages[i].Selector != nil && !slices.ContainsFunc(selected, isIn) {
			r.findf(p.o, manifest.Item("spec.stages", i, "selector"), "no workload is in stage %s", p.spec.Stages[i].Name)
		}
	}
}

// competingPolicies finds policies that another one comes before: for all that they are for, or
// by its name alone.
func competingPolicies(m *manifest.Manifests, r *reporter) {
	all, uses := policiesIn(m), usesIn(m)
	for i := range all {
		p, counts, first, of := &all[i], false, (*policyIn)(nil), (*use)(nil)
		for k := range uses {
			if !p.covers(&uses[k]) {
				continue
			}
			before := slices.IndexFunc(all[:i], func(q policyIn) bool { return q.covers(&uses[k]) })
			if counts = counts || before < 0; before >= 0 && first == nil {
				first, of = &all[before], &uses[k]
			}
		}
		switch {
		case first == nil:
		case !counts:
			r.findf(p.o, manifest.Fields("metadata.name"), "%s comes before it for all workloads that it is for, such as %s", first, of.called())
		case first.Kind == p.Kind && first.spec.Priority == p.spec.Priority:
			r.findf(p.o, manifest.Fields("metadata.name"), "%s comes before it for %s by its name alone", first, of.called())
		}
	}
}

// unpinnedPolicies finds workloads that a policy cannot give their previous config.
func unpinnedPolicies(m *manifest.Manifests, r *reporter) {
	all, uses := policiesIn(m), usesIn(m)
	for i := range all {
		p := &all[i]
		if !p.RollsBack || p.Pins {
			continue
		}
		if u := firstInForce(all, i, uses, func(u *use) bool { return !u.w.PinSet && u.w.OnFailure == "" }); u != nil {
			r.findf(p.o, manifest.Fields("spec.onFailure"), "%s does not keep its config, and gets no previous one back", u.called())
		}
	}
}

// mountedInStages finds workloads of which all running Pods get a new content, though a policy has
// stages for it.
func mountedInStages(m *manifest.Manifests, r *reporter) {
	all, uses := policiesIn(m), usesIn(m)
	for i := range all {
		p := &all[i]
		if p.Problem != "" || len(p.spec.Stages) < 2 && !p.StagesNamespaces() || p.Pins {
			continue
		}
		if u := firstInForce(all, i, uses, func(u *use) bool { return !u.w.Pin && u.isMounted() }); u != nil {
			r.findf(p.o, manifest.Fields("spec.stages"), "%s mounts %s and does not keep it: all its running Pods get a new content, in whatever stage it is",
				u.called(), u.object.From(u.o.Namespace()))
		}
	}
}

// firstInForce is the first of some uses for which the policy at a place counts, nil if it counts for none.
func firstInForce(all []policyIn, at int, uses []use, of func(*use) bool) *use {
	for i := range uses {
		u := &uses[i]
		before := slices.ContainsFunc(all[:at], func(q policyIn) bool { return q.covers(u) })
		if all[at].covers(u) && !before && of(u) {
			return u
		}
	}
	return nil
}

func (u *use) isMounted() bool {
	pod := &workload.TemplateOf(u.o.Typed).Spec
	return u.object.Namespace == u.o.Namespace() && content.ReachOf(pod, u.object.Kind, u.object.Name) == content.ReachRunning
}
