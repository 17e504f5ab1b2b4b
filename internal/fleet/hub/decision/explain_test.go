package decision

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// What is shown is what the manager has recorded: not that a module is complete that was changed since.
func TestWhatTheManagerHasWritten(t *testing.T) {
	for _, test := range []struct {
		name             string
		phase            rollout.Phase
		observed         int64
		condition        rollout.Reason
		wantPhase        rollout.Phase
		wantReason, says string
	}{
		{"it is as it was", rollout.PhaseComplete, 2, "Complete", rollout.PhaseComplete, "", "it is said"},
		{"it was changed since", rollout.PhaseComplete, 1, "Complete", PhaseUnseen, "", "the manager has not observed the current spec; check that the manager is running"},
		{"it waits", rollout.PhaseWaiting, 2, rollout.ReasonGate, rollout.PhaseWaiting, "GatePending", "it is said"},
		{"no manager has seen it", "", 0, "", PhaseUnseen, "", "the manager has not observed it yet; check that one runs with --rings=fleet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Status: v1alpha1.ModuleStatus{
				Phase: string(test.phase), ObservedGeneration: test.observed, Clusters: "3/3", TargetRevision: "shop-1",
				Conditions: []metav1.Condition{{Type: ring.ConditionReady, Reason: string(test.condition), Message: "it is said"}},
			}}
			if test.phase != "" {
				m.Status.Rollout = &record.Rollout{Phase: string(test.phase), Reason: test.wantReason}
			}
			e := ExplanationOf(m)
			if e.Phase != string(test.wantPhase) || string(e.Reason) != test.wantReason || e.Sentence != test.says {
				t.Errorf("it is %s (%s): %s", e.Phase, e.Reason, e.Sentence)
			}
		})
	}
}

// Only a cluster that is one of the module's has a target: another one is assigned nothing, whatever the module waits for.
func TestAClusterThatIsNoneOfTheModulesHasNoTarget(t *testing.T) {
	e := Explanation{Name: "shop", Target: "shop-1"}
	assigned := &model.Record{Assigned: true, Revision: "shop-1", State: v1alpha1.StateSucceeded}
	drifted := *assigned
	drifted.Reported, drifted.Reason, drifted.Message = true, outcome.ReasonDrifted, "ConfigMap/app\nchanged"
	for _, test := range []struct {
		name    string
		record  *model.Record
		cluster model.Cluster
		target  string
		reason  rollout.Reason
		says    string
	}{
		{"it is not ready", nil, model.Cluster{}, "", "", "its control plane must be initialized"},
		{"it is ready", nil, model.Cluster{Ready: true}, "shop-1", ReasonRevision, "is assigned nothing yet"},
		{"it was ready", assigned, model.Cluster{}, "shop-1", "", "is at shop-1, and ready"},
		{"another client has changed what runs", &drifted, model.Cluster{Ready: true}, "shop-1", "", "is at shop-1, and ready; ConfigMap/app changed"},
		{"it is being deleted", nil, model.Cluster{Ready: true, Deleting: true}, "", "", "is being deleted"},
		{"it is not selected", nil, model.Cluster{Ready: true, Labels: map[string]string{"env": "dev"}}, "", "", "is not selected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: metav1.LabelSelectorOpDoesNotExist}}}
			x := e.Assigned(test.record, &test.cluster, selector, "c")
			if x.Target != test.target || x.Reason != test.reason || !strings.Contains(x.Sentence, test.says) {
				t.Errorf("target %q (%s): %s", x.Target, x.Reason, x.Sentence)
			}
		})
	}
}

// What another client has changed on clusters, and Flux keeps, is noted of the module with the first of them; it changes no verdict.
func TestDriftIsNoted(t *testing.T) {
	template := v1alpha1.TemplateSpec{}
	name := model.RevisionName(model.KindModule, "app", template)
	o := model.Observed{AsOf: "7", Revisions: []model.Revision{{Name: name, UID: "r"}}}
	o.Module = model.Module{Kind: model.KindModule, Name: "app", Finalized: true}
	o.Module.Spec = v1alpha1.ModuleSpec{Selector: &metav1.LabelSelector{}, Strategy: v1alpha1.Incremental, Template: &v1alpha1.ModuleTemplate{Spec: template}}
	for _, cluster := range []string{"c", "b", "a"} {
		o.Clusters = append(o.Clusters, model.Cluster{Name: cluster, Ready: true})
		o.Records = append(o.Records, model.Record{
			Cluster: cluster, Assigned: true, Revision: name, Reported: true, State: v1alpha1.StateSucceeded, Succeeded: name, Reason: outcome.ReasonDrifted, Message: cluster + " changed",
		})
	}
	o.Records[2].Reason = outcome.ReasonApplied
	s := Decide(o).Status
	if notes := strings.Join(s.Rollout.Notes, "; "); notes != "clusters with drift: 2, b among them: b changed" || s.Summary.Succeeded != 3 || s.Phase != string(rollout.PhaseComplete) {
		t.Errorf("%s, %+v, %s", notes, s.Summary, s.Phase)
	}
}
