package lint

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones"
)

func zoneRules() []Rule {
	return []Rule{
		{
			Code: "SPW201", Level: Error, Title: "A group has a setting that cannot be understood",
			Why:    "The whole group stalls until it is fixed, so that nothing is rolled against what somebody meant.",
			Action: "Correct the value, or take it out.", check: groupSettings,
		},
		{
			Code: "SPW202", Level: Error, Title: "A group has StatefulSets with mixed or unknown update strategies",
			Why:    "A group is held either by partitions or by OnDelete. With both, or neither, it stalls.",
			Action: "Give all StatefulSets of the group the same spec.updateStrategy.type: RollingUpdate, which also keeps evicted Pods at their revision, or OnDelete.", check: groupStrategies,
		},
		{
			Code: "SPW203", Level: Warning, Title: "The StatefulSets of a group are not pinned to different zones",
			Why:    "Rolling one StatefulSet at a time keeps the others up only where a failure or a rollout of one leaves the others alone: each belongs into a failure domain of its own. A topologySpreadConstraint is the opposite: it spreads each of them over all zones.",
			Action: "Pin each to a zone of its own, by nodeSelector or node affinity on topology.kubernetes.io/zone, or keep each out of the zones of the others, by podAntiAffinity with that topologyKey.", check: unspread,
		},
		{
			Code: "SPW204", Level: Warning, Title: "A RolloutGroup orders StatefulSets that it does not have",
			Why:    "The name has no effect; the StatefulSet that is meant goes last.",
			Action: "Fix the name in spec.zoneOrder, or give that StatefulSet the label of the group.", check: orderedInVain,
		},
		{
			Code: "SPW205", Level: Note, Title: "A group of one StatefulSet",
			Why:    "There is nothing to keep in order: it rolls as its own strategy and budget say.",
			Action: "Give the other zones the same group, or do without it.", check: lonelyGroup,
		},
		{
			Code: "SPW206", Level: Error, Title: "A maintenance window cannot be understood, or never opens",
			Why:    "Outside of its windows a group does not roll at all.",
			Action: "Correct the schedule or the time zone; spec.maintenanceWindows documents both.", check: groupWindows,
		},
		{
			Code: "SPW207", Level: Warning, Title: "A RolloutGroup without StatefulSets",
			Why:    "No StatefulSet among the manifests names the group. Its policy has no effect on them.",
			Action: "Label the StatefulSets with " + vocabulary.RolloutGroup.Native + " and the name of the group, or delete it.", check: desertedGroup,
		},
		{
			Code: "SPW208", Level: Error, Title: "Two RolloutGroups of one name with different settings",
			Why:    "Whichever is applied last wins.",
			Action: "Keep one of them.", check: contradictingGroups,
		},
		{
			Code: "SPW209", Level: Warning, Title: "An annotation that its RolloutGroup overrides",
			Why:    "Where both say something, the RolloutGroup wins.",
			Action: "Say it in one place.", check: overridden,
		},
		{
			Code: "SPW210", Level: Note, Title: "The StatefulSets of a group are kept apart by something that may be no zone",
			Why:    "Nodes of one name or label, or volumes of one storage class, may stand in several zones, or several of them in one. Then what takes a zone away takes Pods of all StatefulSets.",
			Action: "Make sure that it is a failure domain, or pin each to a zone of its own, by nodeSelector or node affinity on topology.kubernetes.io/zone.", check: nearlySpread,
		},
	}
}

// group is a group of StatefulSets.
type group struct {
	namespace, name string
	// policy is its RolloutGroup, nil if nobody wrote one.
	policy  *Object
	objects []*Object
	sets    []*appsv1.StatefulSet
}

// groups are those that StatefulSets name, and those that have a RolloutGroup.
func (m *Manifests) groups() []*group {
	var found []*group
	of := func(namespace, name string) *group {
		i := slices.IndexFunc(found, func(g *group) bool { return g.namespace == namespace && g.name == name })
		if i >= 0 {
			return found[i]
		}
		found = append(found, &group{namespace: namespace, name: name})
		return found[len(found)-1]
	}
	each(m, func(o *Object, set *appsv1.StatefulSet) {
		if name := vocabulary.GroupOf(set.Labels, set.Annotations); name != "" {
			g := of(set.Namespace, name)
			g.objects, g.sets = append(g.objects, o), append(g.sets, set)
		}
	})
	each(m, func(o *Object, policy *v1alpha1.RolloutGroup) { of(policy.Namespace, policy.Name).policy = o })
	return found
}

// spec is the group with its policy, which is empty if nobody wrote one.
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

// object is the one of the group that a problem is of: "StatefulSet x".
func (g *group) object(title string) *Object {
	for _, o := range append(slices.Clone(g.objects), g.policy) {
		if o != nil && o.kind()+" "+o.name() == title {
			return o
		}
	}
	return nil
}

// The fields by which the problems of groups are told apart.
const (
	strategyField = "spec.updateStrategy.type"
	windowField   = "spec.maintenanceWindows"
)

// problems reports what the ring complains of, of the fields that are wanted.
func groupProblems(m *Manifests, r *reporter, wanted func(field string) bool) {
	for _, g := range m.groups() {
		for _, p := range zones.ProblemsOf(g.spec(), g.sets) {
			if o := g.object(p.Object); o != nil && wanted(p.Field) {
				path := o.ringField(p.Field)
				if name, ok := strings.CutPrefix(p.Field, "annotation "); ok && name == vocabulary.RolloutGroup.Native {
					path = o.keyed(vocabulary.RolloutGroup)
				}
				r.findf(o, path, "%s: %q %s", p.Field, p.Value, p.Action)
			}
		}
	}
}

func groupSettings(m *Manifests, r *reporter) {
	groupProblems(m, r, func(field string) bool { return field != strategyField && !strings.HasPrefix(field, windowField) })
}

func groupStrategies(m *Manifests, r *reporter) {
	groupProblems(m, r, func(field string) bool { return field == strategyField })
}

func groupWindows(m *Manifests, r *reporter) {
	groupProblems(m, r, func(field string) bool { return strings.HasPrefix(field, windowField) })
}

// neighbours visits the StatefulSets of groups with the first of those before them
// between which there is such a barrier as is wanted.
func neighbours(m *Manifests, wanted func(barrier) bool, visit func(o *Object, other string, between barrier)) {
	for _, g := range m.groups() {
		for i, set := range g.sets {
			for _, other := range g.sets[:i] {
				if between := m.between(set, other); wanted(between) {
					visit(g.objects[i], other.Name, between)
					break
				}
			}
		}
	}
}

// unspread finds StatefulSets that nothing keeps apart.
func unspread(m *Manifests, r *reporter) {
	neighbours(m, func(b barrier) bool { return b == "" }, func(o *Object, other string, _ barrier) {
		r.findf(o, fields("spec.template.spec"), "its Pods may run in the same zone as those of StatefulSet %s", other)
	})
}

// nearlySpread finds those between which there is something else than a zone.
func nearlySpread(m *Manifests, r *reporter) {
	neighbours(m, func(b barrier) bool { return b != "" && !b.isZonal() }, func(o *Object, other string, between barrier) {
		r.findf(o, fields("spec.template.spec"), "nothing but %s keeps its Pods apart from those of StatefulSet %s", between, other)
	})
}

func orderedInVain(m *Manifests, r *reporter) {
	for _, g := range m.groups() {
		if len(g.sets) == 0 {
			continue
		}
		for i, name := range g.spec().Spec.ZoneOrder {
			if !slices.ContainsFunc(g.sets, func(s *appsv1.StatefulSet) bool { return s.Name == name }) {
				r.findf(g.policy, item("spec.zoneOrder", i), "there is no StatefulSet %s in the group", name)
			}
		}
	}
}

func lonelyGroup(m *Manifests, r *reporter) {
	for _, g := range m.groups() {
		if len(g.sets) == 1 {
			r.findf(g.objects[0], g.objects[0].keyed(vocabulary.RolloutGroup), "it is the only StatefulSet of group %s", g.name)
		}
	}
}

func desertedGroup(m *Manifests, r *reporter) {
	for _, g := range m.groups() {
		if len(g.sets) == 0 {
			r.findf(g.policy, fields("metadata.name"), "no StatefulSet belongs to the group")
		}
	}
}

// contradictingGroups finds what would be one object in the cluster.
func contradictingGroups(m *Manifests, r *reporter) {
	seen := map[[2]string]*Object{}
	each(m, func(o *Object, policy *v1alpha1.RolloutGroup) {
		key := [2]string{policy.Namespace, policy.Name}
		if first := seen[key]; first != nil && !sameSpec(first, o) {
			r.findf(o, fields("metadata.name"), "it says other than the RolloutGroup of the same name in %s:%d", first.File, first.Line)
			return
		}
		seen[key] = o
	})
}

func overridden(m *Manifests, r *reporter) {
	for _, g := range m.groups() {
		wins := g.spec().Spec.MaxUnavailable
		for _, o := range g.objects {
			value, name, ok := vocabulary.RolloutMaxUnavailable.Lookup(o.Object.GetAnnotations())
			if ok && wins != nil && value != wins.String() {
				r.findf(o, annotation(name), "%s is %s, and its RolloutGroup says %s, which counts", name, value, wins)
			}
			_, name, ok = vocabulary.ZoneOrder.Lookup(o.Object.GetAnnotations())
			if ok && slices.Contains(g.spec().Spec.ZoneOrder, o.name()) {
				r.findf(o, annotation(name), "%s has no effect: the RolloutGroup names its place", name)
			}
		}
	}
}
