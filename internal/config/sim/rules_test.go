package sim

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

// rules are those that a manager keeps to. The zero value is all of them.
type rules struct {
	decide func(decision.Observed, decision.Options) decision.Plan
}

// blind decides from what was observed after something in it has been changed.
func blind(change func(o *decision.Observed, options *decision.Options)) *rules {
	return &rules{decide: func(o decision.Observed, options decision.Options) decision.Plan {
		o.Workloads = slices.Clone(o.Workloads)
		change(&o, &options)
		return decision.Decide(o, options)
	}}
}

// each changes each workload.
func each(change func(w *decision.Workload)) *rules {
	return blind(func(o *decision.Observed, _ *decision.Options) {
		for i := range o.Workloads {
			change(&o.Workloads[i])
		}
	})
}

// broken are all rules but one.
func broken() map[string]*rules {
	return map[string]*rules{
		"a failure stops nothing":                     blind(func(_ *decision.Observed, options *decision.Options) { options.KeepGoing = true }),
		"a failure is recorded nowhere":               blind(func(o *decision.Observed, _ *decision.Options) { o.Recordable = false }),
		"what is recorded is not read":                blind(forget),
		"nothing soaks":                               blind(noSoak),
		"there are no stages":                         blind(func(o *decision.Observed, _ *decision.Options) { o.Policies = nil }),
		"one workload more than may be is rolled":     blind(func(_ *decision.Observed, options *decision.Options) { options.MaxRolling++ }),
		"Pods that crash are none":                    each(func(w *decision.Workload) { w.Pods.Failing = 0 }),
		"without replicas is good":                    each(asIfReady),
		"a workload that was not ready before was so": each(func(w *decision.Workload) { w.Records.Roll.Unready = false }),
		"that there is no room is a failure":          each(func(w *decision.Workload) { w.Pods.Unschedulable, w.Pods.Started = 0, w.Pods.New }),
		"the roll of another client is not judged":    each(func(w *decision.Workload) { w.Records.Roll.Template = "" }),
	}
}

func forget(o *decision.Observed, _ *decision.Options) {
	o.Gone = nil
	for i := range o.Workloads {
		o.Workloads[i].Records.Failed = nil
	}
}

func noSoak(o *decision.Observed, _ *decision.Options) {
	set := make(policy.Set, len(o.Policies))
	for i, p := range o.Policies {
		eager := *p
		eager.Stages = slices.Clone(p.Stages)
		for k := range eager.Stages {
			eager.Stages[k].Soak = 0
		}
		set[i] = &eager
	}
	o.Policies = set
}

// asIfReady takes a workload without Pods for one that shows that its content is good.
func asIfReady(w *decision.Workload) {
	if !workload.HasNoPods(w.Object) {
		return
	}
	switch o := w.Object.(type) {
	case *appsv1.Deployment:
		o = o.DeepCopy()
		o.Spec.Replicas, o.Status.AvailableReplicas = new(int32(1)), 1
		w.Object = o
	case *appsv1.StatefulSet:
		o = o.DeepCopy()
		o.Spec.Replicas, o.Status.ReadyReplicas = new(int32(1)), 1
		w.Object = o
	case *appsv1.DaemonSet:
		o = o.DeepCopy()
		o.Status.DesiredNumberScheduled, o.Status.NumberReady = 1, 1
		w.Object = o
	}
}

// TestBrokenRulesAreSeen breaks each rule in turn. If no world notices, either the oracle is blind,
// or the worlds too tame, or the rule is none.
func TestBrokenRulesAreSeen(t *testing.T) {
	const worlds = 1000
	for name, r := range broken() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= worlds; seed++ {
				failure := play(seed, r, false).Verdict()
				if failure != "" && play(seed, &rules{}, false).Verdict() == "" { // else it is not the rule that it notices
					t.Logf("seed %d: %s", seed, failure)
					return
				}
			}
			t.Errorf("none of %d worlds notices", worlds)
		})
	}
}
