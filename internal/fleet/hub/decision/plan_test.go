package decision_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// planned is a module at v2, that was at v1, and its clusters, one a line: "name tag
// state key=value ...". The state is up, updating, failed, unreachable or waiting; a
// cluster without a tag is assigned nothing. A word that begins with "@" is for how
// long it has been in its state; "held", "new", "notready", "drifted", "stale", "gone",
// "suspended", "unready" (before it was assigned that) and "unknown" say more.
func planned(t *testing.T, spec, clusters string) model.Observed {
	t.Helper()
	o := model.Observed{Now: noon, AsOf: "1", Revisions: []model.Revision{{Name: revisionOf("v1"), Number: 1}, {Name: revisionOf("v2"), Number: 2}}}
	o.Module = model.Module{Kind: model.KindModule, Name: app, Finalized: true}
	if err := yaml.UnmarshalStrict([]byte("{"+spec+"}"), &o.Module.Spec); err != nil {
		t.Fatal(spec, err)
	}
	o.Module.Spec.Selector = &metav1.LabelSelector{}
	o.Module.Spec.Template = &v1alpha1.ModuleTemplate{Spec: templateOf("v2")}
	o.Module.Status.CurrentRevision = revisionOf("v1")
	for line := range strings.SplitSeq(strings.TrimSpace(clusters), "\n") {
		c, r := read(strings.Fields(line))
		if !strings.Contains(line, " unknown") {
			o.Clusters = append(o.Clusters, c)
		}
		o.Records = append(o.Records, r)
	}
	return o
}

func read(words []string) (model.Cluster, model.Record) {
	name := words[0]
	c := model.Cluster{Name: name, UID: types.UID(name), Ready: true, Labels: map[string]string{}}
	r := model.Record{Cluster: name, Name: name, DeletionPolicy: v1alpha1.Delete, Since: noon.Add(-time.Hour), AssignedAt: noon.Add(-time.Hour)}
	for _, word := range words[1:] {
		key, value, isLabel := strings.Cut(word, "=")
		switch {
		case isLabel:
			c.Labels[key] = value
		case word == "v1" || word == "v2":
			r.Assigned, r.Reported, r.Revision, r.Succeeded = true, true, revisionOf(word), revisionOf("v1")
		case word == "up":
			r.State, r.Succeeded, r.Proven = v1alpha1.StateSucceeded, r.Revision, true
		case strings.HasPrefix(word, "@"):
			ago, _ := time.ParseDuration(word[1:])
			r.Since, r.AssignedAt = noon.Add(-ago), noon.Add(-ago)
		case word == "held":
			r.Hold = &v1alpha1.Hold{By: "alice", Reason: "its disk is full"}
		case word == "new":
			r.Succeeded = ""
		case word == "notready":
			c.Ready = false
		case word == "suspended":
			r.Reason, r.Message = outcome.ReasonSuspended, "suspended"
		case word == "unready":
			r.Unready = true
		case word == "drifted":
			r.Drifted = true
		case word == "stale":
			r.Stale = true
		case word == "unknown":
		case word == "gone":
			c.Deleting = true
		default:
			r.State = v1alpha1.State(word)
		}
	}
	return c, r
}

// said are the steps and the holds of a plan, with tags for revisions.
func said(p *decision.Plan) string {
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, s.Message())
	}
	for _, h := range p.Holds {
		lines = append(lines, h.Message)
	}
	return strings.NewReplacer(revisionOf("v1"), "v1", revisionOf("v2"), "v2").Replace(strings.Join(lines, "\n"))
}

// A cluster that was taken over moves once its writer knows that: until then it says what was found.
func TestAClusterThatIsTakenOverWaits(t *testing.T) {
	o := planned(t, "", "a v1 up\nb v1 up")
	o.Looks = true
	o.Records[0].Found = &v1alpha1.FoundSync{Name: app, Revision: revisionOf("v1")}
	p := decision.Decide(o)
	if is := said(&p); is != "b is updating from v1 to v2\na is waiting: what it runs is being taken over" {
		t.Error(is)
	}
}

func TestPlans(t *testing.T) {
	const incremental = `strategy: Incremental`
	const forget = "; restore it, or if the cluster is gone for good: kubectl annotate proxyassemblage a -n '' spillway.dev/abandon-cluster=true && kubectl delete proxyassemblage a -n ''"
	for name, test := range map[string]struct{ spec, clusters, want string }{
		"replace moves all": {
			``, "a v1 up\nb v1 up",
			"a is updating from v1 to v2\nb is updating from v1 to v2",
		},
		"one at a time is the default": {
			incremental, "a v1 up\nb v1 up",
			"a is updating from v1 to v2\nb is queued (position 1): 1 of 1 allowed unavailable in all",
		},
		"unready for reasons of its own takes a place": {
			incremental, "a v2 unreachable @1m\nb v1 up",
			"a is up to date but not reachable: cluster a does not answer since 4 May 11:59:00 UTC\nb is queued (position 1): 1 of 1 allowed unavailable in all (a is not reachable: cluster a does not answer since 4 May 11:59:00 UTC)",
		},
		"unreachable is no failure, however long": {
			incremental, "a v2 unreachable @1h\nb v1 up",
			"a is up to date but not reachable: cluster a does not answer since 4 May 11:00:00 UTC\nb is queued (position 1): 1 of 1 allowed unavailable in all (a is not reachable: cluster a does not answer since 4 May 11:00:00 UTC)",
		},
		"also if it was ready there before": {
			incremental, "a v2 up unreachable @9m\nb v1 up",
			"a is up to date but not reachable: cluster a does not answer since 4 May 11:51:00 UTC\nb is queued (position 1): 1 of 1 allowed unavailable in all (a is not reachable: cluster a does not answer since 4 May 11:51:00 UTC)",
		},
		"a stage where no cluster can tell holds": {
			incremental + ", rollout: {stages: [{name: canary, selector: {matchLabels: {stage: a}}}, {name: rest}]}", "a v1 waiting suspended stage=a\nb v1 up",
			"canary is waiting: 0 of 1 show that the target is good, a is suspended\na is waiting: skipped until it is resumed: suspended\n" +
				"rest is waiting: canary is waiting: 0 of 1 show that the target is good, a is suspended",
		},
		"an empty one too": {
			incremental + ", rollout: {stages: [{name: canary, selector: {matchLabels: {stage: a}}}, {name: rest}]}", "b v1 up",
			"canary is waiting: 0 of 1 show that the target is good, nothing belongs to it\n" +
				"rest is waiting: canary is waiting: 0 of 1 show that the target is good, nothing belongs to it",
		},
		"but not if that is allowed": {
			incremental + ", rollout: {stages: [{name: canary, allowEmpty: true, selector: {matchLabels: {stage: a}}}, {name: rest}]}", "b v1 up",
			"b is updating from v1 to v2",
		},
		"of several the canary is one that can tell": {
			incremental + ", rollout: {stages: [{name: canary, clusters: 1}, {name: rest}]}", "a v1 waiting suspended\nb v1 unreachable @1h\nc v1 failed\nd v1 up",
			"d is updating from v1 to v2\na is waiting: skipped until it is resumed: suspended\nrest is waiting: canary has 0 of 1 updated\n" +
				"b is waiting: skipped until it answers: not reachable: cluster b does not answer since 4 May 11:00:00 UTC",
		},
		"what is skipped takes no place": {
			incremental, "a v1 waiting suspended\nb v1 unreachable @1h\nc v1 up\nd v1 up",
			"d is updating from v1 to v2\na is waiting: skipped until it is resumed: suspended\nc is queued (position 1): 1 of 1 allowed unavailable in all\n" +
				"b is waiting: skipped until it answers: not reachable: cluster b does not answer since 4 May 11:00:00 UTC",
		},
		"what was unready before does not fail": {
			incremental, "a v2 failed unready @1h\nb v1 up",
			"b is updating from v1 to v2\na is up to date but not healthy",
		},
		"nor if there is no other, and it completes nothing": {
			incremental, "a v2 failed unready @1h",
			"a is up to date but not healthy",
		},
		"with replace, too, who is suspended makes nothing fail": {
			"rollout: {onFailure: Rollback}", "a v2 waiting suspended\nb v2 up",
			"a is up to date but waiting (Suspended): suspended",
		},
		"nor does with replace who was sick before": {
			"rollout: {onFailure: Rollback}", "a v2 failed unready\nb v2 up",
			"a is up to date but not healthy",
		},
		"what becomes ready is evidence, whatever it was": {
			incremental + ", rollout: {stages: [{name: canary, selector: {matchLabels: {stage: a}}}, {name: rest}]}", "a v2 up unready stage=a\nb v1 up",
			"b is updating from v1 to v2",
		},
		"what is unknown takes a place unless it is ready": {
			incremental, "a v2 updating unknown @1m\nb v1 up\nc v2 up unknown\nd v1 up unknown",
			"b is queued (position 1): 1 of 1 allowed unavailable in all (a is unknown at present)\n" +
				"a is waiting: neither a Cluster nor a labeled Secret a-kubeconfig found, and it is assigned v2" + forget,
		},
		"at another revision too, while that may be the cause": {
			incremental + `, rollout: {maxUnreadyClusters: 2}`, "a v1 waiting unknown @1m\nb v1 up\nc v1 up",
			"c is updating from v1 to v2\nb is queued (position 1): 2 of 2 allowed unavailable in all (a is unknown at present)\n" +
				"a is waiting: neither a Cluster nor a labeled Secret a-kubeconfig found, and it is assigned v1" + forget,
		},
		"and then no more, as its Secret may be gone for good": {
			incremental + `, rollout: {maxUnreadyClusters: 2}`, "a v1 waiting unknown\nb v1 up\nc v1 up",
			"c is updating from v1 to v2\nb is updating from v1 to v2",
		},
		"what is unknown and new, or pinned, takes none": {
			incremental, "a v1 updating new unknown @1m\nb v1 up\nc v1 failed held unknown",
			"b is updating from v1 to v2",
		},
		"what is unknown at the target keeps later stages from beginning": {
			incremental + `, rollout: {maxUnreadyClusters: 2, stages: [{name: canary, selector: {matchLabels: {c: "1"}}}, {name: rest}]}`,
			"a v2 updating unknown @1m\nb v1 up\nc v2 up c=1",
			"a is waiting: neither a Cluster nor a labeled Secret a-kubeconfig found, and it is assigned v2" + forget + "\n" +
				"rest is waiting: canary has 1 of 2 ready, a is unknown at present",
		},
		"what was unready goes after the others": {
			incremental, "a v1 failed\nb v1 up\nc v2 updating @1m",
			"a is waiting: it is not ready since before it was assigned v2, so others in all show first that v2 is good\nc is updating: updating\nb is queued (position 1): 1 of 1 allowed unavailable in all (c is updating)",
		},
		"and then whatever the budget": {
			incremental, "a v1 failed\nb v1 up\nc v2 up @1h\nd v2 updating @1m",
			"a is updating from v1 to v2 (already unavailable)\nd is updating: updating\nb is queued (position 1): 1 of 1 allowed unavailable in all (d is updating)",
		},
		"a failure stops it": {
			incremental, "a v2 failed\nb v1 up",
			"a failed: not healthy\nall failed: 1 of 2 units failed, 0 allowed; a failed: not healthy",
		},
		"as many failures as maxFailures tolerates do not": {
			incremental + `, rollout: {maxFailures: 1, maxUnreadyClusters: 2}`, "a v2 failed\nb v1 up",
			"b is updating from v1 to v2\na failed: not healthy",
		},
		"as many as there may be unready take no place": {
			incremental + `, rollout: {maxFailures: 2}`, "a v2 failed\nb v1 up\nc v2 failed\nd v1 up",
			"d is updating from v1 to v2\na failed: not healthy\nc failed: not healthy\nb is queued (position 1): 1 of 1 allowed unavailable in all, besides 2 failed (maxFailures)",
		},
		"one more, and the sentence has the numbers of the stage": {
			incremental + `, rollout: {maxFailures: 1, stages: [{name: canary, selector: {matchLabels: {c: "1"}}}, {name: rest}]}`,
			"a v2 failed c=1\nb v1 up\nc v2 failed c=1\nd v2 up c=1\ne v1 up",
			"a failed: not healthy\nc failed: not healthy\n" +
				"canary failed: 2 of 3 units failed, 1 allowed; a failed: not healthy\ncanary failed: 2 of 3 units failed, 1 allowed; a failed: not healthy",
		},
		"Continue goes on": {
			incremental + `, rollout: {onFailure: Continue}`, "a v2 failed\nb v1 up",
			"b is updating from v1 to v2\na failed: not healthy",
		},
		"a cluster has to stay ready": {
			incremental + `, rollout: {minReadySeconds: 60}`, "a v2 up @20s\nb v1 up",
			"a is ready; soaking until 4 May 12:00:40 UTC (minReadySeconds)\nb is queued (position 1): 1 of 1 allowed unavailable in all (a is ready; soaking until 4 May 12:00:40 UTC (minReadySeconds))",
		},
		"stages follow one another": {
			incremental + `, rollout: {stages: [{name: canary, selector: {matchLabels: {c: "1"}}}, {name: rest}]}`, "a v1 up\nb v1 up c=1",
			"b is updating from v1 to v2\nrest is waiting: canary has 0 of 1 updated",
		},
		"a stage soaks": {
			incremental + `, rollout: {stages: [{name: canary, selector: {matchLabels: {c: "1"}}, soakSeconds: 3600}, {name: rest}]}`, "a v1 up\nb v2 up @30m c=1",
			"canary is ready; soaking until 4 May 12:30:00 UTC\nrest is waiting: canary is ready; soaking until 4 May 12:30:00 UTC",
		},
		"a gate is waited for": {
			incremental + `, rollout: {stages: [{name: canary, selector: {matchLabels: {c: "1"}}, gates: [{name: approve}]}, {name: rest, gates: [{name: window, when: Before}]}]}`,
			"a v1 up\nb v2 up c=1",
			"canary is waiting: gate approve is pending\nrest is waiting: canary is waiting: gate approve is pending",
		},
		"a stage that takes one": {
			incremental + `, rollout: {maxUnreadyClusters: 100%, stages: [{name: canary, clusters: 1}, {name: rest}]}`, "a v1 up\nb v1 up\nc v2 up",
			"a is updating from v1 to v2\nb is updating from v1 to v2",
		},
		"it keeps the one that it took": { // though others with a lower number have followed
			incremental + `, rollout: {orderBy: {labelKey: wave}, stages: [{name: canary, clusters: 1, soakSeconds: 600}, {name: rest}]}`,
			"a v2 up @30m wave=3\nb v2 up @5m wave=1\nc v1 up wave=2",
			"c is updating from v1 to v2",
		},
		"the order is that of a label": {
			incremental + `, rollout: {orderBy: {labelKey: wave}}`, "a v1 up wave=10\nb v1 up wave=9\nc v1 up",
			"b is updating from v1 to v2\na is queued (position 1): 1 of 1 allowed unavailable in all\nc is queued (position 2): 1 of 1 allowed unavailable in all",
		},
		"a new cluster gets the good revision immediately": {
			incremental, "a v2 updating @1m\nb v1 up\nc",
			"c is updating to v1\na is updating: updating\nb is queued (position 1): 1 of 1 allowed unavailable in all (a is updating)",
		},
		"and takes no place until it is ready": {
			incremental, "b v1 up\nc v1 updating new @1m",
			"b is updating from v1 to v2\nc is updating: updating",
		},
		"one that fails at it is like all others": {
			incremental, "b v1 up\nc v1 failed new @1m",
			"c is updating from v1 to v2 (already unavailable)\nb is queued (position 1): 1 of 1 allowed unavailable in all (c is not healthy)",
		},
		"but for what was assigned it with nothing before": {
			incremental, "b v1 up\nc v1 failed new unready @1m",
			"b is updating from v1 to v2\nc is waiting: it is not ready since before it was assigned v2, so others in all show first that v2 is good",
		},
		"pinned is left out": {
			incremental, "a v1 failed held\nb v1 up",
			"b is updating from v1 to v2\na is paused by alice: its disk is full",
		},
		"a cluster that is being deleted is left out": {
			incremental, "a v1 failed gone\nb v1 up",
			"b is updating from v1 to v2",
		},
		"never ready and never assigned is none": {
			incremental, "a notready\nb v1 up",
			"b is updating from v1 to v2",
		},
		"not ready any more stays one": {
			incremental, "a v2 up notready\nb v1 up",
			"a is up to date but not ready: its control plane is not up\nb is queued (position 1): 1 of 1 allowed unavailable in all (a is not ready: its control plane is not up)",
		},
		"it is unknown what drifted runs": {
			incremental, "a v2 up drifted\nb v1 up",
			"a is updating: not what its revision says\nb is queued (position 1): 1 of 1 allowed unavailable in all (a is not what its revision says)",
		},
		"nor what was put right a moment ago": {
			incremental, "a v2 up stale\nb v1 up",
			"a is updating: corrected, and not reported ready since\nb is queued (position 1): 1 of 1 allowed unavailable in all (a is corrected, and not reported ready since)",
		},
		"but it is up where it was": {
			incremental, "a v1 up stale\nb v1 up",
			"a is updating from v1 to v2\nb is queued (position 1): 1 of 1 allowed unavailable in all",
		},
		"suspended": {
			incremental + `, suspend: true`, "a v1 up\nb",
			"the rollout is paused: spec.suspend is set\nthe rollout is paused: spec.suspend is set",
		},
		"unmatched are left out if so wished": {
			incremental + `, rollout: {unmatchedClusters: Exclude, stages: [{name: canary, selector: {matchLabels: {c: "1"}}}]}`, "a v1 up\nb v1 up c=1",
			"b is updating from v1 to v2\na is waiting: no stage selects it",
		},
		"outside of a window": {
			incremental + `, rollout: {windows: [{schedule: "0 2 * * *", durationSeconds: 7200, timeZone: Europe/London}]}`, "a v1 up\nb",
			"b is updating to v1\nthe rollout is waiting: no window is open until 5 May 01:00:00 UTC",
		},
		"inside of one": {
			incremental + `, rollout: {windows: [{schedule: "0 12 * * *", durationSeconds: 7200, timeZone: Europe/London}]}`, "a v1 up",
			"a is updating from v1 to v2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := decision.Decide(planned(t, test.spec, test.clusters))
			if got := said(&p); got != test.want {
				t.Errorf("says\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// A module that has failed, and what it goes back to.
func TestRollingBack(t *testing.T) {
	o := planned(t, `strategy: Incremental, rollout: {onFailure: Rollback, stages: [{name: canary, selector: {matchLabels: {c: "1"}}, soakSeconds: 60, gates: [{name: approve}]}, {name: rest}]}`,
		"a v2 failed c=1\nb v1 up\nc v1 up c=1")
	p := decision.Decide(o)
	if !p.Permits || p.Status.RolledBack != revisionOf("v2") || len(p.Status.Moves) > 0 || p.Status.History[0].Outcome != string(rollout.OutcomeRolledBack) {
		t.Fatalf("it is given up before anything goes back: %+v", p.Status)
	}
	o.Module.Status = p.Status
	p = decision.Decide(o)
	if got := said(&p); got != "a is updating from v2 to v1 (already unavailable)" || !p.Permits {
		t.Error(got)
	}
	o.Module.Status, o.Records[0] = p.Status, o.Records[1]
	o.Module.Status.Moves = nil
	o.Records[0].Cluster = "a"
	if p = decision.Decide(o); p.Status.Phase != string(decision.PhaseRolledBack) || len(p.Holds) > 0 {
		t.Errorf("%s: %s", p.Status.Phase, said(&p))
	}
	o.Module.Spec.Template = &v1alpha1.ModuleTemplate{Spec: templateOf("v3")}
	if p = decision.Decide(o); p.Status.RolledBack != "" || p.Writes[0].Act != decision.CreateRevision {
		t.Errorf("another template is another try: %+v", p)
	}
}

// Who has made a change is known when its rollout begins: who wrote it, or ordered to return. That ends the one before, if
// that was not complete.
func TestUndoneBy(t *testing.T) {
	rollback := &model.Steering{Verb: model.VerbRollback, By: "alice", Revision: revisionOf("v2"), At: metav1.NewTime(noon.Add(-time.Minute))}
	for name, test := range map[string]struct {
		was     rollout.Outcome
		began   time.Duration
		steered *model.Steering
		want    string
		by      string
	}{
		"by the next template":            {rollout.OutcomeFailed, -time.Hour, nil, "flux", "flux"},
		"while it ran":                    {rollout.OutcomeRunning, -time.Hour, nil, "flux", "flux"},
		"by a command":                    {rollout.OutcomeFailed, -time.Hour, rollback, "alice", "alice"},
		"after a command for another one": {rollout.OutcomeFailed, -time.Second, rollback, "flux", "flux"},
		"by ourselves":                    {rollout.OutcomeRolledBack, -time.Hour, nil, "spillway", "flux"},
		"it was complete":                 {rollout.OutcomeComplete, -time.Hour, nil, "", "flux"},
	} {
		o := planned(t, `strategy: Incremental`, "a v1 up\nb v1 up")
		o.Module.Writer, o.Module.Steered = "flux", test.steered
		o.Module.Status.History = []v1alpha1.PastRollout{{Revision: "v3", StartedAt: metav1.NewMicroTime(noon.Add(test.began)), Outcome: string(test.was)}}
		p := decision.Decide(o)
		if h := p.Status.History; len(h) != 2 || h[1].UndoneBy != test.want || h[0].ChangedBy != test.by || p.Status.Rollout.ChangedBy != test.by {
			t.Errorf("%s: %+v", name, h)
		}
		o.Module.Writer, o.Module.Steered = "others", nil
		o.Module.Status.History = p.Status.History
		if h := decision.Decide(o).Status.History; h[1].UndoneBy != test.want || h[0].ChangedBy != test.by {
			t.Errorf("%s: a later look says %+v", name, h)
		}
	}
}

// A refusal gives the revision up if its gate says so and there is one to go back to.
func TestARefusalRollsBack(t *testing.T) {
	for answer, want := range map[string]rollout.Phase{"Rollback": rollout.PhaseRollingBack, "Stop": rollout.PhaseFailed, "Continue": rollout.PhaseProgressing} {
		o := planned(t, `strategy: Incremental, rollout: {stages: [{name: canary, selector: {matchLabels: {c: "1"}}, gates: [{name: approve, onRefusal: `+answer+`}]}, {name: rest}]}`,
			"a v2 up c=1\nb v1 up")
		gate := o.Module.Spec.Rollout.Stages[0].Gates[0]
		o.Gates = []model.Gate{{Name: model.GateName(revisionOf("v2"), "canary", gate), Revision: revisionOf("v2"), Stage: "canary", Verdict: rollout.Refused}}
		if p := decision.Decide(o); len(p.Writes) != 1 || p.Writes[0].Act != decision.DeleteGate || p.Permits {
			t.Errorf("%s: what was decided in an earlier rollout counts: %+v", answer, p.Writes)
		}
		o.Module.Status.TargetRevision = revisionOf("v2")
		p := decision.Decide(o)
		if rolledBack := p.Status.RolledBack == revisionOf("v2"); p.Phase != want || rolledBack != (answer == "Rollback") {
			t.Errorf("%s: %s, rolled back %q: %s", answer, p.Phase, p.Status.RolledBack, said(&p))
		}
		o.Module.Status.CurrentRevision = ""
		if p = decision.Decide(o); p.Status.RolledBack != "" {
			t.Errorf("%s: it goes back to nothing", answer)
		}
	}
}

// A window that cannot be understood stalls the module, and says where the mistake is.
func TestWindowsThatCannotBeUnderstood(t *testing.T) {
	for window, want := range map[string]string{
		`{schedule: "TZ=UTC\t*\t*\t*\t*", durationSeconds: 60}`:                  `spec.rollout.windows[0].schedule: "TZ=UTC\t*\t*\t*\t*" must be a schedule`,
		`{schedule: "0 0 30 2 *", durationSeconds: 60}`:                          `spec.rollout.windows[0].schedule: "0 0 30 2 *" never comes`,
		`{schedule: "0 2 * * *", durationSeconds: 60, timeZone: Local}`:          `spec.rollout.windows[0].timeZone: "Local" must be the name of a time zone`,
		`{schedule: "0 2 * * *", durationSeconds: 60, timeZone: Europe/Nowhere}`: `spec.rollout.windows[0].timeZone: "Europe/Nowhere" must be`,
	} {
		p := decision.Decide(planned(t, "strategy: Incremental, rollout: {windows: ["+window+"]}", "a v1 up"))
		if p.Status.Phase != string(decision.PhaseStalled) || !strings.HasPrefix(p.Status.WaitingFor, want) {
			t.Errorf("%s: %s, %s", window, p.Status.Phase, p.Status.WaitingFor)
		}
	}
}

// What was permitted counts, whatever a view shows, until its assemblage has changed; and what is
// not wanted any more is withdrawn by that, however old it is, before anything else is permitted.
func TestMovesCount(t *testing.T) {
	o := planned(t, `strategy: Incremental`, "a v1 up\nb v1 up")
	p := decision.Decide(o)
	if !p.Permits || len(p.Status.Moves) != 1 || len(p.Writes) > 0 {
		t.Fatalf("%+v", p)
	}
	first := p.Status.Moves[0].Cluster
	o.Module.Status = p.Status
	for after, want := range map[time.Duration]string{
		time.Second: "Assign " + first, ring.ActWithin: "permits " + first, time.Hour: "permits " + first,
	} {
		later := o
		later.Now = noon.Add(after)
		p = decision.Decide(later)
		if got := result(&p); got != want {
			t.Errorf("after %s: %s, want %s", after, got, want)
		}
	}
	o.Module.Spec.Suspend, o.Now, o.Live = true, noon.Add(1000*time.Hour), true
	if p = decision.Decide(o); result(&p) != "Fence "+first || len(p.Status.Moves) != 1 {
		t.Errorf("it does %s, and keeps %d moves", result(&p), len(p.Status.Moves))
	}
	o.Records[0].Fence = "1"
	if p = decision.Decide(o); len(p.Status.Moves) != 0 {
		t.Errorf("moves %v", p.Status.Moves)
	}
	o = planned(t, `strategy: Incremental`, "a v1 up")
	o.Module.Status.Seen = &v1alpha1.Seen{Assemblages: "2"}
	if p = decision.Decide(o); !p.NeedsLive {
		t.Error("it decides from a view that is older than one that was decided from")
	}
}

// A move to a revision that is not seen is not acted upon, and withdrawn: it is unknown what to
// write, and with nothing written the cluster would lose what it has.
func TestAMoveToARevisionThatIsNotSeenWaits(t *testing.T) {
	o := planned(t, `strategy: Incremental`, "a v1 up")
	o.Module.Status = decision.Decide(o).Status
	o.Now = noon.Add(time.Second)
	if p := decision.Decide(o); result(&p) != "Assign a" {
		t.Fatalf("it does %s", result(&p))
	}
	o.Revisions = o.Revisions[:1]
	if p := decision.Decide(o); len(p.Writes) != 1 || p.Writes[0].Act != decision.Fence || len(p.Status.Moves) != 1 {
		t.Errorf("it writes %+v, and keeps %d moves", p.Writes, len(p.Status.Moves))
	}
}

// What was assigned by a clock that is ahead of this one is older all the same than what
// is permitted now: a move that counted as done immediately would never be made.
func TestAMoveIsLaterThanWhatItReplaces(t *testing.T) {
	o := planned(t, `strategy: Incremental`, "a v1 up @-1m")
	o.Module.Status = decision.Decide(o).Status
	if p := decision.Decide(o); result(&p) != "Assign a" || !p.Writes[0].AssignedAt.Equal(noon.Add(time.Minute+time.Microsecond)) {
		t.Errorf("it does %s: %+v", result(&p), p.Writes)
	}
}

// Of many clusters that follow a tag one gets the commit first; the others once it
// runs the commit by that name, and never if it cannot.
func TestOneFollowerOfATagIsToldFirst(t *testing.T) {
	const tag, commit = "v1@sha1:01", "sha1:01"
	told := func(change func(o *model.Observed)) string {
		o := planned(t, `strategy: Incremental`, "a v2 up\nb v2 up\nc v2 up")
		o.Revisions[1].Resolved = tag
		for i := range o.Records {
			o.Records[i].Follows, o.Records[i].Tagged, o.Records[i].Resolved = true, true, tag
		}
		change(&o)
		var names []string
		for _, w := range decision.Decide(o).Writes {
			if w.Act == decision.Correct {
				names = append(names, w.Cluster.Name)
			}
		}
		return strings.Join(names, " ")
	}
	first := told(func(*model.Observed) {})
	if len(first) != 1 {
		t.Fatalf("corrected at the same time: %s", first)
	}
	at := map[string]int{"a": 0, "b": 1, "c": 2}[first]
	others := strings.TrimSpace(strings.ReplaceAll(told(func(o *model.Observed) {
		o.Records[at].Follows, o.Records[at].Tagged, o.Records[at].Resolved = false, false, commit
	}), "  ", " "))
	if len(others) != 3 || strings.Contains(others, first) {
		t.Errorf("then the others are corrected: %s", others)
	}
	for why, change := range map[string]func(r *model.Record){
		"it has not said so yet":     func(*model.Record) {},
		"it cannot fetch the commit": func(r *model.Record) { r.State = v1alpha1.StateWaiting },
	} {
		if got := told(func(o *model.Observed) {
			o.Records[at].Follows, o.Records[at].Tagged = false, false
			change(&o.Records[at])
		}); got != "" {
			t.Errorf("%s, and %s are corrected", why, got)
		}
	}
	if got := told(func(o *model.Observed) {
		o.Records[at].Follows, o.Records[at].Tagged, o.Records[at].State = false, false, v1alpha1.StateUnreachable
	}); len(got) != 1 {
		t.Errorf("no cluster waits for one that does not answer: %s", got)
	}
}

func result(p *decision.Plan) string {
	switch {
	case p.Permits:
		return fmt.Sprintf("permits %s", p.Status.Moves[0].Cluster)
	case len(p.Writes) > 0:
		return fmt.Sprintf("%s %s", p.Writes[0].Act, p.Writes[0].Cluster.Name)
	default:
		return "nothing"
	}
}

// While an assemblage is being deleted nothing is written into it, as that would go with
// it; another cluster is updated meanwhile.
func TestNothingIsWrittenIntoAnAssemblageThatGoes(t *testing.T) {
	o := planned(t, "strategy: Incremental", "a v1 up\nb v1 up")
	for i := range o.Records {
		o.Records[i].Deleting = o.Clusters[i].Name == "a"
	}
	p := decision.Decide(o)
	if len(p.Status.Moves) != 1 || p.Status.Moves[0].Cluster != "b" || !strings.Contains(said(&p), "a is waiting: its old assemblage is being deleted") {
		t.Errorf("%s: %+v", said(&p), p.Status.Moves)
	}
	o.Module.Status = p.Status
	o.Records[1].Deleting, o.Records[1].Generation = true, o.Records[1].Generation+1
	if p := decision.Decide(o); len(p.Writes) > 0 {
		t.Errorf("it is written to: %+v", p.Writes)
	}
}
