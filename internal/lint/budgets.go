package lint

import (
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/zones/budget"
)

func budgetRules() []Rule {
	return []Rule{
		{
			Code: "SPW305", Level: Warning, Title: "A PodDisruptionBudget that lets no Pod be evicted",
			Why:    "It forbids every eviction, and so every drain of a node: for ever, or for as long as no more Pods run than an autoscaler leaves at least.",
			Action: "Allow at least one Pod to be down: maxUnavailable of 1, or a minAvailable below the replicas, and below the least replicas of an autoscaler.", check: impossibleBudget,
		},
		{
			Code: "SPW306", Level: Error, Title: "A ZoneAwarePodDisruptionBudget that cannot be understood",
			Why:    "Evictions of its Pods are refused, and the group that they belong to stalls.",
			Action: "Correct the field that is named.", check: badZoneBudget,
		},
		{
			Code: "SPW307", Level: Warning, Title: "A ZoneAwarePodDisruptionBudget of zero",
			Why:    "It forbids every eviction, and so every drain of a node, for ever. Rollouts do not count it.",
			Action: "Allow at least one Pod to be down.", check: zeroZoneBudget,
		},
		{
			Code: "SPW308", Level: Error, Title: "Two budgets for the same Pods",
			Why:    "The eviction of a Pod for which there are two budgets of one kind is an error, whatever they allow.",
			Action: "Keep one of them, or make their selectors differ.", check: twoBudgets,
		},
		{
			Code: "SPW309", Level: Note, Title: "A budget for no Pods",
			Why:    "It selects none of the Pods that the manifests run.",
			Action: "Fix its selector, or delete it.", check: idleBudget,
		},
	}
}

// run is something that runs Pods.
type run struct {
	o      *Object
	labels labels.Set
}

// runs are those in a namespace.
func (m *Manifests) runs(namespace string) []run {
	var found []run
	for _, o := range m.Objects {
		template, _ := o.pods()
		if template == nil || o.namespace() != namespace {
			continue
		}
		found = append(found, run{o, template.Labels})
	}
	return found
}

// selected are the runs that a selector finds; none if it cannot be understood.
func (m *Manifests) selected(namespace string, selector *metav1.LabelSelector) []run {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(m.runs(namespace), func(w run) bool { return !s.Matches(w.labels) })
}

func impossibleBudget(m *Manifests, r *reporter) {
	each(m, func(o *Object, b *policyv1.PodDisruptionBudget) {
		total := m.sum(m.selected(b.Namespace, b.Spec.Selector))
		switch {
		case b.Spec.MaxUnavailable != nil && isZero(b.Spec.MaxUnavailable):
			r.findf(o, fields("spec.maxUnavailable"), "maxUnavailable is %s: no Pod may ever be evicted", b.Spec.MaxUnavailable)
		case b.Spec.MinAvailable == nil || !takesAll(b.Spec.MinAvailable, total.pods):
		case total.by != nil:
			r.findf(o, fields("spec.minAvailable"), "minAvailable is %s, and %s %s may leave no more than %s for it: none may be evicted then",
				b.Spec.MinAvailable, total.by.Object.kind(), total.by.Object.name(), plural(total.pods, "Pod"))
		default:
			r.findf(o, fields("spec.minAvailable"), "minAvailable is %s, and the manifests run %s for it: none may ever be evicted", b.Spec.MinAvailable, plural(total.pods, "Pod"))
		}
	})
}

// sum is how few Pods all of them run, and a scaler that leaves no more.
func (m *Manifests) sum(runs []run) count {
	var total count
	for _, w := range runs {
		c := m.fewest(w.o)
		if c.pods == unknown {
			return c
		}
		total.pods += c.pods
		if c.by != nil {
			total.by = c.by
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

func badZoneBudget(m *Manifests, r *reporter) {
	each(m, func(o *Object, b *zonesv1.ZoneAwarePodDisruptionBudget) {
		if _, err := budget.Of(b); err != nil {
			r.findf(o, fields("spec"), "%s", err)
		}
	})
}

func zeroZoneBudget(m *Manifests, r *reporter) {
	each(m, func(o *Object, b *zonesv1.ZoneAwarePodDisruptionBudget) {
		for field, value := range map[string]*int32{"spec.maxUnavailable": b.Spec.MaxUnavailable, "spec.maxUnavailablePercentage": b.Spec.MaxUnavailablePercentage} {
			if value != nil && *value == 0 {
				r.findf(o, fields(field), "%s is 0: no Pod may ever be evicted", strings.TrimPrefix(field, "spec."))
			}
		}
	})
}

// budgetOf is a budget of either kind, and whom it selects.
type budgetOf struct {
	o        *Object
	selector *metav1.LabelSelector
}

func (m *Manifests) budgets() []budgetOf {
	var found []budgetOf
	each(m, func(o *Object, b *policyv1.PodDisruptionBudget) { found = append(found, budgetOf{o, b.Spec.Selector}) })
	each(m, func(o *Object, b *zonesv1.ZoneAwarePodDisruptionBudget) {
		found = append(found, budgetOf{o, &metav1.LabelSelector{MatchLabels: b.Spec.Selector.MatchLabels}})
	})
	return found
}

func twoBudgets(m *Manifests, r *reporter) {
	type pods struct {
		kind string
		run  *Object
	}
	taken := map[pods]*Object{}
	for _, b := range m.budgets() {
		for _, w := range m.selected(b.o.namespace(), b.selector) {
			key := pods{b.o.kind(), w.o}
			if first := taken[key]; first != nil && first.name() != b.o.name() {
				r.findf(b.o, fields("spec.selector"), "%s %s is for the Pods of %s %s as well", first.kind(), first.name(), w.o.kind(), w.o.name())
				break
			}
			taken[key] = b.o
		}
	}
}

// idleBudget finds budgets for no Pods, where the manifests show all of them.
func idleBudget(m *Manifests, r *reporter) {
	for _, b := range m.budgets() {
		if len(m.selected(b.o.namespace(), b.selector)) == 0 && !m.mayRunPods(b.o.namespace()) {
			r.findf(b.o, fields("spec.selector"), "it selects none of the Pods that the manifests run")
		}
	}
}
