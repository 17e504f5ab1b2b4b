package content

import (
	"encoding/json"
	"time"

	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// Pause is that a user has paused a workload, or what is rolled for an object. By, Reason and
// At are empty if that was not done by a command.
type Pause struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Engine is the pause as the engine knows it.
func (p Pause) Engine() *rollout.Pause {
	return &rollout.Pause{By: p.By, Reason: p.Reason, Since: p.At}
}

// PauseOf reads who paused an object with these annotations. It does not say whether it is
// paused. What cannot be read, because a user edited it, counts as absent.
func PauseOf(annotations map[string]string) Pause {
	p := Pause{}
	if err := json.Unmarshal([]byte(vocabulary.PausedBy.Get(annotations)), &p); err != nil {
		return Pause{}
	}
	p.By, p.Reason = message.Cut(p.By, message.ValueLength), message.Cut(p.Reason, message.ValueLength)
	return p
}

// Set records who pauses an object, and that it is paused.
func (p Pause) Set(annotations map[string]string) {
	annotations[vocabulary.Paused.Native] = "true"
	if raw, err := json.Marshal(p); err == nil && p != (Pause{}) {
		annotations[vocabulary.PausedBy.Native] = string(raw)
	}
}

// pausedBy is the pause of an object with these annotations, nil if it is not paused. As of a
// workload, every value but "false" pauses.
func pausedBy(annotations map[string]string) *Pause {
	if value, _, ok := vocabulary.Paused.Lookup(annotations); !ok || value == "false" {
		return nil
	}
	p := PauseOf(annotations)
	return &p
}

// PausedBy is who paused what is rolled for an object, nil if it is not paused.
func (f Facts) PausedBy(o Object) *Pause { return f[o].paused }
