package transport

import (
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

const (
	// RenewEvery is how often an alert is sent again while a rollout is stopped, as
	// Prometheus does: an Alertmanager that was restarted knows none.
	RenewEvery = time.Minute
	// lasts is how long an alert lasts that is not sent again.
	lasts = 5 * RenewEvery
	// returnedLasts is how long the alert about a rollout lasts that was returned.
	returnedLasts = time.Hour
)

// alert is one of Alertmanager's API v2.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    string            `json:"startsAt"`
	EndsAt      string            `json:"endsAt"`
}

// alerts is the alert of a message. That a rollout is not stopped any more ends the alert that
// it is: the labels are the same.
func alerts(m *Message, now time.Time) []alert {
	name, starts, ends := "SpillwayRolloutStopped", m.At.Time, now.Add(lasts)
	switch m.Phase {
	case v1alpha1.RolloutReturned:
		name, ends = "SpillwayRolloutReturned", now.Add(returnedLasts)
	case v1alpha1.RolloutResumed:
		starts, ends = now, now
	default:
	}
	annotations := map[string]string{"summary": m.Headline(), "description": m.Sentence, "reason": m.Reason, "next": m.Next()}
	if m.TraceID != "" {
		annotations["trace"] = m.TraceID
	}
	return []alert{{
		Labels: map[string]string{
			"alertname": name, "severity": "warning", "namespace": m.Namespace, "ring": m.Ring, "kind": m.Kind, "name": m.Name, "rollout": m.Rollout,
		},
		Annotations: annotations,
		StartsAt:    starts.UTC().Format(time.RFC3339Nano), EndsAt: ends.UTC().Format(time.RFC3339Nano),
	}}
}
