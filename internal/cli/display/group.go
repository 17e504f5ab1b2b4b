package display

import (
	"fmt"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// Group writes the facts of a group.
func Group(f *Facts, e *explain.GroupDetails) {
	writeGroupState(f, &e.Explanation)
	for _, problem := range e.Problems {
		f.row("problem", problem)
	}
	for i := range e.Zones {
		writeZone(f, &e.Zones[i])
	}
	for _, sentence := range e.Replicas {
		f.row("replicas", sentence)
	}
	for i := range min(len(e.History), shownRollouts) {
		writeRollout(f, &e.History[i])
	}
	for _, note := range e.Notes {
		f.row("note", note)
	}
}

func writeGroupState(f *Facts, e *decision.Explanation) {
	phase := e.Phase
	if e.Reason != "" && string(e.Reason) != e.Phase {
		phase += fmt.Sprintf(" (%s)", e.Reason)
	}
	f.optional("phase", phase)
	if e.Missing {
		f.row("object", "not created by the manager yet; is one running with --rings=zones?")
	}
	if e.Updated != "" {
		f.row("updated", e.Updated+" Pods")
	}
	if l := e.Lock; l != nil {
		f.row("lock", fmt.Sprintf("%s%s, since %s", l.Purpose, inZone(l.Zone), l.Since.UTC().Format(momentLayout)))
	}
	if p := e.Pause; p != nil {
		f.row("paused", wish(p.By, p.Reason))
	}
	if r := e.Retry; r != nil {
		f.row("retried", r.At.UTC().Format(momentLayout)+", "+wish(r.By, r.Reason))
	}
}

func inZone(zone string) string {
	if zone == "" {
		return ""
	}
	return " in " + zone
}

// wish says who wanted something, and why.
func wish(by, reason string) string {
	text := "by an unknown user"
	if by != "" {
		text = "by " + by
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}

func writeZone(f *Facts, z *v1alpha1.Zone) {
	f.row("zone", z.Name, fmt.Sprintf("%d/%d updated, %d ready", z.Updated, z.Total, z.Ready), withMessage(z.State, z.Message))
}

// withMessage is a state, and what there is to say of it.
func withMessage(state, message string) string {
	if message == "" {
		return state
	}
	return state + ": " + message
}

func writeRollout(f *Facts, r *v1alpha1.Rollout) {
	outcome := r.Outcome
	if r.Duration != "" {
		outcome += " after " + r.Duration
	}
	f.row("rollout", fmt.Sprintf("number %d", r.Number), "began "+r.StartedAt.UTC().Format(momentLayout), outcome)
}
