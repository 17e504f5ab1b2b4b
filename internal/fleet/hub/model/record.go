package model

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// Record is what the assemblage of a cluster says of the module.
type Record struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Name, UID, ResourceVersion and Generation are those of the assemblage.
	Name            string
	UID             types.UID
	ResourceVersion string
	Generation      int64
	// Fence is its annotation spillway.dev/withdrawn, which changes with each move that is
	// withdrawn.
	Fence string
	// Deleting is true of an assemblage that is being deleted. What is written into
	// it goes with it.
	Deleting bool
	// Kubeconfig and Ref are what it says of the cluster.
	Kubeconfig v1alpha1.LocalReference
	Ref        *v1alpha1.ClusterReference
	// Assigned is true if there is a sync of the module. Without one, there may be
	// a Hold.
	Assigned bool
	// Leaving is true of a sync that was removed, until the report on it is gone too: what
	// it ran may still exist.
	Leaving bool
	// Revision is the one assigned. Where an assignment does not say so but is what
	// a revision says, it is that.
	Revision string
	// Overrides are those of the revision that the sync has.
	Overrides  []string
	AssignedAt time.Time
	// Unready is true if the cluster was not ready before that.
	Unready bool
	// Drifted is true if the sync is not what its revision and the module say.
	Drifted bool
	// Edited is true if what it is to run is not what its revision says, whatever the
	// module says besides.
	Edited bool
	// Follows is true if all that is different is that it follows a tag, of which it
	// is known by now what it stands for. It has nothing to gain by going on with it.
	Follows bool
	// Tagged is true of a sync that names such a tag, whether it is to be told now or not.
	Tagged bool
	// Stale is true if the sync was put right, and the report is of what it was before.
	Stale          bool
	DeletionPolicy v1alpha1.DeletionPolicy
	Hold           *v1alpha1.Hold
	// Reported is true if the rest speaks of this very assignment.
	Reported bool
	State    v1alpha1.State
	// Since is when the state began.
	Since   time.Time
	Reason  rollout.Reason
	Message string
	// Succeeded is the last revision at which the sync has succeeded.
	Succeeded string
	// Proven is true if this very assignment has succeeded once.
	Proven bool
	// Noticed is true once the last change of the assemblage has been seen by
	// the client that carries it out; where what runs is to stay, once it would if the sync
	// were removed.
	Noticed bool
	// Resolved is the commit or digest that runs.
	Resolved string
	// Found is what an earlier hub had assigned there, nil if nothing was found of it. Silent is true
	// if the cluster did not answer when the hub looked, and Unseen while it has not looked.
	Found  *v1alpha1.FoundSync
	Silent bool
	Unseen bool
	// GivenUp is the copy of what the module gave up.
	GivenUp *v1alpha1.GivenUp
	// sync is the whole of what the assemblage has of the module.
	Sync any
}

// Leaf is how a cluster does that was assigned something.
func (r *Record) Leaf() rollout.Leaf {
	leaf := rollout.Leaf{Current: r.Revision, Health: rollout.Progressing}
	if !r.Reported {
		return leaf
	}
	leaf.Settled = r.Succeeded != "" && r.Succeeded == r.Revision
	switch r.State {
	case v1alpha1.StateSucceeded:
		leaf.Health, leaf.HealthySince = rollout.Healthy, ring.Later(r.Since, r.AssignedAt)
	case v1alpha1.StateFailed:
		leaf.Health, leaf.Reason = rollout.Failed, "not healthy"+r.said()
	case v1alpha1.StateUnreachable:
		leaf.Health, leaf.Reason, leaf.LostSince = rollout.Degraded, "not reachable: "+r.silence(), r.Since
		leaf.Cause = outcome.ReasonUnreachable
	case v1alpha1.StateWaiting:
		leaf.Reason = "waiting" + r.said()
	default:
		leaf.Reason = "updating" + r.said()
	}
	return leaf
}

// HasSucceeded is true if what it is assigned was reported to have succeeded.
func (r *Record) HasSucceeded() bool { return r.Reported && r.State == v1alpha1.StateSucceeded }

// Resolves is true of a report from which it is known what a revision turned out to be: of
// one that says what the revision does, and that no user holds, as it may be something
// else for a while what runs there.
func (r *Record) Resolves(revision string) bool {
	return r.Revision == revision && r.HasSucceeded() && r.Resolved != "" && !r.Edited && !r.Stale && r.Hold == nil
}

// Kept is what another client has changed on the cluster of what the module has applied there, and Flux keeps; empty if
// nothing is known.
func (r *Record) Kept() string {
	if r.HasSucceeded() && r.Reason == outcome.ReasonDrifted {
		return Short(r.Message, SaidLength)
	}
	return ""
}

// DriftReason says why a record has drifted, empty if it has not.
func (r *Record) DriftReason() string {
	if r.Drifted {
		return "not what its revision says"
	}
	return "corrected, and not reported ready since"
}

// silence says since when a cluster does not answer, and what came back instead.
func (r *Record) silence() string {
	text := "cluster " + r.Cluster + " does not answer since " + rollout.Clock(r.Since)
	if why := strings.TrimPrefix(strings.TrimPrefix(r.Message, cluster.Silent), ": "); why != "" {
		text += ": " + Short(why, SaidLength)
	}
	return text
}

// said is what was reported, as the end of a clause.
func (r *Record) said() string {
	text := ""
	if r.Reason != "" {
		text = " (" + string(r.Reason) + ")"
	}
	if r.Message != "" {
		text += ": " + Short(r.Message, SaidLength)
	}
	return text
}
