package scaling

import (
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/lock"
)

// Verdict is what is to be done about something that was written down.
type Verdict string

// The verdicts.
const (
	// Wait leaves it as it is.
	Wait Verdict = ""
	// Land: the downscale was seen.
	Land Verdict = "Land"
	// Undo: it will not come any more; its Pods are called to stay.
	Undo Verdict = "Undo"
	// Drop: it concerns nothing any more.
	Drop Verdict = "Drop"
	// Revive: Pods that were to go stay after all, because there are to be more again
	// before they were gone. They are called to stay.
	Revive Verdict = "Revive"
	// Release gives back the lock that evictions hold, if all of them were seen.
	Release Verdict = "Release"
)

// undoFor is how long it is tried to tell Pods that they stay. What does not answer for
// so long must not keep the group locked, which may be what would fix it.
const undoFor = 2 * time.Minute

// Settlement is what becomes of what is written down in the status of a group.
type Settlement struct {
	Verdict Verdict
	// Downscale is what it is about, if it is about one.
	Downscale *v1alpha1.Downscale
	// Last is true if what fails now is not tried again.
	Last bool
	// Wake is when time alone changes the verdict.
	Wake time.Time
}

// settle decides from a cache; what acts upon it reads from the API server first.
func (o *Observed) settle() Settlement {
	if o.Refusals.PutOff(settling, o.Now) {
		return Settlement{}
	}
	if d := o.Status.Downscale; d != nil {
		return judge(d, o.set(d.Zone), o.Now)
	}
	if d := o.undone(); d != nil {
		return Settlement{Verdict: Revive, Downscale: d}
	}
	return o.settleEvictions()
}

// undone is a downscale for which Pods were prepared and after which there are to be
// more again, nil if there is none.
func (o *Observed) undone() *v1alpha1.Downscale {
	for i := range o.Status.Downscales {
		d := &o.Status.Downscales[i]
		if s := o.set(d.Zone); d.Prepares && s != nil && s.UID == d.UID && s.Replicas > int(d.To) {
			return d
		}
	}
	return nil
}

// settling is the name of the settlement among the refusals.
const settling = "the recorded downscale"

// judge is the verdict on a downscale, by its StatefulSet.
func judge(d *v1alpha1.Downscale, s *Set, now time.Time) Settlement {
	over := d.At.Add(lock.PreparesWithin)
	if d.AdmittedAt != nil {
		over = d.AdmittedAt.Add(lock.LandsWithin)
	}
	switch {
	case s == nil || s.UID != d.UID:
		return Settlement{Verdict: Drop, Downscale: d}
	case s.Replicas <= int(d.To) && !d.Refused:
		return Settlement{Verdict: Land, Downscale: d}
	case now.Before(over):
		return Settlement{Downscale: d, Wake: over}
	case !d.Prepares:
		return Settlement{Verdict: Drop, Downscale: d}
	default:
		return Settlement{Verdict: Undo, Downscale: d, Last: !now.Before(over.Add(undoFor))}
	}
}

// settleEvictions looks whether the evictions were seen, for as long as the lock is
// held for them. When that has expired it is free anyway.
func (o *Observed) settleEvictions() Settlement {
	l := o.Status.Lock
	if l == nil || l.Purpose != v1alpha1.PurposeEviction || lock.Expired(&o.Status, o.Now) {
		return Settlement{}
	}
	return Settlement{Verdict: Release, Wake: l.Expires.Time}
}
