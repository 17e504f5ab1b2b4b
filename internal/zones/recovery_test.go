package zones_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/internal/zones/guard/policies"
	"github.com/spillway-dev/spillway/rollout"
)

// Two zones are created with a template at which no Pod becomes ready, so of each there is one
// Pod that hangs. The corrected template waited five minutes, until that counted as stuck.
func TestACorrectedTemplateDoesNotWaitForWhatWasNeverReady(t *testing.T) {
	t.Parallel()
	bothWays(t, func(_ *testing.T, w *world, strategy string) {
		w.manage()
		for _, name := range []string{"zone-a", "zone-b"} {
			w.create(zone(name, strategy, replicas(2), func(s *appsv1.StatefulSet) {
				s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
				s.Spec.Template.Annotations[behavior] = "never-ready"
			}))
		}
		w.runs("zone-a: v1!", "zone-b: v1!")
		w.settled()
		w.behave("v2", "", "zone-a", "zone-b")
		w.complete("v2", "zone-a", "zone-b")
	})
}

// Pods that were ready may become so again: what they wait for says until when they may, and they
// are replaced then.
func TestAPodThatMayRecoverSaysUntilWhen(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.settles(onDelete)
	w.breakPod("zone-a-0")
	w.breakPod("zone-a-1")
	w.roll("v2", "zone-a")
	w.waitsFor("Waiting", "zone-a-0 may recover until ")
	w.goes(0)
	e, err := zones.Explain(t.Context(), w.client, w.options, w.namespace, ingester)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(e.Rollout.Causes, func(c record.Cause) bool { return slices.Contains(c.Units, "zone-a/zone-a-0") })
	c := e.Rollout.Causes[max(i, 0)]
	if i < 0 || c.Until == nil || c.Reason != string(rollout.ReasonBudget) || c.Until.Sub(w.clock.Now()) <= 0 || c.Until.Sub(w.clock.Now()) > 5*time.Minute {
		t.Errorf("it waits as %+v", c)
	}
	if e.Until == nil || e.Until.IsZero() {
		t.Errorf("the group does not say until when: %+v", e)
	}
	w.barrier.Step(t, time.Hour)
	w.complete("v2", "zone-a")
}

// A follower has followed its leader to five replicas, and there are three nodes. The leader goes
// back while its own zone is half rolled, so that the rollout has the lock: the follower could not
// go back until a user corrected the rollout.
func TestAFollowerTakesBackWhatNoNodeHad(t *testing.T) {
	t.Parallel()
	for name, paused := range map[string]string{"rolling": "null", "paused": `{"reason":"lunch"}`} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			w.create(zone("zone-a", onDelete, apart), zone("zone-b", onDelete, apart,
				annotated("grafana.com/rollout-downscale-leader", "zone-a", "grafana.com/min-time-between-zones-downscale", "1h")))
			w.complete("v1", "zone-a", "zone-b")
			w.behave("v2", "never-ready", "zone-a")
			w.runs("zone-a: v2! v1 v1")
			w.patch(&appsv1.StatefulSet{}, "zone-a", `{"spec":{"replicas":5}}`)
			w.without("zone-b-3", "zone-b-4")
			w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"pause":`+paused+`}}`)
			w.patch(&appsv1.StatefulSet{}, "zone-a", `{"spec":{"replicas":3}}`)
			w.runs("zone-b: v1 v1 v1")
			if s := w.group().Status; s.Lock == nil || s.Lock.Zone != "zone-a" {
				t.Errorf("the rollout has lost the lock: %s", w.says())
			}
			w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"pause":null}}`)
			w.behave("v3", "", "zone-a")
			w.complete("v3", "zone-a")
			w.witness.testify()
		})
	}
}

// apart keeps the Pods of a zone on nodes of their own.
func apart(s *appsv1.StatefulSet) {
	s.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: s.Spec.Template.Labels}, TopologyKey: corev1.LabelHostname,
		}},
	}}
}

// without waits until a scheduler has said that there is no node for these Pods.
func (w *world) without(names ...string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, name := range names {
			p := &corev1.Pod{}
			if err := w.get(p, name); err != nil {
				return err
			}
			if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
				return fmt.Errorf("%s is not said to have no node: %+v", name, p.Status)
			}
		}
		return nil
	})
}

// What is only proposed for rollout-operator, and a preparation that is an annotation, were ignored
// without a word.
func TestSettingsWithoutEffectAreNamed(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.create(zone("zone-a", onDelete, replicas(1), annotated("grafana.com/prepare-downscale", "true", "grafana.com/rollout-health-check", "errors",
		"grafana.com/rollout-canary", "1", "grafana.com/rollout-bypass-until", "2026-05-04T12:00:00Z")))
	w.complete("v1", "zone-a")
	for name, instead := range map[string]string{
		"grafana.com/prepare-downscale": "make it a label", "grafana.com/rollout-health-check": "a gate",
		"grafana.com/rollout-canary": "spec.zoneOrder", "grafana.com/rollout-bypass-until": "spec.maintenanceWindows",
	} {
		w.eventually(func() error {
			list := &corev1.EventList{}
			if err := w.client.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
				return err
			}
			if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
				return e.Reason == string(zones.EventIgnored) && e.InvolvedObject.Name == "zone-a" &&
					strings.Contains(e.Message, name+" has no effect: ") && strings.Contains(e.Message, instead)
			}) {
				return fmt.Errorf("no Event names %s", name)
			}
			return nil
		})
	}
}

// retry says what "spillway retry" would.
func (w *world) retry() error {
	_, err := act.Prepare(w.t.Context(), w.client, act.Request{
		Ref: describe.Ref{Kind: "RolloutGroup", Namespace: w.namespace, Name: ingester}, Verb: act.Retry,
	}, act.Author{By: "ann", At: metav1.NewTime(w.clock.Now())})
	return err
}

// Of two Pods that were replaced one is late, and the other is not yet: the status said that the rollout
// progresses, and the retry that it has failed. It has failed for both, until the Pod is ready
// after all: then the rollout continues, and for both it has not.
func TestFailedIsOneThing(t *testing.T) {
	w := newWorld(t)
	w.witness.allow("zone-a", 2)
	w.create(group(func(s *v1alpha1.RolloutGroupSpec) {
		s.ProgressDeadlineSeconds, s.MaxUnavailable = new(int32(3600)), new(intstr.FromInt32(2))
	}))
	w.manage()
	w.create(zone("zone-a", onDelete))
	w.complete("v1", "zone-a")
	w.behave("v2", "never-ready", "zone-a")
	w.runs("zone-a: v2! v2! v1")
	w.waitsFor("Progressing", "zone-a-0 is updating")
	const not = "rolloutgroup/ingester has not failed: nothing was changed"
	if err := w.retry(); err == nil || err.Error() != not {
		t.Errorf("before it is late the retry says %v", err)
	}
	w.barrier.Step(t, 50*time.Minute)
	w.becomesReady("zone-a-1", "v2")
	w.runs("zone-a: v2! v2 v2!")
	w.settled()
	w.barrier.Step(t, 20*time.Minute)
	w.waitsFor("Failed", "zone-a-0 failed: not ready after 1h")
	w.is("Stalled", "True")
	w.event("RolloutStuck")
	if err := w.retry(); err != nil {
		t.Errorf("the retry says %v", err)
	}
	w.becomesReady("zone-a-0", "v2")
	w.waitsFor("Progressing", "zone-a-2 is updating")
	w.is("Stalled", "False")
	if err := w.retry(); err == nil || err.Error() != not {
		t.Errorf("since it is ready the retry says %v", err)
	}
	w.becomesReady("zone-a-2", "v2")
	w.complete("v2", "zone-a")
}

// Another client has Kubernetes roll a zone of a group while no manager runs: it sets its type to RollingUpdate. The group
// says so, and takes no other zone down, also once the type is OnDelete again, until what was begun is ready.
func TestAZoneThatAnotherClientRolls(t *testing.T) {
	w := newWorld(t)
	stop := w.manage()
	w.beginStory(onDelete)
	w.complete("v1", "zone-a", "zone-b")
	stop()
	w.patch(&appsv1.StatefulSet{}, "zone-b", `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`)
	w.behave("v2", "never-ready", "zone-b")
	w.runs("zone-b: v1 v2!")
	w.roll("v2", "zone-a")
	w.manage()
	w.waitsFor("Stalled", `StatefulSet zone-b: spec.updateStrategy.type: "RollingUpdate" differs from "OnDelete" of StatefulSet zone-a`)
	w.runs("zone-a: v1 v1")
	w.patch(&appsv1.StatefulSet{}, "zone-b", `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`)
	w.settled()
	w.runs("zone-a: v1 v1", "zone-b: v1 v2!")
	w.becomesReady("zone-b-1", "v2")
	w.behave("v3", "", "zone-a", "zone-b")
	w.complete("v3", "zone-a", "zone-b")
}

// The type of all zones becomes RollingUpdate, while nothing rolls: that replaces no Pod, and the next change rolls
// zone by zone.
func TestTheTypeOfAllZonesChanges(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.beginStory(onDelete)
	w.complete("v1", "zone-a", "zone-b")
	before := w.pods("zone-a")[0].UID
	for _, name := range []string{"zone-a", "zone-b"} {
		w.patch(&appsv1.StatefulSet{}, name, `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`)
	}
	w.settled()
	w.eventually(w.isHeld)
	if w.pods("zone-a")[0].UID != before {
		t.Error("a Pod was replaced")
	}
	w.roll("v2", "zone-a", "zone-b")
	w.arrives("v2", noFault)
	w.witness.testify()
}

// Another client sets the type and the template of a zone in one write, or lowers its partition in one with
// its template, or sets its type while Pods are outdated: Kubernetes would roll the zone, whatever the group says. The policy
// refuses that without a webhook; one after the other is rolled zone by zone.
func TestWritesByWhichKubernetesRollsAZoneAreRefused(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.beginStory(onDelete)
	w.complete("v1", "zone-a", "zone-b")
	testenv.Guards(t, w.client, w.namespace, policies.OutOfTurn())
	const rolling = `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`
	const fix = "; set the type of all StatefulSets of the group while it is Complete, and then change spec.template"
	const why = ": Kubernetes would replace Pods out of turn, whatever RolloutGroup ingester says"
	w.isRefused("zone-b", `{"spec":{"updateStrategy":{"type":"RollingUpdate"},"template":{"spec":{"containers":[{"name":"c","image":"v2"}]}}}}`,
		`StatefulSet zone-b: spec.updateStrategy.type: invalid value "RollingUpdate" together with another spec.template`+why+fix)
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"pause":{}}}`)
	w.roll("v2", "zone-a", "zone-b")
	w.settled()
	w.isRefused("zone-b", rolling, `spec.updateStrategy.type: invalid value "RollingUpdate" while Pods are outdated`+why+fix)
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"pause":null}}`)
	w.arrives("v2", noFault)

	for _, name := range []string{"zone-a", "zone-b"} {
		w.patch(&appsv1.StatefulSet{}, name, rolling)
	}
	w.settled()
	w.eventually(w.isHeld)
	w.isRefused("zone-a", `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}},"template":{"spec":{"containers":[{"name":"c","image":"v3"}]}}}}`,
		"StatefulSet zone-a: spec.updateStrategy.rollingUpdate.partition: invalid value 0 together with another spec.template"+why+
			"; leave the partition out, and keep the one that Spillway has set")
	w.roll("v3", "zone-a", "zone-b")
	w.arrives("v3", noFault)
	w.witness.testify()
}

// isRefused makes sure that a policy refuses a write, once it is in force.
func (w *world) isRefused(name, patch, why string) {
	w.t.Helper()
	write := func(o ...client.PatchOption) error {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		return w.client.Patch(w.t.Context(), set, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), o...)
	}
	w.eventually(func() error {
		if err := write(client.DryRunAll); err == nil || !strings.Contains(err.Error(), why) {
			return fmt.Errorf("it is not refused with %q: %w", why, err)
		}
		return nil
	})
	if err := write(); !apierrors.IsInvalid(err) {
		w.t.Errorf("the answer is %v", err)
	}
}

// The same where that policy is not in force, while no manager runs. The zone is held, and the other one waits, which
// it is said why, until what Kubernetes has replaced is ready.
func TestAZoneThatKubernetesRollsOutOfTurn(t *testing.T) {
	w := newWorld(t)
	stop := w.manage()
	w.beginStory(onDelete)
	w.complete("v1", "zone-a", "zone-b")
	stop()
	w.patch(&appsv1.StatefulSet{}, "zone-b", fmt.Sprintf(
		`{"spec":{"updateStrategy":{"type":"RollingUpdate"},"template":{"metadata":{"annotations":{%q:"never-ready"}},"spec":{"containers":[{"name":"c","image":"v2"}]}}}}`, behavior))
	w.runs("zone-b: v1 v2!")
	w.patch(&appsv1.StatefulSet{}, "zone-a", `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`)
	w.manage()
	w.eventually(w.isHeld)
	w.roll("v2", "zone-a")
	const why = ", replaced out of turn by Kubernetes: another client had set updateStrategy of StatefulSet zone-b"
	w.waitsFor("Waiting", why)
	w.runs("zone-a: v1 v1", "zone-b: v1 v2!")
	if e := decision.ExplanationOf(w.group()); !strings.HasPrefix(e.Sentence, "zone-b-1 is up to date but not ready since ") || !strings.Contains(e.Sentence, why) {
		t.Errorf("explain says %q", e.Sentence)
	}
	w.becomesReady("zone-b-1", "v2")
	w.behave("v3", "", "zone-a", "zone-b")
	w.arrives("v3", noFault)
}
