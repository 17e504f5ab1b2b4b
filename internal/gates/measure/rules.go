package measure

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// The defaults of a GateTemplate.
const (
	defaultInterval   = time.Minute
	defaultErrorLimit = 4
)

// Unlimited as a limit allows any number.
const Unlimited = -1

// Rules say how a gate is decided: a GateTemplate with its defaults.
type Rules struct {
	// Interval is the time between two measurements, InitialDelay that before the first.
	Interval, InitialDelay time.Duration
	// Timeout is how long the gate may take, zero for as long as it takes.
	Timeout time.Duration
	// Count is how many measurements there are, or [Unlimited].
	Count int32
	// InRow is how many must succeed in a row, zero if none must.
	InRow int32
	// Failures is how many may fail, or [Unlimited]; Errors is how many errors in a row
	// there may be.
	Failures, Errors int32
	// NoData says what a measurement without data is.
	NoData v1alpha1.NoDataPolicy
	// During is true of a gate that is measured while its stage rolls. That has ended at
	// EndedAt, zero while it has not.
	During  bool
	EndedAt time.Time
}

// Of are the rules for a gate.
func (r Rules) Of(g *v1alpha1.RolloutGateSpec) Rules {
	r.During = g.When == string(v1alpha1.GateDuring)
	if g.EndedAt != nil {
		r.EndedAt = g.EndedAt.Time
	}
	return r
}

// mayPass is true of a measurement at a moment at which the stage does not roll any more.
func (r Rules) mayPass(at time.Time) bool {
	return !r.During || !r.EndedAt.IsZero() && !at.Before(r.EndedAt)
}

// end is when there is no more time for a gate that is measured since a moment, zero for never.
func (r Rules) end(since time.Time) time.Time {
	if r.During {
		since = r.EndedAt
	}
	if r.Timeout <= 0 || since.IsZero() {
		return time.Time{}
	}
	return since.Add(r.Timeout)
}

// RulesOf returns the rules of a GateTemplate.
func RulesOf(s *v1alpha1.GateTemplateSpec) Rules {
	r := Rules{
		Interval: duration(s.Interval, defaultInterval), InitialDelay: duration(s.InitialDelay, 0), Timeout: duration(s.Timeout, 0),
		Count: 1, InRow: number(s.ConsecutiveSuccessLimit, 0), Errors: number(s.ErrorLimit, defaultErrorLimit), NoData: s.NoData,
	}
	if r.InRow > 0 {
		r.Count, r.Failures = Unlimited, Unlimited
	}
	r.Count, r.Failures = number(s.Count, r.Count), number(s.FailureLimit, r.Failures)
	return r
}

func duration(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}

func number(n *int32, otherwise int32) int32 {
	if n == nil {
		return otherwise
	}
	return *n
}
