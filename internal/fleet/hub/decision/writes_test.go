package decision_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
)

// A write waits until the cache shows an own write with the same Change, and a refusal puts off
// all writes with the same object. So each write names the object that it changes, and
// what makes it another write than an earlier one to that object.
func TestAWriteNamesWhatItChanges(t *testing.T) {
	gate := v1alpha1.Gate{Name: "approve"}
	a, record := &model.Cluster{Name: "a"}, &model.Record{Cluster: "a", Name: "assemblage-of-a", ResourceVersion: "7"}
	for name, test := range map[string]struct {
		write decision.Write
		want  ring.Change
	}{
		"an assignment changes the assemblage that was observed": {
			decision.Write{Act: decision.Assign, Cluster: a, Record: record, Revision: "r", AssignedAt: noon},
			ring.Change{Act: "Assign", Object: "a", Version: "7"},
		},
		"a correction too": {
			decision.Write{Act: decision.Correct, Cluster: a, Record: record, Revision: "r", AssignedAt: noon},
			ring.Change{Act: "Correct", Object: "a", Version: "7"},
		},
		"a removal too, also from a cluster that is not known any more": {
			decision.Write{Act: decision.Unassign, Record: record},
			ring.Change{Act: "Unassign", Object: "a", Version: "7"},
		},
		"the first assignment of a cluster creates its assemblage, and a later permission is another one": {
			decision.Write{Act: decision.Assign, Cluster: a, Revision: "r", AssignedAt: noon},
			ring.Change{Act: "Assign", Object: "a", Version: noon.String()},
		},
		"what a tag resolves to is recorded in one revision, and not in a later one of the same name": {
			decision.Write{Act: decision.Resolve, Revision: "r", UID: "uid-of-r", Resolved: "v1@sha1:0"},
			ring.Change{Act: "Resolve", Object: "r", Version: "uid-of-r"},
		},
		"a revision is created by its name": {
			decision.Write{Act: decision.CreateRevision, Revision: "r", Number: 2},
			ring.Change{Act: "CreateRevision", Object: "r"},
		},
		"and deleted": {
			decision.Write{Act: decision.DeleteRevision, Revision: "r"},
			ring.Change{Act: "DeleteRevision", Object: "r"},
		},
		"a gate is created by its own name, which tells it from the revision and from the gates of other stages": {
			decision.Write{Act: decision.CreateGate, Revision: "r", Stage: "canary", Gate: gate},
			ring.Change{Act: "CreateGate", Object: model.GateName("r", "canary", gate)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.write.Change(); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// A view that must not be decided from leads to no write and to no permission, whatever it
// shows.
func TestNothingIsDoneFromAViewThatMustNotBeDecidedFrom(t *testing.T) {
	behind := func(o *model.Observed) { o.Module.Status.Seen = &v1alpha1.Seen{Assemblages: "2"} }
	for name, change := range map[string]func(o *model.Observed){
		"an earlier decision was made from a newer view": behind,
		"the module is being deleted":                    func(o *model.Observed) { behind(o); o.Module.Deleting = true },
		"the module needs its finalizer":                 func(o *model.Observed) { behind(o); o.Module.Finalized = false },
	} {
		t.Run(name, func(t *testing.T) {
			o := planned(t, `strategy: Incremental, rollout: {maxUnreadyClusters: 2}`, "a v1 up\nb v1 up\nc v2 up drifted")
			change(&o)
			p := decision.Decide(o)
			if !p.NeedsLive {
				t.Fatal("it is decided from")
			}
			if p.Permits || len(p.Writes) > 0 || !equality.Semantic.DeepEqual(p.Status, o.Module.Status) {
				t.Errorf("it permits (%t) %+v, and writes %+v", p.Permits, p.Status.Moves, p.Writes)
			}
			if o.Live = true; decision.Decide(o).NeedsLive {
				t.Error("not even what the API server itself shows is decided from")
			}
		})
	}
}

// permitted is a move of the first cluster that was permitted at noon.
func permitted(o *model.Observed) v1alpha1.Move {
	r := &o.Records[0]
	return v1alpha1.Move{Cluster: r.Cluster, Revision: revisionOf("v1"), UID: r.UID, Generation: r.Generation, At: metav1.NewMicroTime(noon)}
}

// A module that is being deleted is removed from every cluster that has it, and goes
// after that. Nothing else is begun: no revision, no gate and no update.
func TestAModuleThatIsBeingDeletedIsRemovedEverywhere(t *testing.T) {
	const spec = `strategy: Incremental, rollout: {stages: [{name: all, gates: [{name: approve}]}]}`
	for name, test := range map[string]struct {
		clusters string
		change   func(o *model.Observed)
		want     string
	}{
		"from all at the same time": {"a v1 up\nb v2 up\nc", nil, "Unassign a, Unassign b"},
		"also from a cluster that is not known any more": {
			"a v1 up\nb v1 up", func(o *model.Observed) { o.Clusters = o.Clusters[:1] }, "Unassign a, Unassign b",
		},
		"and from one that a user has pinned": {"a v1 up held", nil, "Unassign a"},
		"after it is known what becomes of what runs": {
			"a v1 up", func(o *model.Observed) { o.Records[0].DeletionPolicy = v1alpha1.Orphan }, "Correct a",
		},
		"not where the sync is another manager's": {
			"a v1 up\nb v1 up", func(o *model.Observed) { o.Foreign = map[string]bool{"a": true} }, "Unassign b",
		},
		"a write that was refused waits for its next try": {
			"a v1 up\nb v1 up", func(o *model.Observed) { o.Refusals = ring.Refusals{"a": {At: noon.Add(time.Minute)}} }, "Unassign b",
		},
		"then the module goes":                {"a\nb", nil, "RemoveFinalizer "},
		"unless an update may still be made":  {"a", func(o *model.Observed) { o.Module.Status.Moves = []v1alpha1.Move{permitted(o)} }, "Fence a"},
		"nothing is left to do when it went":  {"a v1 up", func(o *model.Observed) { o.Module.Finalized = false }, ""},
		"no revision is created for a change": {"a v1 up", func(o *model.Observed) { o.Revisions = o.Revisions[:1] }, "Unassign a"},
	} {
		t.Run(name, func(t *testing.T) {
			o := planned(t, spec, test.clusters)
			o.Module.Deleting = true
			if test.change != nil {
				test.change(&o)
			}
			p := decision.Decide(o)
			var got []string
			for i := range p.Writes {
				got = append(got, fmt.Sprintf("%s %s", p.Writes[i].Act, p.Writes[i].Target()))
			}
			slices.Sort(got)
			if strings.Join(got, ", ") != test.want {
				t.Errorf("it does %q, want %q", got, test.want)
			}
			if p.Permits || p.Status.Phase != string(decision.PhaseDeleting) || !strings.HasPrefix(p.Status.WaitingFor, "it is being removed from") {
				t.Errorf("it permits (%t), phase %s: %s", p.Permits, p.Status.Phase, p.Status.WaitingFor)
			}
		})
	}
}

// What a status says of time is what the API server returns of it: otherwise a status
// that was just written would differ from the one that is observed, and be written again.
func TestAStatusComesBackAsItWasDecided(t *testing.T) {
	o := planned(t, `strategy: Incremental, rollout: {maxUnreadyClusters: 2}`, "a v1 up\nb v1 failed\nc v2 up")
	o.Now = noon.Add(123 * time.Nanosecond)
	p := decision.Decide(o)
	raw, err := json.Marshal(p.Status)
	if err != nil {
		t.Fatal(err)
	}
	var back v1alpha1.ModuleStatus
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if len(p.Status.Moves) == 0 || !equality.Semantic.DeepEqual(p.Status, back) {
		t.Errorf("it is decided as\n%+v\nand comes back as\n%+v", p.Status, back)
	}
}
