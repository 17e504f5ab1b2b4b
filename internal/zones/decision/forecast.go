package decision

import (
	"time"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/rollout"
)

// forecast is when the rollout ends, by how long the zones took in the last ones; nil where
// none is recorded. Rows are the zones once the present step is taken.
func (d *decision) forecast(rows []v1alpha1.Zone) *v1alpha1.Forecast {
	past := pastOf(d.o.Group.Status.History)
	early, expected, late, last := d.o.Now, d.o.Now, d.o.Now, ""
	for i, z := range d.zones {
		began, times := rows[i].StartedAt, past.withWait[z.Name]
		if began != nil {
			times = past.alone[z.Name]
		}
		if d.isDone(z) {
			continue
		}
		if len(times) == 0 {
			return nil
		}
		last = z.Name
		e := estimate.Of(times)
		if began == nil {
			early, expected, late = early.Add(e.Shortest), expected.Add(e.Expected), late.Add(e.Longest)
			continue
		}
		early, expected, late = latest(early, began.Add(e.Shortest)), latest(expected, began.Add(e.Expected)), latest(late, began.Add(e.Longest))
	}
	if last == "" {
		return nil
	}
	return &v1alpha1.Forecast{At: *at(d.o.Now), Earliest: *at(early), Expected: *at(expected), Latest: *at(late), Decides: last}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// past is how long each zone took in the last rollouts, alone and with what it waited for
// before its first step: a soak, a gate, a window.
type past struct{ alone, withWait map[string][]time.Duration }

func pastOf(history []v1alpha1.Rollout) past {
	p := past{map[string][]time.Duration{}, map[string][]time.Duration{}}
	for i := range history {
		if history[i].Outcome != string(rollout.OutcomeComplete) {
			continue
		}
		before := history[i].StartedAt.Time
		for _, z := range history[i].Zones {
			if z.StartedAt == nil || z.FinishedAt == nil {
				continue
			}
			p.alone[z.Name] = append(p.alone[z.Name], z.FinishedAt.Sub(z.StartedAt.Time))
			p.withWait[z.Name] = append(p.withWait[z.Name], max(0, z.FinishedAt.Sub(before)))
			before = latest(before, z.FinishedAt.Time)
		}
	}
	return p
}
