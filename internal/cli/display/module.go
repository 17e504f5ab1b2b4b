package display

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// shownClusters is how many clusters that wait explain shows; all are in the JSON.
const shownClusters = 20

// IsGate reports whether a stage in this state waits for a gate.
func IsGate(state string) bool {
	return state == string(rollout.ReasonGate) || state == string(rollout.ReasonGateRefused)
}

// Module writes the facts of a module.
func Module(f *Facts, e *decision.Explanation) {
	writeModuleState(f, e)
	for _, problem := range e.Problems {
		f.row("problem", problem)
	}
	for i := range e.Stages {
		writeStage(f, &e.Stages[i])
	}
	writeWaiting(f, e)
	for i := range min(len(e.History), shownRollouts) {
		writePast(f, &e.History[i])
	}
	for _, note := range e.Notes {
		f.row("note", note)
	}
}

func writeModuleState(f *Facts, e *decision.Explanation) {
	phase := e.Phase
	if e.Reason != "" && string(e.Reason) != e.Phase {
		phase += fmt.Sprintf(" (%s)", e.Reason)
	}
	f.optional("phase", phase)
	f.optional("target", e.Target)
	f.optional("current", e.Current)
	f.optional("given up", e.RolledBack)
	f.optional("clusters", clustersText(e))
	if s := e.Steered; s != nil {
		f.row("steered", fmt.Sprintf("%s %s, %s", s.Verb, wish(s.By, s.Reason), s.At.UTC().Format(momentLayout)))
	}
}

// clustersText counts the clusters.
func clustersText(e *decision.Explanation) string {
	if e.Summary == nil {
		return ""
	}
	texts := []string{e.UpToDate + " up to date"}
	for _, count := range []struct {
		n    int32
		what string
	}{
		{e.Summary.Updating, "updating"}, {e.Summary.Waiting, "not assigned it yet"}, {e.Summary.Failed, "failed"},
		{e.Summary.Held, "pinned"}, {e.Summary.Unreachable, "unreachable"},
	} {
		if count.n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", count.n, count.what))
		}
	}
	return strings.Join(texts, ", ")
}

func writeStage(f *Facts, s *fleetv1.StageStatus) {
	counts := fmt.Sprintf("%d/%d updated, %d ready, %d failed", s.Updated, s.Total, s.Ready, s.Failed)
	f.row("stage", s.Name, counts, withMessage(s.State, s.Message))
}

// writeWaiting says what each cluster waits for that waits.
func writeWaiting(f *Facts, e *decision.Explanation) {
	shown, more := 0, 0
	for i := range e.Clusters {
		c := &e.Clusters[i]
		switch {
		case c.Reason == "" && c.Hold == nil:
		case shown == shownClusters:
			more++
		default:
			shown++
			f.row("cluster", c.Name, wordOf(c), c.Sentence)
		}
	}
	if more > 0 {
		f.row("clusters", fmt.Sprintf("%d more wait; spillway explain %s/%s -n %s --cluster NAME tells of one, -o json of all", more, strings.ToLower(e.Kind), e.Name, e.Namespace))
	}
}

// wordOf is why a cluster waits, or how it is.
func wordOf(c *decision.ClusterExplanation) string {
	if c.Reason == "" {
		return "Pinned"
	}
	return string(c.Reason)
}

func writePast(f *Facts, p *fleetv1.PastRollout) {
	outcome := p.Outcome
	if p.FinishedAt != nil {
		outcome += ", ended " + p.FinishedAt.UTC().Format(momentLayout)
	}
	f.row("rollout", p.Revision, "began "+p.StartedAt.UTC().Format(momentLayout), outcome)
}

// Cluster writes the facts of a cluster.
func Cluster(f *Facts, e *decision.ClusterExplanation) {
	f.optional("stage", e.Stage)
	f.optional("revision", e.Revision)
	f.optional("target", e.Target)
	f.optional("state", string(e.State))
	f.optional("reason", string(e.Reason))
	if e.Hold != nil {
		f.row("pinned", wish(e.Hold.By, e.Hold.Reason))
	}
}

// Modules writes a line for each module.
func Modules(w io.Writer, s Style, found []decision.Explanation) {
	if len(found) == 0 {
		return
	}
	f := NewFacts(w, s)
	f.Line("NAMESPACE", "MODULE", "PHASE", "STAGE", "CLUSTERS", "FAILED", "TARGET", "WHY")
	for i := range found {
		e := &found[i]
		failed := int32(0)
		if e.Summary != nil {
			failed = e.Summary.Failed
		}
		f.Line(e.Namespace, strings.ToLower(e.Kind)+"/"+e.Name, e.Phase, e.Stage, e.UpToDate, strconv.Itoa(int(failed)), e.Target, e.Sentence)
	}
	f.Write()
}
