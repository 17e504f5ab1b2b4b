package decision

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// mostOver bounds how many earlier hashes a record has.
const mostOver = 10

// AwaitsPod is true of a StatefulSet that may wait in vain for a Pod of an earlier revision, if
// the Pod may be replaced: a user says so, or what the ring rolled may be the cause.
func (w *Workload) AwaitsPod() bool {
	if !w.Settings.Tracked || w.Settings.StuckPods == workload.KeepStuckPods || !workload.MayBeStuck(w.Object) {
		return false
	}
	return w.Settings.StuckPods == workload.ReplaceStuckPods || len(w.Records.Failed) > 0 || len(w.Records.Roll.Over) > 0 || w.isRolledAway()
}

// isRolledAway is true if a user has undone what the ring rolled, before or after it failed.
func (w *Workload) isRolledAway() bool {
	roll := &w.Records.Roll
	return roll.Hash != "" && roll.Hash != w.Template.Hash && roll.Template == workload.TemplateDigest(w.Object)
}

// replaces is true if a Pod with a hash may be replaced that waits in vain.
func (w *Workload) replaces(hash string) bool {
	switch {
	case w.Settings.StuckPods != "":
		return w.Settings.StuckPods == workload.ReplaceStuckPods
	case hash == "":
		return false
	}
	return w.isRolledAway() && hash == w.Records.Roll.Hash || slices.Contains(w.Records.Roll.Over, hash) || slices.ContainsFunc(w.Records.Failed, func(f workload.Failed) bool { return f.Hash == hash })
}

// unstick finds the workloads whose next step is to replace a Pod that is stuck: those whose
// Pod template is as it is to be, or cannot be brought there now.
func unstick(o Observed, options Options) Observed {
	cloned := false
	for i := range o.Workloads {
		w := &o.Workloads[i]
		s := w.Pods.Stuck
		if s == nil || !w.AwaitsPod() || !w.replaces(s.Hash) || w.back != nil || !w.Suspension.IsSettled() {
			continue
		}
		if !w.IsSettled() && w.block(o.Now, options) == nil {
			continue
		}
		if !cloned {
			o.Workloads, cloned = slices.Clone(o.Workloads), true
			w = &o.Workloads[i]
		}
		w.stuck = s
	}
	return o
}

// stuckUnit is a workload that waits for such a Pod as the engine sees it: a leaf that is down at
// a revision which is not its target, and so a leaf to repair.
func (w *Workload) stuckUnit(unit rollout.Unit, now time.Time) rollout.Unit {
	set, _ := w.Object.(*appsv1.StatefulSet)
	unit.Leaf = rollout.Leaf{
		Current: w.stuck.Revision, Target: set.Status.UpdateRevision, Health: rollout.Degraded, Reason: w.stuckText(), Priority: w.Settings.Priority,
	}
	unit.Pause = w.pause()
	if now.Before(w.stuck.At) {
		unit.Block = &rollout.Block{
			Reason: ReasonPodNotReady, Message: w.stuckText() + "; it is replaced unless it is ready at " + rollout.Clock(w.stuck.At), Since: w.since(now), Until: w.stuck.At,
		}
	}
	if w.Retry != nil {
		unit.Leaf.RetryAt, unit.Leaf.RetryReason = w.Retry.At, w.Retry.Reason
	}
	return unit
}

// stuckText says which Pod is not ready.
func (w *Workload) stuckText() string {
	return fmt.Sprintf("Pod %s was never ready at its earlier revision (%s)", w.stuck.Name, w.stuck.Reason)
}

// replace is the write that deletes the Pod. Its controller creates it at the present revision.
func replace(w *Workload) Write {
	return Write{
		Workload: w, Replaces: true, Deletes: []workload.WaitingPod{{Name: w.stuck.Name, Version: w.stuck.Version, UID: w.stuck.UID}},
		Events: []Event{{corev1.EventTypeNormal, EventPodReplaced, w.stuckText() + ", and is replaced"}},
	}
}

// Replacing is what the deletion of a Pod that was stuck is called.
func Replacing(set workload.Name, pod types.UID) ring.Change {
	return ring.Change{Act: "Replace", Object: set.String(), Version: string(pod)}
}

// mayStick is true of a workload whose Pods the ring replaces if they are stuck.
func (w *Workload) mayStick() bool { return w.Kind == workload.StatefulSet && w.Zone.Group == "" }

// rolledTo is the hash that the record of a roll keeps.
func (w *Workload) rolledTo(hash string) string {
	if !w.mayStick() {
		return ""
	}
	return hash
}

// over are the hashes that a Pod may wait with in vain once a StatefulSet is rolled again.
func (w *Workload) over() []string {
	roll := &w.Records.Roll
	if !w.mayStick() || w.isUp() {
		return nil
	}
	over := roll.Over
	if roll.Template == workload.TemplateDigest(w.Object) && roll.Hash != "" && !slices.Contains(over, roll.Hash) {
		over = append(slices.Clip(over), roll.Hash)
	}
	return over[max(0, len(over)-mostOver):]
}
