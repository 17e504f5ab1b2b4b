package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/scaling"
)

const (
	momentLayout = "2006-01-02 15:04:05 UTC"
	// shownRollouts is how many of the last rollouts explain shows; all are in the
	// JSON.
	shownRollouts = 3
)

// groupExplanation is how a group is rolled, and what its replicas wait for.
type groupExplanation struct {
	zones.Explanation

	Replicas []string `json:"replicas,omitempty"`
}

// explainGroup explains a group of StatefulSets.
func (a *asker) explainGroup(ctx context.Context, w io.Writer, reader client.Client, options config.Options, namespace, name string) error {
	e, err := zones.Explain(ctx, reader, zones.Options{Namespaces: options.Namespaces, Now: options.Now}, namespace, name)
	if err != nil {
		return err
	}
	replicas, err := scaling.Explain(ctx, reader, scaling.Options{Now: options.Now}, namespace, name)
	if err != nil {
		return err
	}
	both := groupExplanation{e, replicas}
	return show(w, a.output, both, func(w io.Writer) { writeGroup(w, both) })
}

// isForbidden looks through what an error was wrapped in.
func isForbidden(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonForbidden
}

// writeGroup writes one sentence, then the facts behind it.
func writeGroup(w io.Writer, e groupExplanation) {
	_, _ = fmt.Fprintf(w, "%s.\n\n", strings.TrimSuffix(e.Sentence, "."))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	writeGroupState(row, e.Explanation)
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

func writeGroupState(row func(name, format string, args ...any), e zones.Explanation) {
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
	if e.Since != nil {
		row("since", "%s", e.Since.UTC().Format(momentLayout))
	}
	if e.Until != nil {
		row("until", "%s", e.Until.UTC().Format(momentLayout))
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
