package scaling

import appsv1 "k8s.io/api/apps/v1"

// LeaderProblem is why a StatefulSet of a group cannot follow its leader, as far as
// manifests show it; empty if it can, or has none.
func LeaderProblem(name string, group []*appsv1.StatefulSet) string {
	o := Observed{}
	for _, s := range group {
		o.Sets = append(o.Sets, Set{Name: s.Name, Settings: SettingsOf(s.Labels, s.Annotations)})
	}
	w := wish{set: o.set(name)}
	if w.set == nil || w.set.Settings.Leader == "" {
		return ""
	}
	if o.follow(&w); w.block == nil || w.block.Reason != ReasonLeader {
		return ""
	}
	return w.block.Message
}
