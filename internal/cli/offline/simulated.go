package offline

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/cli/display"
	config "github.com/spillway-dev/spillway/internal/config/decision"
	plans "github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/rollout"
)

// simulatedLine is a step or a wait.
type simulatedLine struct {
	at record.Offset
	// steps is how many steps it is: none if it is a wait.
	steps      int
	head, text string
}

// write shows the result to people.
func (s *simulation) write(w io.Writer, r *simulate.Result, o *simulate.Options) {
	number := 0
	for _, l := range s.lines(r) {
		mark := ""
		if l.steps > 0 {
			mark = fmt.Sprintf("%d.", number+1)
			number += l.steps
		}
		display.WriteHanging(w, fmt.Sprintf("%4s %8s  %-6s ", mark, l.at, l.head), l.text)
	}
	s.writeEnd(w, r, o)
}

// lines are the steps and the waits in the order of time.
func (s *simulation) lines(r *simulate.Result) []simulatedLine {
	all := s.steps(r)
	waits := slices.DeleteFunc(slices.Clone(r.Waits), func(w record.Wait) bool { return slices.Contains(passing, w.Reason) })
	for wait, text := range few(waits, waitText) {
		all = append(all, simulatedLine{wait.At, 0, "waits", s.placed(wait.Namespace, text)})
	}
	slices.SortStableFunc(all, func(a, b simulatedLine) int { return cmp.Compare(a.at, b.at) })
	return all
}

// eachCluster is how many clusters of a stage are shown one by one. More are one line.
const eachCluster = 20

// steps are those that were taken; of a stage with many clusters all that do the same together.
func (s *simulation) steps(r *simulate.Result) []simulatedLine {
	var all []simulatedLine
	together := map[record.Step][]record.Step{}
	for _, step := range r.Steps {
		if step.Ring == record.RingFleet {
			key := clusters(r, step)
			together[key] = append(together[key], step)
		}
	}
	for _, step := range r.Steps {
		stage := clusters(r, step)
		switch many := together[stage]; {
		case len(many) <= eachCluster:
			all = append(all, simulatedLine{step.At, 1, step.Ring, s.placed(step.Namespace, step.String())})
		case many[0] == step:
			stage.Unit = strings.TrimSpace(fmt.Sprintf("%s %d clusters", stage.Unit, len(many)))
			stage.Does = strings.Replace(stage.Does, "is", "are", 1)
			text := fmt.Sprintf("%s: %s first, %s last at %s", stage, many[0].Unit, many[len(many)-1].Unit, many[len(many)-1].At)
			all = append(all, simulatedLine{step.At, len(many), step.Ring, s.placed(step.Namespace, text)})
		}
	}
	return all
}

// clusters is a step of the fleet without what differs between the clusters of a stage, and with that in place of the cluster.
func clusters(r *simulate.Result, step record.Step) record.Step {
	stage := ""
	for i := range r.Stages {
		if of := &r.Stages[i]; of.Object == step.Object && of.Namespace == step.Namespace && of.Begun <= step.At {
			stage = "stage " + of.Name + ":"
		}
	}
	step.At, step.Decision, step.Unit = 0, 0, stage
	return step
}

// passing are the reasons that say no more than that a step takes its time, or waits
// for one that does.
var passing = []rollout.Reason{
	"", rollout.ReasonProgressing, rollout.ReasonOrder, rollout.ReasonTurn, rollout.ReasonBudget, config.ReasonCoalescing, plans.ReasonInProgress,
}

func (s *simulation) writeEnd(w io.Writer, r *simulate.Result, o *simulate.Options) {
	switch {
	case len(r.Steps) == 0 && r.Settled && r.Took == 0:
		_, _ = fmt.Fprintln(w, "nothing is rolled")
	case r.Settled && o.Readiness.Default != world.Never:
		display.WriteHanging(w, "", takes(r, o))
	}
	if len(r.Assumed) > 0 {
		_, _ = fmt.Fprintln(w, "unknown, and assumed to exist:")
	}
	for i := range r.Assumed {
		a := &r.Assumed[i]
		display.WriteHanging(w, "  ? ", s.placed(a.Namespace, a.Object+": "+a.Why))
	}
	if len(r.Stuck)+len(r.Risks) > 0 {
		_, _ = fmt.Fprintln(w, "what could get stuck:")
	}
	for wait, text := range few(r.Stuck, func(w record.Wait) string { return s.stuck(r, w) }) {
		display.WriteHanging(w, s.mark(r, wait), s.placed(wait.Namespace, text))
	}
	for _, risk := range r.Risks {
		display.WriteHanging(w, "  ! ", s.placed(risk.Namespace, risk.Object+": "+risk.Sentence+"; "+risk.Action))
	}
}

// alike is how many waits are shown of those that differ in nothing but the object.
const alike = 3

// few are of waits that differ in nothing but the object a few, each as its text says it. The
// last one says how many more there are.
func few(waits []record.Wait, text func(record.Wait) string) iter.Seq2[record.Wait, string] {
	same := func(w record.Wait) string {
		return w.At.String() + w.Namespace + strings.ReplaceAll(text(w), w.Object[strings.LastIndex(w.Object, "/")+1:], "*")
	}
	number, shown := map[string]int{}, map[string]int{}
	for _, w := range waits {
		number[same(w)]++
	}
	return func(yield func(record.Wait, string) bool) {
		for _, w := range waits {
			key, said := same(w), text(w)
			if shown[key]++; shown[key] > alike {
				continue
			}
			if rest := number[key] - alike; shown[key] == alike && rest > 0 {
				said += fmt.Sprintf("; and %d more for the same reason", rest)
			}
			if !yield(w, said) {
				return
			}
		}
	}
}

// takes says how long it takes, and what is assumed of Pods for that.
func takes(r *simulate.Result, o *simulate.Options) string {
	if len(r.Prepared) > 0 {
		return fmt.Sprintf("takes %s, if each Pod is ready within %s, stops within %s, and prepares for a downscale immediately when it is called",
			time.Duration(r.Took), readyText(o.Readiness), stopText(o.Stop))
	}
	return fmt.Sprintf("takes %s, if each Pod is ready within %s and stops within %s", time.Duration(r.Took), readyText(o.Readiness), stopText(o.Stop))
}

// placed names the namespace of what is not in the usual one.
func (s *simulation) placed(namespace, text string) string {
	if namespace == s.namespace || namespace == "" {
		return text
	}
	return namespace + " " + text
}

// mark says of what waits in the end whether anything ends that.
func (s *simulation) mark(r *simulate.Result, w record.Wait) string {
	switch {
	case r.WaitedBefore(w):
		return "  - "
	case !w.Next.IsZero():
		return "  ? "
	default:
		return "  ✗ "
	}
}

// stuck says of what waits in the end what ends that.
func (s *simulation) stuck(r *simulate.Result, w record.Wait) string {
	switch text := waitText(w); {
	case r.WaitedBefore(w):
		return text + ", as before the change" + actionOf(w)
	case !w.Next.IsZero():
		return fmt.Sprintf("%s; not seen to the end within %s: the next look is on %s; use --within", text, s.ahead(), rollout.Clock(w.Next))
	case w.Reason == config.ReasonConfigMissing:
		return text + actionOf(w) + "; if it exists elsewhere, name it with --assume"
	default:
		return text + actionOf(w)
	}
}

// waitText is the sentence of a wait, which may name its object already.
func waitText(w record.Wait) string {
	if w.Ring == record.RingConfig || w.Ring == record.Kubernetes {
		return w.Sentence
	}
	return w.Object + ": " + w.Sentence
}

// stopText says how long a Pod was taken to stop.
func stopText(stop *time.Duration) string {
	if stop == nil {
		return "its grace period"
	}
	return stop.String()
}

func readyText(r world.Readiness) string {
	text := r.Default.String()
	if len(r.Of) > 0 {
		text += ", or as --ready says,"
	}
	return text
}

// actionOf is what to do about a wait that nothing ends.
func actionOf(w record.Wait) string {
	if _, action, ok := reasons.Of(w.Reason); ok {
		return "; " + action
	}
	return ""
}
