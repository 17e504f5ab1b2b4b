package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones/budget"
)

// Observed is one group, read at one moment. It does not change.
type Observed struct {
	Now time.Time
	// By is the manager that decides.
	By     string
	Group  Group
	Server Server
	// AsOf is how new the views of Pods and StatefulSets are, as resource versions:
	// they show everything up to these, and maybe more. That of the last list or
	// event of a watch is best; that of the newest object shown will do, at the
	// price of a live look now and then. Empty if nothing is known.
	AsOf v1alpha1.Seen
	// Live is true if the StatefulSets and Pods were read from the API server
	// itself in this pass, and not from a cache; see [Plan.NeedsLive].
	Live bool
	// Sets are the StatefulSets of the group, in any order.
	Sets []Set
	// Orphans are the Pods of moves whose StatefulSet is gone. They are known only if
	// Live.
	Orphans []Pod
	// Gates are the RolloutGates of the group.
	Gates ask.Gates
	// Refusals are writes that the API server did not accept, by the name of the
	// Pod or the StatefulSet.
	Refusals ring.Refusals
}

// Group is what matters of the RolloutGroup.
type Group struct {
	Namespace, Name string
	UID             types.UID
	// ResourceVersion is the precondition of every write of the status.
	ResourceVersion string
	Generation      int64
	Spec            v1alpha1.RolloutGroupSpec
	Status          v1alpha1.RolloutGroupStatus
}

// Server is what the API server is able to do.
type Server struct {
	// MaxUnavailable: it keeps rollingUpdate.maxUnavailable of a StatefulSet.
	MaxUnavailable bool
	// AdvancesRevision: the controller advances status.currentRevision of
	// StatefulSets of type OnDelete automatically, as from Kubernetes 1.37 on.
	AdvancesRevision bool
}

// The update strategies that a group may have.
const (
	OnDelete      = "OnDelete"
	RollingUpdate = "RollingUpdate"
)

// Set is what matters of a StatefulSet.
type Set struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	// The status speaks of the spec only if the two are the same.
	Generation, ObservedGeneration int64
	// Verified is true if it is known that, from the moment at which the set was opened
	// to this generation, its spec was changed by nothing but our hold, and that all
	// replicas were at the update revision when we held it. Then the status speaks
	// of this template whether its controller has seen the hold or not, and the
	// controller, whatever it has seen, has nothing left to replace.
	Verified bool
	Deleting bool
	Replicas int
	// FirstOrdinal is spec.ordinals.start.
	FirstOrdinal int
	// Strategy is spec.updateStrategy.type as it is now.
	Strategy string
	// Lent is true if [vocabulary.LentStrategy] exists: Spillway has set the type
	// to OnDelete for the set's turn.
	Lent bool
	// Partition is 0 if none is set. MaxUnavailable is the number that
	// rollingUpdate.maxUnavailable comes to, 1 if it is not set.
	Partition, MaxUnavailable int
	MinReady                  time.Duration
	// Grace is how long its Pods have to terminate.
	Grace time.Duration
	// Ordered is true if its Pods are created one after the other, each once those of
	// lower ordinals are ready.
	Ordered bool
	// Writer is the field manager that wrote the Pod template last, empty if that is not known: a cache does not know it.
	Writer string
	// CurrentRevision and UpdateRevision are those of the status.
	CurrentRevision, UpdateRevision string
	Settings                        Settings
	// Bound is what a disruption budget for its Pods asks of a rollout.
	Bound budget.Bound
	// Pods are those that the set owns, by UID, in any order.
	Pods []Pod
}

// Pod is what matters of a Pod.
type Pod struct {
	Name            string
	Ordinal         int
	UID             types.UID
	ResourceVersion string
	// Revision is its controller-revision-hash.
	Revision string
	Created  time.Time
	// Terminating is true once it has been deleted.
	Terminating bool
	// Ready is true if it runs and its condition Ready is true; Since is when
	// that condition last changed, zero if unknown.
	Ready bool
	Since time.Time
	// Reason is why it is not ready: "CrashLoopBackOff", "ContainersNotReady". Broken is
	// true if waiting does not change that.
	Reason string
	Broken bool
	// NeverReady is true if it is known that it has not been ready since it exists.
	NeverReady bool
}

// stale is true if the status does not speak of the spec.
func (s *Set) stale() bool { return s.Generation != s.ObservedGeneration && !s.Verified }

// open is true if the controller of a set that is held by partition, or a client
// who deletes a Pod, would bring Pods to the update revision.
func (s *Set) open() bool { return s.rolling() && (s.lent() || s.Partition < s.Replicas) }

// rolling is true if the set is held by its partition.
func (s *Set) rolling() bool { return s.Strategy == RollingUpdate || s.lent() }

// lent is true while the set is of type OnDelete for its turn only.
func (s *Set) lent() bool { return s.Lent && s.Strategy == OnDelete }

// isPutOff is true while a write that was refused waits for its next try.
func (o *Observed) isPutOff(name string) bool { return o.Refusals.PutOff(name, o.Now) }
