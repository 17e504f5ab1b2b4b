package rules

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
)

// limitRules are about how many clusters of a module may be lost or unready.
func limitRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW511", Level: report.Warning, Title: "A limit on removals that limits nothing",
			Why:    "A mistake in spec.selector then removes the module from every cluster, without an approval.",
			Action: "Lower maxRemoved, or leave it out: the default is 10%, and at least 1.",
		}, boundlessRemovals},
		{report.Rule{
			Code: "SPW512", Level: report.Warning, Title: "More clusters lose a module than may without an approval",
			Why:    "While there are more than maxRemoved, none of them loses the module until a user approves their number.",
			Action: "Fix the selector or the labels of the clusters; or apply it, and approve the number: spillway fleet approve MODULE --remove=NUMBER.",
		}, unapprovedRemovals},
		{report.Rule{
			Code: "SPW513", Level: report.Note, Title: "Failures that a module tolerates are not part of its budget",
			Why:    "A cluster that has failed, and that maxFailures tolerates, takes no place in maxUnreadyClusters. As many clusters may be unready as both allow together.",
			Action: "Nothing if that is intended; otherwise lower maxFailures.",
		}, toleratedFailures},
	}
}

// boundlessRemovals finds limits that all clusters are within: those that the manifests
// show, where they show more than one.
func boundlessRemovals(m *manifest.Manifests, r *reporter) {
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		if spec.Rollout == nil || spec.Rollout.MaxRemoved == nil {
			return
		}
		path := manifest.Fields("spec.rollout.maxRemoved")
		limit, clusters := decision.MaxRemoved(spec.Rollout), len(clustersIn(m, o.Namespace()))
		switch {
		case limit.Percent && limit.Value >= 100:
			r.findf(o, path, "maxRemoved is %s: all clusters can lose the module without an approval", spec.Rollout.MaxRemoved)
		case !limit.Percent && clusters > 1 && limit.Value >= clusters:
			r.findf(o, path, "maxRemoved is %s: all %d clusters that the manifests show can lose the module without an approval", spec.Rollout.MaxRemoved, clusters)
		}
	})
}

// unapprovedRemovals counts the clusters that have a module by an assemblage, and those of
// them that no longer match its selector.
func unapprovedRemovals(m *manifest.Manifests, r *reporter) {
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
		if err != nil || spec.Selector == nil || spec.Strategy == v1alpha1.External {
			return
		}
		var have, lose []string
		for name, of := range labelsOf(m, o.Namespace()) {
			if !hasSync(m, o, name) {
				continue
			}
			if have = append(have, name); !selector.Matches(of) {
				lose = append(lose, name)
			}
		}
		if limit := decision.MaxRemoved(spec.Rollout).Of(len(have)); len(lose) > limit {
			slices.Sort(lose)
			r.findf(o, manifest.Fields("spec.selector"), "%d of %d clusters that have it no longer match, more than %d (maxRemoved): %s",
				len(lose), len(have), limit, strings.Join(lose, ", "))
		}
	})
}

// labelsOf are those of the clusters that the manifests show, by the name of the cluster.
func labelsOf(m *manifest.Manifests, namespace string) map[string]labels.Set {
	all := map[string]labels.Set{}
	for _, o := range m.Objects {
		if manifest.IsFleetCluster(o) && o.Namespace() == namespace {
			all[strings.TrimSuffix(o.Name(), cluster.SecretName(""))] = o.Object.GetLabels()
		}
	}
	return all
}

// hasSync is true of a cluster to which an assemblage assigns a module.
func hasSync(m *manifest.Manifests, module *manifest.Object, name string) bool {
	return slices.ContainsFunc(m.Objects, func(o *manifest.Object) bool {
		a := describe.AssemblageOf(o.Typed)
		return o.Kind() == describe.AssemblageKind(module.Kind()) && o.Name() == name && o.Namespace() == module.Namespace() && a.Assignment(module.Name()) != nil
	})
}
