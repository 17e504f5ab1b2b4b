package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/rollout"
)

// describeConfig is how the workloads stand whose config is tracked; those that are not up
// to date are beneath the object that has changed or is missing.
func describeConfig(ctx context.Context, o *Options, s *snapshot.Snapshot) ([]Unit, error) {
	explanations, err := explainConfig(ctx, o, s)
	if err != nil {
		return nil, err
	}
	var units []Unit
	for i := range explanations {
		e := &explanations[i]
		if o.Namespace != "" && e.Namespace != o.Namespace || e.State == config.StateNotTracked {
			continue
		}
		units = addBeneath(units, causeOf(e), Workload(e))
	}
	return units, nil
}

// explainConfig explains all workloads where they share a budget, so that the place in
// its queue is known; unless the caller may not.
func explainConfig(ctx context.Context, o *Options, s *snapshot.Snapshot) ([]config.Explanation, error) {
	if o.Namespace != "" && o.Config.SharesBudget() {
		all := snapshot.New(s.Live, s.Scheme, "")
		if explanations, err := config.Status(ctx, all, o.Config, ""); !apierrors.IsForbidden(err) {
			return explanations, err
		}
	}
	return config.Status(ctx, s, o.Config, o.Namespace)
}

// Workload is a workload whose config is tracked.
func Workload(e *config.Explanation) Unit {
	return Unit{
		Ref:  Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name},
		Ring: Config, Phase: phaseOfState(e), Reason: e.Reason, Sentence: e.Sentence, Since: e.Since, Until: e.Until, Deadline: e.Deadline,
	}
}

// WorkloadFacts are what else there is to know of a workload.
func WorkloadFacts(e *config.Explanation) []Fact {
	f := facts{}
	f.add("state", stateText(e))
	if e.Position > 0 {
		f.add("queue", fmt.Sprintf("position %d", e.Position))
	}
	f.optional("progress", e.Progress)
	f.optional("policy", e.Policy)
	f.each("missing", e.Missing)
	f.each("problem", e.Problems)
	f.each("problem", e.LeftOut)
	f.each("pinned", e.Pins)
	f.each("not pinned", e.Unpinned)
	addUses(&f, e)
	if e.LastRoll != nil {
		f.add("last roll", rollText(e.LastRoll))
	}
	f.optional("hash", e.Hash)
	return f
}

func stateText(e *config.Explanation) string {
	if e.Reason == "" {
		return string(e.State)
	}
	return fmt.Sprintf("%s (%s)", e.State, e.Reason)
}

// maxUnchanged is how many uses are named that nothing waits or rolls for.
const maxUnchanged = 8

// addUses names what a workload uses: first what it waits for, then what it rolls for,
// and of the rest the first few.
func addUses(f *facts, e *config.Explanation) {
	var lacking, changed, rest []string
	for i := range e.Uses {
		use := &e.Uses[i]
		text := useText(use)
		switch {
		case use.Required && !use.Exists && !use.Ignored:
			lacking = append(lacking, text)
		case slices.ContainsFunc(e.Changed, func(text string) bool { return isAbout(text, use.Object) }):
			changed = append(changed, text+", changed")
		default:
			rest = append(rest, text)
		}
	}
	f.each("uses", lacking)
	f.each("uses", changed)
	if more := len(rest) - maxUnchanged; more > 1 {
		rest = append(rest[:maxUnchanged:maxUnchanged], fmt.Sprintf("and %d more without a change; -o json names them", more))
	}
	f.each("uses", rest)
}

func useText(use *config.UseFact) string {
	text := use.Object
	if len(use.Keys) > 0 {
		text += " (" + strings.Join(use.Keys, ", ") + ")"
	}
	switch {
	case use.Ignored:
		text += ", ignored"
	case !use.Exists && use.Required:
		text += ", not found"
	case !use.Exists:
		text += ", optional, not found"
	}
	return text
}

// rollText says when the hash was last set, and why.
func rollText(r *workload.Roll) string {
	switch {
	case r.Admitted.After(r.At):
		return Moment(r.Admitted) + ", with a change of the workload itself"
	case len(r.Changed) == 0:
		return Moment(r.At) + ", what changed was not observed"
	default:
		return Moment(r.At) + ", changed: " + strings.Join(r.Changed, ", ")
	}
}

func phaseOfState(e *config.Explanation) rollout.Phase {
	switch e.State {
	case config.StateUpToDate:
		return rollout.PhaseComplete
	case config.StateNext, config.StateRolling:
		return rollout.PhaseProgressing
	case config.StateNotTracked:
		return ""
	case config.StateWaiting, config.StateLate, config.StateFailed:
	}
	return phaseOf(e.Reason)
}

// causeOf is the object that a workload lacks or rolls for, nil if there is none that is
// known.
func causeOf(e *config.Explanation) *Ref {
	if e.State == config.StateUpToDate {
		return nil
	}
	for _, text := range slices.Concat(e.Missing, e.Changed) {
		for i := range e.Uses {
			if isAbout(text, e.Uses[i].Object) {
				of := &e.Uses[i].Of
				return &Ref{Kind: string(of.Kind), Namespace: of.Namespace, Name: of.Name}
			}
		}
	}
	return nil
}

// isAbout is true of a text that begins with the name of an object: "Secret db: password".
func isAbout(text, object string) bool {
	rest, ok := strings.CutPrefix(text, object)
	return ok && (rest == "" || rest[0] == ':' || rest[0] == ' ')
}

// addBeneath adds a unit beneath the object that it is about, which takes its place
// where the first of its units is.
func addBeneath(units []Unit, cause *Ref, u Unit) []Unit {
	if cause == nil {
		return append(units, u)
	}
	for i := range units {
		if units[i].Ref == *cause {
			units[i].Units = append(units[i].Units, u)
			units[i].sumUp()
			return units
		}
	}
	parent := Unit{Ref: *cause, Ring: Config, Counted: "workloads", Cause: true, Units: []Unit{u}}
	parent.sumUp()
	return append(units, parent)
}

// sumUp makes the phase of a unit of those beneath it: it moves if one of them does, and
// else does as the first that is not complete.
func (u *Unit) sumUp() {
	u.Done, u.Total, u.Phase = 0, len(u.Units), rollout.PhaseComplete
	for i := range u.Units {
		phase := u.Units[i].Phase
		switch {
		case phase == rollout.PhaseComplete:
			u.Done++
		case u.Phase == rollout.PhaseComplete, phase == rollout.PhaseProgressing:
			u.Phase = phase
		}
	}
}
