package decision

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/rollout"
)

// Budget is what the manager has rolled, by a record that no tenant can write. A
// record on a workload may be anything that its users write, so it never counts against
// workloads of other namespaces.
type Budget struct {
	// Rolled stands for all rolls so far, as the rate counts them; zero if there are none.
	Rolled time.Time `json:"rolled,omitzero"`
	// Rolling is when each workload was rolled that was rolling then. It is kept only
	// with MaxRolling.
	Rolling map[types.UID]time.Time `json:"rolling,omitempty"`
	// Turns are the namespaces of the last rolls, the last one at the end.
	Turns []string `json:"turns,omitempty"`
}

// Bounded is the budget without what cannot be: that a roll is in the future, because
// a clock was ahead, or more than the present limits allow.
func (b *Budget) Bounded(now time.Time, o Options) *Budget {
	bounded := *b
	if every := o.rateEvery(); every > 0 {
		slack := o.emptyBucket(now, every)
		bounded.Rolled = earliest(b.Rolled, slack)
	}
	rolling := make(map[types.UID]time.Time, len(b.Rolling))
	for uid, at := range b.Rolling {
		rolling[uid] = earliest(at, now)
	}
	bounded.Rolling = rolling
	bounded.Turns = b.Turns[max(0, len(b.Turns)-mostTurns):]
	return &bounded
}

// emptyBucket is the start after which a bucket has no token left.
func (o Options) emptyBucket(now time.Time, every time.Duration) time.Time {
	return now.Add(time.Duration(max(o.UpdateBurst, 1)-1) * every)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// After is the budget once these writes were made.
func (o *Observed) After(writes []Write, options Options) *Budget {
	var rolls []Write
	for i := range writes {
		if w := &writes[i]; w.Rolls && w.Workload.Settings.Tracked {
			rolls = append(rolls, *w)
		}
	}
	if o.Budget == nil || len(rolls) == 0 {
		return o.Budget
	}
	r := rate(*o, options)
	r.Starts = append(r.Starts, slices.Repeat([]time.Time{o.Now}, len(rolls))...)
	after := &Budget{Rolling: map[types.UID]time.Time{}, Turns: takeTurns(o.Budget.Turns, rolls)}
	if r.Every > 0 {
		after.Rolled = r.Compact().Starts[0]
	}
	if options.MaxRolling > 0 {
		o.addRolling(after.Rolling, rolls)
	}
	return after
}

// addRolling adds the workloads that count as rolling, and those that will.
func (o *Observed) addRolling(to map[types.UID]time.Time, rolls []Write) {
	for i := range o.Workloads {
		if w := &o.Workloads[i]; w.Zone.Group == "" && w.rolling(o.Now) {
			to[w.UID] = w.Rolled
		}
	}
	for i := range rolls {
		if w := rolls[i].Workload; w.Zone.Group == "" {
			to[w.UID] = o.Now
		}
	}
}

// rate is the token bucket; how full it is follows from the record of the manager, so
// that a restart does not refill it. Without that record, when a user explains or
// simulates, the records on the workloads stand for it.
func rate(o Observed, options Options) rollout.Rate {
	r := rollout.Rate{Every: options.rateEvery(), Burst: options.UpdateBurst}
	switch {
	case o.Budget == nil:
		for i := range o.Workloads {
			if at := o.Workloads[i].Rolled; !at.IsZero() {
				r.Starts = append(r.Starts, at)
			}
		}
	case !o.Budget.Rolled.IsZero():
		r.Starts = append(r.Starts, o.Budget.Rolled)
	}
	return r
}
