package rules

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/budget"
	"github.com/spillway-dev/spillway/internal/zones/preparehook"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

func scalingRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW301", Level: report.Error, Title: "A setting about scaling is invalid",
			Why:    "The StatefulSet keeps its replicas until it is fixed.",
			Action: "Correct the value, or remove it.",
		}, scalingSettings},
		{report.Rule{
			Code: "SPW302", Level: report.Error, Title: "Pods are to be prepared for a downscale, and no endpoint is set",
			Why:    "Every downscale of the StatefulSet is refused.",
			Action: "Set " + vocabulary.PrepareDownscalePort.Native + ", " + vocabulary.PrepareDownscalePath.Native + " and spec.serviceName, or remove the label " + vocabulary.PrepareDownscale.Native + ".",
		}, unprepared},
		{report.Rule{
			Code: "SPW303", Level: report.Error, Title: "A leader that cannot be followed",
			Why:    "A follower whose leader is not in its group, or follows it in turn, keeps its replicas.",
			Action: "Name a StatefulSet of the same group that does not follow this one.",
		}, badLeader},
		{report.Rule{
			Code: "SPW304", Level: report.Warning, Title: "A setting about scaling without the setting that it belongs to",
			Why:    "Half of a pair has no effect.",
			Action: "Add the other half, or remove this one.",
		}, halves},
		{report.Rule{
			Code: "SPW310", Level: report.Warning, Title: "Two writers of the replicas of one StatefulSet",
			Why:    "Each reverts what the other writes.",
			Action: "Keep one of them; to let an autoscaler scale a group, let it scale the leader.",
		}, twoScalers},
		{report.Rule{
			Code: "SPW311", Level: report.Warning, Title: "A follower that must never be scaled down",
			Why:    "It is scaled up with its leader, and every downscale is refused.",
			Action: "Remove the label " + vocabulary.NoDownscale.Native + ", or the leader.",
		}, oneWay},
		{report.Rule{
			Code: "SPW312", Level: report.Note, Title: "A leader that is not among the manifests",
			Why:    "It may exist in the cluster already. Until it exists in the same group, the follower keeps its replicas.",
			Action: "Add it, or fix its name.",
		}, absentLeader},
		{report.Rule{
			Code: "SPW313", Level: report.Warning, Title: "Something that is proposed for rollout-operator",
			Why:    "Spillway does not read it, and rolls as if it did not exist.",
			Action: "Use what the finding names instead.",
		}, proposed},
		{report.Rule{
			Code: "SPW314", Level: report.Note, Title: "A follower with replicas in its manifest",
			Why:    "Its replicas are those of its leader. A client that applies the manifest again and again sets them back, and each time Pods are added or removed; Spillway then keeps the replicas as they are, and says so.",
			Action: "Remove spec.replicas from the manifest of the follower, or have the client ignore the field.",
		}, fixedFollower},
	}
}

func scalingSettings(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		for _, p := range scaling.SettingsOf(set.Labels, set.Annotations).Problems {
			r.findf(o, o.RingField("annotation "+p.Field), "%s: invalid value %q: %s", p.Field, p.Value, p.Action)
		}
	})
}

func unprepared(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		if vocabulary.PrepareDownscale.Get(set.Labels) != "true" {
			return
		}
		if _, missing := preparehook.EndpointOf(set); missing != "" {
			r.findf(o, o.Keyed(vocabulary.PrepareDownscale), "its Pods are to be prepared before they are removed, but %s", strings.TrimSuffix(missing, "."))
		}
	})
}

func badLeader(m *manifest.Manifests, r *reporter) {
	for _, g := range groupsIn(m) {
		for _, o := range g.objects {
			if problem := scaling.LeaderProblem(o.Name(), g.sets); problem != "" && m.Leader(o) != nil {
				r.findf(o, o.Keyed(vocabulary.DownscaleLeader), "%s", problem)
			}
		}
	}
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		if vocabulary.GroupOf(set.Labels, set.Annotations) == "" && vocabulary.DownscaleLeader.Get(set.Annotations) != "" {
			r.findf(o, o.Keyed(vocabulary.DownscaleLeader), "a leader is set, and no group")
		}
	})
}

func absentLeader(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		if name := vocabulary.DownscaleLeader.Get(set.Annotations); name != "" && m.Leader(o) == nil {
			r.findf(o, o.Keyed(vocabulary.DownscaleLeader), "its leader %s is not among the manifests", name)
		}
	})
}

// half is a key that has no effect without any of the others.
type half struct {
	key   vocabulary.Key
	needs []vocabulary.Key
}

func halves(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		for _, pair := range pairs() {
			_, name, ok := pair.key.Lookup(set.Annotations)
			if !ok || slices.ContainsFunc(pair.needs, func(k vocabulary.Key) bool { return k.Get(set.Annotations)+k.Get(set.Labels) != "" }) {
				continue
			}
			r.findf(o, manifest.Annotation(name), "%s has no effect without %s", name, nativeNames(pair.needs))
		}
	})
}

func pairs() []half {
	return []half{
		{vocabulary.UpscaleOnlyWhenLeaderReady, []vocabulary.Key{vocabulary.DownscaleLeader}},
		{vocabulary.ForceReplicas, []vocabulary.Key{vocabulary.DownscaleLeader, vocabulary.MirrorName}},
		{vocabulary.MirrorName, []vocabulary.Key{vocabulary.MirrorKind}},
		{vocabulary.MirrorKind, []vocabulary.Key{vocabulary.MirrorName}},
		{vocabulary.MirrorAPIVersion, []vocabulary.Key{vocabulary.MirrorName}},
		{vocabulary.MirrorWriteBack, []vocabulary.Key{vocabulary.MirrorName}},
		{vocabulary.DelayedDownscale, []vocabulary.Key{vocabulary.DelayedDownscaleURL}},
		{vocabulary.DelayedDownscaleURL, []vocabulary.Key{vocabulary.DelayedDownscale}},
		{vocabulary.PrepareDownscalePort, []vocabulary.Key{vocabulary.PrepareDownscale}},
		{vocabulary.PrepareDownscalePath, []vocabulary.Key{vocabulary.PrepareDownscale}},
		{vocabulary.PrepareDownscaleScheme, []vocabulary.Key{vocabulary.PrepareDownscale}},
	}
}

func nativeNames(keys []vocabulary.Key) string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Native)
	}
	return strings.Join(names, " or ")
}

func twoScalers(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		leads, _, follows := vocabulary.DownscaleLeader.Lookup(set.Annotations)
		mirrored, name, mirrors := vocabulary.MirrorName.Lookup(set.Annotations)
		if follows && mirrors && leads != "" && mirrored != "" {
			r.findf(o, manifest.Annotation(name), "replicas follow %s, and so do not mirror %s", leads, mirrored)
		}
	})
	for i := range m.Scalers {
		s := &m.Scalers[i]
		_, set := manifest.Find[*appsv1.StatefulSet](m, s.Namespace(), s.Name)
		if s.Kind != "StatefulSet" || set == nil {
			continue
		}
		if wanted := scaling.SettingsOf(set.Labels, set.Annotations); wanted.Leader != "" || wanted.Mirror != nil {
			r.findf(s.Object, manifest.Fields("spec.scaleTargetRef"), "the replicas of StatefulSet %s are written by Spillway already", set.Name)
		}
	}
}

func proposed(m *manifest.Manifests, r *reporter) {
	for _, o := range m.Objects {
		for _, u := range o.Keys() {
			if instead := vocabulary.Unsupported(o.Kind(), u.Name); instead != "" {
				r.findf(o, u.Path, "%s has no effect", u.Name)
				r.actionf("Remove it; instead, %s.", instead)
			}
		}
		if o.Kind() == vocabulary.UnsupportedKind {
			r.findf(o, manifest.Fields("kind"), "Spillway does not evaluate it")
			r.actionf("%s.", strings.ToUpper(vocabulary.InsteadOfKind[:1])+vocabulary.InsteadOfKind[1:])
		}
	}
}

func fixedFollower(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		if leader := vocabulary.DownscaleLeader.Get(set.Annotations); leader != "" && set.Spec.Replicas != nil {
			r.findf(o, manifest.Fields("spec.replicas"), "its replicas are those of its leader %s, and not %d", leader, *set.Spec.Replicas)
		}
	})
}

func oneWay(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		s := scaling.SettingsOf(set.Labels, set.Annotations)
		if vocabulary.NoDownscale.Get(set.Labels) == "true" && (s.Leader != "" || s.Mirror != nil) {
			r.findf(o, o.Keyed(vocabulary.NoDownscale), "replicas are written by Spillway, and every downscale is refused")
		}
	})
}

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
