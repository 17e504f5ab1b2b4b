package decision

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
)

// One hub does not assign a revision to anybody before it is known to have been written
// down what its tag is, where a cluster has told.
func TestWhatATagIsComesBeforeTheNextAssignment(t *testing.T) {
	template := v1alpha1.TemplateSpec{}
	name := model.RevisionName(model.KindModule, "app", template)
	o := model.Observed{AsOf: "7", Revisions: []model.Revision{{Name: name, UID: "r"}}, Clusters: []model.Cluster{{Name: "a", Ready: true}, {Name: "b", Ready: true}}}
	o.Module = model.Module{Kind: model.KindModule, Name: "app", Finalized: true}
	o.Module.Spec = v1alpha1.ModuleSpec{
		Selector: &metav1.LabelSelector{}, Strategy: v1alpha1.Incremental, Template: &v1alpha1.ModuleTemplate{Spec: template},
	}
	o.Records = []model.Record{{Cluster: "a", Assigned: true, Revision: name, Reported: true, State: v1alpha1.StateSucceeded, Succeeded: name, Resolved: "v1@sha1:0"}, {Cluster: "b"}}
	p := Decide(o)
	if len(p.Writes) != 1 || p.Writes[0].Act != Resolve || p.Writes[0].Resolved != "v1@sha1:0" || p.Permits {
		t.Errorf("it must be written down first: %+v", p.Writes)
	}
	for name, change := range map[string]func(*model.Record){
		"what it says is not what the revision does": func(r *model.Record) { r.Edited = true },
		"it was so, and the report is of then":       func(r *model.Record) { r.Stale = true },
		"a user holds it":                            func(r *model.Record) { r.Hold = &v1alpha1.Hold{By: "alice"} },
	} {
		other := o
		other.Records = []model.Record{o.Records[0], o.Records[1]}
		change(&other.Records[0])
		if p := Decide(other); slices.ContainsFunc(p.Writes, func(w Write) bool { return w.Act == Resolve }) {
			t.Errorf("%s, and it is taken for what the tag is", name)
		}
	}
	refused := o
	refused.Refusals = ring.Refusals{name: {At: o.Now.Add(1), Reason: "forbidden"}}
	if p := Decide(refused); len(p.Writes) > 0 || p.Permits || !strings.Contains(p.Status.WaitingFor, "what the tag resolves to cannot be recorded: forbidden") {
		t.Errorf("%+v, waits for %s", p.Writes, p.Status.WaitingFor)
	}
	o.Revisions = []model.Revision{{Name: name, UID: "r", Resolved: "v1@sha1:0", Pinned: true}}
	o.Records[0].Drifted, o.Records[0].Follows, o.Records[0].Tagged = false, true, true
	if p := Decide(o); p.Permits || len(p.Writes) != 1 || p.Writes[0].Act != Correct || p.Writes[0].Cluster.Name != "a" {
		t.Errorf("the first is assigned the commit before the next goes: %+v %+v", p.Writes, p.Status.Moves)
	}
	o.Records[0].Follows, o.Records[0].Tagged = false, false
	if p := Decide(o); p.Permits || !strings.Contains(p.Status.WaitingFor, "a is assigned the commit of its tag first") {
		t.Errorf("and has reported it: %s", p.Status.WaitingFor)
	}
	o.Records[0].Resolved = "sha1:0"
	if p := Decide(o); !p.Permits || len(p.Status.Moves) != 1 || p.Status.Moves[0].Cluster != "b" {
		t.Errorf("then the next goes: %+v, %s", p.Status.Moves, p.Status.WaitingFor)
	}
}
