package explain_test

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
)

const inGroup = `label: rollout-group: ingester`

// zone is a StatefulSet of the group ingester with one Pod.
func zone(name string, parts ...string) string {
	return workload("StatefulSet", name, append([]string{inGroup, "spec: updateStrategy: {type: OnDelete}", "spec: serviceName: x"}, parts...)...)
}

func all(docs ...string) string { return strings.Join(docs, "\n---\n") }

// policy is a RolloutGroup that a user has written.
func policy(spec string) string {
	return "apiVersion: spillway.dev/v1alpha1\nkind: RolloutGroup\nmetadata: {name: ingester}\nspec: {" + spec + "}\n"
}

// complete waits until the group is, and then applies what changes it.
func complete(next string) func(*world) {
	return func(w *world) {
		w.groupIs("Complete")
		w.apply(next)
	}
}

func (w *world) groupIs(phase string) {
	w.t.Helper()
	w.eventually(func(ctx context.Context) error {
		g := &v1alpha1.RolloutGroup{}
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "ingester"}, g); err != nil {
			return err
		}
		if g.Status.Phase != phase || len(g.Status.Zones) == 0 {
			return errors.New("its phase is " + g.Status.Phase + ": " + g.Status.WaitingFor)
		}
		return nil
	})
}

// unconfigured is a Pod of the newer template whose container cannot be made.
func unconfigured(p *corev1.Pod) {
	if p.Annotations["revision"] == "2" {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError"}}}}
	}
}

// newer makes the template of a zone another one.
const newer = `pod: revision: "2"`

// zoneSituations are what a group of StatefulSets waits for.
var zoneSituations = []situation{{
	name: "a group is paused", plant: all(policy("pause: {by: carol, reason: review}"), zone("a"), zone("b")),
	act:   func(w *world) { w.groupIs("Complete"); w.apply(zone("a", newer)) },
	owner: "carol", ask: "rog/ingester", root: "rolloutgroup/ingester", says: "paused by carol", next: "spillway resume rolloutgroup/ingester -n NS",
}, {
	name: "a gate after a zone", plant: all(policy("gates: [{name: approve}]"), zone("a"), zone("b")),
	act:   complete(all(zone("a", newer), zone("b", newer))),
	times: "since", ask: "rolloutgroup/ingester", through: "RolloutGroup RolloutGate", root: "rolloutgate/ingester-approve-*",
	says: "gate approve of zone a has not been decided", next: "spillway approve rolloutgate/NAME -n NS",
}, {
	name: "a zone is paused", plant: all(zone("a"), zone("b")),
	act:   complete(zone("a", newer, `annotation: grafana.com/rollout-paused: "true"`)),
	owner: "user", ask: "rolloutgroup/ingester", through: "RolloutGroup Zone", root: "zone/a", says: "zone a is paused",
	next: "kubectl annotate statefulset/a -n NS grafana.com/rollout-paused-",
}, {
	name: "no maintenance window is open", plant: all(policy(`maintenanceWindows: [{schedule: "0 0 29 2 *", durationSeconds: 1}]`), zone("a"), zone("b")),
	act:   func(w *world) { w.groupIs("Complete"); w.apply(zone("b", newer)) },
	times: "until", ask: "rolloutgroup/ingester", root: "rolloutgroup/ingester", says: "its next maintenance window opens on", next: "",
}, {
	name: "a Pod of a zone lacks a Secret", plant: all(zone("a"), zone("b")),
	act: func(w *world) {
		complete(zone("a", newer, still, needsDB))(w)
		w.pods("a", unconfigured)
	},
	times: "since deadline", ask: "rolloutgroup/ingester", through: "RolloutGroup Zone Pod Secret", root: "secret/db", says: "Secret db not found",
	next: "kubectl create secret generic db -n NS --from-literal=password=VALUE",
}, {
	name: "a zone that is done waits for its group", plant: all(zone("a"), zone("b")), act: complete(zone("b", newer, crash)),
	ask: "statefulset/a", through: "StatefulSet RolloutGroup Zone Pod", root: "pod/b-0", says: "exited with code 1", next: "kubectl logs pod/b-0 -n NS -c app --previous",
}, {
	name: "the Pod of a zone cannot be created", plant: all(zone("a"), zone("b")),
	act: func(w *world) {
		w.groupIs("Complete")
		w.apply("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small}\nspec: {hard: {pods: \"1\"}}\n")
		w.apply(zone("b", newer))
	},
	ask: "rolloutgroup/ingester", root: "resourcequota/small", says: "1 of 1 pods", next: "kubectl describe resourcequota/small -n NS",
}, {
	name: "the budget of a zone is used up", plant: all(zone("a", "spec: replicas: 2", "spec: podManagementPolicy: Parallel"), zone("b")),
	act: complete(zone("a", "spec: replicas: 2", "spec: podManagementPolicy: Parallel", newer, crash)), ask: "rolloutgroup/ingester", through: "RolloutGroup Zone Pod",
	root: "pod/a-*", says: "exited with code 1", next: "kubectl logs pod/NAME -n NS -c app --previous", times: "since deadline", owner: "statefulset/a",
}, {
	name: "the lock is held for a downscale", plant: all(zone("a"), zone("b")),
	act: func(w *world) {
		w.groupIs("Complete")
		g := &v1alpha1.RolloutGroup{}
		w.changeStatus(g, "ingester", func() {
			until := metav1.NewMicroTime(time.Now().Add(time.Hour))
			g.Status.Lock = &v1alpha1.Lock{Holder: "downscale/a", Purpose: v1alpha1.PurposeDownscale, Zone: "a", Since: metav1.NowMicro(), Expires: &until}
		})
		w.apply(zone("b", newer))
	},
	owner: "downscale/a", times: "since until", ask: "rolloutgroup/ingester", through: "RolloutGroup Lock", root: "lock/ingester", says: "is held by downscale/a, for downscale of a", next: "spillway explain statefulset/a -n NS",
}, {
	name: "a finalizer keeps a group that is deleted", plant: all(strings.Replace(policy(""), "{name: ingester}", "{name: ingester, finalizers: [acme.io/keep]}", 1), zone("a")),
	act: func(w *world) {
		w.groupIs("Complete")
		w.delete(&v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "ingester"}})
	},
	ask: "rolloutgroup/ingester", root: "rolloutgroup/ingester", says: "cannot be deleted: finalizer acme.io/keep is not removed yet",
	next: "kubectl get rolloutgroup/ingester -n NS -o jsonpath='{.metadata.finalizers}'",
}, {
	name: "an annotation of a zone is wrong", plant: all(zone("a", "annotation: rollout-max-unavailable: many"), zone("b")),
	ask: "rolloutgroup/ingester", through: "RolloutGroup StatefulSet", root: "statefulset/a", says: `rollout-max-unavailable: invalid value "many"`, next: "kubectl edit statefulset/a -n NS",
}, {
	name: "a follower waits for its leader", plant: all(zone("a", neverReady),
		zone("b", "spec: replicas: 0", "annotation: grafana.com/rollout-downscale-leader: a", `annotation: grafana.com/rollout-upscale-only-when-leader-ready: "true"`)),
	ask: "rolloutgroup/ingester", root: "pod/a-0", says: "container app is not ready", next: "kubectl logs pod/a-0 -n NS -c app",
}, {
	name: "a follower has no leader", plant: all(zone("a"), zone("b", "annotation: grafana.com/rollout-downscale-leader: absent")),
	ask: "rolloutgroup/ingester", root: "statefulset/b", says: "its leader absent is not in the group", next: "kubectl edit statefulset/b -n NS",
}, {
	name: "an eviction budget of zero", plant: `apiVersion: rollout-operator.grafana.com/v1
kind: ZoneAwarePodDisruptionBudget
metadata: {name: ingester}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: a}}}
`, ask: "zpdb/ingester", root: "zoneawarepoddisruptionbudget/ingester", says: "spec.maxUnavailable is 0",
	next: `kubectl patch zoneawarepoddisruptionbudget/ingester -n NS --type=merge -p '{"spec":{"maxUnavailable":1}}'`,
}}
