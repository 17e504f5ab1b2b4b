package zones_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// The defects and the old issues of rollout-operator that touch rolling,
// by their numbers.

// Defect 1, issue 126: a zone none of whose Pods can be created counted as done,
// and the others were rolled.
func TestDefect1AZoneWithoutPodsStopsTheOthers(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, w *world, strategy string) {
		w.create(&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "none"},
			Spec: corev1.ResourceQuotaSpec{
				Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")},
			},
		})
		w.create(zone("zone-b", strategy, replicas(1)), zone("zone-c", strategy, replicas(1)))
		w.runs("zone-b: v1", "zone-c: v1")
		w.create(zone("filler", strategy, inGroup(""), replicas(1)))
		w.runs("filler: v1")
		w.create(zone("zone-a", strategy, replicas(3)))
		w.manage()
		w.waitsFor("Progressing", "not created yet")
		w.roll("v2")
		// A Pod that is held at v1 is replaced for v2 once it exists; one that is not created
		// yet gets v2 where nothing holds it.
		w.waitsFor(map[string]string{rollingUpdate: "Waiting", onDelete: "Progressing"}[strategy], "not created yet")
		w.goes(0)
		w.remove(&corev1.ResourceQuota{}, "none")
		w.eventually(func() error { // its controller would wait ever longer
			w.annotate("zone-a", "example.test/note", fmt.Sprint(time.Now()))
			return contains(fmt.Sprint(len(w.pods("zone-a"))), "3")
		})
		w.complete("v2")
		if order := w.witness.testify().order; slices.Index(order, "zone-b") > slices.Index(order, "zone-c") {
			t.Errorf("zones went in the order %v", order)
		}
	})
}

// Defect 2: the budget counted the status of the StatefulSet. A Pod that is up to
// date, terminating and not seen by that status yet left room for a second one;
// the readiness of Pods did not count at all.
func TestDefect2PodsCountAndNotTheStatus(t *testing.T) {
	w := newWorld(t)
	w.create(zone("zone-a", onDelete, func(s *appsv1.StatefulSet) {
		// It stays as long as the finalizer does, and its status is not Ready.
		s.Spec.Template.Finalizers = []string{"example.test/stays"}
	}))
	w.manage()
	w.complete("v1", "zone-a")
	w.roll("v2", "zone-a")
	w.eventually(func() error { return contains(w.images("zone-a"), "v1!") })
	w.waitsFor("Progressing", "is updating")
	if gone := w.witness.testify().gone; len(gone) != 1 {
		t.Errorf("%v were taken while the first one had not gone", gone)
	}
	w.eventually(func() error { // whatever terminates goes
		for _, p := range w.pods("zone-a") {
			if p.DeletionTimestamp != nil {
				w.letGo(&p)
			}
		}
		return contains(w.images("zone-a"), "v2 v2 v2")
	})
	w.witness.testify()
	for _, p := range w.pods("zone-a") {
		w.letGo(&p)
	}
}

// letGo removes the finalizer of a Pod, which may have gone by now.
func (w *world) letGo(p *corev1.Pod) {
	w.t.Helper()
	patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.test/stays"]}}`))
	if err := w.client.Patch(w.t.Context(), p, patch); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
}

// Defect 2, too: with a status that had not observed the template of zone-a,
// zone-b was rolled first.
func TestDefect2StatusesThatHaveNotObservedAreWaitedFor(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy, replicas(1))
		for i := range 5 { // in any order, and in one moment
			w.roll(fmt.Sprintf("v%d", i+2), "zone-c", "zone-b", "zone-a")
		}
		w.complete("v6")
		w.witness.testify()
	})
}

// Defect 3: Pods were found by a label "name" that zones may share, and those of
// another zone were deleted over and over. Issue 14: without that label, nothing
// was rolled, and no Event said so. Issue 15 is the same wish.
func TestDefect3PodsBelongByTheUIDOfTheirOwner(t *testing.T) {
	t.Parallel()
	for label, pairs := range map[string]map[string]string{"shared": {"name": "ingester"}, "missing": {}} {
		bothWays(t, func(t *testing.T, w *world, strategy string) {
			t.Log("the label name is", label)
			w.manage()
			for _, name := range []string{"zone-a", "zone-b"} {
				w.create(zone(name, strategy, replicas(2), func(s *appsv1.StatefulSet) {
					maps.Copy(s.Spec.Template.Labels, pairs)
				}))
			}
			w.complete("v1", "zone-a", "zone-b")
			w.roll("v2", "zone-a", "zone-b")
			w.complete("v2", "zone-a", "zone-b")
			w.goes(4, "zone-a", "zone-b")
		})
	}
}

// Defect 4 has its test among the preconditions.

// Defect 5: a paused zone that was not ready did not stop the next one.
func TestDefect5APausedZoneThatIsNotReadyStopsTheOthers(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy, replicas(1))
		w.annotate("zone-a", "grafana.com/rollout-paused", "true")
		w.behave("v1", "crash", "zone-a")
		if strategy == rollingUpdate { // held, it would come back as it was
			w.patch(&appsv1.StatefulSet{}, "zone-a", `{"spec":{"replicas":2}}`)
			w.behave("v1", "crash", "zone-a")
		}
		w.breakPod("zone-a-0")
		w.roll("v2", "zone-b", "zone-c")
		w.waitsFor("Paused", "zone-a")
		w.goes(0)
		if images := w.images("zone-b") + w.images("zone-c"); images != "v1v1" {
			w.t.Errorf("the others run %s", images)
		}
	})
}

// breakPod makes a Pod unready, as a kubelet does whose probe fails.
func (w *world) breakPod(name string) {
	w.t.Helper()
	w.probed(name, "", corev1.ConditionFalse, "ContainersNotReady")
}

// becomesReady makes a Pod ready once it runs an image, as a kubelet does, at the time of the
// clock.
func (w *world) becomesReady(name, image string) {
	w.t.Helper()
	w.probed(name, image, corev1.ConditionTrue, "")
}

func (w *world) probed(name, image string, is corev1.ConditionStatus, reason string) {
	w.t.Helper()
	w.eventually(func() error {
		p := &corev1.Pod{}
		if err := w.get(p, name); err != nil {
			return err
		}
		if got := p.Spec.Containers[0].Image; p.Status.Phase != corev1.PodRunning || image != "" && got != image {
			return fmt.Errorf("%s is %s at %s: %s", name, p.Status.Phase, got, w.says())
		}
		for i := range p.Status.Conditions {
			if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
				c.Status, c.Reason, c.LastTransitionTime = is, reason, metav1.NewTime(w.clock.Now())
			}
		}
		return w.client.Status().Update(w.t.Context(), p)
	})
}

// Defect 5, too: an outdated Pod that had crashed was never replaced with a budget
// of 1, and with one of 2 a healthy one was deleted first.
func TestDefect5BrokenPodsGoFirst(t *testing.T) {
	t.Parallel()
	for _, allowed := range []int{1, 2} {
		bothWays(t, func(t *testing.T, w *world, strategy string) {
			w.witness.allow("zone-a", allowed)
			w.manage()
			w.create(zone("zone-a", strategy, annotated("rollout-max-unavailable", fmt.Sprint(allowed))))
			w.complete("v1", "zone-a")
			w.breakPod("zone-a-1")
			w.waitsFor("Waiting", "not ready since")
			w.roll("v2", "zone-a")
			w.complete("v2", "zone-a")
			if gone := w.goes(3, "zone-a").gone; gone[0] != "zone-a-1" {
				t.Errorf("they went in the order %v with %d allowed", gone, allowed)
			}
		})
	}
}

// Errors were swallowed. Each of these stalls its own group, says what is wrong
// and how to fix it, and holds up no other.
func TestMistakesStallTheirGroupAndNoOther(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prepare func(*world)
		says    []string
		action  func(*world)
	}{
		"mixed strategies": {
			func(w *world) { w.create(zone("zone-a", onDelete), zone("zone-b", rollingUpdate)) },
			[]string{"StatefulSet zone-b", "spec.updateStrategy.type", `"RollingUpdate" differs from "OnDelete" of StatefulSet zone-a; use the same for all of a group`},
			func(w *world) {
				w.patch(&appsv1.StatefulSet{}, "zone-b", `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`)
			},
		},
		"an invalid percentage": {
			func(w *world) {
				w.create(zone("zone-a", onDelete, annotated("rollout-max-unavailable", "150%")), zone("zone-b", onDelete))
			},
			[]string{"StatefulSet zone-a", "rollout-max-unavailable", `"150%"`, "a percentage from 1% to 100%"},
			func(w *world) { w.annotate("zone-a", "rollout-max-unavailable", "50%") },
		},
		"two zones in one place": {
			func(w *world) {
				first := annotated("spillway.dev/zone-order", "1")
				w.create(zone("zone-a", onDelete, first), zone("zone-b", onDelete, first))
			},
			[]string{"StatefulSet zone-b", "spillway.dev/zone-order", "give each its own"},
			func(w *world) { w.annotate("zone-b", "spillway.dev/zone-order", "2") },
		},
		"a pause that says neither yes nor no": {
			func(w *world) {
				w.create(zone("zone-a", onDelete, annotated("grafana.com/rollout-paused", "yes")), zone("zone-b", onDelete))
			},
			[]string{"StatefulSet zone-a", "grafana.com/rollout-paused", `invalid value "yes": must be "true" or "false"`},
			func(w *world) { w.annotate("zone-a", "grafana.com/rollout-paused", "false") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			test.prepare(w)
			for _, part := range test.says {
				w.waitsFor("Stalled", part)
			}
			w.is("Stalled", "True")
			w.is("Ready", "False")
			w.roll("v2", "zone-a", "zone-b")
			w.create(zone("other", onDelete, inGroup("other"), replicas(1)))
			w.runs("other: v1")
			w.roll("v2", "other")
			w.runs("other: v2", "zone-a: v1 v1 v1", "zone-b: v1 v1 v1")
			test.action(w)
			w.complete("v2", "zone-a", "zone-b")
			w.is("Stalled", "False")
			w.witness.testify()
		})
	}
}

// The schema refuses what an annotation can only be told of afterwards.
func TestMistakesThatTheSchemaRefuses(t *testing.T) {
	w := newWorld(t)
	for name, manifest := range map[string]string{
		"a zone named twice":    `{"zoneOrder":["zone-a","zone-a"]}`,
		"an invalid percentage": `{"maxUnavailable":"150%"}`,
		"no Pod at all":         `{"maxUnavailable":0}`,
		"a soak without a unit": `{"soak":"5"}`,
	} {
		g := group(func(*v1alpha1.RolloutGroupSpec) {})
		g.Namespace = w.namespace
		if err := w.client.Create(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		err := w.client.Patch(t.Context(), g, mergePatch(`{"spec":`+manifest+`}`))
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
		w.remove(&v1alpha1.RolloutGroup{}, ingester)
	}
}

// A write that is refused was logged and tried again every five seconds. The
// status says what the API server said, other groups go on, and so does this one
// once it may.
func TestRefusedWritesAreTold(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		w.settles(strategy, replicas(1))
		resources, operation := "pods", admissionv1.Delete
		if strategy == rollingUpdate {
			resources, operation = "statefulsets", admissionv1.Update
		}
		allow := w.deny(resources, operation)
		w.roll("v2", "zone-a")
		w.waitsFor("Progressing", "")
		if err := contains(w.says(), "not today"); err != nil {
			w.t.Error(err)
		}
		allow()
		w.complete("v2", "zone-a")
		w.witness.testify()
	})
}

// deny makes the API server refuse what managers do to zone-a, and returns how to
// end that. Users may go on editing templates.
func (w *world) deny(resources string, operation admissionv1.OperationType) (allow func()) {
	w.t.Helper()
	name := "deny-" + w.namespace
	groups := []string{"", "apps"}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{operation},
			Rule:       admissionv1.Rule{APIGroups: groups, APIVersions: []string{"v1"}, Resources: []string{resources}},
		},
	}}}
	here := fmt.Sprintf("request.namespace == %q && request.name.startsWith('zone-a')", w.namespace)
	edits := "request.operation == 'DELETE' || object.spec.template != oldObject.spec.template"
	if operation == admissionv1.Delete {
		edits = "has(oldObject.metadata.deletionTimestamp)" // kubelets end what was begun
	}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "!(" + here + ") || " + edits, Message: "not today"}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = name, []admissionv1.ValidationAction{admissionv1.Deny}
	for _, obj := range []client.Object{policy, binding} {
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
	allow = func() {
		_ = w.client.Delete(context.Background(), binding)
		_ = w.client.Delete(context.Background(), policy)
	}
	w.t.Cleanup(allow)
	w.eventually(func() error { return w.isDenied(resources) })
	return allow
}

// isDenied is nil once a policy is in force, which takes a moment.
func (w *world) isDenied(resources string) error {
	var err error
	if resources == "pods" {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "zone-a-0"}}
		err = w.client.Delete(w.t.Context(), pod, client.DryRunAll)
	} else {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "zone-a"}}
		err = w.client.Patch(w.t.Context(), set, mergePatch(`{"metadata":{"annotations":{"note":"tried"}}}`), client.DryRunAll)
	}
	if err == nil {
		return errors.New("the policy is not in force yet")
	}
	return nil
}

// A manager stops before it deletes a Pod, and the zone is paused: the next manager withdraws the
// delete, sees that it is withdrawn, and rolls the other zones.
func TestAWithdrawnDeleteLetsOthersGo(t *testing.T) {
	w, inj := newWorld(t), fault.New()
	stop := w.manage()
	w.settles(onDelete, replicas(1))
	stop()
	inj.StopAtMatching(1, fault.Before, func(r fault.Request) bool { return r.Resource == "pods" && r.Verb == "delete" })
	stop = w.managed(inj)
	w.roll("v2")
	<-inj.Stopped()
	stop()
	move := w.group().Status.Moves[0]
	w.annotate(move.Zone, "grafana.com/rollout-paused", "true")
	w.manage()
	var want []string
	for _, zone := range []string{"zone-a", "zone-b", "zone-c"} {
		image := "v2"
		if zone == move.Zone {
			image = "v1"
		}
		want = append(want, zone+": "+image)
	}
	w.runs(want...)
	pod := &corev1.Pod{}
	if err := w.get(pod, move.Pod); err != nil || vocabulary.Withdrawn.Get(pod.Annotations) == "" {
		t.Errorf("%s is not withdrawn: %v: %v", move.Pod, pod.Annotations, err)
	}
}
