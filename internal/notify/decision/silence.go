package decision

import (
	"slices"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

// silence says about what alerts are silenced, and about what no longer. What is silenced is
// recorded before it is, so that it is ended after a restart.
func (f *follower) silence() {
	var down []string
	if a := f.o.Notifier.Spec.Alertmanager; a != nil && a.Silence && !f.o.Notifier.Spec.Suspend {
		down = f.o.Down[:min(len(f.o.Down), mostSilenced)]
		f.plan.Wake = f.o.DownUntil
	}
	recorded := f.status.Silenced
	for _, name := range recorded {
		if !slices.Contains(down, name) {
			f.plan.Unsilenced = append(f.plan.Unsilenced, name)
		}
	}
	for _, name := range down {
		if slices.Contains(recorded, name) {
			f.plan.Silenced = append(f.plan.Silenced, name)
		} else if len(f.status.Silenced) < mostSilenced {
			f.status.Silenced = append(slices.Clone(f.status.Silenced), name)
		}
	}
}

// Unsilenced is the status after silences were ended. One that could not be ended lapses.
func Unsilenced(s v1alpha1.NotifierStatus, ended []string) v1alpha1.NotifierStatus {
	s = *s.DeepCopy()
	s.Silenced = slices.DeleteFunc(s.Silenced, func(name string) bool { return slices.Contains(ended, name) })
	return s
}
