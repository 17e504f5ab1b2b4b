package config

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// SuspendBy is how a workload whose config is missing is kept from running.
type SuspendBy string

// The ways to suspend a workload.
const (
	// SuspendByGate puts a scheduling gate into the Pod template.
	SuspendByGate SuspendBy = "scheduling-gate"
	// SuspendByScheduler names a scheduler that does not exist, as the predecessor does.
	SuspendByScheduler SuspendBy = "scheduler"
	// SuspendNot leaves it to the kubelet to wait for what is missing.
	SuspendNot SuspendBy = "none"
)

// attempt is what somebody is about to make of a workload.
type attempt struct {
	now *Workload
	// before is nil for a workload that is new.
	before *Workload
	// unchanged is true if the Pod template says the same as before, but for what
	// admission itself puts there.
	unchanged bool
}

// answer is what admission makes of it.
type answer struct {
	operations []operation
	warnings   []string
}

// admit decides what admission adds to an attempt. It sets the hash where Pods
// are made or replaced anyway; what would replace Pods that are left alone by the
// user is the ring's, with its budget and pauses.
func admit(a attempt, o Options) answer {
	w := a.now
	switch {
	case !w.Settings.Tracked:
		return a.releaseOnly()
	case a.leaves():
		return a.keepHash()
	case len(w.Denied) > 0:
		return answer{warnings: []string{"its config is not followed: " + w.condition(o.Now()).Message}}
	case a.starts() && len(w.Missing) > 0:
		return a.suspend(o.SuspendBy)
	case len(w.Missing) > 0, w.Hashes == nil:
		return answer{}
	default:
		return a.complete(o.Now())
	}
}

// leaves is true if Pods of the workload run, and the user leaves them alone. To
// bring the gate of an old revision back is not to leave them alone.
func (a attempt) leaves() bool { return !a.starts() && a.unchanged && !a.now.Suspension.suspended() }

// starts is true if no Pod of the workload runs yet.
func (a attempt) starts() bool { return a.before == nil || a.before.Suspension.suspended() }

// releaseOnly is what somebody gets who stops the tracking of a suspended workload.
func (a attempt) releaseOnly() answer {
	if !a.now.Suspension.suspended() {
		return answer{}
	}
	e := &edit{w: a.now}
	e.release()
	return answer{operations: e.ops}
}

// suspend keeps the Pods waiting.
func (a attempt) suspend(by SuspendBy) answer {
	e := &edit{w: a.now}
	if !a.now.Suspension.suspended() {
		e.suspend(by)
	}
	return answer{operations: e.ops, warnings: []string{"Pods wait until their config exists: " + a.now.missing()}}
}

// complete makes the workload right from its first Pod, or in the same roll that
// the user starts.
func (a attempt) complete(now time.Time) answer {
	e := &edit{w: a.now}
	if a.now.Suspension.suspended() {
		e.release()
	}
	if !a.now.hashIsRight() {
		e.hash()
		e.drop(vocabulary.ConfigBaseline)
		admitted := now.UTC().Truncate(time.Millisecond)
		e.annotate(vocabulary.ConfigChange, encode(Roll{At: a.now.Records.Roll.At, Admitted: admitted}))
	}
	return answer{operations: e.ops}
}

// keepHash restores a hash that the user's write would drop, because they replace
// the workload by a manifest that does not know it. Without it, Pods would be
// replaced to lose it, and again to get it back.
func (a attempt) keepHash() answer {
	if a.now.Template.Hash != "" || a.before.Template.Hash == "" {
		return answer{}
	}
	e := &edit{w: a.now}
	e.annotateTemplate(a.before.Template.HashName, a.before.Template.Hash)
	return answer{operations: e.ops}
}

// sameTemplate is true if two versions of a workload ask for the same Pods, but
// for the hash and the suspension.
func sameTemplate(before, now client.Object) bool {
	return before != nil && equality.Semantic.DeepEqual(bare(before), bare(now))
}

// bare is the Pod template without what admission and the ring put there.
func bare(obj client.Object) *corev1.PodTemplateSpec {
	t := TemplateOf(obj).DeepCopy()
	for _, name := range vocabulary.ConfigHash.Names() {
		delete(t.Annotations, name)
	}
	if i := suspensionOf(obj).Gate; i > 0 {
		t.Spec.SchedulingGates = append(t.Spec.SchedulingGates[:i-1:i-1], t.Spec.SchedulingGates[i:]...)
	}
	return t
}
