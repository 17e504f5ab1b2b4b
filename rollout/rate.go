package rollout

import (
	"math"
	"slices"
	"time"
)

// bucket is a token bucket, kept as the moment at which it will be full but for
// the time that passes: the steps so far are replayed into it.
type bucket struct {
	every time.Duration
	burst int
	// slack is how far ahead of now full may lie: what the burst allows.
	slack time.Duration
	full  time.Time
	queue int
}

// fill replays the starts of a rate, nil if there is no rate.
func (r Rate) fill() *bucket {
	if r.Every <= 0 {
		return nil
	}

	b := &bucket{every: r.Every, burst: max(1, r.Burst)}
	b.slack = time.Duration(min(int64(b.burst-1), math.MaxInt64/2/int64(r.Every))) * r.Every

	for _, start := range slices.SortedFunc(slices.Values(r.Starts), time.Time.Compare) {
		b.take(start)
	}

	return b
}

// take takes a token at a moment. One that is taken too early leaves no debt:
// the bucket is then empty, not more than empty.
func (b *bucket) take(at time.Time) {
	if b.full.Before(at) {
		b.full = at
	}

	if latest := at.Add(b.slack); b.full.After(latest) {
		b.full = latest
	}

	b.full = b.full.Add(b.every)
}

// next is the moment from which there is a token.
func (b *bucket) next() time.Time {
	return b.full.Add(-b.slack)
}

// slowestRate is the unit above whose next token comes last, of those that have
// none now; nil if all have.
func (d *decision) slowestRate(n *node) *node {
	var slowest *node

	for a := n.parent; a != nil; a = a.parent {
		if a.bucket == nil || !a.bucket.next().After(d.now) {
			continue
		}

		if slowest == nil || a.bucket.next().After(slowest.bucket.next()) {
			slowest = a
		}
	}

	return slowest
}
