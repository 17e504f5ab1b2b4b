package decision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

const oneFirst = "{stages: [{name: first, workloads: 1}, {name: rest}]}"

// inForce are ConfigPolicies of the namespace shop with these specs, named p0, p1 and so on.
func inForce(specs ...string) policy.Set {
	var set policy.Set
	for i, spec := range specs {
		obj := &v1alpha1.ConfigPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", i)}}
		if err := yaml.UnmarshalStrict([]byte(spec), &obj.Spec); err != nil {
			panic(err)
		}
		set = append(set, policy.Read(obj))
	}
	slices.SortFunc(set, policy.Compare)
	return set
}

// labeled is a workload with labels that was ready for an hour.
func labeled(pairs ...string) func(*Workload) {
	return func(w *Workload) {
		readySince(now.Add(-time.Hour))(w)
		w.Pods = pods.State{}
		of := map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			of[pairs[i]] = pairs[i+1]
		}
		w.Object.SetLabels(of)
	}
}

// done is a workload that has the content, and is ready for some time.
func done(ago time.Duration) func(*Workload) {
	return func(w *Workload) {
		labels := w.Object.GetLabels()
		readySince(now.Add(-ago))(w)
		w.Object.SetLabels(labels)
		current(w)
		w.Records.Roll.At = now.Add(-ago - time.Minute)
	}
}

// rollingFor is a workload that was rolled a minute ago, and is not ready.
func rollingFor(keys ...string) func(*Workload) {
	return func(w *Workload) {
		labels := w.Object.GetLabels()
		w.Object = &appsv1.Deployment{}
		w.Object.SetLabels(labels)
		rolledFor(time.Minute, keys...)(w)
		hangs(w)
	}
}

func zoned(replaced int32) func(*Workload) {
	return func(w *Workload) {
		set := statefulSet(3, "v2")
		set.Status.ReadyReplicas, set.Status.UpdatedReplicas = 3, replaced
		set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		ofKind(set)(w)
		zone(false)(w)
		w.Health.Health = rollout.Healthy
	}
}

// saysWith is the plan as sentences, and the releases of each policy.
func saysWith(set policy.Set, workloads []Workload, o Options) string {
	plan := Decide(Observed{Now: now, Workloads: workloads, Policies: set}, o)
	var b strings.Builder
	for _, w := range plan.Writes {
		if w.Rolls {
			b.WriteString("rolls " + w.Workload.Name.Name + "\n")
		}
	}
	for _, h := range plan.Holds {
		b.WriteString(string(h.Reason) + ": " + h.Message + "\n")
	}
	for _, p := range set {
		for _, r := range plan.Reports[p].Releases {
			fmt.Fprintf(&b, "%s: %s %d/%d", p.Name, r.Phase, r.Updated, r.Of)
			for _, s := range r.Stages {
				fmt.Fprintf(&b, ", %s %s %d/%d", s.Name, s.Phase, s.Updated, s.Of)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestStages(t *testing.T) {
	db, ca := secret("shop", "db", "bad"), secret("shop", "ca", "1")
	uses, both := using(db), using(db, ca)
	next := func(name string, change ...func(*Workload)) Workload {
		return outdated(name, append([]func(*Workload){labeled(), uses, changed(dbKey)}, change...)...)
	}
	for name, test := range map[string]struct {
		policies  []string
		workloads []Workload
		options   Options
		want      string
	}{
		"none": {nil, []Workload{next("a"), next("b")}, Options{}, "rolls a\n" +
			"rolls b\n"},
		"one first": {[]string{oneFirst}, []Workload{next("a"), next("b"), next("c")}, Options{}, "rolls a\n" +
			"WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"p0: Progressing 0/3, first Progressing 0/1, rest Waiting 0/2\n"},
		"the first rolls": {[]string{oneFirst}, []Workload{next("a", rollingFor(dbKey)), next("b"), next("c")}, Options{}, "Progressing: Deployment a is updating: not ready\n" +
			"WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/a is not ready\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/a is not ready\n" +
			"p0: Progressing 0/3, first Progressing 0/1, rest Waiting 0/2\n"},
		"the first is ready": {[]string{oneFirst}, []Workload{next("a", done(time.Second)), next("b"), next("c")}, Options{}, "rolls b\n" +
			"rolls c\n" +
			"p0: Progressing 1/3, first Complete 1/1, rest Progressing 0/2\n"},
		"all are": {[]string{oneFirst}, []Workload{next("a", done(time.Second)), next("b", done(0))}, Options{}, ""},
		"the first has failed": {[]string{oneFirst}, []Workload{next("a", rollingFor(dbKey), crashes), next("b"), next("c")}, Options{}, "ConfigFailed: Deployment b is waiting: Secret db@05cb0cf failed on deployment/a (3 of 3 Pods CrashLoopBackOff); 2 workloads are not rolled\n" +
			"ConfigFailed: Deployment c is waiting: Secret db@05cb0cf failed on deployment/a (3 of 3 Pods CrashLoopBackOff); 2 workloads are not rolled\n" +
			"Failed: Deployment a failed: 3 of 3 Pods CrashLoopBackOff (changed: Secret db@05cb0cf)\n" +
			"p0: Failed 0/3, first Failed 0/1, rest Failed 0/2\n"},
		"one workload alone": {[]string{oneFirst}, []Workload{next("a")}, Options{}, "rolls a\n"},
		"the last stage is not awaited": {[]string{oneFirst}, []Workload{next("a", done(time.Second)), next("b", rollingFor(dbKey)), next("c")}, Options{}, "rolls c\n" +
			"Progressing: Deployment b is updating: not ready\n" +
			"p0: Progressing 1/3, first Complete 1/1, rest Progressing 0/2\n"},
		"what cannot go is not first": {[]string{oneFirst}, []Workload{next("a", func(w *Workload) { w.Settings.Paused = true }), next("b"), next("c")}, Options{}, "rolls b\n" +
			"Paused: Deployment a is paused\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"p0: Progressing 0/3, first Progressing 0/1, rest Paused 0/2\n"},
		"what has no Pods is not first": {[]string{oneFirst}, []Workload{next("a", noPods), next("b"), next("c")}, Options{}, "rolls b\n" +
			"WaitingForPrevious: Deployment a is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"p0: Progressing 0/3, first Progressing 0/1, rest Waiting 0/2\n"},
		"what has no Pods proves nothing": {[]string{oneFirst}, []Workload{next("a", noPods, current), next("b"), next("c")}, Options{}, "rolls b\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"p0: Progressing 1/3, first Progressing 0/1, rest Waiting 1/2\n"},
		"nothing has Pods": {[]string{oneFirst}, []Workload{next("a", noPods), next("b", noPods)}, Options{}, "rolls a\nrolls b\np0: Progressing 0/2, first Complete 0/0, rest Progressing 0/2\n"},
		"a zone without Pods": {[]string{oneFirst}, []Workload{
			next("z1", zoned(3), rollingZone), next("z2", zoned(3), func(w *Workload) {
				w.Object.(*appsv1.StatefulSet).Spec.Replicas = new(int32(0))
				current(w)
			}), next("a"),
		}, Options{}, "rolls a\np0: Progressing 1/2, first Complete 1/1, rest Progressing 0/1\n"},
		"what another client rolls is first": {[]string{oneFirst}, []Workload{next("a"), next("b", rollingFor(dbKey), admitted("old"))}, Options{}, "WaitingForPrevious: Deployment a is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/b is not ready\n" +
			"Progressing: Deployment b is updating: not ready\n" +
			"p0: Progressing 0/2, first Progressing 0/1, rest Waiting 0/1\n"},
		"what another client rolls, and another one works": {[]string{oneFirst}, []Workload{next("a"), next("b", rollingFor(dbKey), admitted("old")), next("c", done(time.Second))}, Options{}, "rolls a\n" +
			"Progressing: Deployment b is updating: not ready\n" +
			"p0: Progressing 2/3, first Complete 1/1, rest Progressing 1/2\n"},
		"what has no room tells nothing": {[]string{oneFirst}, []Workload{next("a", rollingFor(dbKey), refused("exceeded quota: full")), next("b"), next("c")}, Options{}, "rolls b\n" +
			"Progressing: Deployment a is updating: no room for new Pods: exceeded quota: full\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"p0: Progressing 1/3, first Progressing 0/1, rest Waiting 1/2\n"},
		"what was not ready before may still tell": {[]string{oneFirst}, []Workload{next("a", rollingFor(dbKey), unreadyBefore(1, "")), next("b"), next("c")}, Options{}, "Progressing: Deployment a is updating: not ready\n" +
			"WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/a is not ready\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/a is not ready\n" +
			"p0: Progressing 0/3, first Progressing 0/1, rest Waiting 0/2\n"},
		"what crashes as before tells nothing": {[]string{oneFirst}, []Workload{next("a", rollingFor(dbKey), crashes, unreadyBefore(0, "CrashLoopBackOff")), next("b"), next("c")}, Options{}, "rolls b\n" +
			"Progressing: Deployment a is updating: not ready\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"p0: Progressing 1/3, first Progressing 0/1, rest Waiting 1/2\n"},
		"what a user has paused in mid-roll takes no place": {[]string{"{maxUnavailable: 1}"}, []Workload{next("a", rollingFor(dbKey), func(w *Workload) {
			w.Object.(*appsv1.Deployment).Spec.Paused, w.Template.Hash = true, "bad"
		}), next("b"), next("c")}, Options{}, "rolls b\n" +
			"BudgetExhausted: Deployment a is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: 1 of 1 allowed unavailable in stage all\n" +
			"BudgetExhausted: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: 1 of 1 allowed unavailable in stage all\n" +
			"p0: Progressing 0/3, all Progressing 0/3\n"},
		"what was rolled keeps its place while changes are collected": {[]string{oneFirst}, []Workload{next("b"), next("a", rollingFor(dbKey), func(w *Workload) {
			w.Template.Hash, w.Hashes, w.Change = "bad", nil, Change{First: now, Last: now}
		})}, Options{CoalesceWindow: time.Second}, "WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/a is not ready\n" +
			"Coalescing: Deployment a is waiting: its config changed; changes within 1s become one roll\n" +
			"p0: Waiting 0/2, first Waiting 0/1, rest Waiting 0/1\n"},
		"and while they are read": {[]string{oneFirst}, []Workload{next("b"), next("a", rollingFor(dbKey), func(w *Workload) {
			w.Template.Hash, w.Hashes, w.Change = "bad", nil, Change{First: now, Last: now}
		})}, Options{}, "WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/a is not ready\n" +
			"Unread: Deployment a is waiting: its config is read next\n" +
			"p0: Waiting 0/2, first Waiting 0/1, rest Waiting 0/1\n"},
		"what has just begun tells nothing": {[]string{oneFirst}, []Workload{next("a", rollingFor(dbKey), begun), next("b"), next("c")}, Options{}, "rolls b\n" +
			"Progressing: Deployment a is updating: not ready\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"p0: Progressing 1/3, first Progressing 0/1, rest Waiting 1/2\n"},
		"what was not ready before tells nothing in the end": {[]string{oneFirst}, []Workload{next("a", rollingFor(dbKey), unreadyBefore(0, ""), rolledAt(now.Add(-10*time.Minute), rollout.Progressing)), next("b"), next("c")}, Options{}, "rolls b\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"Progressing: Deployment a is updating: not ready\n" +
			"p0: Progressing 1/3, first Progressing 0/1, rest Waiting 1/2\n"},
		"what was not ready before is no worse": {[]string{soaking}, []Workload{
			next("a", rollingFor(dbKey), noWorse(1, 10*time.Minute), rolledAt(now.Add(-11*time.Minute), rollout.Progressing)), next("b"), next("c"),
		}, Options{}, "rolls b\nrolls c\n" +
			"Progressing: Deployment a is updating: not ready\n" +
			"p0: Progressing 1/3, first Complete 1/1, rest Progressing 0/2\n"},
		"a Pod from before the roll shows it only since then": {[]string{soaking}, []Workload{next("a", rollingFor(dbKey), noWorse(1, 10*time.Minute)), next("b")}, Options{}, "Progressing: Deployment a is updating: not ready\n" +
			"Soaking: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first is ready; soaking until 4 May 09:09:00 UTC\n" +
			"p0: Waiting 1/2, first Waiting 1/1, rest Waiting 0/1\n"},
		"and has to soak": {[]string{soaking}, []Workload{next("a", rollingFor(dbKey), noWorse(1, time.Minute)), next("b")}, Options{}, "Progressing: Deployment a is updating: not ready\n" +
			"Soaking: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first is ready; soaking until 4 May 09:09:00 UTC\n" +
			"p0: Waiting 1/2, first Waiting 1/1, rest Waiting 0/1\n"},
		"what was not ready before is worse": {[]string{soaking}, []Workload{next("a", rollingFor(dbKey), noWorse(2, 10*time.Minute)), next("b")}, Options{}, "Progressing: Deployment a is updating: not ready\n" +
			"WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/a is not ready\n" +
			"p0: Progressing 0/2, first Progressing 0/1, rest Waiting 0/1\n"},
		"what is broken by us is first": {[]string{oneFirst}, []Workload{next("a"), next("b", func(w *Workload) { rollingFor(dbKey)(w); w.Template.Hash = "bad" })}, Options{}, "rolls b\n" +
			"WaitingForPrevious: Deployment a is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/b is not ready\n" +
			"p0: Progressing 0/2, first Progressing 0/1, rest Waiting 0/1\n"},
		"a budget": {[]string{"{maxUnavailable: 2}"}, []Workload{next("a", rollingFor(dbKey)), next("b"), next("c")}, Options{}, "rolls b\n" +
			"Progressing: Deployment a is updating: not ready\n" +
			"BudgetExhausted: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: 2 of 2 allowed unavailable in stage all (deployment/a is not ready)\n" +
			"p0: Progressing 0/3, all Progressing 0/3\n"},
		"by labels": {[]string{"{stages: [{name: dev, selector: {matchLabels: {env: dev}}}, {name: prod, selector: {matchLabels: {env: prod}}}]}"}, []Workload{
			next("a"), next("b", labeled("env", "prod")), next("c", labeled("env", "dev")), next("d", labeled("env", "dev")),
		}, Options{}, "rolls c\n" +
			"rolls d\n" +
			"WaitingForPrevious: Deployment a is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage dev has 0 of 2 updated\n" +
			"WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage dev has 0 of 2 updated\n" +
			"p0: Progressing 0/4, dev Progressing 0/2, prod Waiting 0/1, others Waiting 0/1\n"},
		"it soaks": {[]string{"{soak: 10m, stages: [{name: first, workloads: 1}, {name: rest}]}"}, []Workload{next("a", done(time.Minute)), next("b")}, Options{}, "Soaking: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first is ready; soaking until 4 May 09:09:00 UTC\n" +
			"p0: Waiting 1/2, first Waiting 1/1, rest Waiting 0/1\n"},
		"it has soaked": {[]string{"{soak: 10m, stages: [{name: first, workloads: 1}, {name: rest}]}"}, []Workload{next("a", done(10*time.Minute)), next("b")}, Options{}, "rolls b\n" +
			"p0: Progressing 1/2, first Complete 1/1, rest Progressing 0/1\n"},
		"it is paused": {[]string{"{pause: {by: alice, reason: lunch}}"}, []Workload{next("a")}, Options{}, "Paused: Deployment a is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: ConfigPolicy shop/p0 is paused by alice: lunch\n" +
			"p0: Paused 0/1, all Paused 0/1\n"},
		"it is closed": {[]string{"{maintenanceWindows: [{schedule: '0 2 * * *', durationSeconds: 3600}]}"}, []Workload{next("a")}, Options{}, "OutsideWindow: Deployment a is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: the next maintenance window opens on 5 May 02:00:00 UTC\n" +
			"p0: Waiting 0/1, all Waiting 0/1\n"},
		"it is open": {[]string{"{maintenanceWindows: [{schedule: '0 9 * * *', durationSeconds: 3600}]}"}, []Workload{next("a")}, Options{}, "rolls a\n"},
		"it is invalid": {[]string{"{maintenanceWindows: [{schedule: 'x', durationSeconds: 3600}]}"}, []Workload{next("a")}, Options{}, "InvalidInput: Deployment a is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: its spec is not valid: maintenanceWindows[0]: must be a schedule as in a CronJob, such as \"0 2 * * 1-5\" for two o'clock from Monday to Friday: expected exactly 5 fields, found 1: [x]\n" +
			"p0: Waiting 0/1, all Waiting 0/1\n"},
		"other objects":  {[]string{"{pause: {}, objects: [{name: ca}]}"}, []Workload{next("a")}, Options{}, "rolls a\n"},
		"other workload": {[]string{"{pause: {}, selector: {matchLabels: {env: dev}}}"}, []Workload{next("a")}, Options{}, "rolls a\n"},
		"one failure is tolerated": {[]string{"{maxFailures: 1, maxUnavailable: 1}"}, []Workload{
			next("a", rollingFor(dbKey), crashes), next("b"), next("c"),
		}, Options{}, "rolls b\n" +
			"BudgetExhausted: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: 1 of 1 allowed unavailable in stage all, besides 1 failed (maxFailures)\n" +
			"Failed: Deployment a failed: 3 of 3 Pods CrashLoopBackOff (changed: Secret db@05cb0cf)\n" +
			"p0: Progressing 0/3, all Progressing 0/3\n"},
		"two are not": {[]string{"{maxFailures: 1}"}, []Workload{
			next("a", rollingFor(dbKey), crashes), next("b", rollingFor(dbKey), crashes), next("c"),
		}, Options{}, "ConfigFailed: Deployment c is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage all failed: 2 of 3 units failed, 1 allowed; deployment/a failed: 3 of 3 Pods CrashLoopBackOff\n" +
			"Failed: Deployment a failed: 3 of 3 Pods CrashLoopBackOff (changed: Secret db@05cb0cf)\n" +
			"Failed: Deployment b failed: 3 of 3 Pods CrashLoopBackOff (changed: Secret db@05cb0cf)\n" +
			"p0: Failed 0/3, all Failed 0/3\n"},
		"it goes on": {[]string{"{onFailure: Continue, stages: [{name: first, workloads: 1}]}"}, []Workload{next("a", rollingFor(dbKey), crashes), next("b")}, Options{}, "rolls b\n" +
			"Failed: Deployment a failed: 3 of 3 Pods CrashLoopBackOff (changed: Secret db@05cb0cf)\n" +
			"p0: Progressing 0/2, first Failed 0/1, others Progressing 0/1\n"},
		"the flag goes on": {[]string{oneFirst}, []Workload{next("a", rollingFor(dbKey)), next("b")}, Options{KeepGoing: true}, "Progressing: Deployment a is updating: not ready\n" +
			"WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, deployment/a is not ready\n" +
			"p0: Progressing 0/2, first Progressing 0/1, rest Waiting 0/1\n"},
		"two objects": {[]string{oneFirst}, []Workload{
			next("a"), next("b", both, changed(dbKey, caKey)), next("c", using(ca), changed(caKey)),
		}, Options{}, "rolls a\n" +
			"WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"WaitingForPrevious: Deployment c is waiting: ConfigPolicy p0 holds Secret ca@933f2f4: stage first has 0 of 1 updated\n" +
			"p0: Progressing 0/2, first Progressing 0/1, rest Waiting 0/1\n" +
			"p0: Progressing 0/2, first Progressing 0/1, rest Waiting 0/1\n"},
		"two policies": {[]string{"{objects: [{name: ca}], stages: [{name: x, workloads: 1}]}", "{objects: [{name: db}], priority: 1, stages: [{name: why, selector: {matchLabels: {'y': 'y'}}}]}"}, []Workload{
			next("a", both, changed(dbKey, caKey)), next("b", labeled("y", "y"), both, changed(dbKey, caKey)),
		}, Options{}, "rolls b\n" +
			"WaitingForPrevious: Deployment a is waiting: ConfigPolicy p1 holds Secret db@05cb0cf: stage why has 0 of 1 updated\n" +
			"p1: Progressing 0/2, why Progressing 0/1, others Waiting 0/1\n" +
			"p0: Progressing 0/2, x Progressing 0/1, others Waiting 0/1\n"},
		"a group of zones is one": {[]string{oneFirst}, []Workload{
			next("z1", zoned(3)), next("z2", zoned(3)), next("a"),
		}, Options{}, "rolls a\n" +
			"WaitingForPrevious: StatefulSet z1 is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"WaitingForPrevious: StatefulSet z2 is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"p0: Progressing 0/2, first Progressing 0/1, rest Waiting 0/1\n"},
		"until all its zones have it": {[]string{oneFirst}, []Workload{
			next("z1", zoned(3), rollingZone), next("z2", zoned(1), rollingZone), next("a"),
		}, Options{}, "WaitingForPrevious: Deployment a is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 ready, group ingester is not ready\n" +
			"p0: Progressing 0/2, first Progressing 0/1, rest Waiting 0/1\n"},
		"the last is ready": {[]string{oneFirst}, []Workload{next("a", done(time.Second)), next("b", done(time.Hour)), next("c")}, Options{}, "rolls c\n" +
			"p0: Progressing 2/3, first Complete 1/1, rest Progressing 1/2\n"},
		"what is suspended goes": {[]string{oneFirst}, []Workload{next("a"), next("b"), next("c", func(w *Workload) { w.Suspension.Scheduler = true })}, Options{}, "rolls c\n" +
			"rolls a\n" +
			"WaitingForPrevious: Deployment b is waiting: ConfigPolicy p0 holds Secret db@05cb0cf: stage first has 0 of 1 updated\n" +
			"p0: Progressing 0/2, first Progressing 0/1, rest Waiting 0/1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, saysWith(inForce(test.policies...), test.workloads, test.options)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const soaking = "{soak: 10m, stages: [{name: first, workloads: 1}, {name: rest}]}"

// noWorse is one that was not ready before, and of which one Pod is available now, and one of the
// new ones is ready for some time.
func noWorse(before int32, ago time.Duration) func(*Workload) {
	return func(w *Workload) {
		unreadyBefore(before, "")(w)
		w.Object.(*appsv1.Deployment).Status.AvailableReplicas = 1
		w.Pods.Ready, w.Pods.FirstReady = 1, now.Add(-ago)
	}
}

func noPods(w *Workload) {
	w.Object = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}}
}

func rollingZone(w *Workload) {
	current(w)
	w.Records.Roll.At, w.Records.Roll.Changed = now.Add(-time.Minute), []string{dbKey}
	w.Records.Roll.Template = templateOf(w)
}

func templateOf(w *Workload) string { return workload.TemplateDigest(w.Object) }

// What may have a content keeps its place in the first stage, whatever it waits for: else another would get the
// content before it was shown to work.
func TestWhatMayHaveAContentKeepsItsPlace(t *testing.T) {
	db := secret("shop", "db", "1")
	for name, a := range map[string]Workload{
		"a manager has just begun": outdated("b", using(db), rolledFor(time.Minute), hangs, func(w *Workload) {
			w.Template.Hash, w.Denied = "bad", []string{"another object must not be read"}
		}),
		"the answer was lost": outdated("b", using(db), changed(dbKey), func(w *Workload) {
			w.MayBeRolled, w.Retry = true, &Retry{At: now.Add(time.Second), Reason: "timeout", Write: true}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Now: now, Policies: inForce(oneFirst), Workloads: []Workload{outdated("a", using(db), changed(dbKey)), a}}
			if got := textOf(o, Options{}); strings.Contains(got, "rolls a") {
				t.Error(got)
			}
		})
	}
}

// A manager that begins knows from the roll itself what of the config of a workload has changed since, and what
// others wait for it with.
func TestTheRollSaysWhatAWorkloadGot(t *testing.T) {
	db, ca := secret("shop", "db", "bad"), secret("shop", "ca", "1")
	b := outdated("b", using(db, ca), changed(dbKey))
	for _, w := range Decide(Observed{Now: now.Add(-time.Minute), Workloads: []Workload{b}}, Options{}).Writes {
		for _, op := range w.Patches[0].Operations {
			if value, ok := op.Value.(string); ok && strings.Contains(op.Path, "config-change") {
				b.Object.SetAnnotations(map[string]string{vocabulary.ConfigChange.Native: value})
			}
		}
	}
	for name, test := range map[string]struct {
		db, ca *corev1.Secret
		next   string
	}{
		"another object has changed": {db, secret("shop", "ca", "2"), "b"},
		"the same one has":           {secret("shop", "db", "2"), ca, "a"},
		"both have":                  {secret("shop", "db", "2"), secret("shop", "ca", "2"), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			b := outdated("b", using(test.db, test.ca), done(time.Second), func(w *Workload) {
				w.Records.Roll, w.Hashes = workload.LastRoll(b.Object), &content.Hashes{Desired: "newer"}
			})
			o := Observed{Now: now, Policies: inForce(soaking), Workloads: []Workload{outdated("a", using(test.db)), b}}
			if got := textOf(o, Options{}); !strings.HasPrefix(got, "rolls "+test.next+"\n") || strings.Count(got, "rolls") != 1 {
				t.Error(got)
			}
		})
	}
}
