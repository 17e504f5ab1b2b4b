package decision

import (
	"fmt"
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/window"
	"github.com/spillway-dev/spillway/rollout"
)

// outside keeps everything as it is while no window is open, nil if one is.
func (o *Observed) outside() *rollout.Block {
	if !o.isClosed() {
		return nil
	}
	_, opens := window.Opening(o.windows(), o.Now)
	return &rollout.Block{Reason: ReasonWindow, Message: "its next maintenance window opens on " + rollout.Clock(opens), Until: opens}
}

// isClosed is true while nothing may move because of the time.
func (o *Observed) isClosed() bool {
	return len(o.Group.Spec.MaintenanceWindows) > 0 && o.closes().IsZero()
}

// closes is when the windows that are open must be looked at again, zero if none is.
func (o *Observed) closes() time.Time {
	var closes time.Time
	for _, w := range o.windows() {
		closes = ring.Later(closes, w.Closes(o.Now))
	}
	return closes
}

// windows are the maintenance windows of the group as they can be understood.
func (o *Observed) windows() []window.Window {
	spec := o.Group.Spec.MaintenanceWindows
	windows := make([]window.Window, 0, len(spec))
	for i := range spec {
		if w, err := parseWindow(&spec[i]); err == nil {
			windows = append(windows, w)
		}
	}
	return windows
}

// windowProblems are windows that cannot be understood.
func (o *Observed) windowProblems() []Problem {
	var problems []Problem
	for i := range o.Group.Spec.MaintenanceWindows {
		w := &o.Group.Spec.MaintenanceWindows[i]
		if _, err := parseWindow(w); err != nil {
			problems = append(problems, Problem{
				"RolloutGroup " + o.Group.Name, fmt.Sprintf("spec.maintenanceWindows[%d]", i), windowText(w), err.Error(),
			})
		}
	}
	return problems
}

func parseWindow(w *v1alpha1.MaintenanceWindow) (window.Window, error) {
	return window.Parse(w.Schedule, time.Duration(w.DurationSeconds)*time.Second, w.TimeZone)
}

func windowText(w *v1alpha1.MaintenanceWindow) string {
	if w.TimeZone == "" {
		return w.Schedule
	}
	return w.Schedule + ", " + w.TimeZone
}
