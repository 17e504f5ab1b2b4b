package sim

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// rules are those that a manager keeps to. The zero value but for plan is all of
// them; the others are broken on purpose.
type rules struct {
	plan func(*manager, decision.Observed) decision.Plan
	// unconditional writes carry no preconditions.
	unconditional bool
	// overwrites the status whatever client has written it meanwhile.
	overwrites bool
	// trusting takes a cache for good enough where the plan asks for a live look.
	trusting bool
	// ageless does not know how old its views are.
	ageless bool
	// careless takes every zone that it holds for one that was done.
	careless bool
	// rash acts without writing down before what it is going to do.
	rash bool
}

func allRules() *rules {
	return &rules{plan: func(_ *manager, o decision.Observed) decision.Plan { return decision.Decide(o) }}
}

// blind plans from a view in which something has been changed.
func blind(change func(m *manager, o *decision.Observed)) *rules {
	return &rules{plan: func(m *manager, o decision.Observed) decision.Plan {
		change(m, &o)

		return decision.Decide(o)
	}}
}

// actParallel makes of what is to be permitted what is to be done.
func (m *manager) actParallel(p decision.Plan) decision.Plan {
	for _, move := range p.Status.Moves {
		act := decision.Delete
		if move.Pod == "" {
			act = decision.Lend
		}

		p.Writes = append(p.Writes, decision.Write{Act: act, Zone: move.Zone, Pod: move.Pod, UID: move.UID, ResourceVersion: move.ResourceVersion})
	}

	p.Status, p.Permits = m.view.group.status, false

	return p
}

// broken are all rules but one.
func broken() map[string]*rules {
	none := allRules().plan

	return map[string]*rules{
		"writes carry no preconditions":                     {plan: none, unconditional: true},
		"the status is written whatever client has done so": {plan: none, overwrites: true},
		"a move lapses by time":                             blind(lapse),
		"a cache is good enough":                            {plan: none, trusting: true},
		"how old a view is is unknown":                      {plan: none, ageless: true},
		"what is held is taken for done":                    {plan: none, careless: true},
		"what is done is not written down before":           {plan: none, rash: true},
		"another client's lock is none":                     blind(freeLock),
		"one Pod more than may be down is":                  blind(widerBudget),
		"every Pod is taken for ready":                      blind(allReady),
		"a status speaks of the spec":                       blind(allObserved),
		"a pause is none":                                   blind(noPause),
		"it is always time":                                 blind(func(_ *manager, o *decision.Observed) { o.Group.Spec.MaintenanceWindows = nil }),
		"nothing soaks":                                     blind(func(_ *manager, o *decision.Observed) { o.Group.Spec.Soak = nil }),
		"a Pod is available as soon as it is ready":         blind(noMinReady),
		"only one's own moves count":                        blind(onlyOwnMoves),
		"what a controller has replaced is not minded":      blind(nothingOpened),
		"a Pod that was scaled away is gone":                blind(noSurplus),
		"what is not ready never will be":                   blind(allStuck),
		"what is moved is down for another reason":          blind(noneMoved),
	}
}

// lapse gives up moves that were not made for 40 seconds, without a fence.
func lapse(_ *manager, o *decision.Observed) {
	o.Group.Status.Moves = slices.DeleteFunc(slices.Clone(o.Group.Status.Moves), func(m v1alpha1.Move) bool {
		return o.Now.Sub(m.At.Time) > 40*time.Second
	})
}

func freeLock(_ *manager, o *decision.Observed) {
	if l := o.Group.Status.Lock; l != nil && l.Holder == eviction {
		o.Group.Status.Lock = nil
	}
}

func widerBudget(_ *manager, o *decision.Observed) {
	if limit := o.Group.Spec.MaxUnavailable; limit != nil && limit.StrVal == "" {
		o.Group.Spec.MaxUnavailable = new(intstr.FromInt(limit.IntValue() + 1))
	}
}

func allReady(_ *manager, o *decision.Observed) {
	for i := range o.Sets {
		for j := range o.Sets[i].Pods {
			o.Sets[i].Pods[j].Ready, o.Sets[i].Pods[j].Terminating = true, false
		}
	}
}

func allObserved(_ *manager, o *decision.Observed) {
	for i := range o.Sets {
		o.Sets[i].ObservedGeneration = o.Sets[i].Generation
	}
}

func noPause(_ *manager, o *decision.Observed) {
	o.Group.Spec.Pause = nil
	for i := range o.Sets {
		o.Sets[i].Settings.Paused = false
	}
}

func noMinReady(_ *manager, o *decision.Observed) {
	o.Group.Spec.MinReadySeconds = 0
	for i := range o.Sets {
		o.Sets[i].MinReady = 0
	}
}

func onlyOwnMoves(m *manager, o *decision.Observed) {
	o.Group.Status.Moves = slices.DeleteFunc(slices.Clone(o.Group.Status.Moves), func(move v1alpha1.Move) bool {
		return !hasMove(m.own, move)
	})
}

func nothingOpened(_ *manager, o *decision.Observed) {
	rows := slices.Clone(o.Group.Status.Zones)
	for i := range rows {
		rows[i].Opened = false
	}

	o.Group.Status.Zones = rows
}

// allStuck takes every Pod that is not ready for one that cannot become so.
func allStuck(_ *manager, o *decision.Observed) {
	for i := range o.Sets {
		for j := range o.Sets[i].Pods {
			o.Sets[i].Pods[j].Broken = true
		}
	}
}

// noneMoved forgets since when zones are updating, and which of them the lock is for.
func noneMoved(_ *manager, o *decision.Observed) {
	if l := o.Group.Status.Lock; l != nil && l.Purpose == v1alpha1.PurposeRollout {
		whole := *l
		whole.Zone, o.Group.Status.Lock = "", &whole
	}

	rows := slices.Clone(o.Group.Status.Zones)
	for i := range rows {
		rows[i].StartedAt, rows[i].Revision = nil, ""
	}

	o.Group.Status.Zones = rows
}

// noSurplus leaves out the Pods that the spec does not ask for.
func noSurplus(_ *manager, o *decision.Observed) {
	for i := range o.Sets {
		s := &o.Sets[i]
		s.Pods = slices.DeleteFunc(s.Pods, func(p decision.Pod) bool {
			return p.Ordinal < s.FirstOrdinal || p.Ordinal >= s.FirstOrdinal+s.Replicas
		})
	}
}

// TestBrokenRulesAreSeen breaks each rule in turn. If no world notices, either
// the oracle is blind, or the worlds too tame, or the rule is none.
func TestBrokenRulesAreSeen(t *testing.T) {
	const worlds = 50000

	for name, r := range broken() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for seed := uint64(1); seed <= worlds; seed++ {
				if failure := brave(seed, r, false).Verdict(); failure != "" {
					t.Logf("seed %d: %s", seed, failure)

					return
				}
			}

			t.Errorf("none of %d worlds notices", worlds)
		})
	}
}
