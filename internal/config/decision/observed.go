package decision

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/gates/ask"
	"github.com/spillway-dev/spillway/internal/health"
)

// Observed is the snapshot of one pass. It does not change afterwards.
type Observed struct {
	Now time.Time
	// By is the manager that decides.
	By string
	// Workloads are the relevant ones, in the order of their names.
	Workloads []Workload
	// Budget is what the manager has rolled; nil if the records on the workloads have to
	// stand for it.
	Budget *Budget
	// Policies say in which stages workloads are rolled.
	Policies policy.Set
	// Namespaces are those of the cluster, if a policy has stages of them; NamespacesUnread is why they are not
	// known, empty if they are.
	Namespaces       map[string]Namespace
	NamespacesUnread string
	// Gates are the RolloutGates of policies, by the UID of these, if they are known.
	Gates      map[types.UID]ask.Gates
	GatesKnown bool
	// Records are those of what has failed, by their objects; they are Recordable if they can be read.
	Records    map[content.Object]*v1alpha1.ConfigRollout
	Recordable bool
	// Adopted is what is recorded of the workloads that were taken over.
	Adopted Adopted
	// Gone are the failures in them of workloads that do not exist any more, or do not use the object:
	// they count for the others.
	Gone []verdict.Verdict
}

// Namespace is what decides on the stage of a namespace.
type Namespace struct {
	Labels labels.Set
	// Terminating is true of one that is being deleted: what its workloads do shows nothing.
	Terminating bool
}

// Workload is a workload, and what the ring observed of it.
type Workload struct {
	workload.Workload

	Health health.Report
	// Rolled is since when the workload may count as rolling, zero if it was not rolled. It
	// is never in the future.
	Rolled time.Time
	// Change is the change that the workload has not been rolled for yet.
	Change Change
	// Pods are how its Pods do, if that matters ([Workload.NeedsPods]).
	Pods pods.State
	// MayBeRolled is true if the answer to a roll was lost a moment ago, and nothing shows yet whether it was made.
	MayBeRolled bool
	// Was is what was recorded on it, with the hash that it had then, if another client has taken that away.
	Was Was
	// Retry is set after a failed read, or a failed write of this generation.
	Retry *Retry
	// Disown is set after a failed attempt to remove what old versions of wave left.
	Disown *Retry

	// failure and stop are what follows from all workloads; see judge.
	failure *Failure
	stop    *Stop
	// brake is the release that changes too often to be rolled now, nil if none does; see brake.
	brake *braked
	// staged is why a policy keeps it from being rolled, nil if none does; see stage.
	staged *Staged
	// back is that it gets its previous config back, nil if it does not.
	back *back
	// stuck is the Pod that it waits for in vain, and that is replaced next; see unstick.
	stuck *pods.Stuck
	// recalled is true if what it got its config with is known by the records alone; see Recall.
	recalled bool
	// recordsAdoption is true if it is recorded, or will be, with what config it was taken over; else it stands on it.
	recordsAdoption bool
	// kept is what the workloads keep that its failure keeps from being rolled.
	kept workload.Keepings
}

// Was is what was recorded on a workload with a hash.
type Was struct {
	Roll workload.Roll
	Hash string
}

// coalesceLimit bounds, in windows, how long an unending series of changes can
// delay a roll.
const coalesceLimit = 10

// Change is a change of config that was observed and not rolled yet.
type Change struct {
	// First and Last bound the changes; zero if none was observed.
	First, Last time.Time
	// Keys are what changed: "ConfigMap app: LOG_LEVEL". Nil if not known.
	Keys []string
}

// maxRecorded bounds how many changed keys a record names.
const maxRecorded = 20

// Shortened are the keys that are named in records and logs.
func (c *Change) Shortened() []string {
	if len(c.Keys) <= maxRecorded {
		return c.Keys
	}
	return append(c.Keys[:maxRecorded:maxRecorded], workload.More)
}

// SettlesAt is when a change may be acted upon: when it has been the last one
// for a window, at the latest coalesceLimit windows after the first.
func (c *Change) SettlesAt(window time.Duration) time.Time {
	quiet, limit := c.Last.Add(window), c.First.Add(coalesceLimit*window)
	if limit.Before(quiet) {
		return limit
	}
	return quiet
}

// Retry is when and why a failed read or write is retried.
type Retry struct {
	At     time.Time
	Reason string
	// Write is true if it was a write that failed; otherwise it was a read.
	Write bool
}

// Pending is true until the next attempt.
func (r *Retry) Pending(now time.Time) bool { return r != nil && now.Before(r.At) }
