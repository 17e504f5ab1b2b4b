package lock

import (
	"errors"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Downscaled is another zone that may have been scaled down lately, and how long to
// wait after that.
type Downscaled struct {
	Zone string
	// Last is zero if it never was.
	Last time.Time
	Wait time.Duration
}

// MinTime keeps a zone from being scaled down too early after others: until the last of
// their waits is over. It is nil if none is left. The sentence is for the guards in
// rollout-operator's words, so each caller has its own.
func MinTime(now time.Time, others []Downscaled, sentence func(Downscaled) string) *rollout.Block {
	var block *rollout.Block
	for _, d := range others {
		until := d.Last.Add(d.Wait)
		if !d.Last.IsZero() && now.Before(until) && (block == nil || until.After(block.Until)) {
			block = &rollout.Block{Reason: ReasonMinTime, Since: d.Last, Until: until, Message: sentence(d)}
		}
	}
	return block
}

// Recently is the zone as others see it that want to be scaled down; false if it does
// not say how long they wait.
func Recently(s *v1alpha1.RolloutGroupStatus, zone string, labels, annotations map[string]string) (d Downscaled, ok bool, err error) {
	wait, noted := MinTimeOf(labels, annotations), NotedDownscale(annotations)
	if err := errors.Join(noted.Err, wait.Err); err != nil {
		return d, false, err
	}
	return Downscaled{Zone: zone, Last: LastDownscale(s, zone, noted.Is), Wait: wait.Is}, wait.Field != "", nil
}

// LastDownscale is when a zone was scaled down last, by us or, as its annotation notes
// it, by rollout-operator; zero if it never was.
func LastDownscale(s *v1alpha1.RolloutGroupStatus, zone string, noted time.Time) time.Time {
	last := noted
	for i := range s.Downscales {
		if d := &s.Downscales[i]; d.Zone == zone && d.At.After(last) {
			last = d.At.Time
		}
	}
	return last
}

// MinTimeOf reads how long to wait after another zone was scaled down. An annotation
// wins over a label, because a label cannot be edited on its own.
func MinTimeOf(labels, annotations map[string]string) (s Setting[time.Duration]) {
	value, name, ok := vocabulary.MinTimeBetweenZonesDownscale.Lookup(annotations)
	if !ok {
		value, name, s.IsLabel = vocabulary.MinTimeBetweenZonesDownscale.Lookup(labels)
	}
	s.Field, s.Value = name, value
	if ok || s.IsLabel {
		s.Is, s.Err = time.ParseDuration(value)
	}
	return s
}

// NotedDownscale reads when rollout-operator has scaled a zone down last.
func NotedDownscale(annotations map[string]string) (s Setting[time.Time]) {
	value, name, ok := vocabulary.LastDownscale.Lookup(annotations)
	s.Field, s.Value = name, value
	if ok {
		s.Is, s.Err = time.Parse(time.RFC3339, value)
	}
	return s
}

// Setting is a duration or a time that a StatefulSet asks for.
type Setting[T any] struct {
	// Field is the annotation or the label that says so, empty if none does; Value what
	// it says.
	Field, Value string
	IsLabel      bool
	// Is is what it means, unless Err says why it means nothing.
	Is  T
	Err error
}
