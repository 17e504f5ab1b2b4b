// Package lock is the lock of a group, as its status says it: who may disrupt the
// group, and the downscale that it is held for.
//
// Except for [Keeper] all of it is pure: it changes a status that is then written with the
// resourceVersion that was observed. What takes the lock reads the group first
// and what he decides from after it, both from the API server itself; so between
// its read and its write no other client has decided anything.
package lock

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/replica"
	"github.com/spillway-dev/spillway/rollout"
)

const (
	// LandsWithin is how long after its admission a write may still be made: API
	// servers end a request after 60 seconds.
	LandsWithin = 65 * time.Second
	// PreparesWithin is how long the preparation of Pods may take in all, the undoing
	// included. It is more than a webhook has.
	PreparesWithin = 60 * time.Second
)

// Observed is the lock as the engine knows it. One that has expired is free, unless
// a downscale was not settled: its Pods may be prepared.
func Observed(s *v1alpha1.RolloutGroupStatus, now time.Time) *rollout.Lock {
	l := s.Lock
	switch {
	case s.Downscale != nil && s.Downscale.Refused && (l == nil || Expired(s, now)):
		return &rollout.Lock{}
	case l != nil && (s.Downscale != nil || !Expired(s, now)):
		return &rollout.Lock{Holder: l.Holder, Purpose: string(l.Purpose), Unit: l.Zone, Since: l.Since.Time}
	case s.Downscale != nil: // a user has taken the lock when it had expired, and given it back
		d := s.Downscale
		return &rollout.Lock{Holder: DownscaleHolder(d.Zone), Purpose: string(v1alpha1.PurposeDownscale), Unit: d.Zone, Since: d.At.Time}
	default:
		return &rollout.Lock{}
	}
}

// ForDownscale is the lock as a downscale sees it: the Pods of one that was refused must
// have been called to stay before others are called to go.
func ForDownscale(s *v1alpha1.RolloutGroupStatus, now time.Time) *rollout.Lock {
	l := Observed(s, now)
	if d := s.Downscale; d != nil && d.Refused && l.Holder == "" {
		return &rollout.Lock{Holder: DownscaleHolder(d.Zone) + ", which was refused: its Pods are called to stay", Since: d.At.Time}
	}
	return l
}

// TakeForDownscale takes the lock, and writes down what for.
func TakeForDownscale(s *v1alpha1.RolloutGroupStatus, d v1alpha1.Downscale) {
	take(s, DownscaleHolder(d.Zone), v1alpha1.PurposeDownscale, d.Zone, d.At.Time, PreparesWithin+LandsWithin)
	if again := s.Downscale; IsRetry(again, &d) {
		d.AdmittedAt = again.AdmittedAt
	}
	s.Downscale = &d
}

// TakesBack is true of a downscale to so many replicas that removes nothing but Pods that no node
// ever had: an upscale for which there is no room is taken back. Another client's downscale, and a
// replica that is being replaced, which may have served until then, forbid it.
func TakesBack(s *v1alpha1.RolloutGroupStatus, set *appsv1.StatefulSet, pods []corev1.Pod, to int) bool {
	if s.Downscale != nil && !isTakenBack(s.Downscale, set, to) {
		return false
	}
	isMoved := func(m v1alpha1.Move) bool {
		return m.Zone == set.Name && m.Pod != "" && replica.Ordinal(set.Name, m.Pod)-replica.FirstOrdinal(set) >= to
	}
	return replica.NeverRan(set, pods, to) && !slices.ContainsFunc(s.Moves, isMoved)
}

// isTakenBack is true if that is what is written down, so that it is done again.
func isTakenBack(d *v1alpha1.Downscale, set *appsv1.StatefulSet, to int) bool {
	return d.Unscheduled && d.UID == set.UID && int(d.To) == to && int(d.From) == replica.Count(set)
}

// TakeBack writes down a downscale that takes nothing down, also while another client has the lock. From then on no
// client builds upon the Pods that go, should a node have them after all.
func TakeBack(s *v1alpha1.RolloutGroupStatus, d v1alpha1.Downscale) {
	d.Unscheduled, d.Prepares, d.AdmittedAt = true, false, &d.At
	s.Downscale = &d
}

// Leaving is how many replicas of a zone are about to go for which the lock is not needed.
func Leaving(s *v1alpha1.RolloutGroupStatus, uid types.UID, replicas int) int {
	if d := s.Downscale; d != nil && d.Unscheduled && d.UID == uid {
		return max(0, replicas-int(d.To))
	}
	return 0
}

// IsRetry is true if a downscale is the one that was admitted before, and of which
// the write is still awaited: its client tries again.
func IsRetry(before, d *v1alpha1.Downscale) bool {
	return before != nil && before.AdmittedAt != nil && before.Zone == d.Zone && before.UID == d.UID && before.To == d.To && before.From == d.From
}

// Admit notes that the write was admitted; false if the lock was lost.
func Admit(s *v1alpha1.RolloutGroupStatus, d *v1alpha1.Downscale, now time.Time) bool {
	if !Holds(s, d) {
		return false
	}
	at, expires := metav1.NewMicroTime(now), metav1.NewMicroTime(now.Add(LandsWithin))
	s.Downscale.AdmittedAt, s.Lock.Expires = &at, &expires
	return true
}

// Holds is true if the lock is held for this very attempt.
func Holds(s *v1alpha1.RolloutGroupStatus, d *v1alpha1.Downscale) bool {
	return s.Downscale != nil && s.Downscale.Zone == d.Zone && s.Downscale.UID == d.UID && s.Downscale.At.Equal(&d.At) &&
		s.Lock != nil && s.Lock.Holder == DownscaleHolder(d.Zone)
}

// DownscaleHolder is the name of a downscale as a holder of the lock.
func DownscaleHolder(zone string) string { return string(v1alpha1.PurposeDownscale) + "/" + zone }

// Land gives the lock back after the downscale was seen, and remembers it.
func Land(s *v1alpha1.RolloutGroupStatus) {
	d := *s.Downscale
	Drop(s)
	forget(s, d.Zone)
	d.AdmittedAt, d.ResourceVersion, d.Refused = nil, "", false
	for i := range s.Downscales {
		if s.Downscales[i].Zone == d.Zone {
			s.Downscales[i] = d
			return
		}
	}
	s.Downscales = append(s.Downscales, d)
}

// Drop gives the lock back after an attempt that came to nothing.
func Drop(s *v1alpha1.RolloutGroupStatus) {
	if s.Lock != nil && s.Lock.Purpose == v1alpha1.PurposeDownscale {
		s.Lock = nil
	}
	s.Downscale = nil
}

// maxMessage bounds what is quoted of a refusal.
const maxMessage = 512

// Refuse gives the lock back immediately after an attempt that was refused, and notes why. While some
// Pods may still obey that they are to go, what was written down stays, without the lock.
func Refuse(s *v1alpha1.RolloutGroupStatus, r v1alpha1.RefusedDownscale, pending bool) {
	if len(r.Message) > maxMessage {
		r.Message = strings.ToValidUTF8(r.Message[:maxMessage], "") + "..."
	}
	for i := range s.RefusedDownscales {
		if before := &s.RefusedDownscales[i]; before.Zone == r.Zone && before.UID == r.UID && before.From == r.From && before.To == r.To {
			r.Attempts = before.Attempts
		}
	}
	r.Attempts++
	forget(s, r.Zone)
	s.RefusedDownscales = append(s.RefusedDownscales, r)
	d := s.Downscale
	Drop(s)
	if pending && d != nil {
		kept := *d
		kept.AdmittedAt, kept.Refused = nil, true
		s.Downscale = &kept
	}
}

// forget removes what was noted of a zone.
func forget(s *v1alpha1.RolloutGroupStatus, zone string) {
	s.RefusedDownscales = slices.DeleteFunc(s.RefusedDownscales, func(r v1alpha1.RefusedDownscale) bool { return r.Zone == zone })
}

// TakeForEviction takes the lock for a Pod of a zone. If evictions hold it already
// it becomes theirs for longer, and for all zones if it was for another.
func TakeForEviction(s *v1alpha1.RolloutGroupStatus, group, zone string, now time.Time) {
	holder, since := EvictionHolder(group), now
	if l := s.Lock; l != nil && l.Holder == holder && !Expired(s, now) {
		since = l.Since.Time
		if l.Zone != zone {
			zone = ""
		}
	}
	take(s, holder, v1alpha1.PurposeEviction, zone, since, now.Sub(since)+LandsWithin)
}

// EvictionHolder is the name of all evictions of a group as a holder of the lock:
// what they may do beside each other, their budget says.
func EvictionHolder(group string) string { return string(v1alpha1.PurposeEviction) + "/" + group }

// Expired is true if a lock is held whose time is over.
func Expired(s *v1alpha1.RolloutGroupStatus, now time.Time) bool {
	return s.Lock != nil && s.Lock.Expires != nil && !now.Before(s.Lock.Expires.Time)
}

// ReleaseEviction gives the lock back, if evictions hold it.
func ReleaseEviction(s *v1alpha1.RolloutGroupStatus) {
	if s.Lock != nil && s.Lock.Purpose == v1alpha1.PurposeEviction {
		s.Lock = nil
	}
}

func take(s *v1alpha1.RolloutGroupStatus, holder string, purpose v1alpha1.Purpose, zone string, since time.Time, lasts time.Duration) {
	expires := metav1.NewMicroTime(since.Add(lasts))
	s.Lock = &v1alpha1.Lock{Holder: holder, Purpose: purpose, Zone: zone, Since: metav1.NewMicroTime(since), Expires: &expires}
}

// See notes how new the views are from which the lock was taken or given back:
// the next that decides must know as much.
func See(s *v1alpha1.RolloutGroupStatus, seen v1alpha1.Seen) {
	if s.Seen == nil {
		s.Seen = &v1alpha1.Seen{}
	}
	s.Seen.Pods, s.Seen.StatefulSets = newer(s.Seen.Pods, seen.Pods), newer(s.Seen.StatefulSets, seen.StatefulSets)
}

func newer(a, b string) string {
	if order, err := resourceversion.CompareResourceVersion(a, b); a == "" || err == nil && order < 0 {
		return b
	}
	return a
}
