package rules

import (
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/zones/budget"
)

func budgetRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW305", Level: report.Warning, Title: "A PodDisruptionBudget that lets no Pod be evicted",
			Why:    "It forbids every eviction, and so every drain of a node: always, or as long as an autoscaler runs its minimum of Pods.",
			Action: "Allow at least one disruption: maxUnavailable of 1, or a minAvailable below the replicas, and below the minimum of an autoscaler.",
		}, impossibleBudget},
		{report.Rule{
			Code: "SPW306", Level: report.Error, Title: "An invalid ZoneAwarePodDisruptionBudget",
			Why:    "Evictions of its Pods are refused, and the group that they belong to stalls.",
			Action: "Correct the field that is named.",
		}, badZoneBudget},
		{report.Rule{
			Code: "SPW307", Level: report.Warning, Title: "A ZoneAwarePodDisruptionBudget of zero",
			Why:    "It forbids every eviction, and so every drain of a node. Rollouts ignore it.",
			Action: "Allow at least one disruption.",
		}, zeroZoneBudget},
		{report.Rule{
			Code: "SPW308", Level: report.Error, Title: "Two budgets for the same Pods",
			Why:    "The eviction of a Pod for which there are two budgets of one kind is an error, whatever they allow.",
			Action: "Keep one of them, or make their selectors differ.",
		}, twoBudgets},
		{report.Rule{
			Code: "SPW309", Level: report.Note, Title: "A budget for no Pods",
			Why:    "It selects none of the Pods that the manifests run.",
			Action: "Fix its selector, or delete it.",
		}, idleBudget},
	}
}

func impossibleBudget(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, b *policyv1.PodDisruptionBudget) {
		total := sum(m, m.Selected(b.Namespace, b.Spec.Selector))
		switch {
		case b.Spec.MaxUnavailable != nil && isZero(b.Spec.MaxUnavailable):
			r.findf(o, manifest.Fields("spec.maxUnavailable"), "maxUnavailable is %s: no Pod can be evicted", b.Spec.MaxUnavailable)
		case b.Spec.MinAvailable == nil || !takesAll(b.Spec.MinAvailable, total.Pods):
		case total.By != nil:
			r.findf(o, manifest.Fields("spec.minAvailable"), "minAvailable is %s, and %s %s may leave only %s for it: then no Pod can be evicted",
				b.Spec.MinAvailable, total.By.Object.Kind(), total.By.Object.Name(), report.Plural(total.Pods, "Pod"))
		default:
			r.findf(o, manifest.Fields("spec.minAvailable"), "minAvailable is %s, and the manifests run %s for it: no Pod can be evicted", b.Spec.MinAvailable, report.Plural(total.Pods, "Pod"))
		}
	})
}

// sum is how few Pods all of them run, and a scaler that leaves no more.
func sum(m *manifest.Manifests, runs []manifest.Run) manifest.Count {
	var total manifest.Count
	for _, w := range runs {
		c := m.Fewest(w.O)
		if c.Pods == manifest.Unknown {
			return c
		}
		total.Pods += c.Pods
		if c.By != nil {
			total.By = c.By
		}
	}
	return total
}

func isZero(v *intstr.IntOrString) bool {
	n, err := intstr.GetScaledValueFromIntOrPercent(v, 100, true)
	return err == nil && n == 0
}

// takesAll is true if so many are all of a total that is known, and is not zero:
// what is scaled to zero has nothing to evict.
func takesAll(v *intstr.IntOrString, total int) bool {
	n, err := intstr.GetScaledValueFromIntOrPercent(v, total, true)
	return err == nil && total > 0 && n >= total
}

func badZoneBudget(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, b *zonesv1.ZoneAwarePodDisruptionBudget) {
		if _, err := budget.Of(b); err != nil {
			r.findf(o, manifest.Fields("spec"), "%s", err)
		}
	})
}

func zeroZoneBudget(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, b *zonesv1.ZoneAwarePodDisruptionBudget) {
		for field, value := range map[string]*int32{"spec.maxUnavailable": b.Spec.MaxUnavailable, "spec.maxUnavailablePercentage": b.Spec.MaxUnavailablePercentage} {
			if value != nil && *value == 0 {
				r.findf(o, manifest.Fields(field), "%s is 0: no Pod can be evicted", strings.TrimPrefix(field, "spec."))
			}
		}
	})
}

// budgetOf is a budget of either kind, and whom it selects.
type budgetOf struct {
	o        *manifest.Object
	selector *metav1.LabelSelector
}

func twoBudgets(m *manifest.Manifests, r *reporter) {
	type pods struct {
		kind string
		run  *manifest.Object
	}
	taken := map[pods]*manifest.Object{}
	for _, b := range budgetsIn(m) {
		for _, w := range m.Selected(b.o.Namespace(), b.selector) {
			key := pods{b.o.Kind(), w.O}
			if first := taken[key]; first != nil && first.Name() != b.o.Name() {
				r.findf(b.o, manifest.Fields("spec.selector"), "%s %s selects the Pods of %s %s as well", first.Kind(), first.Name(), w.O.Kind(), w.O.Name())
				break
			}
			taken[key] = b.o
		}
	}
}

// idleBudget finds budgets for no Pods, where the manifests show all of them.
func idleBudget(m *manifest.Manifests, r *reporter) {
	for _, b := range budgetsIn(m) {
		if len(m.Selected(b.o.Namespace(), b.selector)) == 0 && !m.MayRunPods(b.o.Namespace()) {
			r.findf(b.o, manifest.Fields("spec.selector"), "selects none of the Pods that the manifests run")
		}
	}
}

func budgetsIn(m *manifest.Manifests) []budgetOf {
	var found []budgetOf
	manifest.Each(m, func(o *manifest.Object, b *policyv1.PodDisruptionBudget) {
		found = append(found, budgetOf{o, b.Spec.Selector})
	})
	manifest.Each(m, func(o *manifest.Object, b *zonesv1.ZoneAwarePodDisruptionBudget) {
		found = append(found, budgetOf{o, &metav1.LabelSelector{MatchLabels: b.Spec.Selector.MatchLabels}})
	})
	return found
}
