package decision

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// TestProblemsOfManifests: a manifest without an update strategy has the one that
// the API server gives it; a group has to have a name that an object may have.
func TestProblemsOfManifests(t *testing.T) {
	set := func(name, strategy string) *appsv1.StatefulSet {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Spec.UpdateStrategy.Type = appsv1.StatefulSetUpdateStrategyType(strategy)
		return s
	}
	for name, test := range map[string]struct {
		group string
		sets  []*appsv1.StatefulSet
		want  []string
	}{
		"the default":       {"store", []*appsv1.StatefulSet{set("a", ""), set("b", RollingUpdate)}, nil},
		"mixed":             {"store", []*appsv1.StatefulSet{set("a", ""), set("b", OnDelete)}, []string{"StatefulSet b"}},
		"no name for one":   {"Store_1", []*appsv1.StatefulSet{set("a", "")}, []string{"StatefulSet a"}},
		"it has no members": {"store", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			group := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Name: test.group}}
			problems := ProblemsOf(group, test.sets)
			if len(problems) != len(test.want) || len(problems) > 0 && problems[0].Object != test.want[0] {
				t.Errorf("%v, want one of %v", problems, test.want)
			}
		})
	}
}
