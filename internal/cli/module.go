package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/types"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet"
	"github.com/spillway-dev/spillway/internal/rollout"
)

// shownClusters is how many clusters that wait explain shows; all are in the JSON.
const shownClusters = 20

// moduleRef is a module as a person names it.
type moduleRef struct {
	kind, namespace, name string
}

// moduleNamed returns the module if the argument is of one of the kinds.
func moduleNamed(arg string) (moduleRef, bool) {
	ref, ok := namedAs(arg, fleet.KindModule, fleet.KindBootstrap)
	return moduleRef{kind: ref.Kind, name: ref.Name}, ok
}

func (m moduleRef) key() types.NamespacedName {
	return types.NamespacedName{Namespace: m.namespace, Name: m.name}
}

// String is how kubectl names it.
func (m moduleRef) String() string { return strings.ToLower(m.kind) + "/" + m.name }

// command is what to type to do something with the module.
func (m moduleRef) command(verb string, args ...string) string {
	return strings.Join(append([]string{"spillway", verb, m.String(), "-n", m.namespace}, args...), " ")
}

// assemblages is what kubectl calls the assemblages of such modules.
func (m moduleRef) assemblages() string {
	if m.kind == fleet.KindBootstrap {
		return "remoteassemblage"
	}
	return "proxyassemblage"
}

func isGate(state string) bool {
	return state == string(rollout.ReasonGate) || state == string(rollout.ReasonGateRefused)
}

// writeModule writes the facts of a module.
func writeModule(w io.Writer, e *fleet.Explanation) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := rowsIn(t)
	writeModuleState(row, e)
	for _, problem := range e.Problems {
		row("problem", "%s", problem)
	}
	for i := range e.Stages {
		row("stage", "%s", stageText(&e.Stages[i]))
	}
	writeWaiting(row, moduleRef{e.Kind, e.Namespace, e.Name}, e.Clusters)
	for i := range min(len(e.History), shownRollouts) {
		row("rollout", "%s", pastText(&e.History[i]))
	}
	for _, note := range e.Notes {
		row("note", "%s", note)
	}
	_ = t.Flush() // to a writer that the caller chose
}

type rowWriter func(name, format string, args ...any)

// rowsIn writes facts, each with its name.
func rowsIn(w io.Writer) rowWriter {
	return func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(w, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
}

func writeModuleState(row rowWriter, e *fleet.Explanation) {
	phase := e.Phase
	if e.Reason != "" && string(e.Reason) != e.Phase {
		phase += fmt.Sprintf(" (%s)", e.Reason)
	}
	optional := func(name, value string) {
		if value != "" {
			row(name, "%s", value)
		}
	}
	optional("phase", phase)
	optional("target", e.Target)
	optional("current", e.Current)
	optional("given up", e.RolledBack)
	optional("clusters", clustersText(e))
	if s := e.Steered; s != nil {
		row("steered", "%s %s, %s", s.Verb, wish(s.By, s.Reason), s.At.UTC().Format(momentLayout))
	}
}

// clustersText counts the clusters.
func clustersText(e *fleet.Explanation) string {
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

func stageText(s *fleetv1.StageStatus) string {
	text := fmt.Sprintf("%s\t%d/%d updated, %d ready, %d failed\t%s", s.Name, s.Updated, s.Total, s.Ready, s.Failed, s.State)
	if s.Message != "" {
		text += ": " + s.Message
	}
	return text
}

// writeWaiting says what each cluster waits for that waits.
func writeWaiting(row rowWriter, m moduleRef, clusters []fleet.ClusterExplanation) {
	shown, more := 0, 0
	for i := range clusters {
		c := &clusters[i]
		switch {
		case c.Reason == "" && c.Hold == nil:
		case shown == shownClusters:
			more++
		default:
			shown++
			row("cluster", "%s\t%s\t%s", c.Name, wordOf(c), c.Sentence)
		}
	}
	if more > 0 {
		row("clusters", "%d more wait; %s tells of one, -o json of all", more, m.command("explain", "--cluster", "NAME"))
	}
}

// wordOf is why a cluster waits, or how it is.
func wordOf(c *fleet.ClusterExplanation) string {
	if c.Reason == "" {
		return "Pinned"
	}
	return string(c.Reason)
}

func pastText(p *fleetv1.PastRollout) string {
	text := fmt.Sprintf("%s\tbegan %s\t%s", p.Revision, p.StartedAt.UTC().Format(momentLayout), p.Outcome)
	if p.FinishedAt != nil {
		text += ", ended " + p.FinishedAt.UTC().Format(momentLayout)
	}
	return text
}

// writeCluster writes the facts of a cluster.
func writeCluster(w io.Writer, e *fleet.ClusterExplanation) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := rowsIn(t)
	for _, fact := range [][2]string{
		{"stage", e.Stage}, {"revision", e.Revision}, {"target", e.Target}, {"state", string(e.State)}, {"reason", string(e.Reason)},
	} {
		if fact[1] != "" {
			row(fact[0], "%s", fact[1])
		}
	}
	if e.Hold != nil {
		row("pinned", "%s", wish(e.Hold.By, e.Hold.Reason))
	}
	_ = t.Flush() // to a writer that the caller chose
}

// writeModules writes a line for each module.
func writeModules(w io.Writer, found []fleet.Explanation) {
	if len(found) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(t, "NAMESPACE\tMODULE\tPHASE\tSTAGE\tCLUSTERS\tFAILED\tTARGET\tWHY")
	for i := range found {
		e := &found[i]
		failed := int32(0)
		if e.Summary != nil {
			failed = e.Summary.Failed
		}
		_, _ = fmt.Fprintf(t, "%s\t%s/%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			e.Namespace, strings.ToLower(e.Kind), e.Name, e.Phase, e.Stage, e.UpToDate, failed, e.Target, e.Sentence)
	}
	_ = t.Flush() // to a writer that the caller chose
}
