package rules

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

func zoneRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW201", Level: report.Error, Title: "A group has an invalid setting",
			Why:    "The whole group stalls until it is fixed, so that nothing is rolled in a way that was not intended.",
			Action: "Correct the value, or remove it.",
		}, groupSettings},
		{report.Rule{
			Code: "SPW202", Level: report.Error, Title: "A group has StatefulSets with mixed or unknown update strategies",
			Why:    "A group is rolled either by partitions or by OnDelete. With both, or neither, it stalls.",
			Action: "Give all StatefulSets of the group the same spec.updateStrategy.type: RollingUpdate, which also keeps evicted Pods at their revision, or OnDelete.",
		}, groupStrategies},
		{report.Rule{
			Code: "SPW203", Level: report.Warning, Title: "The StatefulSets of a group are not pinned to different zones",
			Why:    "Rolling one StatefulSet at a time keeps the others up only where a failure or a rollout of one leaves the others alone: each belongs in a failure domain of its own. A topologySpreadConstraint is the opposite: it spreads each of them over all zones.",
			Action: "Pin each to a zone of its own, by nodeSelector or node affinity on topology.kubernetes.io/zone, or keep each out of the zones of the others, by podAntiAffinity with that topologyKey.",
		}, unspread},
		{report.Rule{
			Code: "SPW204", Level: report.Warning, Title: "A RolloutGroup orders StatefulSets that it does not have",
			Why:    "The name has no effect; the intended StatefulSet is the last.",
			Action: "Fix the name in spec.zoneOrder, or give that StatefulSet the label of the group.",
		}, orderedInVain},
		{report.Rule{
			Code: "SPW205", Level: report.Note, Title: "A group of one StatefulSet",
			Why:    "There is nothing to keep in order: it rolls as its own strategy and budget say.",
			Action: "Give the other zones the same group, or remove the group.",
		}, lonelyGroup},
		{report.Rule{
			Code: "SPW206", Level: report.Error, Title: "A maintenance window is invalid, or never opens",
			Why:    "Outside of its windows a group does not roll at all.",
			Action: "Correct the schedule or the time zone; spec.maintenanceWindows documents both.",
		}, groupWindows},
		{report.Rule{
			Code: "SPW207", Level: report.Warning, Title: "A RolloutGroup without StatefulSets",
			Why:    "No StatefulSet among the manifests names the group. Its policy has no effect on them.",
			Action: "Label the StatefulSets with " + vocabulary.RolloutGroup.Native + " and the name of the group, or delete it.",
		}, desertedGroup},
		{report.Rule{
			Code: "SPW208", Level: report.Error, Title: "Two RolloutGroups of one name with different settings",
			Why:    "Whichever is applied last wins.",
			Action: "Keep one of them.",
		}, contradictingGroups},
		{report.Rule{
			Code: "SPW209", Level: report.Warning, Title: "An annotation that its RolloutGroup overrides",
			Why:    "Where both are set, the RolloutGroup wins.",
			Action: "Set it in one place.",
		}, overridden},
		{report.Rule{
			Code: "SPW210", Level: report.Note, Title: "The StatefulSets of a group are kept apart by something that may not be a zone",
			Why:    "Nodes of one name or label, or volumes of one storage class, may be in several zones, or several of them in one. Then the failure of a zone affects Pods of all StatefulSets.",
			Action: "Make sure that it is a failure domain, or pin each to a zone of its own, by nodeSelector or node affinity on topology.kubernetes.io/zone.",
		}, nearlySpread},
	}
}

// groupRules are about fields of a RolloutGroup.
func groupRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW211", Level: report.Warning, Title: "A setting of a RolloutGroup that another one makes void",
			Why:    "With stuckPods: Keep, no Pod that is not ready is replaced, however long it is so.",
			Action: "Remove spec.stuckAfterSeconds, or set spec.stuckPods to Replace.",
		}, voidSettings},
		{report.Rule{
			Code: "SPW212", Level: report.Warning, Title: "A progress deadline that Pods exceed while they terminate",
			Why:    "A Pod that is replaced has its grace period to terminate, and starts after that. A deadline that is over before makes a rollout fail that does as it should.",
			Action: "Raise spec.progressDeadlineSeconds to the grace period and the time that a Pod takes to start, or remove it: the default is long enough.",
		}, shortDeadlines},
	}
}

// group is a group of StatefulSets.
type group struct {
	namespace, name string
	// policy is its RolloutGroup, nil if none is among the manifests.
	policy  *manifest.Object
	objects []*manifest.Object
	sets    []*appsv1.StatefulSet
}

// The fields by which the problems of groups are distinguished.
const (
	strategyField = "spec.updateStrategy.type"
	windowField   = "spec.maintenanceWindows"
)

func groupSettings(m *manifest.Manifests, r *reporter) {
	groupProblems(m, r, func(field string) bool { return field != strategyField && !strings.HasPrefix(field, windowField) })
}

func groupStrategies(m *manifest.Manifests, r *reporter) {
	groupProblems(m, r, func(field string) bool { return field == strategyField })
}

func groupWindows(m *manifest.Manifests, r *reporter) {
	groupProblems(m, r, func(field string) bool { return strings.HasPrefix(field, windowField) })
}

// groupProblems reports what the ring complains of, of the fields that are wanted.
func groupProblems(m *manifest.Manifests, r *reporter, wanted func(field string) bool) {
	for _, g := range groupsIn(m) {
		for _, p := range decision.ProblemsOf(g.spec(), g.sets) {
			if o := g.object(p.Object); o != nil && wanted(p.Field) {
				field := o.RingField(p.Field)
				if name, ok := strings.CutPrefix(p.Field, "annotation "); ok && name == vocabulary.RolloutGroup.Native {
					field = o.Keyed(vocabulary.RolloutGroup)
				}
				r.findf(o, field, "%s", p.Cause())
			}
		}
	}
}

// object is the one of the group that a problem is of: "StatefulSet x".
func (g *group) object(title string) *manifest.Object {
	for _, o := range append(slices.Clone(g.objects), g.policy) {
		if o != nil && o.Kind()+" "+o.Name() == title {
			return o
		}
	}
	return nil
}

// unspread finds StatefulSets that nothing keeps apart.
func unspread(m *manifest.Manifests, r *reporter) {
	neighbors(m, func(b barrier) bool { return b == "" }, func(o *manifest.Object, other string, _ barrier) {
		r.findf(o, manifest.Fields("spec.template.spec"), "Pods may run in the same zone as those of StatefulSet %s", other)
	})
}

// nearlySpread finds those between which there is something else than a zone.
func nearlySpread(m *manifest.Manifests, r *reporter) {
	neighbors(m, func(b barrier) bool { return b != "" && !b.isZonal() }, func(o *manifest.Object, other string, by barrier) {
		r.findf(o, manifest.Fields("spec.template.spec"), "only %s keeps its Pods apart from those of StatefulSet %s", by, other)
	})
}

// neighbors visits the StatefulSets of groups with the first of those before them
// between which there is such a barrier as is wanted.
func neighbors(m *manifest.Manifests, wanted func(barrier) bool, visit func(o *manifest.Object, other string, by barrier)) {
	for _, g := range groupsIn(m) {
		for i, set := range g.sets {
			for _, other := range g.sets[:i] {
				if found := between(m, set, other); wanted(found) {
					visit(g.objects[i], other.Name, found)
					break
				}
			}
		}
	}
}

func orderedInVain(m *manifest.Manifests, r *reporter) {
	for _, g := range groupsIn(m) {
		if len(g.sets) == 0 {
			continue
		}
		for i, name := range g.spec().Spec.ZoneOrder {
			if !slices.ContainsFunc(g.sets, func(s *appsv1.StatefulSet) bool { return s.Name == name }) {
				r.findf(g.policy, manifest.Item("spec.zoneOrder", i), "StatefulSet %s not found in the group", name)
			}
		}
	}
}

func lonelyGroup(m *manifest.Manifests, r *reporter) {
	for _, g := range groupsIn(m) {
		if len(g.sets) == 1 {
			r.findf(g.objects[0], g.objects[0].Keyed(vocabulary.RolloutGroup), "the only StatefulSet of group %s", g.name)
		}
	}
}

func desertedGroup(m *manifest.Manifests, r *reporter) {
	for _, g := range groupsIn(m) {
		if len(g.sets) == 0 {
			r.findf(g.policy, manifest.Fields("metadata.name"), "no StatefulSet belongs to the group")
		}
	}
}

// contradictingGroups finds what would be one object in the cluster.
func contradictingGroups(m *manifest.Manifests, r *reporter) {
	seen := map[[2]string]*manifest.Object{}
	manifest.Each(m, func(o *manifest.Object, policy *v1alpha1.RolloutGroup) {
		key := [2]string{policy.Namespace, policy.Name}
		if first := seen[key]; first != nil && !sameSpec(first, o) {
			r.findf(o, manifest.Fields("metadata.name"), "settings differ from those of the RolloutGroup of the same name in %s:%d", first.File, first.Line)
			return
		}
		seen[key] = o
	})
}

func overridden(m *manifest.Manifests, r *reporter) {
	for _, g := range groupsIn(m) {
		wins := g.spec().Spec.MaxUnavailable
		for _, o := range g.objects {
			value, name, ok := vocabulary.RolloutMaxUnavailable.Lookup(o.Object.GetAnnotations())
			if ok && wins != nil && value != wins.String() {
				r.findf(o, manifest.Annotation(name), "%s is %s, and its RolloutGroup sets %s, which is used", name, value, wins)
			}
			_, name, ok = vocabulary.ZoneOrder.Lookup(o.Object.GetAnnotations())
			if ok && slices.Contains(g.spec().Spec.ZoneOrder, o.Name()) {
				r.findf(o, manifest.Annotation(name), "%s has no effect: the RolloutGroup sets its order", name)
			}
		}
	}
}

func voidSettings(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, policy *v1alpha1.RolloutGroup) {
		if policy.Spec.StuckAfterSeconds != nil && policy.Spec.StuckPods == v1alpha1.KeepStuckPods {
			r.findf(o, manifest.Fields("spec.stuckAfterSeconds"), "stuckAfterSeconds has no effect: stuckPods is Keep")
		}
	})
}

func shortDeadlines(m *manifest.Manifests, r *reporter) {
	for _, g := range groupsIn(m) {
		limit := g.spec().Spec.ProgressDeadlineSeconds
		if limit == nil {
			continue
		}
		for _, set := range g.sets {
			if grace := decision.GraceOf(set); time.Duration(*limit)*time.Second <= grace {
				r.findf(g.policy, manifest.Fields("spec.progressDeadlineSeconds"), "progressDeadlineSeconds is %d, and Pods of StatefulSet %s have %.0f seconds to terminate",
					*limit, set.Name, grace.Seconds())
				break
			}
		}
	}
}

// groupsIn are those that StatefulSets name, and those that have a RolloutGroup.
func groupsIn(m *manifest.Manifests) []*group {
	var found []*group
	of := func(namespace, name string) *group {
		i := slices.IndexFunc(found, func(g *group) bool { return g.namespace == namespace && g.name == name })
		if i >= 0 {
			return found[i]
		}
		found = append(found, &group{namespace: namespace, name: name})
		return found[len(found)-1]
	}
	manifest.Each(m, func(o *manifest.Object, set *appsv1.StatefulSet) {
		if name := vocabulary.GroupOf(set.Labels, set.Annotations); name != "" {
			g := of(set.Namespace, name)
			g.objects, g.sets = append(g.objects, o), append(g.sets, set)
		}
	})
	manifest.Each(m, func(o *manifest.Object, policy *v1alpha1.RolloutGroup) { of(policy.Namespace, policy.Name).policy = o })
	var all []*group
	for _, g := range found {
		all = append(all, g.variants()...)
	}
	return all
}

// variants are the group in each of the directories that have it, if a StatefulSet is in several:
// overlays and examples are for different clusters, so that their StatefulSets never meet.
func (g *group) variants() []*group {
	names := map[string]bool{}
	for _, set := range g.sets {
		names[set.Name] = true
	}
	if len(names) == len(g.sets) {
		return []*group{g}
	}
	var all []*group
	in := map[string]*group{}
	for i, o := range g.objects {
		dir := path.Dir(filepath.ToSlash(o.File))
		if in[dir] == nil {
			in[dir] = &group{namespace: g.namespace, name: g.name, policy: g.policy}
			all = append(all, in[dir])
		}
		in[dir].objects, in[dir].sets = append(in[dir].objects, o), append(in[dir].sets, g.sets[i])
	}
	return all
}

// spec is the group with its policy, which is empty if none is among the manifests.
func (g *group) spec() *v1alpha1.RolloutGroup {
	if g.policy != nil {
		if written, ok := g.policy.Typed.(*v1alpha1.RolloutGroup); ok {
			return written
		}
	}
	empty := &v1alpha1.RolloutGroup{}
	empty.Namespace, empty.Name = g.namespace, g.name
	return empty
}
