package zones

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// ProblemsOf are the mistakes that would stall a group, as far as manifests show
// them. A group of which no user has written the RolloutGroup has one without a spec.
func ProblemsOf(group *v1alpha1.RolloutGroup, sets []*appsv1.StatefulSet) []Problem {
	o := Observed{Group: Group{Namespace: group.Namespace, Name: group.Name, Spec: group.Spec}}
	var problems []Problem
	for _, s := range sets {
		set := setOf(s, nil)
		set.Strategy = cmp.Or(set.Strategy, RollingUpdate) // as the API server has it
		o.Sets = append(o.Sets, set)
		if nameless := namelessGroup(group.Name); nameless != "" {
			problems = append(problems, Problem{"StatefulSet " + s.Name, "annotation " + vocabulary.RolloutGroup.Native, group.Name, nameless})
		}
	}
	return append(problems, o.problems()...)
}
