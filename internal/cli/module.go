package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
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

// moduleKinds are the kinds of modules by all names that kubectl takes.
var moduleKinds = map[string]string{
	"module": fleet.KindModule, "modules": fleet.KindModule, "module.fleet.squaremo.dev": fleet.KindModule, "modules.fleet.squaremo.dev": fleet.KindModule,
	"bootstrapmodule": fleet.KindBootstrap, "bootstrapmodules": fleet.KindBootstrap,
	"bootstrapmodule.fleet.squaremo.dev": fleet.KindBootstrap, "bootstrapmodules.fleet.squaremo.dev": fleet.KindBootstrap,
}

// moduleNamed returns the module if the argument is of one of the kinds.
func moduleNamed(arg string) (moduleRef, bool) {
	kind, name, ok := strings.Cut(arg, "/")
	known := moduleKinds[strings.ToLower(kind)]
	return moduleRef{kind: known, name: name}, ok && known != "" && name != ""
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

// moduleExplanation is how a module stands, and what to type next.
type moduleExplanation struct {
	fleet.Explanation

	Next string `json:"next,omitempty"`
}

// clusterExplanation is how a cluster of a module stands, and what to type next.
type clusterExplanation struct {
	fleet.ClusterExplanation

	Next string `json:"next,omitempty"`
}

// explainModule explains a module, or one cluster of it.
func (a *asker) explainModule(cmd *cobra.Command, m moduleRef, cluster string) error {
	reader, options, err := a.connect(cmd.Context(), m.namespace)
	if err != nil {
		return err
	}
	o := fleet.Options{Namespaces: options.Namespaces, Now: options.Now}
	if cluster != "" {
		e, err := fleet.ExplainCluster(cmd.Context(), reader, o, m.kind, m.key(), cluster)
		if err != nil {
			return err
		}
		both := clusterExplanation{e, m.nextFor(&e)}
		return show(cmd.OutOrStdout(), a.output, both, func(w io.Writer) { writeCluster(w, &both) })
	}
	e, err := fleet.Explain(cmd.Context(), reader, o, m.kind, m.key())
	if err != nil {
		return err
	}
	both := moduleExplanation{e, m.next(&e)}
	return show(cmd.OutOrStdout(), a.output, both, func(w io.Writer) { writeModule(w, m, &both) })
}

// next is what to type about what a module waits for, empty if there is nothing to do.
func (m moduleRef) next(e *fleet.Explanation) string {
	switch {
	case e.Reason == rollout.ReasonPaused:
		return m.command("fleet resume")
	case e.Reason == rollout.ReasonGate:
		return m.command("fleet approve", stageFlag(waitingStage(e))...)
	case e.Phase == string(fleet.PhaseRolledBack):
		return "change the template, or: " + m.command("fleet history")
	case e.Phase == string(rollout.PhaseFailed) && e.Current != "" && e.Current != e.Target:
		return m.command("fleet rollback")
	default:
		return ""
	}
}

func stageFlag(stage string) []string {
	if stage == "" {
		return nil
	}
	return []string{"--stage", stage}
}

// waitingStage is the first that waits for a gate.
func waitingStage(e *fleet.Explanation) string {
	for i := range e.Stages {
		if isGate(e.Stages[i].State) {
			return e.Stages[i].Name
		}
	}
	return ""
}

func isGate(state string) bool {
	return state == string(rollout.ReasonGate) || state == string(rollout.ReasonGateRefused)
}

// nextFor is what to type about what a cluster waits for.
func (m moduleRef) nextFor(c *fleet.ClusterExplanation) string {
	switch {
	case c.Hold != nil:
		return m.command("fleet release", "--cluster", c.Name)
	case c.Reason == rollout.ReasonPaused:
		return m.command("fleet resume")
	case c.Reason == fleet.ReasonForeign:
		return "kubectl get " + m.assemblages() + "s -n " + m.namespace
	case c.OnCluster != "" && c.OnCluster != c.Name:
		return m.command("explain", "--cluster", c.OnCluster)
	case c.Reason == rollout.ReasonGate || c.Reason == rollout.ReasonGateRefused:
		return m.command("fleet approve", stageFlag(c.OnStage)...)
	case c.OnStage != "":
		return m.command("explain")
	case c.Reason != "" && c.Revision != "":
		return "kubectl describe " + m.assemblages() + "/" + c.Name + " -n " + m.namespace
	default:
		return ""
	}
}

// writeModule writes one sentence, then the facts behind it.
func writeModule(w io.Writer, m moduleRef, e *moduleExplanation) {
	_, _ = fmt.Fprintf(w, "%s.\n\n", strings.TrimSuffix(e.Sentence, "."))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := rowsIn(t)
	writeModuleState(row, &e.Explanation)
	for _, problem := range e.Problems {
		row("problem", "%s", problem)
	}
	for i := range e.Stages {
		row("stage", "%s", stageText(&e.Stages[i]))
	}
	writeWaiting(row, m, e.Clusters)
	for i := range min(len(e.History), shownRollouts) {
		row("rollout", "%s", pastText(&e.History[i]))
	}
	for _, note := range e.Notes {
		row("note", "%s", note)
	}
	if e.Next != "" {
		row("next", "%s", e.Next)
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
	if e.Since != nil {
		row("since", "%s", e.Since.UTC().Format(momentLayout))
	}
	if e.Until != nil {
		row("until", "%s", e.Until.UTC().Format(momentLayout))
	}
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

// writeCluster writes how a cluster stands.
func writeCluster(w io.Writer, e *clusterExplanation) {
	sentence := strings.TrimSuffix(e.Sentence, ".")
	if e.Stage != "" && !strings.HasPrefix(sentence, e.Name+" ") { // it waits with its whole stage
		sentence = e.Name + ": " + sentence
	}
	_, _ = fmt.Fprintf(w, "%s.\n\n", sentence)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := rowsIn(t)
	for _, fact := range [][2]string{
		{"stage", e.Stage}, {"revision", e.Revision}, {"target", e.Target}, {"state", string(e.State)}, {"reason", string(e.Reason)},
	} {
		if fact[1] != "" {
			row(fact[0], "%s", fact[1])
		}
	}
	if e.Since != nil {
		row("since", "%s", e.Since.UTC().Format(momentLayout))
	}
	if e.Until != nil {
		row("until", "%s", e.Until.UTC().Format(momentLayout))
	}
	if e.Hold != nil {
		row("pinned", "%s", wish(e.Hold.By, e.Hold.Reason))
	}
	if e.Next != "" {
		row("next", "%s", e.Next)
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
