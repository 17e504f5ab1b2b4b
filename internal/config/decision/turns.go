package decision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spillway-dev/spillway/rollout"
)

// mostTurns bounds how many rolls are remembered, by the namespaces that had them.
const mostTurns = 64

// candidate is a workload that is not up to date, and its place among those of its namespace.
type candidate struct {
	at    int
	round int
	// served is the place of the last roll of its namespace, -1 if none is remembered.
	served int
	since  time.Time
}

// ranks order the workloads that compete for a limit of the manager; the highest goes first, and others have
// none. Namespaces take turns, that first which had the last roll the longest ago, so that what the users
// of one write keeps no other one waiting. Within a namespace the priority decides, then what is
// down already, then what waits for longer.
func (o *Observed) ranks() []int {
	served, of := o.served(), map[string][]candidate{}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if w.Zone.Group != "" || w.isSlow(o.Now) || w.Settings.Tracked && w.IsSettled() {
			continue // no limit of the manager is for it
		}
		last, known := served[w.Namespace]
		if !known {
			last = -1
		}
		of[w.Namespace] = append(of[w.Namespace], candidate{at: i, served: last, since: w.waitsSince(o.Now)})
	}
	var all []candidate
	for _, namespace := range slices.Sorted(maps.Keys(of)) {
		own := of[namespace]
		slices.SortStableFunc(own, o.byPriority)
		for round := range own {
			own[round].round = round
		}
		all = append(all, own...)
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.served, b.served), a.since.Compare(b.since))
	})
	ranks := make([]int, len(o.Workloads))
	for place, c := range all {
		ranks[c.at] = len(all) - place
	}
	return ranks
}

// byPriority is the order of the workloads of a namespace.
func (o *Observed) byPriority(a, b candidate) int {
	v, w := &o.Workloads[a.at], &o.Workloads[b.at]
	return cmp.Or(cmp.Compare(w.Settings.Priority, v.Settings.Priority), cmp.Compare(running(v), running(w)), a.since.Compare(b.since))
}

// running is 1 for a workload that a roll takes down, 0 for one that has not begun to run.
func running(w *Workload) int {
	if w.Suspension.IsSettled() {
		return 1
	}
	return 0
}

// waitsSince is when the config of a workload changed, now if that is not known.
func (w *Workload) waitsSince(now time.Time) time.Time {
	if first := w.Change.First; !first.IsZero() {
		return first
	}
	return now
}

// served is the place of the last roll of each namespace.
func (o *Observed) served() map[string]int {
	served := map[string]int{}
	if o.Budget != nil {
		for place, namespace := range o.Budget.Turns {
			served[namespace] = place
		}
	}
	return served
}

// takeTurns are the namespaces of the last rolls, once some more were made.
func takeTurns(before []string, rolls []Write) []string {
	turns := slices.Clone(before)
	for i := range rolls {
		turns = append(turns, rolls[i].Workload.Namespace)
	}
	return slices.Clone(turns[max(0, len(turns)-mostTurns):])
}

// Limits are those of the manager that a workload waits for, and who had the last rolls under them.
type Limits struct {
	// UpdateRate is how many workloads are rolled per second, MaxRolling how many may be rolling; zero is no limit.
	UpdateRate float64 `json:"updateRate,omitempty"`
	MaxRolling int     `json:"maxRolling,omitempty"`
	// Turns is nil if one namespace had all of them.
	Turns *Turns `json:"turns,omitempty"`
}

// LimitsFor are the limits that a workload waits for with this reason, nil if it waits for none.
func (o *Observed) LimitsFor(namespace string, reason rollout.Reason, options Options) *Limits {
	if reason != rollout.ReasonRate && reason != rollout.ReasonBudget || !options.SharesBudget() {
		return nil
	}
	l := &Limits{MaxRolling: options.MaxRolling, Turns: o.Budget.TurnsOf(namespace)}
	if options.rateEvery() > 0 {
		l.UpdateRate = options.UpdateRate
	}
	return l
}

// Turns is who had the last rolls of a budget. Of other namespaces it says no more than its sentence does.
type Turns struct {
	// Rolls is how many are remembered, Own how many of them the namespace itself had.
	Rolls int `json:"rolls"`
	Own   int `json:"own"`
	// Most is the namespace that had the most, MostRolls how many.
	Most      string `json:"most"`
	MostRolls int    `json:"mostRolls"`
}

// TurnsOf is who had the last rolls, for a workload of a namespace; nil if that was one namespace.
func (b *Budget) TurnsOf(namespace string) *Turns {
	if b == nil {
		return nil
	}
	had := map[string]int{}
	for _, of := range b.Turns {
		had[of]++
	}
	if len(had) < 2 {
		return nil
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(had)), func(a, b string) int { return cmp.Compare(had[a], had[b]) })
	return &Turns{Rolls: len(b.Turns), Own: had[namespace], Most: most, MostRolls: had[most]}
}

// share says who had the last rolls of a budget; empty if that was one namespace.
func share(b *Budget) string {
	t := b.TurnsOf("")
	if t == nil {
		return ""
	}
	return fmt.Sprintf("namespaces take turns: %s had %d of the last %d", t.Most, t.MostRolls, t.Rolls)
}
