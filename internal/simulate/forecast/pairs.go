package forecast

import (
	"iter"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/ring"
)

// Pair is a rollout as it goes on, and as it would; either is nil of a rollout that is under
// way only with the other.
type Pair struct{ Plain, Other *Course }

// Pairs are the rollouts of an answer, those first that are under way.
func (a *Answer) Pairs() []Pair {
	var (
		pairs  []Pair
		others []Course
	)
	if a.If != nil {
		others = a.If.Rollouts
	}
	for i := range a.Rollouts {
		c := &a.Rollouts[i]
		pairs = append(pairs, Pair{c, find(others, c)})
	}
	for i := range others {
		if c := &others[i]; find(a.Rollouts, c) == nil {
			pairs = append(pairs, Pair{nil, c})
		}
	}
	return pairs
}

// AllEnd is when the last of some rollouts ends, nil if one of them waits, or if there is none.
func AllEnd(rollouts []Course) *describe.Range {
	var all *describe.Range
	for i := range rollouts {
		ends := rollouts[i].Ends
		switch {
		case ends == nil:
			return nil
		case all == nil:
			all = new(*ends)
		default:
			all.Earliest, all.Expected, all.Latest = ring.Later(all.Earliest, ends.Earliest), ring.Later(all.Expected, ends.Expected), ring.Later(all.Latest, ends.Latest)
		}
	}
	return all
}

// find is the same rollout among others, nil if it is not among them.
func find(among []Course, c *Course) *Course {
	i := slices.IndexFunc(among, func(o Course) bool {
		return o.Ring == c.Ring && o.Namespace == c.Namespace && o.Object == c.Object
	})
	if i < 0 {
		return nil
	}
	return &among[i]
}

// Any is the rollout, as it goes on if it is under way.
func (p Pair) Any() *Course {
	if p.Plain != nil {
		return p.Plain
	}
	return p.Other
}

// Row is a step of a rollout. It begins at another time, or not at all, with what is supposed.
type Row struct {
	// Text is the step, without the name of what is rolled out.
	Text         string
	Plain, Other *describe.Range
}

// Rows are the steps as they are, and then those that are taken only otherwise.
func (p Pair) Rows() []Row {
	var rows []Row
	at := map[occurrence]int{}
	for o, when := range steps(p.Plain) {
		at[o] = len(rows)
		rows = append(rows, Row{Text: o.text, Plain: when})
	}
	for o, when := range steps(p.Other) {
		i, known := at[o]
		if !known {
			i = len(rows)
			rows = append(rows, Row{Text: o.text})
		}
		rows[i].Other = when
	}
	return rows
}

// occurrence is the n-th step with a text.
type occurrence struct {
	text string
	n    int
}

// steps yields when the steps of a rollout begin.
func steps(c *Course) iter.Seq2[occurrence, *describe.Range] {
	return func(yield func(occurrence, *describe.Range) bool) {
		if c == nil {
			return
		}
		count := map[string]int{}
		for i := range c.Steps {
			text := strings.TrimPrefix(c.Steps[i].String(), c.Object+" ")
			if !yield(occurrence{text, count[text]}, &c.Steps[i].When) {
				return
			}
			count[text]++
		}
	}
}
