package lock

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func downscale(zone string, at time.Time) v1alpha1.Downscale {
	return v1alpha1.Downscale{Zone: zone, UID: "1", From: 3, To: 2, At: metav1.NewMicroTime(at), Prepares: true}
}

func TestADownscale(t *testing.T) {
	s, d := &v1alpha1.RolloutGroupStatus{}, downscale("a", noon)
	if l := Observed(s, noon); l.Holder != "" {
		t.Errorf("held by %q", l.Holder)
	}
	TakeForDownscale(s, d)
	if l := Observed(s, noon); l.Holder != "downscale/a" || l.Purpose != "downscale" || l.Unit != "a" || !l.Since.Equal(noon) {
		t.Errorf("%+v", l)
	}
	if !Holds(s, &d) || !Admit(s, &d, noon.Add(time.Second)) || !s.Lock.Expires.Time.Equal(noon.Add(time.Second+LandsWithin)) {
		t.Errorf("%+v", s.Lock)
	}
	Land(s)
	landAnother(s, downscale("a", noon.Add(time.Hour)))
	if s.Lock != nil || s.Downscale != nil || len(s.Downscales) != 1 || !s.Downscales[0].At.Time.Equal(noon.Add(time.Hour)) || s.Downscales[0].AdmittedAt != nil {
		t.Errorf("%+v", s)
	}
}

// landAnother is another downscale that lands.
func landAnother(s *v1alpha1.RolloutGroupStatus, d v1alpha1.Downscale) {
	TakeForDownscale(s, d)
	Land(s)
}

// A lock that has expired is free, but for a downscale that was not settled: its Pods
// may be prepared.
func TestWhatHasExpired(t *testing.T) {
	s := &v1alpha1.RolloutGroupStatus{}
	TakeForEviction(s, "g", "a", noon)
	later := noon.Add(LandsWithin)
	if Observed(s, noon).Holder != "eviction/g" || Observed(s, later).Holder != "" || !Expired(s, later) {
		t.Errorf("%+v", s.Lock)
	}
	d := downscale("a", noon)
	TakeForDownscale(s, d)
	later = noon.Add(time.Hour)
	if Observed(s, later).Holder != "downscale/a" {
		t.Errorf("%+v", Observed(s, later))
	}
	s.Lock = nil // a rollout has taken it over, and given it back
	if Observed(s, later).Holder != "downscale/a" || Holds(s, &d) || Admit(s, &d, later) {
		t.Errorf("%+v", Observed(s, later))
	}
}

// What is tried again keeps what was promised to the attempt before.
func TestARetryKnowsOfTheAttemptBefore(t *testing.T) {
	s, first := &v1alpha1.RolloutGroupStatus{}, downscale("a", noon)
	again := downscale("a", noon.Add(time.Minute))
	TakeForDownscale(s, first)
	if IsRetry(s.Downscale, &again) {
		t.Error("the first attempt still prepares, and is another client's")
	}
	Admit(s, &first, noon)
	if !IsRetry(s.Downscale, &again) {
		t.Error("it was admitted, and did not come")
	}
	TakeForDownscale(s, again)
	if s.Downscale.AdmittedAt == nil || Holds(s, &first) || !Holds(s, &again) {
		t.Errorf("%+v", s.Downscale)
	}
	more := again
	more.To = 1
	if IsRetry(s.Downscale, &more) {
		t.Error("it goes further than what was admitted")
	}
}

func TestEvictionsShareTheLock(t *testing.T) {
	s := &v1alpha1.RolloutGroupStatus{}
	TakeForEviction(s, "g", "a", noon)
	TakeForEviction(s, "g", "a", noon.Add(time.Second))
	if s.Lock.Zone != "a" || !s.Lock.Since.Time.Equal(noon) || !s.Lock.Expires.Time.Equal(noon.Add(time.Second+LandsWithin)) {
		t.Errorf("%+v", s.Lock)
	}
	TakeForEviction(s, "g", "b", noon.Add(2*time.Second))
	if s.Lock.Zone != "" {
		t.Errorf("%+v", s.Lock)
	}
	Drop(s)
	if s.Lock == nil {
		t.Error("it was not a downscale's to give back")
	}
	ReleaseEviction(s)
	if s.Lock != nil {
		t.Errorf("%+v", s.Lock)
	}
}

func TestSeeingNeverGoesBack(t *testing.T) {
	s := &v1alpha1.RolloutGroupStatus{}
	See(s, v1alpha1.Seen{Pods: "12", StatefulSets: "7"})
	See(s, v1alpha1.Seen{Pods: "9", StatefulSets: "8"})
	See(s, v1alpha1.Seen{})
	if s.Seen.Pods != "12" || s.Seen.StatefulSets != "8" {
		t.Errorf("%+v", s.Seen)
	}
}
