package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/rollout"
)

// describeConfig is the state of the workloads whose config is tracked, and of the policies.
// Workloads that are not up to date are beneath the object that has changed or is missing.
func describeConfig(ctx context.Context, o *Options, s *snapshot.Snapshot) (described, error) {
	nameWorkloads(ctx, o, s)
	all, err := o.survey(ctx, s)
	if err != nil {
		return described{}, err
	}
	return described{units: configUnits(&all, o), until: all.Wake}, nil
}

// configUnits are those of a survey.
func configUnits(all *config.Overview, o *Options) []Unit {
	if o.Object != nil && (o.Object.Kind == KindConfigMap || o.Object.Kind == KindSecret) {
		return configObject(all, o.Object)
	}
	units := tree{units: make([]Unit, 0, len(all.Workloads)), causes: map[Ref]int{}, paused: map[Ref]bool{}}
	for i := range all.Workloads {
		e := &all.Workloads[i]
		if o.Namespace != "" && e.Namespace != o.Namespace || e.State == config.StateNotTracked {
			continue
		}
		units.add(causeOf(e), Workload(e))
		units.addPaused(e)
	}
	return append(append(units.summed(all), units.idle(all)...), policies(all.Policies, o)...)
}

// survey remembers what it reads, if that is wanted.
func (o *Options) survey(ctx context.Context, reader client.Reader) (config.Overview, error) {
	if o.Memory == nil {
		return config.Survey(ctx, reader, o.Config, o.Namespace)
	}
	return o.Memory.config.Survey(ctx, reader, o.Config, o.Namespace)
}

// Workload is a workload whose config is tracked.
func Workload(e *config.Explanation) Unit {
	u := Unit{
		Ref:  Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name},
		Ring: Config, Phase: phaseOfState(e), Reason: e.Reason, Sentence: e.Sentence, Why: e.Cause, Since: e.Since, Until: e.Until, Deadline: e.Deadline, Position: e.Position,
	}
	if p := e.Pause; p != nil {
		u.pausedBy(p.Engine())
	}
	return u
}

// WorkloadFacts are what else there is to know of a workload.
func WorkloadFacts(e *config.Explanation) []Fact {
	f := facts{}
	f.add("state", stateText(e))
	if e.Position > 0 {
		f.add("queue", fmt.Sprintf("position %d", e.Position))
	}
	if e.Limits != nil {
		f.add("limit", limitTexts(e.Limits)...)
	}
	f.optional("progress", e.Progress)
	if e.Pause != nil {
		f.add("paused", pauseText(e.Pause))
	}
	f.optional("policy", e.Policy)
	f.each("missing", e.Missing)
	f.each("problem", e.Problems)
	f.each("problem", e.LeftOut)
	f.optional("note", unseenText(e))
	f.each("pinned", e.Pins)
	f.each("not pinned", e.Unpinned)
	f.each("meanwhile", e.Keeps)
	addUses(&f, e)
	if e.LastRoll != nil {
		f.add("last roll", rollText(e.LastRoll))
	}
	f.optional("hash", e.Hash)
	if e.DecidedAt != nil {
		f.decided(*e.DecidedAt, e.DecidedBy)
	}
	return f
}

// PastFacts are the last rollouts of an object that are over.
func PastFacts(record *v1alpha1.ConfigRollout) []Fact {
	f := facts{}
	if record == nil {
		return nil
	}
	for i := range min(len(record.History), shownRollouts) {
		p := &record.History[i]
		f.add("rollout", "began "+Moment(p.StartedAt.Time), ended(p.Outcome+", ended "+Moment(p.FinishedAt.Time), p.Message, p.UndoneBy))
	}
	return f
}

// limitTexts are the limits of the manager that a workload is queued for.
func limitTexts(l *decision.Limits) (all []string) {
	if l.UpdateRate > 0 {
		all = append(all, fmt.Sprintf("--update-rate=%g", l.UpdateRate))
	}
	if l.MaxRolling > 0 {
		all = append(all, fmt.Sprintf("--max-rolling=%d", l.MaxRolling))
	}
	return all
}

// pauseText says who has paused a workload, when and why, as far as that is known.
func pauseText(p *content.Pause) string {
	text := "yes"
	if p.By != "" {
		text = "by " + p.By
	}
	if !p.At.IsZero() {
		text += " since " + Moment(p.At)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
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
		case slices.Contains(e.Behind, use.Of) && !e.Lacks(use.Of):
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
	case use.Unseen:
		text += ", which you may not read"
	case !use.Exists && use.Required:
		text += ", not found"
	case !use.Exists:
		text += ", optional, not found"
	}
	if use.Paused != nil {
		text += ", " + use.Paused.Engine().Clause()
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
	case config.StateNotTracked:
		return ""
	case config.StateNotWatched, config.StateNotObserved:
		return PhaseUnseen
	default:
		return e.State.Phase(e.Reason)
	}
}

// unseenText says that the caller cannot compare all of the config with what is recorded, empty if that is possible.
func unseenText(e *config.Explanation) string {
	if e.Unseen == "" {
		return ""
	}
	return "you may not read all of its config: a change that the manager has not observed yet is not shown"
}

// causeOf is the object that a workload lacks or rolls for, nil if there is none that is
// known.
func causeOf(e *config.Explanation) *Ref {
	switch {
	case e.State == config.StateUpToDate:
		return nil
	case len(e.Lacking) > 0:
		return RefOf(e.Lacking[0].Object)
	case len(e.Behind) > 0:
		return RefOf(e.Behind[0])
	default:
		return nil
	}
}

// tree is units, of which some stand beneath the object that they are about.
type tree struct {
	units []Unit
	// causes are the places of those objects.
	causes map[Ref]int
	// objects are those that are paused.
	objects []Unit
	paused  map[Ref]bool
}

// add adds a unit beneath the object that it is about, which takes its place where the first
// of its units is.
func (t *tree) add(cause *Ref, u Unit) {
	if cause == nil {
		t.units = append(t.units, u)
		return
	}
	at, known := t.causes[*cause]
	if !known {
		at = len(t.units)
		t.causes[*cause] = at
		t.units = append(t.units, Unit{Ref: *cause, Ring: Config, Counted: "workloads", Cause: true})
	}
	t.units[at].Units = append(t.units[at].Units, u)
}

// summed are the units, once all of them were added.
func (t *tree) summed(all *config.Overview) []Unit {
	for _, at := range t.causes {
		t.units[at].sumUp(all)
	}
	return t.units
}

// sumUp sets the phase of an object from the workloads beneath it: it progresses if one of them does,
// has failed if one of them has, and else has the phase of the first that is not complete. It counts all
// workloads that use it, wherever they stand.
func (u *Unit) sumUp(all *config.Overview) {
	u.Phase = rollout.PhaseComplete
	u.Done, u.Total = all.Count(u.Content())
	for i := range u.Units {
		phase := u.Units[i].Phase
		switch {
		case phase == rollout.PhaseComplete:
		case u.Phase == rollout.PhaseComplete, phase == rollout.PhaseProgressing, phase == rollout.PhaseFailed && u.Phase != rollout.PhaseProgressing:
			u.Phase = phase
		}
	}
}

// PauseOf is who has paused an object that a workload uses, nil if it is not paused.
func PauseOf(e *config.Explanation, of Ref) *rollout.Pause {
	for i := range e.Uses {
		if use := &e.Uses[i]; isPaused(use) && *RefOf(use.Of) == of {
			return use.Paused.Engine()
		}
	}
	return nil
}

// isPaused is true of an object that is paused for the workload.
func isPaused(use *config.UseFact) bool { return use.Paused != nil && !use.Ignored }

// addPaused adds the objects that are paused while no workload waits for them: what they keep
// from being rolled is their next change.
func (t *tree) addPaused(e *config.Explanation) {
	for i := range e.Uses {
		use := &e.Uses[i]
		if !isPaused(use) {
			continue
		}
		if ref := *RefOf(use.Of); !t.paused[ref] {
			t.paused[ref] = true
			t.objects = append(t.objects, pausedObject(ref, use.Paused.Engine()))
		}
	}
}

// pausedObject is an object that is paused.
func pausedObject(ref Ref, p *rollout.Pause) Unit {
	u := Unit{Ref: ref, Ring: Config, Phase: rollout.PhaseComplete, Counted: "workloads", Cause: true}
	u.pausedUntilResumed(p)
	return u
}

// pausedUntilResumed says of an object that is complete that it is paused, and how to resume it.
func (u *Unit) pausedUntilResumed(p *rollout.Pause) {
	u.pausedBy(p)
	u.Sentence += fmt.Sprintf("; to resume: spillway resume %s -n %s", u.Ref, u.Namespace)
}

// idle are the paused objects beneath which no workload is.
func (t *tree) idle(all *config.Overview) []Unit {
	var units []Unit
	for _, u := range t.objects {
		if _, isCause := t.causes[u.Ref]; !isCause {
			u.Done, u.Total = all.Count(u.Content())
			units = append(units, u)
		}
	}
	return units
}
