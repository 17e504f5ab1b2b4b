package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// shownClusters is how many clusters that wait explain shows; all are in the JSON.
const shownClusters = 20

// moduleRef is a module as a person names it.
type moduleRef struct {
	kind, namespace, name string
}

// moduleNamed returns the module if the argument is of one of the kinds.
func moduleNamed(arg string) (moduleRef, bool) {
	ref, ok := namedAs(arg, model.KindModule, model.KindBootstrap)
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
	if m.kind == model.KindBootstrap {
		return "remoteassemblage"
	}
	return "proxyassemblage"
}

func isGate(state string) bool {
	return state == string(rollout.ReasonGate) || state == string(rollout.ReasonGateRefused)
}

// writeModule writes the facts of a module.
func writeModule(f *facts, e *decision.Explanation) {
	writeModuleState(f, e)
	for _, problem := range e.Problems {
		f.row("problem", problem)
	}
	for i := range e.Stages {
		writeStage(f, &e.Stages[i])
	}
	writeWaiting(f, moduleRef{e.Kind, e.Namespace, e.Name}, e.Clusters)
	for i := range min(len(e.History), shownRollouts) {
		writePast(f, &e.History[i])
	}
	for _, note := range e.Notes {
		f.row("note", note)
	}
}

func writeModuleState(f *facts, e *decision.Explanation) {
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

func writeStage(f *facts, s *fleetv1.StageStatus) {
	counts := fmt.Sprintf("%d/%d updated, %d ready, %d failed", s.Updated, s.Total, s.Ready, s.Failed)
	f.row("stage", s.Name, counts, withMessage(s.State, s.Message))
}

// writeWaiting says what each cluster waits for that waits.
func writeWaiting(f *facts, m moduleRef, clusters []decision.ClusterExplanation) {
	shown, more := 0, 0
	for i := range clusters {
		c := &clusters[i]
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
		f.row("clusters", fmt.Sprintf("%d more wait; %s tells of one, -o json of all", more, m.command("explain", "--cluster", "NAME")))
	}
}

// wordOf is why a cluster waits, or how it is.
func wordOf(c *decision.ClusterExplanation) string {
	if c.Reason == "" {
		return "Pinned"
	}
	return string(c.Reason)
}

func writePast(f *facts, p *fleetv1.PastRollout) {
	outcome := p.Outcome
	if p.FinishedAt != nil {
		outcome += ", ended " + p.FinishedAt.UTC().Format(momentLayout)
	}
	f.row("rollout", p.Revision, "began "+p.StartedAt.UTC().Format(momentLayout), outcome)
}

// writeCluster writes the facts of a cluster.
func writeCluster(f *facts, e *decision.ClusterExplanation) {
	f.optional("stage", e.Stage)
	f.optional("revision", e.Revision)
	f.optional("target", e.Target)
	f.optional("state", string(e.State))
	f.optional("reason", string(e.Reason))
	if e.Hold != nil {
		f.row("pinned", wish(e.Hold.By, e.Hold.Reason))
	}
}

// writeModules writes a line for each module.
func writeModules(w io.Writer, s style, found []decision.Explanation) {
	if len(found) == 0 {
		return
	}
	f := newFacts(w, s)
	f.line("NAMESPACE", "MODULE", "PHASE", "STAGE", "CLUSTERS", "FAILED", "TARGET", "WHY")
	for i := range found {
		e := &found[i]
		failed := int32(0)
		if e.Summary != nil {
			failed = e.Summary.Failed
		}
		f.line(e.Namespace, strings.ToLower(e.Kind)+"/"+e.Name, e.Phase, e.Stage, e.UpToDate, strconv.Itoa(int(failed)), e.Target, e.Sentence)
	}
	f.write()
}
