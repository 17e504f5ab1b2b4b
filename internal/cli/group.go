package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/standing"
	"github.com/spillway-dev/spillway/internal/zones"
)

const (
	momentLayout = "2006-01-02 15:04:05 UTC"
	// shownRollouts is how many of the last rollouts explain shows; all are in the
	// JSON.
	shownRollouts = 3
)

// writeGroup writes the facts of a group.
func writeGroup(w io.Writer, e *standing.GroupDetails) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := rowsIn(t)
	writeGroupState(row, &e.Explanation)
	for _, problem := range e.Problems {
		row("problem", "%s", problem)
	}
	for i := range e.Zones {
		row("zone", "%s", zoneText(&e.Zones[i]))
	}
	for _, sentence := range e.Replicas {
		row("replicas", "%s", sentence)
	}
	for i := range min(len(e.History), shownRollouts) {
		row("rollout", "%s", rolloutText(&e.History[i]))
	}
	for _, note := range e.Notes {
		row("note", "%s", note)
	}
	_ = t.Flush() // to a writer that the caller chose
}

func writeGroupState(row rowWriter, e *zones.Explanation) {
	phase := e.Phase
	if e.Reason != "" && string(e.Reason) != e.Phase {
		phase += fmt.Sprintf(" (%s)", e.Reason)
	}
	if phase != "" {
		row("phase", "%s", phase)
	}
	if e.Missing {
		row("object", "the manager has not made it yet; is one running with --rings=zones?")
	}
	if e.Updated != "" {
		row("updated", "%s Pods", e.Updated)
	}
	if l := e.Lock; l != nil {
		row("lock", "%s%s, since %s", l.Purpose, inZone(l.Zone), l.Since.UTC().Format(momentLayout))
	}
	if p := e.Pause; p != nil {
		row("paused", "%s", wish(p.By, p.Reason))
	}
	if r := e.Retry; r != nil {
		row("retried", "%s, %s", r.At.UTC().Format(momentLayout), wish(r.By, r.Reason))
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
	text := "by somebody"
	if by != "" {
		text = "by " + by
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}

func zoneText(z *v1alpha1.Zone) string {
	text := fmt.Sprintf("%s\t%d/%d updated, %d ready\t%s", z.Name, z.Updated, z.Total, z.Ready, z.State)
	if z.Message != "" {
		text += ": " + z.Message
	}
	return text
}

func rolloutText(r *v1alpha1.Rollout) string {
	text := fmt.Sprintf("number %d\tbegan %s\t%s", r.Number, r.StartedAt.UTC().Format(momentLayout), r.Outcome)
	if r.Duration != "" {
		text += " after " + r.Duration
	}
	return text
}
