package sim

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// rules are those that a manager keeps to. The zero value but for plan is all of
// them; the others are broken on purpose.
type rules struct {
	plan func(*manager, model.Observed) decision.Plan
	// unconditional writes carry no preconditions.
	unconditional bool
	// overwrites the status even if another manager has written it meanwhile.
	overwrites bool
	// trusting takes a cache for good enough where the plan asks for a live look.
	trusting bool
	// ageless does not know how old its views are.
	ageless bool
	// blindly takes things away without asking the API server itself before.
	blindly bool
	// careless deletes revisions without asking the API server itself whether the module has
	// changed.
	careless bool
	// rash acts without writing down before what it is going to do.
	rash bool
}

func allRules() *rules {
	return &rules{plan: func(_ *manager, o model.Observed) decision.Plan { return decision.Decide(o) }}
}

// blind plans from a view in which something has been changed.
func blind(change func(m *manager, o *model.Observed)) *rules {
	return &rules{plan: func(m *manager, o model.Observed) decision.Plan {
		o.Records = append([]model.Record(nil), o.Records...)
		o.Clusters = append([]model.Cluster(nil), o.Clusters...)
		o.Module.Spec = *o.Module.Spec.DeepCopy()
		o.Module.Status = *o.Module.Status.DeepCopy()
		change(m, &o)

		return decision.Decide(o)
	}}
}

// actWithoutPermit makes of what is to be permitted what is to be done.
func (m *manager) actWithoutPermit(p decision.Plan) decision.Plan {
	o := m.observed()

	for i := range p.Status.Moves {
		move := &p.Status.Moves[i]
		for j := range o.Clusters {
			if o.Clusters[j].Name == move.Cluster {
				p.Writes = append(p.Writes, decision.Write{
					Act: decision.Assign, Cluster: &o.Clusters[j], Record: recordOf(&o, move.Cluster), Revision: move.Revision, AssignedAt: move.At.Time,
				})
			}
		}
	}
	p.Status, p.Permits = m.view.module.status, false

	return p
}

// broken are all rules but one.
func broken() map[string]*rules {
	none := allRules().plan

	return map[string]*rules{
		"the status is written unconditionally":      {plan: none, overwrites: true},
		"a cache is good enough":                     {plan: none, trusting: true},
		"it is unknown how old a view is":            {plan: none, ageless: true},
		"what is taken away is not looked at before": {plan: none, blindly: true},
		"what a revision is for is not looked at":    {plan: none, careless: true},
		"what is done is not written down before":    {plan: none, rash: true},
		"writes carry no preconditions":              {plan: none, unconditional: true},
		"a move lapses by time":                      blind(lapse),
		"one cluster more than may be is":            blind(widerBudget),
		"the stages have no budget together":         blind(noTotal),
		"every cluster is taken for ready":           blind(allReady),
		"a report speaks of what is assigned":        blind(allReported),
		"what was put right is ready immediately":    blind(neverStale),
		"whatever runs is what the tag is":           blind(allTell),
		"a suspended module goes on":                 blind(func(_ *manager, o *model.Observed) { o.Module.Spec.Suspend = false }),
		"a pin is none":                              blind(noHolds),
		"nothing soaks":                              blind(noSoak),
		"gates stand open":                           blind(openGates),
		"an unready cluster is not selected":         blind(dropUnready),
		"no tag is looked up":                        blind(neverResolved),
		"a suspended cluster is one like all others": blind(noneSuspended),
		"who was sick before is evidence":            blind(noneSick),
		"who does not answer is evidence":            blind(allAnswer),
		"the copies of what was given up are lost":   blind(noCopies),
		"a retry ends every verdict":                 blind(endsAll),
		"copies count after a retry":                 blind(func(_ *manager, o *model.Observed) { o.Module.Status.Retried = nil }),
		"nothing is looked for":                      blind(neverLook),
		"a stage without evidence is complete":       blind(noEvidence),
		"one failed try is a failure":                blind(noTries),
		"removals count at one moment only":          blind(func(_ *manager, o *model.Observed) { o.Module.Status.RecentRemovals = nil }),
		"only one's own moves count":                 blind(onlyOwnMoves),
	}
}

// lapse gives up moves that were not made for 40 seconds, without a fence.
func lapse(_ *manager, o *model.Observed) {
	o.Module.Status.Moves = slices.DeleteFunc(o.Module.Status.Moves, func(m v1alpha1.Move) bool {
		return o.Now.Sub(m.At.Time) > 40*time.Second
	})
}

func widerBudget(_ *manager, o *model.Observed) {
	r := o.Module.Spec.Rollout
	wider := func(limit *intstr.IntOrString) *intstr.IntOrString {
		return new(intstr.FromInt(limitOf(limit, 1) + 1))
	}

	r.MaxUnreadyClusters = wider(r.MaxUnreadyClusters)
	for i := range r.Stages {
		r.Stages[i].MaxUnreadyClusters = nil
	}
}

func noTotal(_ *manager, o *model.Observed) { o.Module.Spec.Rollout.MaxUnreadyTotal = nil }

func allReady(_ *manager, o *model.Observed) {
	for i := range o.Records {
		if r := &o.Records[i]; r.Assigned {
			r.Reported, r.State = true, v1alpha1.StateSucceeded
		}
	}
}

func allReported(_ *manager, o *model.Observed) {
	for i := range o.Records {
		o.Records[i].Reported = o.Records[i].State != ""
	}
}

func neverStale(_ *manager, o *model.Observed) {
	for i := range o.Records {
		o.Records[i].Stale = false
	}
}

func allTell(_ *manager, o *model.Observed) {
	for i := range o.Records {
		if r := &o.Records[i]; r.Resolved != "" {
			r.Drifted, r.Edited, r.Stale, r.Hold = false, false, false, nil
		}
	}
}

func noHolds(_ *manager, o *model.Observed) {
	for i := range o.Records {
		o.Records[i].Hold = nil
	}
}

func noSoak(_ *manager, o *model.Observed) {
	o.Module.Spec.Rollout.MinReadySeconds = 0
	for i := range o.Module.Spec.Rollout.Stages {
		o.Module.Spec.Rollout.Stages[i].SoakSeconds = 0
	}
}

func openGates(_ *manager, o *model.Observed) {
	o.Gates = append([]model.Gate(nil), o.Gates...)
	for i := range o.Gates {
		o.Gates[i].Verdict = rollout.Passed
	}
}

func dropUnready(_ *manager, o *model.Observed) {
	for i := range o.Clusters {
		if !o.Clusters[i].Ready {
			o.Clusters[i].Labels = nil
		}
	}
}

func neverResolved(_ *manager, o *model.Observed) {
	for i := range o.Records {
		o.Records[i].Resolved = ""
	}
}

func noneSuspended(_ *manager, o *model.Observed) {
	for i := range o.Records {
		o.Records[i].Reason = ""
	}
}

func noneSick(_ *manager, o *model.Observed) {
	for i := range o.Records {
		o.Records[i].Unready = false
	}
}

func allAnswer(_ *manager, o *model.Observed) {
	for i := range o.Clusters {
		o.Clusters[i].Unreachable = false
		o.Clusters[i].Ready = true
	}
}

func noCopies(_ *manager, o *model.Observed) {
	for i := range o.Records {
		if f := o.Records[i].Found; f != nil {
			told := *f
			told.GivenUp = nil
			o.Records[i].Found = &told
		}
	}
}

func noEvidence(_ *manager, o *model.Observed) {
	for i := range o.Module.Spec.Rollout.Stages {
		o.Module.Spec.Rollout.Stages[i].AllowEmpty = true
	}
}

func noTries(_ *manager, o *model.Observed) {
	for i := range o.Records {
		if o.Records[i].Reason == triedOnce {
			o.Records[i].State = v1alpha1.StateFailed
		}
	}
}

func endsAll(_ *manager, o *model.Observed) {
	if o.Module.Retry != nil {
		o.Module.Retry = model.NewRetry(&o.Module.Status, "", "")
	}
}

func neverLook(_ *manager, o *model.Observed) {
	o.Looks = false
	for i := range o.Records {
		o.Records[i].Found, o.Records[i].Silent, o.Records[i].Unseen = nil, false, false
	}
}

func onlyOwnMoves(m *manager, o *model.Observed) {
	kept := o.Module.Status.Moves[:0]
	for _, move := range o.Module.Status.Moves {
		if m.own[move.Cluster].Equal(move.At.Time) {
			kept = append(kept, move)
		}
	}
	o.Module.Status.Moves = kept
}

// noticed are worlds that have noticed before that a rule was broken which most do not
// notice. They are looked at first, after the stories; once they have changed, the others are.
var noticed = map[string]uint64{
	"it is unknown how old a view is":         25170,
	"what was put right is ready immediately": 2049,
	"who was sick before is evidence":         39,
	"one failed try is a failure":             3840,
	"what a revision is for is not looked at": 282814,
}

// TestBrokenRulesAreSeen breaks each rule in turn. If no world notices, either the
// oracle is blind, or the worlds too tame, or the rule is none.
func TestBrokenRulesAreSeen(t *testing.T) {
	const worlds = 30000

	for name, r := range broken() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			began := time.Now()
			for story, tell := range stories() {
				s := newStory(r)
				tell(s)

				if failure := s.Verdict(); failure != "" {
					t.Logf("story %q: %s", story, failure)

					return
				}
			}

			for seed := range uint64(worlds) {
				if seed == 0 {
					seed = noticed[name]
				}

				if failure := brave(seed, r, false).Verdict(); failure != "" {
					t.Logf("seed %d after %s: %s", seed, time.Since(began).Round(time.Millisecond), failure)

					return
				}
			}

			t.Errorf("none of %d worlds notices", worlds)
		})
	}
}
