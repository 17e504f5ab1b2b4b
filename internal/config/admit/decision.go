package admit

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/workload"
)

// attempt is a workload in a request.
type attempt struct {
	now *workload.Workload
	// before is nil for a workload that is created.
	before *workload.Workload
	// unchanged is true if the Pod template is the same as before, apart from what
	// admission puts there.
	unchanged bool
	// newer is that it needs newer content than it is pinned to.
	newer newer
}

// answer is what admission adds to it.
type answer struct {
	operations []workload.Operation
	warnings   []string
}

// decide returns what admission adds to an attempt.
func decide(a attempt, o Options) answer {
	w := a.now
	switch {
	case !w.Settings.Tracked:
		return a.releaseOnly()
	case a.replacesNothing():
		return a.keepHash()
	case len(w.Denied) > 0:
		return answer{warnings: []string{"config changes do not roll it: " + w.DeniedText()}}
	case a.starts() && len(w.Missing) > 0:
		return a.suspend(o.SuspendBy)
	case a.now.Pinning.On && (a.newer.lacks == "" || a.newer.held != ""):
		return a.pin(o.SuspendBy)
	case len(w.Missing) > 0, w.Hashes == nil:
		return answer{}
	default:
		return a.complete(o.Now())
	}
}

// replacesNothing is true if Pods of the workload run, and the request replaces
// none. A request that restores the gate of an old revision does replace them.
func (a attempt) replacesNothing() bool {
	return !a.starts() && a.unchanged && !a.now.Suspension.IsSuspended()
}

// starts is true if no Pod of the workload runs yet.
func (a attempt) starts() bool { return a.before == nil || a.before.Suspension.IsSuspended() }

// releaseOnly releases a suspended workload whose tracking ends.
func (a attempt) releaseOnly() answer {
	if !a.now.Suspension.IsSuspended() {
		return answer{}
	}
	e := workload.EditUnstored(a.now)
	e.Release()
	return answer{operations: e.Operations()}
}

// keepHash restores a hash that the request would remove, because it replaces the
// workload by a manifest without it. Pods would be replaced to lose the hash, and
// again to get it back.
func (a attempt) keepHash() answer {
	if a.now.Template.Hash != "" || a.before.Template.Hash == "" {
		return answer{}
	}
	e := workload.EditUnstored(a.now)
	e.SetTemplateHash(a.before.Template.HashName, a.before.Template.Hash)
	e.RestorePins(a.before)
	return answer{operations: e.Operations()}
}

// pin leaves the hash and the pins to the ring, which writes snapshots before. Until then no
// Pod of a new workload starts. One that is paused starts as it is. Pods that cannot start with the
// pins that they have do so once the ring rolls the workload.
func (a attempt) pin(by workload.SuspendBy) answer {
	switch {
	case a.newer.lacks != "":
		kept := a.keepHash()
		kept.warnings = []string{"new Pods cannot start: " + a.newer.lacks + "; the present content is held: " + a.newer.held}
		return kept
	case !a.starts():
		return a.keepHash()
	case a.now.Settings.Paused && !a.now.Suspension.IsSuspended():
		return answer{}
	}
	e := workload.EditUnstored(a.now)
	if !a.now.Suspension.IsSuspended() {
		e.Suspend(by)
	}
	return answer{operations: e.Operations(), warnings: []string{"Pods are waiting for their config to be pinned"}}
}

// suspend keeps the Pods unscheduled.
func (a attempt) suspend(by workload.SuspendBy) answer {
	e := workload.EditUnstored(a.now)
	if !a.now.Suspension.IsSuspended() {
		e.Suspend(by)
	}
	return answer{operations: e.Operations(), warnings: []string{"Pods are waiting for their config: " + a.now.MissingText()}}
}

// complete sets the hash for the first Pod, or for the roll that the user starts.
func (a attempt) complete(now time.Time) answer {
	e := workload.EditUnstored(a.now)
	if a.now.Suspension.IsSuspended() {
		e.Release()
	}
	if a.now.Template.Hash == "" || !a.now.HashIsRight() {
		e.SetHash(now)
		e.DropBaseline()
		record := workload.Roll{At: a.now.Records.Roll.At, Admitted: now.UTC().Truncate(time.Millisecond)}
		if a.now.Pinning.On { // its Pods could not start with the content before
			e.SetPins(record.Admitted, nil)
		}
		last := &a.now.Records.Roll
		switch was := a.hashBefore(); {
		case was != a.now.Hashes.Desired:
			record.Was = was
			record.Unready, record.Available, record.Failing = a.baseline(now)
		case last.Unready: // its config is not new, and it is still compared with what it was before that
			record.Was, record.Unready, record.Available, record.Failing = last.Was, true, last.Available, last.Failing
		}
		e.Record(record)
	}
	done := answer{operations: e.Operations()}
	if len(a.now.LeftOut) > 0 {
		done.warnings = []string{a.now.LeftOutText()}
	}
	return done
}

// baseline is how the workload does whose Pods are replaced, if it is not ready for another reason than what
// it was rolled for last: as is recorded of that, or as its status says if it never was ready since it was
// created, or is not for long, or has no Pods.
func (a attempt) baseline(now time.Time) (unready bool, available int32, failing string) {
	last := &a.now.Records.Roll
	if a.hashBefore() == "" || last.Unready {
		return a.hashBefore() != "", last.Available, last.Failing
	}
	started := last.At
	if last.Admitted.After(started) {
		started = last.Admitted
	}
	obj := a.before.Object
	isFirst := last.At.IsZero() && last.Was == ""
	isOld := !now.Before(started.Add(workload.SettlesWithin(obj)))
	if workload.HasNoPods(obj) || !workload.IsReady(obj) && (isFirst || isOld) {
		return true, workload.Available(obj), ""
	}
	return false, 0, ""
}

// hashBefore is that of Pods that run, empty if none do.
func (a attempt) hashBefore() string {
	if a.starts() {
		return ""
	}
	return a.before.Accepted()
}

// sameTemplate is true if two versions of a workload ask for the same Pods, apart
// from the hash and the suspension.
func sameTemplate(before, now client.Object) bool {
	return before != nil && equality.Semantic.DeepEqual(workload.Bare(before), workload.Bare(now))
}
