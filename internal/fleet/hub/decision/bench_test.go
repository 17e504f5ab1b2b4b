package decision_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
)

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// app is the name of the module.
const app = "app"

func templateOf(tag string) v1alpha1.TemplateSpec {
	git := &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: tag}}
	return v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: &v1alpha1.Source{Git: git}}}
}

func revisionOf(tag string) string {
	return model.RevisionName(model.KindModule, app, templateOf(tag))
}

// fleetOf is a rollout over n clusters in three stages: half of them run v2, of the
// others some are updating, a few have failed, and the rest waits.
func fleetOf(n int) model.Observed {
	o := model.Observed{Now: noon, AsOf: "7", Revisions: []model.Revision{{Name: revisionOf("v1"), Number: 1}, {Name: revisionOf("v2"), Number: 2}}}
	o.Module = model.Module{Kind: model.KindModule, Name: app, Finalized: true, Spec: v1alpha1.ModuleSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}, Strategy: v1alpha1.Incremental,
		Template: &v1alpha1.ModuleTemplate{Spec: templateOf("v2")},
		Rollout: &v1alpha1.Rollout{
			MaxUnreadyClusters: new(intstr.FromString("10%")), MaxFailures: new(intstr.FromString("5%")), OrderBy: &v1alpha1.OrderBy{LabelKey: "wave"},
			Stages: []v1alpha1.Stage{
				{Name: "canary", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "true"}}}, {Name: "half", Clusters: new(intstr.FromString("50%"))}, {Name: "rest"},
			},
		},
	}}
	o.Module.Status.CurrentRevision = revisionOf("v1")
	for i := range n {
		name := "cluster-" + strconv.Itoa(i)
		o.Clusters = append(o.Clusters, model.Cluster{
			Name: name, UID: types.UID(name), Ready: true,
			Labels: map[string]string{"env": "prod", "wave": strconv.Itoa(i % 7), "canary": strconv.FormatBool(i%100 == 0)},
		})
		r := model.Record{
			Cluster: name, Name: name, UID: types.UID(name), ResourceVersion: strconv.Itoa(i), Assigned: true, Revision: revisionOf("v1"),
			AssignedAt: noon.Add(-time.Hour), Reported: true, State: v1alpha1.StateSucceeded, Since: noon.Add(-time.Hour), Succeeded: revisionOf("v1"),
			DeletionPolicy: v1alpha1.Delete,
		}
		if i%2 == 0 {
			r.Revision, r.Succeeded, r.AssignedAt = revisionOf("v2"), revisionOf("v2"), noon.Add(-time.Minute)
		}
		if i%100 == 4 {
			r.State, r.Reason, r.Message, r.Succeeded = v1alpha1.StateFailed, "HealthCheckFailed", "timeout waiting for: [Deployment/web]", revisionOf("v1")
		}
		o.Records = append(o.Records, r)
	}
	return o
}

// BenchmarkDecide says what a cluster costs among few and among many: the same, or what is done is
// done for each pair of clusters.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1_000, 30_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			o := fleetOf(n)
			b.ReportAllocs()
			for b.Loop() {
				decision.Decide(o)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/cluster")
		})
	}
}

// TestTheStatusDoesNotGrowWithTheSpec: bindings may have values of any length.
func TestTheStatusDoesNotGrowWithTheSpec(t *testing.T) {
	o := fleetOf(1_000)
	for i := range 64 {
		o.Module.Spec.Template.Spec.Sync.Bindings = append(o.Module.Spec.Template.Spec.Sync.Bindings, v1alpha1.Binding{
			Name: "B" + strconv.Itoa(i), Value: new(strings.Repeat("x", 8<<10)),
		})
	}
	s := decision.Decide(o).Status
	raw, err := yaml.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 64<<10 || s.ObservedSync == nil || s.ObservedSync.Source.Git.Version.Tag != "v2" {
		t.Errorf("%d bytes, with %+v", len(raw), s.ObservedSync)
	}
}

// TestTheStatusIsBounded: counts, a few examples, and a record that names those that wait as far as there is room.
func TestTheStatusIsBounded(t *testing.T) {
	for _, n := range []int{5_000, 30_000} {
		o := fleetOf(n)
		p := decision.Decide(o)
		o.Module.Status = p.Status
		s := decision.Decide(o).Status
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		named := 0
		for i := range s.Rollout.Causes {
			named += len(s.Rollout.Causes[i].Units)
		}
		t.Logf("%d clusters: %d bytes, %d causes, %d clusters named", n, len(raw), len(s.Rollout.Causes), named)
		if len(raw) > 256<<10 || int(s.Rollout.Units.Total) != n {
			t.Errorf("%d clusters: %d bytes, %+v", n, len(raw), s.Rollout.Units)
		}
	}
}
