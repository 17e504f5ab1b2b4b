package decision

import (
	"fmt"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// isUndone is true if a user went back to an earlier revision and its config. Where the pins
// agree with the present content, only the references have changed.
func (w *Workload) isUndone() bool {
	return w.Settings.Tracked && w.Pinning.On && !w.IsNewest() && w.IsUndone() && !w.Pinning.Pins.Agree(w.PinsNow())
}

// undoneText says who went back to an earlier revision, and what ends that.
func (w *Workload) undoneText() string {
	a := &w.Records.Answered
	text := "an earlier revision was restored"
	if a.By != "" {
		text += " by " + a.By
	}
	if a.Reason != "" {
		text += " (" + message.Cut(a.Reason, message.ValueLength) + ")"
	}
	return text + "; the next change of its config rolls it"
}

// lostText says which snapshots do not exist.
func (w *Workload) lostText() string {
	names := message.Join(w.Pinning.Lost, ", ", func(p pin.Pin) string {
		o := content.Object{Kind: p.Kind, Namespace: w.Namespace, Name: p.Name}
		return fmt.Sprintf("%s %s, the snapshot of %s,", p.Kind, p.Snapshot(), o.From(w.Namespace))
	})
	return names + " not found; restore it, or remove the annotation " + vocabulary.Pins.Native + " of the Pod template"
}
