package describe

import (
	"fmt"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/rollout"
)

// PauseOf is who has paused an object that a workload uses, nil if it is not paused.
func PauseOf(e *config.Explanation, of Ref) *rollout.Pause {
	for i := range e.Uses {
		if use := &e.Uses[i]; use.Paused != nil && !use.Ignored && useRef(use) == of {
			return use.Paused.Engine()
		}
	}
	return nil
}

func useRef(use *config.UseFact) Ref {
	return Ref{Kind: string(use.Of.Kind), Namespace: use.Of.Namespace, Name: use.Of.Name}
}

// addPaused adds the objects that are paused while no workload waits for them: what they keep
// from being rolled is their next change.
func (t *tree) addPaused(e *config.Explanation) {
	for i := range e.Uses {
		ref := useRef(&e.Uses[i])
		p := PauseOf(e, ref)
		if p == nil {
			continue
		}
		at, known := t.paused[ref]
		if !known {
			at = len(t.objects)
			t.paused[ref] = at
			t.objects = append(t.objects, pausedObject(ref, p))
		}
		t.objects[at].Total++
		if e.State == config.StateUpToDate {
			t.objects[at].Done++
		}
	}
}

// pausedObject is an object that is paused, and how to resume it.
func pausedObject(ref Ref, p *rollout.Pause) Unit {
	u := Unit{Ref: ref, Ring: Config, Phase: rollout.PhaseComplete, Counted: "workloads", Cause: true}
	u.pausedBy(p)
	u.Sentence += fmt.Sprintf("; to resume: spillway resume %s -n %s", ref, ref.Namespace)
	return u
}

// idle are the paused objects beneath which no workload is.
func (t *tree) idle() []Unit {
	var units []Unit
	for _, u := range t.objects {
		if _, isCause := t.causes[u.Ref]; !isCause {
			units = append(units, u)
		}
	}
	return units
}
