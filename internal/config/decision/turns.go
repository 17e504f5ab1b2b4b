package decision

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
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

// share says who had the last rolls of a budget; empty if that was one namespace.
func share(b *Budget) string {
	if b == nil {
		return ""
	}
	had := map[string]int{}
	for _, namespace := range b.Turns {
		had[namespace]++
	}
	if len(had) < 2 {
		return ""
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(had)), func(a, b string) int { return cmp.Compare(had[a], had[b]) })
	return fmt.Sprintf("namespaces take turns: %s had %d of the last %d", most, had[most], len(b.Turns))
}
