package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

// TestStagesOfManifests: clusters belong to the stages as they would in the ring, and
// a revision to go back to is not looked for among manifests.
func TestStagesOfManifests(t *testing.T) {
	one := intstr.FromInt32(1)
	module := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Name: "app"}}
	module.Spec = v1alpha1.ModuleSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}, Strategy: v1alpha1.Incremental, TargetRevision: "app-1",
		Rollout: &v1alpha1.Rollout{
			OrderBy: &v1alpha1.OrderBy{LabelKey: "wave"}, UnmatchedClusters: v1alpha1.UnmatchedExclude,
			Stages: []v1alpha1.Stage{
				{Name: "canary", Clusters: &one},
				{Name: "west", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": "west"}}},
			},
		},
	}
	if problems := Problems(module, time.Unix(0, 0)); len(problems) > 0 {
		t.Error(problems)
	}
	cluster := func(name, env, wave, region string) model.Cluster {
		return model.Cluster{Name: name, Labels: map[string]string{"env": env, "wave": wave, "region": region}}
	}
	stages, unmatched := StagesOf(module, []model.Cluster{
		cluster("a", "prod", "2", "west"), cluster("b", "prod", "1", "east"), cluster("c", "prod", "3", "east"), cluster("d", "dev", "0", "west"),
	})
	want := []StageOf{{"canary", []string{"b"}}, {"west", []string{"a"}}}
	if diff := cmp.Diff(want, stages); diff != "" || len(unmatched) != 1 || unmatched[0] != "c" {
		t.Errorf("unmatched %v, stages (-want +got)\n%s", unmatched, diff)
	}
	few := intstr.FromInt32(-1)
	module.Spec.Rollout.Stages[0].Clusters = &few
	if stages, _ := StagesOf(module, []model.Cluster{cluster("a", "prod", "1", "west")}); len(stages[0].Clusters) != 0 {
		t.Errorf("a stage of -1 clusters has %v", stages[0].Clusters)
	}
}
