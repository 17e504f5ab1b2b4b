package explain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// none is without Pods, and so ready as soon as it is rolled.
const none = `spec: replicas: 0`

// policyOf is a policy for the namespace.
func policyOf(spec string) string {
	return "apiVersion: spillway.dev/v1alpha1\nkind: ConfigPolicy\nmetadata: {name: careful}\nspec: " + spec + "\n---\n"
}

// released changes the ConfigMap once the workloads have a hash and are ready with it, and then
// does something with the new Pods of the first.
func released(do func(*corev1.Pod), names ...string) func(*world) {
	return func(w *world) {
		before := w.settled(do, names)
		w.apply(strings.Replace(strings.TrimSuffix(appAtOne, "---\n"), `"1"`, `"2"`, 1))
		if do == nil {
			return
		}
		w.eventually(func(ctx context.Context) error { return w.withNewPod(ctx, names[0], before, do) })
	}
}

// settled waits until workloads have a hash and are ready with it, and returns that of the first.
// Where kwok leaves Pods alone, they are made ready.
func (w *world) settled(still func(*corev1.Pod), names []string) (hash string) {
	w.eventually(func(ctx context.Context) error {
		for i, name := range names {
			d := &appsv1.Deployment{}
			if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, d); err != nil {
				return err
			}
			now := vocabulary.ConfigHash.Get(d.Spec.Template.Annotations)
			if i == 0 {
				hash = now
			}
			if i == 0 && still != nil && now != "" {
				if err := w.withNewPod(ctx, name, "", func(p *corev1.Pod) {
					p.Status.Phase, p.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
				}); err != nil {
					return err
				}
			}
			if now == "" || d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
				return fmt.Errorf("%s has not settled", name)
			}
		}
		return nil
	})
	return hash
}

// withNewPod does something with a Pod that has a hash, and another one than before.
func (w *world) withNewPod(ctx context.Context, app, before string, do func(*corev1.Pod)) error {
	var list corev1.PodList
	if err := w.client.List(ctx, &list, client.InNamespace(w.namespace), client.MatchingLabels{"app": app}); err != nil {
		return err
	}
	for i := range list.Items {
		p := &list.Items[i]
		if hash := vocabulary.ConfigHash.Get(p.Annotations); hash != "" && hash != before && p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
			do(p)
			return w.client.Status().Update(ctx, p)
		}
	}
	return errors.New("there is no new Pod")
}

func waitsFor(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "app", Image: "app:v1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}},
		}}
	}
}

const oneFirst = `{stages: [{name: first, workloads: 1}, {name: rest}]}`

// goesFirst is a Deployment of which kwok leaves the Pods alone, so that they do as a test says.
func goesFirst() string {
	return deployment("first", tracked, usesApp, still, `annotation: spillway.dev/priority: "9"`, `spec: strategy: {type: Recreate}`)
}

// policySituations are what releases on policies wait for.
var policySituations = []situation{{
	name: "a policy is paused", plant: appAtOne + policyOf(`{pause: {reason: lunch, by: ann}}`) + deployment("web", tracked, usesApp, none), act: released(nil, "web"),
	ask: "deploy/web", root: "deployment/web", says: "is paused by ann: lunch", next: "spillway resume configpolicy/careful -n NS",
}, {
	name: "a ConfigMap whose policy is paused", plant: appAtOne + policyOf(`{pause: {reason: lunch}}`) + deployment("web", tracked, usesApp, none), act: released(nil, "web"),
	ask: "cm/app", through: "ConfigMap Deployment", by: "ConfigMap app: 0 of 1 tracked workloads are up to date",
	root: "deployment/web", says: "is paused: lunch", next: "spillway resume configpolicy/careful -n NS",
}, {
	name: "what a paused policy says", plant: appAtOne + policyOf(`{pause: {reason: lunch}}`) + deployment("web", tracked, usesApp, none), act: released(nil, "web"),
	ask: "cfp/careful", root: "configpolicy/careful", says: "1 release is under way", next: "spillway resume configpolicy/careful -n NS",
}, {
	name: "a policy is not valid", plant: appAtOne + policyOf(`{maintenanceWindows: [{schedule: nonsense, durationSeconds: 60}]}`) + deployment("web", tracked, usesApp, none), act: released(nil, "web"),
	ask: "deploy/web", root: "deployment/web", says: "its spec is not valid: maintenanceWindows[0]", next: "kubectl edit configpolicy/careful -n NS",
}, {
	name: "what an invalid policy says", plant: policyOf(`{maintenanceWindows: [{schedule: nonsense, durationSeconds: 60}]}`),
	ask: "configpolicy/careful", root: "configpolicy/careful", says: "its spec is not valid: maintenanceWindows[0]", next: "kubectl edit configpolicy/careful -n NS",
}, {
	name: "no maintenance window is open", plant: appAtOne + policyOf(`{maintenanceWindows: [{schedule: "0 0 29 2 *", durationSeconds: 60}]}`) + deployment("web", tracked, usesApp, none), act: released(nil, "web"),
	times: "until", ask: "deploy/web", root: "deployment/web", says: "the next maintenance window opens on", next: "kubectl describe configpolicy/careful -n NS",
}, {
	name:  "the first stage soaks",
	plant: appAtOne + policyOf(`{soak: 1h, stages: [{name: first, workloads: 1}, {name: rest}]}`) + deployment("first", tracked, usesApp) + "---\n" + deployment("second", tracked, usesApp, none),
	act:   released(nil, "first", "second"),
	times: "until", ask: "cm/app", through: "ConfigMap Deployment", root: "deployment/second", says: "stage first is ready; soaking until", next: "kubectl describe configpolicy/careful -n NS",
}, {
	name:  "the first workload does not become ready",
	plant: appAtOne + policyOf(oneFirst) + goesFirst() + "---\n" + deployment("second", tracked, usesApp, none), act: released(waitsFor("InvalidImageName"), "first", "second"),
	ask: "deploy/second", through: "Deployment Deployment Pod", by: "ConfigPolicy careful holds ConfigMap app@", root: "pod/first-*", says: "cannot pull the image app:v1", next: "kubectl describe pod/NAME -n NS",
}, {
	name:  "the first workload has failed",
	plant: appAtOne + policyOf(oneFirst) + goesFirst() + "---\n" + deployment("second", tracked, usesApp, none), act: released(waitsFor("CreateContainerError"), "first", "second"),
	ask: "cfp/careful", through: "ConfigPolicy Deployment Pod", by: "ConfigPolicy careful: 1 release is under way", root: "pod/first-*", says: "", next: "*",
}}
