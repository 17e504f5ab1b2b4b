package decision

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/verdict"
)

const devFirst = "objects: [{kind: Secret, name: db}], namespaceStages: [{name: dev, namespaceSelector: {matchLabels: {env: dev}}%s}]"

// cluster is a ClusterConfigPolicy with a spec.
func cluster(name, spec string) *policy.Policy {
	obj := &v1alpha1.ClusterConfigPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte("{"+spec+"}"), &obj.Spec); err != nil {
		panic(err)
	}
	return policy.Read(obj)
}

// namespacesNow are two namespaces of the stage dev, and two others.
func namespacesNow() map[string]Namespace {
	dev := labels.Set{"env": "dev"}
	return map[string]Namespace{"dev1": {Labels: dev}, "dev2": {Labels: dev}, "shop": {}, "bank": {Labels: labels.Set{"env": "prod"}}}
}

// with is a workload of a namespace that uses a Secret db of its own with a value, and does not have it yet.
func with(namespace, name, value string, change ...func(*Workload)) Workload {
	return outdated(name, append([]func(*Workload){in(namespace), labeled(), using(secret(namespace, "db", value)), changed(dbKey)}, change...)...)
}

// spreads is the plan for some namespaces as sentences.
func spreads(observed Observed, options Options) string {
	observed.Now = now
	slices.SortFunc(observed.Workloads, func(a, b Workload) int {
		return strings.Compare(a.Namespace+"/"+a.Name.Name, b.Namespace+"/"+b.Name.Name)
	})
	plan := Decide(observed, options)
	var b strings.Builder
	for _, w := range plan.Writes {
		if w.Rolls {
			b.WriteString("rolls " + w.Workload.Namespace + "/" + w.Workload.Name.Name + "\n")
		}
	}
	for _, h := range plan.Holds {
		fmt.Fprintf(&b, "%s %s: %s\n", h.Path[1], h.Reason, h.Message)
	}
	return b.String()
}

func TestNamespaceStages(t *testing.T) {
	for name, test := range map[string]struct {
		policies policy.Set
		// stage and more are added to the first stage and to the spec.
		stage, more string
		namespaces  func(map[string]Namespace)
		observed    Observed
		options     Options
		want        string
	}{
		"dev goes first": {observed: of(with("dev1", "a", "bad"), with("shop", "a", "bad"), with("bank", "a", "bad")), want: "rolls dev1/a\n" +
			"bank WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@75ea46b: namespace stage dev is not complete\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"dev rolls": {observed: of(with("dev1", "a", "bad", rollingFor(dbKey)), with("dev2", "a", "bad", done(0)), with("shop", "a", "bad")), want: "dev1 Progressing: Deployment a is updating: not ready\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"dev has it": {observed: of(with("dev1", "a", "bad", done(time.Second)), with("shop", "a", "bad")), want: "rolls shop/a\n"},
		"dev fails": {observed: of(with("dev1", "a", "bad", rollingFor(dbKey), crashes), with("dev2", "a", "bad"), with("shop", "a", "bad")), want: "dev2 ConfigFailed: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@34826c5: dev1/deployment/a failed: 3 of 3 Pods CrashLoopBackOff\n" +
			"shop ConfigFailed: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: dev1/deployment/a failed: 3 of 3 Pods CrashLoopBackOff\n" +
			"dev1 Failed: Deployment a failed: 3 of 3 Pods CrashLoopBackOff (changed: Secret db@276651d)\n"},
		"dev fails and the manager does not stop": {observed: of(with("dev1", "a", "bad", rollingFor(dbKey), crashes), with("shop", "a", "bad")), options: Options{KeepGoing: true}, want: "dev1 Progressing: Deployment a is updating: not ready\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"dev fails and the policy does not stop": {more: "onFailure: Continue", observed: of(with("dev1", "a", "bad", rollingFor(dbKey), crashes), with("shop", "a", "bad")), want: "rolls shop/a\n" +
			"dev1 Failed: Deployment a failed: 3 of 3 Pods CrashLoopBackOff (changed: Secret db@276651d)\n"},
		"one of dev has another content":                {observed: of(with("dev1", "a", "bad", done(time.Second)), with("dev2", "a", "good", done(0)), with("shop", "a", "bad")), want: "shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete: namespace dev2 has another content\n"},
		"all of dev have another content":               {observed: of(with("dev1", "a", "good", done(0)), with("shop", "a", "bad")), want: "shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete: namespace dev1 has another content\n"},
		"another of the last stage has another content": {observed: of(with("dev1", "a", "bad", done(time.Second)), with("bank", "a", "good", done(0)), with("shop", "a", "bad")), want: "rolls shop/a\n"},
		"dev does not use it": {observed: of(with("shop", "a", "bad"), with("bank", "a", "bad")), want: "bank WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@75ea46b: namespace stage dev is waiting: 0 of 1 show that the target is good, nothing belongs to it\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is waiting: 0 of 1 show that the target is good, nothing belongs to it\n"},
		"a typo": {namespaces: func(m map[string]Namespace) { delete(m["dev1"].Labels, "env") }, observed: of(with("dev1", "a", "bad"), with("shop", "a", "bad")), want: "dev1 WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@276651d: namespace stage dev is waiting: 0 of 1 show that the target is good, nothing belongs to it\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is waiting: 0 of 1 show that the target is good, nothing belongs to it\n"},
		"a stage that may be empty": {stage: ", allowEmpty: true", observed: of(with("shop", "a", "bad")), want: "rolls shop/a\n"},
		"more has to show it":       {stage: ", minEvidence: 2", observed: of(with("dev1", "a", "bad", done(time.Second)), with("shop", "a", "bad")), want: "shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is waiting: 1 of 2 show that the target is good\n"},
		"nothing in dev has Pods":   {observed: of(with("dev1", "a", "bad", noPods, current), with("shop", "a", "bad")), want: "shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is waiting: 0 of 1 show that the target is good, dev1/deployment/a is without Pods\n"},
		"something in dev has no Pods": {observed: of(with("dev1", "a", "bad", noPods), with("dev1", "b", "bad", done(0)), with("shop", "a", "bad")), want: "rolls dev1/a\n" +
			"rolls shop/a\n"},
		"no room in dev": {observed: of(with("dev1", "a", "bad", rollingFor(dbKey), refused("quota")), with("shop", "a", "bad")), want: "dev1 Progressing: Deployment a is updating: no room for new Pods: its Pods cannot be created\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is waiting: 0 of 1 show that the target is good, dev1/deployment/a is not ready for another reason\n"},
		"dev soaks":      {stage: ", soak: 5m", observed: of(with("dev1", "a", "bad", done(time.Minute)), with("shop", "a", "bad")), want: "shop Soaking: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is ready; soaking until 4 May 09:04:00 UTC\n"},
		"dev has soaked": {stage: ", soak: 5m", observed: of(with("dev1", "a", "bad", done(6*time.Minute)), with("shop", "a", "bad")), want: "rolls shop/a\n"},
		"paused in dev": {observed: of(with("dev1", "a", "bad", func(w *Workload) { w.Settings.Paused = true }), with("shop", "a", "bad")), want: "dev1 Paused: Deployment a is paused\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"what failed in dev before": {observed: of(with("dev1", "a", "good", done(time.Hour), failedWith(now.Add(-time.Minute), secret("dev1", "db", "bad"))), with("dev2", "a", "bad", done(time.Minute)), with("shop", "a", "bad")), want: "shop ConfigFailed: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: dev1/deployment/a failed: 1 of 1 Pods CrashLoopBackOff\n"},
		"what failed in the last stage": {observed: of(with("bank", "a", "good", done(time.Hour), failedWith(now.Add(-time.Minute), secret("bank", "db", "bad"))), with("dev2", "a", "bad"), with("shop", "a", "bad")), want: "dev2 ConfigFailed: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@34826c5: bank/deployment/a failed: 1 of 1 Pods CrashLoopBackOff\n" +
			"shop ConfigFailed: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: bank/deployment/a failed: 1 of 1 Pods CrashLoopBackOff\n"},
		"what failed with another content":                 {observed: of(with("dev1", "a", "bad", done(time.Hour), failedWith(now.Add(-time.Hour), secret("dev1", "db", "worse"))), with("shop", "a", "bad")), want: "rolls shop/a\n"},
		"what failed with the digest of another namespace": {observed: of(with("dev1", "a", "bad", done(time.Hour), failedWith(now.Add(-time.Hour), secret("shop", "db", "bad"))), with("shop", "a", "bad")), want: "rolls shop/a\n"},
		"who failed in dev is gone":                        {observed: gone("dev1", with("dev1", "a", "bad", done(time.Hour)), with("shop", "a", "bad")), want: "shop ConfigFailed: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: dev1/deployment/b failed: 1 of 1 Pods CrashLoopBackOff\n"},
		"two contents": {observed: of(with("dev1", "a", "bad", done(time.Second)), with("dev2", "a", "bad", done(time.Second)), with("shop", "a", "bad"), with("bank", "a", "good")), want: "rolls shop/a\n" +
			"bank WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@9b3142d: namespace stage dev is not complete: namespace dev1 has another content\n"},
		"a namespace that is not known": {namespaces: func(m map[string]Namespace) { delete(m, "bank") }, observed: of(with("dev1", "a", "bad", done(0)), with("bank", "a", "bad"), with("shop", "a", "bad")), want: "bank NotObserved: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@75ea46b: the labels of namespace bank are not known yet\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"a namespace that ends":                      {namespaces: func(m map[string]Namespace) { m["dev1"] = Namespace{m["dev1"].Labels, true} }, observed: of(with("dev1", "a", "bad", done(0)), with("shop", "a", "bad")), want: "shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is waiting: 0 of 1 show that the target is good, dev1/deployment/a is in a namespace that is being deleted\n"},
		"a namespace that ends and does not have it": {namespaces: func(m map[string]Namespace) { m["dev1"] = Namespace{m["dev1"].Labels, true} }, observed: of(with("dev1", "a", "good", done(0)), with("dev2", "a", "bad", done(0)), with("shop", "a", "bad")), want: "rolls shop/a\n"},
		"namespaces must not be read":                {observed: Observed{NamespacesUnread: "no", Workloads: []Workload{with("shop", "a", "bad")}}, want: "shop NotPermitted: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: no\n"},
		"a policy of the namespace counts there": {policies: inForce("{}"), observed: of(with("shop", "a", "bad"), with("bank", "a", "bad")), want: "bank WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@75ea46b: namespace stage dev is waiting: 0 of 1 show that the target is good, nothing belongs to it\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is waiting: 0 of 1 show that the target is good, nothing belongs to it\n"},
		"one first in each": {more: "stages: [{name: first, workloads: 1}, {name: others}]", observed: of(with("dev1", "a", "bad"), with("dev1", "b", "bad"), with("dev2", "a", "bad"), with("dev2", "b", "bad"), with("shop", "a", "bad")), want: "rolls dev1/a\n" +
			"rolls dev2/a\n" +
			"dev1 WaitingForPrevious: Deployment b is waiting: ClusterConfigPolicy p holds Secret db@276651d: stage first has 0 of 1 updated\n" +
			"dev2 WaitingForPrevious: Deployment b is waiting: ClusterConfigPolicy p holds Secret db@34826c5: stage first has 0 of 1 updated\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"a change of something else does not let it go": {policies: inForce("{objects: [{name: ca}]}"), observed: of(with("dev1", "a", "bad", rollingFor(dbKey)),
			with("shop", "a", "bad", using(secret("shop", "ca", "1"), secret("shop", "db", "bad")), changed("Secret ca: p", dbKey))), want: "dev1 Progressing: Deployment a is updating: not ready\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"and one first": {more: "stages: [{name: first, workloads: 1}, {name: others}]", observed: of(with("dev1", "a", "bad", rollingFor(dbKey)), with("shop", "a", "bad"), with("shop", "b", "bad")), want: "dev1 Progressing: Deployment a is updating: not ready\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n" +
			"shop WaitingForPrevious: Deployment b is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"a policy of dev takes nothing away": {policies: inNamespace("dev1", "{}"), observed: of(with("dev1", "a", "bad", rollingFor(dbKey)), with("shop", "a", "bad")), want: "dev1 Progressing: Deployment a is updating: not ready\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"another policy of the cluster counts": {policies: policy.Set{cluster("o", "priority: 1")}, observed: of(with("dev1", "a", "bad", rollingFor(dbKey)), with("shop", "a", "bad")), want: "rolls shop/a\n" +
			"dev1 Progressing: Deployment a is updating: not ready\n"},
		"what failed in dev is tried again": {observed: of(with("dev1", "a", "good", done(time.Hour), using(secret("dev1", "db", "good", "retry-config", now.Format(time.RFC3339))), failedWith(now.Add(-time.Minute), secret("dev1", "db", "bad"))), with("dev2", "a", "bad", done(time.Minute)), with("shop", "a", "bad")), want: "shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete: namespace dev1 has another content\n"},
		"what failed in dev is not stopped there": {observed: of(with("dev1", "a", "bad", rollingFor(dbKey), crashes, func(w *Workload) { w.Settings.Unstoppable = true }), with("shop", "a", "bad")), want: "dev1 Progressing: Deployment a is updating: not ready\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete\n"},
		"a user replaces the Pods in dev": {observed: of(with("dev1", "a", "bad", func(w *Workload) { w.Object.(*appsv1.Deployment).Spec.Paused = true }), with("dev2", "a", "bad", done(time.Second)), with("shop", "a", "bad")), want: "rolls dev1/a\nrolls shop/a\n"},
		"what fails is recorded": {observed: of(with("dev1", "a", "bad", rollingFor(dbKey), crashes, failedWith(now.Add(-time.Second), secret("dev1", "db", "bad"))), with("shop", "a", "bad")), want: "shop ConfigFailed: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: dev1/deployment/a failed: 1 of 1 Pods CrashLoopBackOff\n" +
			"dev1 Failed: Deployment a failed: 1 of 1 Pods CrashLoopBackOff (changed: Secret db@276651d)\n"},
		"what is not stopped has failed before": {observed: of(with("dev1", "a", "good", done(time.Hour), failedWith(now.Add(-time.Minute), secret("dev1", "db", "bad")), func(w *Workload) { w.Settings.Unstoppable = true }), with("dev2", "a", "bad", done(time.Minute)), with("shop", "a", "bad")), want: "shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: namespace stage dev is not complete: namespace dev1 has another content\n"},
		"dev has two contents":                  {observed: of(with("dev1", "a", "bad", done(time.Second)), with("dev1", "b", "good", using(secret("bank", "db", "good")), done(time.Second)), with("shop", "a", "bad")), want: "rolls shop/a\n"},
		"what failed elsewhere":                 {more: "namespaces: [dev1, shop]", observed: of(with("bank", "a", "good", done(time.Hour), failedWith(now.Add(-time.Minute), secret("bank", "db", "bad"))), with("dev1", "a", "bad", done(time.Minute)), with("shop", "a", "bad")), want: "rolls shop/a\n"},
		"the policy is paused":                  {more: "pause: {by: ann}", policies: inForce("{}"), observed: of(with("shop", "a", "bad")), want: "shop Paused: Deployment a is waiting: ClusterConfigPolicy p holds Secret db@05cb0cf: ClusterConfigPolicy p is paused by ann\n"},
		"an object that is shared": {observed: of(with("dev1", "a", "bad", using(secret("bank", "db", "bad")), changed("Secret bank/db: p")), with("shop", "a", "bad", using(secret("bank", "db", "bad")), changed("Secret bank/db: p"))), want: "rolls dev1/a\n" +
			"shop WaitingForPrevious: Deployment a is waiting: ClusterConfigPolicy p holds Secret bank/db@75ea46b: namespace stage dev is not complete\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.observed
			o.Policies, o.Namespaces = append(policy.Set{cluster("p", fmt.Sprintf(devFirst, test.stage)+", "+test.more)}, test.policies...), namespacesNow()
			slices.SortFunc(o.Policies, policy.Compare)
			if test.namespaces != nil {
				test.namespaces(o.Namespaces)
			}
			if got := spreads(o, test.options); got != test.want {
				t.Errorf("it says\n%s", got)
			}
		})
	}
}

// Since when workloads of earlier stages are ready matters for those of later ones, and not the other way round.
func TestEarlierNamespacesSoak(t *testing.T) {
	for stage, want := range map[string]string{", soak: 5m": "map[dev1:true shop:true]", "": "map[]"} {
		o := of(with("bank", "a", "bad", done(time.Hour)), with("dev1", "a", "bad", done(time.Hour)), with("shop", "a", "bad"))
		o.Now, o.Policies, o.Namespaces = now, policy.Set{cluster("p", fmt.Sprintf(devFirst, stage))}, namespacesNow()
		soaking := o.Soaking()
		maps.DeleteFunc(soaking, func(_ string, soaks bool) bool { return !soaks })
		if got := fmt.Sprint(soaking); got != want {
			t.Errorf("with %q it soaks in %s, want %s", stage, got, want)
		}
	}
}

// How far a release over namespaces has come is in the status, also in a namespace with one workload.
func TestAReleaseOverNamespacesIsReported(t *testing.T) {
	o := of(with("bank", "a", "bad", done(time.Hour)), with("dev1", "a", "bad", rollingFor(dbKey)), with("shop", "a", "bad"))
	p := cluster("p", fmt.Sprintf(devFirst, ""))
	o.Now, o.Policies, o.Namespaces = now, policy.Set{p}, namespacesNow()
	var said []string
	for _, r := range Decide(o, Options{}).Reports[p].Releases {
		said = append(said, fmt.Sprintf("%s %s %d/%d: %s", r.Namespace, r.Phase, r.Updated, r.Of, r.Waits))
	}
	want := []string{
		"dev1 Progressing 0/1: dev1/deployment/a is updating: not ready",
		"shop Waiting 0/1: namespace stage others is waiting: namespace stage dev has 0 of 1 ready, dev1/deployment/a is not ready",
	}
	if !slices.Equal(said, want) {
		t.Errorf("it says %q", said)
	}
}

// inNamespace is a ConfigPolicy of a namespace.
func inNamespace(namespace, spec string) policy.Set {
	obj := &v1alpha1.ConfigPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &obj.Spec); err != nil {
		panic(err)
	}
	return policy.Set{policy.Read(obj)}
}

func of(workloads ...Workload) Observed { return Observed{Workloads: workloads} }

// gone is what was observed after a workload has failed in a namespace with the value bad, and was deleted.
func gone(namespace string, workloads ...Workload) Observed {
	w := with(namespace, "b", "bad", failedWith(now.Add(-time.Minute), secret(namespace, "db", "bad")))
	return Observed{Workloads: workloads, Gone: []verdict.Verdict{{On: w.Name, Failed: w.Records.Failed[0]}}}
}

// TestNamespaceStagesAgainstRules plays random releases over namespaces to their end. No workload of a later stage has a
// content before all of the stage dev that can show whether it works do; what does not work comes no further; and
// workloads never wait for each other for good.
func TestNamespaceStagesAgainstRules(t *testing.T) {
	specs := []string{"", "stages: [{name: first, workloads: 1}, {name: others}]", "maxUnavailable: 1"}
	own := []string{oneFirst, "{objects: [{name: s1}], maxUnavailable: 1}"}
	rapid.Check(t, func(t *rapid.T) {
		bad := rapid.Bool().Draw(t, "bad")
		workloads := drawSpread(t)
		set := policy.Set{cluster("p", "objects: [{kind: Secret}], namespaceStages: [{name: dev, namespaceSelector: {matchLabels: {env: dev}}}], "+rapid.SampledFrom(specs).Draw(t, "spec"))}
		for _, namespace := range []string{"dev1", "shop"} {
			if rapid.Bool().Draw(t, "a policy of "+namespace) {
				set = append(set, inNamespace(namespace, rapid.SampledFrom(own).Draw(t, "own"))...)
			}
		}
		slices.SortFunc(set, policy.Compare)
		for round := 0; ; round++ {
			if round > 4*len(workloads)+4 {
				t.Fatal("it does not complete")
			}
			plan := Decide(Observed{Now: now, Workloads: slices.Clone(workloads), Policies: set, Namespaces: namespacesNow()}, Options{})
			rolled := play(workloads, plan)
			checkDevFirst(t, workloads)
			i := slices.IndexFunc(workloads, func(w Workload) bool { return w.IsCurrent() && !w.isUp() && w.Pods.Failing == 0 })
			switch {
			case i >= 0 && bad:
				crashes(&workloads[i])
			case i >= 0 && (rolled == 0 || rapid.Bool().Draw(t, "one is ready")):
				done(time.Second)(&workloads[i])
			case i < 0 && rolled == 0 && !bad && slices.ContainsFunc(workloads, func(w Workload) bool { return !w.IsCurrent() }):
				t.Fatalf("nothing moves:\n%s", spreads(Observed{Workloads: slices.Clone(workloads), Policies: set, Namespaces: namespacesNow()}, Options{}))
			case i < 0 && rolled == 0:
				return
			}
		}
	})
}

// checkDevFirst fails if a workload of a later stage has contents that are not proven in the stage dev.
func checkDevFirst(t *rapid.T, workloads []Workload) {
	for i := range workloads {
		w := &workloads[i]
		if !w.IsCurrent() || strings.HasPrefix(w.Namespace, "dev") {
			continue
		}
		for k := range workloads {
			first := &workloads[k]
			shares := slices.ContainsFunc(first.Uses, func(u content.Use) bool {
				return slices.ContainsFunc(w.Uses, func(o content.Use) bool { return o.Object.Name == u.Object.Name })
			})
			if strings.HasPrefix(first.Namespace, "dev") && shares && !first.isMute() && (!first.IsCurrent() || !first.isUp()) {
				t.Fatalf("%s has what %s has not shown to work", w.Name, first.Name)
			}
		}
	}
}

// drawSpread are workloads of all namespaces that use some of two Secrets, of which each has changed. Some have no Pods,
// but not the first of the stage dev, which uses both.
func drawSpread(t *rapid.T) []Workload {
	var workloads []Workload
	for _, namespace := range []string{"bank", "dev1", "dev2", "shop"} {
		for i := range rapid.IntRange(1, 3).Draw(t, namespace) {
			first := namespace == "dev1" && i == 0
			var uses []*corev1.Secret
			var keys []string
			for k := range 2 {
				if first || k == i%2 || rapid.Bool().Draw(t, "uses") {
					uses, keys = append(uses, secret(namespace, fmt.Sprint("s", k), "1")), append(keys, fmt.Sprintf("Secret s%d: p", k))
				}
			}
			w := outdated(fmt.Sprint("w", i), in(namespace), labeled(), using(uses...), changed(keys...))
			if !first && rapid.IntRange(0, 3).Draw(t, "has Pods") == 0 {
				noPods(&w)
			}
			workloads = append(workloads, w)
		}
	}
	return workloads
}
