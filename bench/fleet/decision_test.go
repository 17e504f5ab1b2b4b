package fleet_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

const app = "app"

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// spec is a rollout of a tag: one per cent of all clusters first, then the rest, of
// which a tenth at a time.
func spec(tag string) v1alpha1.ModuleSpec {
	git := &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: tag}}
	return v1alpha1.ModuleSpec{
		Selector: &metav1.LabelSelector{}, Strategy: v1alpha1.Incremental,
		Rollout: &v1alpha1.Rollout{
			MaxUnreadyClusters: new(intstr.FromString("10%")), ProgressDeadlineSeconds: new(int32(3600)),
			Stages: []v1alpha1.Stage{{Name: "canary", Clusters: new(intstr.FromString("1%"))}, {Name: "rest"}},
		},
		Template: &v1alpha1.ModuleTemplate{Spec: v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: &v1alpha1.Source{Git: git}}}},
	}
}

func revision(tag string) string {
	return model.RevisionName(model.KindModule, app, spec(tag).Template.Spec)
}

// TestADecision prints how long a decision over many clusters takes in the middle of
// a rollout. The fastest is without garbage collection and other work on the machine,
// the median with what there was of both.
func TestADecision(t *testing.T) {
	const decisions = 50
	o := middle(clusters)
	took := make([]time.Duration, decisions)
	for i := range took {
		start := time.Now()
		decision.Decide(o)
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	fmt.Printf("| a decision over %d clusters (target: at most 10 ms) | fastest %.1f ms, median %.1f ms |\n",
		clusters, milliseconds(took[0]), milliseconds(took[decisions/2]))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// middle is a rollout of which half is done.
func middle(n int) model.Observed {
	names := []string{revision("v1"), revision("v2")}
	o := model.Observed{Now: noon, AsOf: "7", Revisions: []model.Revision{{Name: names[0], Number: 1}, {Name: names[1], Number: 2}}}
	o.Module = model.Module{Kind: model.KindModule, Name: app, Finalized: true, Spec: spec("v2")}
	o.Module.Status.CurrentRevision = names[0]
	for i := range n {
		c := "cluster-" + strconv.Itoa(i)
		o.Clusters = append(o.Clusters, model.Cluster{Name: c, UID: types.UID(c), Ready: true})
		o.Records = append(o.Records, model.Record{
			Cluster: c, Name: c, UID: types.UID(c), Assigned: true, Revision: names[i%2], AssignedAt: noon.Add(-time.Hour), Reported: true,
			State: v1alpha1.StateSucceeded, Since: noon.Add(-time.Hour), Succeeded: names[i%2], DeletionPolicy: v1alpha1.Delete,
		})
	}
	return o
}
