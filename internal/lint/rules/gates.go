package rules

import (
	"slices"
	"strings"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/gates/source"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	notify "github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func gateRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW117", Level: report.Error, Title: "A GateTemplate that cannot be measured",
			Why:    "Each measurement is an error, so the gate is refused once there are more than errorLimit.",
			Action: "Correct the field that the message names.",
		}, brokenTemplates},
		{report.Rule{
			Code: "SPW118", Level: report.Warning, Title: "A GateTemplate that no rollout names",
			Why:    "Rollouts among the manifests of its namespace name gates, but none of them this one. A name may be misspelled; a gate without a GateTemplate waits for a user.",
			Action: "Name it where the rollout names its gates, or remove it.",
		}, unnamedTemplates},
		{report.Rule{
			Code: "SPW119", Level: report.Error, Title: "A Notifier with a filter that is not valid",
			Why:    "It tells of nothing.",
			Action: "Correct the expression as the message says.",
		}, brokenFilters},
		{report.Rule{
			Code: "SPW120", Level: report.Warning, Title: "A Notifier without an address",
			Why:    "Its Secret, among the manifests, lacks a key; or the namespace has Secrets among the manifests, and not this one. Messages stay pending until the queue is full.",
			Action: "Add the Secret, or its key address.",
		}, missingAddresses},
		{report.Rule{
			Code: "SPW121", Level: report.Warning, Title: "A policy with stages for a workload that mounts its config without pins",
			Why:    "Kubernetes writes a new content into all running Pods that mount it, within a minute, whatever their stage. With pins, each revision keeps its content.",
			Action: "Set spec.pinConfig to true, or annotate the workload with " + vocabulary.PinConfig.Native + ": \"true\"; the manager needs --pin-namespaces for it.",
		}, mountedInStages},
	}
}

func brokenFilters(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, n *v1alpha1.Notifier) {
		if _, err := notify.CompileFilter(n.Spec.Filter); err != nil {
			r.findf(o, manifest.Fields("spec.filter"), "%s", err)
		}
	})
}

// missingAddresses finds nothing where no Secret of a namespace is among the manifests: then they
// are made in another way.
func missingAddresses(m *manifest.Manifests, r *reporter) {
	secrets := map[string]bool{}
	for ref := range m.Configs {
		secrets[ref.Namespace] = secrets[ref.Namespace] || ref.Kind == content.Secret
	}
	manifest.Each(m, func(o *manifest.Object, n *v1alpha1.Notifier) {
		ref := content.Object{Kind: content.Secret, Namespace: o.Namespace(), Name: n.Spec.SecretRef.Name}
		switch there := m.Configs[ref]; {
		case there != nil && !slices.Contains(keysOf(there.Typed), "address"):
			r.findf(o, manifest.Fields("spec.secretRef.name"), "Secret %s has no key address", ref.Name)
		case there == nil && secrets[ref.Namespace] && !m.IsThere(ref):
			r.findf(o, manifest.Fields("spec.secretRef.name"), "Secret %s is not among the manifests", ref.Name)
		}
	})
}

func brokenTemplates(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, t *v1alpha1.GateTemplate) {
		for _, p := range source.Check(&t.Spec) {
			r.findf(o, manifest.Fields("spec."+p.Field), "%s: %s", p.Field, p.Text)
		}
	})
}

// unnamedTemplates finds templates without a gate where there are gates that could be meant. A
// policy of all namespaces names gates of each.
func unnamedTemplates(m *manifest.Manifests, r *reporter) {
	named := map[string][]string{}
	for _, o := range m.Objects {
		namespace := o.Namespace()
		if _, ofAll := o.Typed.(*v1alpha1.ClusterConfigPolicy); ofAll {
			namespace = ""
		}
		named[namespace] = append(named[namespace], gatesOf(o)...)
	}
	manifest.Each(m, func(o *manifest.Object, _ *v1alpha1.GateTemplate) {
		gates := named[o.Namespace()]
		if len(gates) > 0 && !slices.Contains(gates, o.Name()) && !slices.Contains(named[""], o.Name()) {
			slices.Sort(gates)
			r.findf(o, manifest.Fields("metadata.name"), "rollouts name %s, and not this gate", strings.Join(slices.Compact(gates), ", "))
		}
	})
}

// gatesOf are the gates that an object names.
func gatesOf(o *manifest.Object) []string {
	var names []string
	switch t := o.Typed.(type) {
	case *v1alpha1.RolloutGroup:
		for _, g := range t.Spec.Gates {
			names = append(names, g.Name)
		}
	case *v1alpha1.ConfigPolicy:
		names = gatesOfRelease(t.Spec.Stages)
	case *v1alpha1.ClusterConfigPolicy:
		names = gatesOfRelease(t.Spec.Stages)
	case *v1beta1.Instance:
		gates, _ := choice.Gates(t)
		for i := range gates {
			names = append(names, gates[i].Name)
		}
	case *fleetv1.Module:
		names = gatesOfStages(t.Spec.Rollout)
	case *fleetv1.BootstrapModule:
		names = gatesOfStages(t.Spec.Rollout)
	}
	return names
}

func gatesOfRelease(stages []v1alpha1.ConfigStage) []string {
	var names []string
	for i := range stages {
		for _, g := range stages[i].Gates {
			names = append(names, g.Name)
		}
	}
	return names
}

func gatesOfStages(rollout *fleetv1.Rollout) []string {
	var names []string
	if rollout == nil {
		return nil
	}
	for i := range rollout.Stages {
		for _, g := range rollout.Stages[i].Gates {
			names = append(names, g.Name)
		}
	}
	return names
}
