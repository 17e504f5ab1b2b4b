package decision

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/internal/config/content"
)

// policySpecs are what random policies are made of: no failure is tolerated, and none of
// them holds anything for good.
var policySpecs = []string{
	oneFirst,
	"{maxUnavailable: 1}",
	"{stages: [{name: one, workloads: 1}, {name: half, workloads: 50%}, {name: dev, selector: {matchLabels: {env: dev}}}]}",
	"{stages: [{name: prod, selector: {matchLabels: {env: prod}}}, {name: dev, selector: {matchLabels: {env: dev}}, maxUnavailable: 1}]}",
	"{priority: 1, objects: [{name: s1}], stages: [{name: dev, selector: {matchLabels: {env: dev}}}, {name: others}]}",
	"{priority: -1, selector: {matchLabels: {env: prod}}, stages: [{name: one, workloads: 2}]}",
}

// TestStagesAgainstRules plays random releases to their end. Whatever the policies: before a
// workload has proven that it works with a content, no more of them have it than the first
// stage takes; and workloads never wait for each other for good.
func TestStagesAgainstRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		specs := rapid.SliceOfN(rapid.SampledFrom(policySpecs), 1, 3).Draw(t, "policies")
		workloads, set := drawStaged(t), inForce(specs...)
		works := map[content.Release]bool{}
		for round := 0; ; round++ {
			if round > 4*len(workloads)+4 {
				t.Fatalf("it does not complete:\n%s", saysWith(set, workloads, Options{}))
			}
			noteWorking(workloads, works)
			plan := Decide(Observed{Now: now, Workloads: slices.Clone(workloads), Policies: set}, Options{})
			rolled := play(workloads, plan)
			if len(specs) == 1 && specs[0] == oneFirst {
				checkOneFirst(t, workloads, works)
			}
			rolling := func(w Workload) bool { return w.IsCurrent() && !w.isUp() }
			i := slices.IndexFunc(workloads, rolling)
			switch {
			case i < 0 && !slices.ContainsFunc(workloads, func(w Workload) bool { return !w.IsCurrent() }):
				return
			case i < 0 && rolled > 0:
			case i < 0:
				t.Fatalf("nothing moves:\n%s", saysWith(set, workloads, Options{}))
			case rolled == 0 || rapid.Bool().Draw(t, "one is ready"):
				done(time.Second)(&workloads[i])
			}
		}
	})
}

// play does what a plan rolls, and returns how much that is.
func play(workloads []Workload, plan Plan) int {
	rolled := 0
	for _, write := range plan.Writes {
		if !write.Rolls {
			continue
		}
		w := &workloads[slices.IndexFunc(workloads, func(w Workload) bool { return w.Name == write.Workload.Name })]
		if keys := w.Change.Keys; w.isMute() {
			current(w)
		} else {
			rollingFor(keys...)(w)
		}
		w.Change.Keys = nil
		rolled++
	}
	return rolled
}

// noteWorking adds the contents that some workload works with.
func noteWorking(workloads []Workload, works map[content.Release]bool) {
	for i := range workloads {
		w := &workloads[i]
		for _, r := range w.ReleasesOf(nil) {
			has := w.IsCurrent() || !slices.Contains(w.ReleasesOf(w.Change.Keys), r)
			works[r] = works[r] || has && w.isUp() && !w.isMute()
		}
	}
}

// checkOneFirst fails if two workloads have got a content that none works with yet.
func checkOneFirst(t *rapid.T, workloads []Workload, works map[content.Release]bool) {
	trying := map[content.Release][]string{}
	for i := range workloads {
		w := &workloads[i]
		if !w.IsCurrent() || w.isUp() {
			continue
		}
		for _, r := range w.ReleasesOf(w.Records.Roll.Changed) {
			trying[r] = append(trying[r], w.Name.Name)
		}
	}
	for r, names := range trying {
		if len(names) > 1 && !works[r] {
			t.Fatalf("%v try %s, and nothing works with it", names, r.From("shop"))
		}
	}
}

// drawStaged are workloads of one namespace that use some of three Secrets, of which each has
// changed; or one Secret of theirs has not.
func drawStaged(t *rapid.T) []Workload {
	var secrets []*corev1.Secret
	for i := range 3 {
		secrets = append(secrets, secret("shop", fmt.Sprint("s", i), "1"))
	}
	var workloads []Workload
	for i := range rapid.IntRange(1, 6).Draw(t, "workloads") {
		var uses []*corev1.Secret
		for k, s := range secrets {
			if k == i%3 || rapid.Bool().Draw(t, "uses") {
				uses = append(uses, s)
			}
		}
		var keys []string
		for _, s := range uses[rapid.IntRange(0, len(uses)-1).Draw(t, "unchanged"):] {
			keys = append(keys, content.ObjectOf(s).From("shop")+": p")
		}
		env := rapid.SampledFrom([]string{"dev", "prod", "test"}).Draw(t, "env")
		workloads = append(workloads, outdated(fmt.Sprint("w", i), labeled("env", env), using(uses...), changed(keys...),
			func(w *Workload) { w.Settings.Priority = rapid.IntRange(0, 1).Draw(t, "priority") }))
		if rapid.IntRange(0, 3).Draw(t, "has Pods") == 0 {
			d, _ := workloads[i].Object.(*appsv1.Deployment)
			d.Spec.Replicas = new(int32(0))
		}
	}
	return workloads
}
