package config_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// rolloutOf is a Rollout of Argo that reads the Secret db.
func rolloutOf(name, spec string, annotations ...string) string {
	all := ""
	for i := 0; i+1 < len(annotations); i += 2 {
		all += fmt.Sprintf("%s: %q, ", annotations[i], annotations[i+1])
	}
	return fmt.Sprintf(`{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: %[1]s, annotations: {%[2]s}}, spec: {%[3]s, replicas: 1, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}},
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x, envFrom: [{secretRef: {name: db}}], env: [{name: STAKATER_DB_SECRET, value: %[4]q}]}]}}}}`, name, strings.TrimSuffix(all, ", "), spec, strings.Repeat("0", 64))
}

// rollouts are those of the namespace.
func (w *world) rollouts() []unstructured.Unstructured {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("argoproj.io/v1alpha1")
	list.SetKind("Rollout")
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// argo plays Argo's controller: a Rollout has a Pod, which is replaced once restartAt has come if it was created before, and then the
// status says so. It returns an error while there is something left to do.
func (w *world) argo(context.Context) error {
	var errs []error
	for _, r := range w.rollouts() {
		errs = append(errs, w.argoPlays(&r))
	}
	return errors.Join(errs...)
}

func (w *world) argoPlays(r *unstructured.Unstructured) error {
	pods := &corev1.PodList{}
	if err := w.client.List(w.t.Context(), pods, client.InNamespace(w.namespace), client.MatchingLabels{"app": r.GetName()}); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	asked, _, _ := unstructured.NestedString(r.Object, "spec", "restartAt")
	at, _ := time.Parse(time.RFC3339, asked)
	has, _, _ := unstructured.NestedString(r.Object, "status", "restartedAt")
	switch {
	case len(pods.Items) == 0:
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, GenerateName: r.GetName() + "-", Labels: map[string]string{"app": r.GetName()}}}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
		pod.Spec.TerminationGracePeriodSeconds = new(int64)
		return errors.Join(errors.New("a Pod was created"), w.client.Create(w.t.Context(), pod))
	case time.Now().Before(at):
		return errors.New("it is to be restarted later")
	case pods.Items[0].CreationTimestamp.Time.Before(at):
		return errors.Join(errors.New("a Pod was deleted"), client.IgnoreNotFound(w.client.Delete(w.t.Context(), &pods.Items[0])))
	case has != asked:
		patch := fmt.Sprintf(`{"status":{"restartedAt":%q}}`, asked)
		return errors.Join(errors.New("the status was written"), w.client.Status().Patch(w.t.Context(), r, client.RawPatch(types.MergePatchType, []byte(patch))))
	default:
		return nil
	}
}

// pods are the UIDs of the Pods of Rollouts.
func (w *world) podsOfRollouts() map[string]types.UID {
	w.t.Helper()
	w.barrier.Wait(w.t)
	uids := map[string]types.UID{}
	for _, r := range w.rollouts() {
		pods := &corev1.PodList{}
		if err := w.client.List(w.t.Context(), pods, client.InNamespace(w.namespace), client.MatchingLabels{"app": r.GetName()}); err != nil || len(pods.Items) != 1 {
			w.t.Fatalf("%d Pods of %s: %v", len(pods.Items), r.GetName(), err)
		}
		uids[r.GetName()] = pods.Items[0].UID
	}
	return uids
}

// restarted fails unless these Rollouts alone were restarted by what was done.
func (w *world) restarted(do func(), want ...string) {
	w.t.Helper()
	before, expected := w.podsOfRollouts(), map[string]bool{}
	for _, name := range want {
		expected[name] = true
	}
	do()
	for name, uid := range w.podsOfRollouts() {
		if replaced := uid != before[name]; replaced != expected[name] {
			w.t.Errorf("%s was restarted: %v", name, replaced)
		}
	}
}

// restarts has the manager of a world restart Rollouts, with the permissions of the chart, and without a window in which
// changes are collected.
func restarts(w *world, change ...func(*reloader.Options)) {
	testenv.InstallRollouts(w.t, w.client)
	reloads(w, change...)
	asInstalled(w, manifests.Reloader{Annotations: true})
	w.barrier.Also(w.argo)
}

const restartStrategy = "reloader.stakater.com/rollout-strategy"

// Without the kind nothing is amiss; once it is installed, Rollouts are followed, and the first look restarts nothing. Other tests
// install the kind, too: this one comes first.
func TestRolloutsAreFollowedOnceTheKindIsInstalled(t *testing.T) {
	w := newWorldNow(t)
	reloads(w)
	w.options.CoalesceWindow = 0
	w.secret("db", "p", "1")
	w.apply(foreign("web", envFrom(secretRef("db")), autoReload, "true"))
	w.manage()
	before := w.hash("web")
	w.secret("db", "p", "2")
	w.hashed("web", before)

	testenv.InstallRollouts(w.t, w.client)
	w.apply(rolloutOf("shop", "paused: false", autoReload, "true", restartStrategy, "restart"))
	w.eventually(func() error {
		if r := w.rollouts()[0]; r.GetAnnotations()[seenOn] == "" {
			return errors.New("nothing is recorded")
		}
		return nil
	})
	w.barrier.Also(w.argo)
	w.restarted(func() {})
	w.restarted(func() { w.secret("db", "p", "3") }, "shop")
}

// A change restarts a Rollout once: not one that asks for nothing, nor one that is paused, in its spec or by an annotation, before that ends. What
// Reloader had written into the Pod template counts, unless it is of an earlier strategy.
func TestRolloutsThatFollowTheirConfig(t *testing.T) {
	w := newWorld(t)
	restarts(w)
	w.secret("db", "p", "1")
	w.apply(
		rolloutOf("follows", "paused: false", autoReload, "true", restartStrategy, "restart"), rolloutOf("silent", "paused: false"), rolloutOf("missed", "paused: false", autoReload, "true"),
		rolloutOf("paused", "paused: true", autoReload, "true", restartStrategy, "restart"), rolloutOf("kept", "paused: false", autoReload, "true", restartStrategy, "restart", native+"pause", "true"),
	)
	w.eventually(func() error { return w.argo(t.Context()) })
	w.manage()
	w.barrier.Wait(t)
	for _, r := range w.rollouts() {
		if at, is, _ := unstructured.NestedString(r.Object, "spec", "restartAt"); is != (r.GetName() == "missed") {
			t.Errorf("%s is restarted at %q at the first look", r.GetName(), at)
		}
	}
	w.restarted(func() { w.secret("db", "p", "2") }, "follows", "missed")
	w.restarted(func() { w.secret("db", "p", "3") }, "follows", "missed")
	w.restarted(func() {
		w.apply(rolloutOf("paused", "paused: false", autoReload, "true", restartStrategy, "restart"), rolloutOf("kept", "paused: false", autoReload, "true", restartStrategy, "restart", native+"pause", "false"))
	}, "paused", "kept")
	w.silent(func() {
		w.apply(rolloutOf("follows", "paused: false, progressDeadlineSeconds: 7", autoReload, "true", restartStrategy, "restart"))
	})
	if got := len(w.events("RolloutRestarted")); got == 0 {
		t.Error("no Event tells of a restart")
	}
}

// What changes while no manager runs is one restart, of a manager that began again; and a policy that pauses its config, or has
// no maintenance window open, keeps a Rollout as it is until that ends.
func TestARolloutIsRestartedOnce(t *testing.T) {
	w := newWorld(t)
	restarts(w, func(o *reloader.Options) { o.AutoAll = true })
	w.secret("db", "p", "1")
	w.apply(rolloutOf("shop", "paused: false", restartStrategy, "restart"))
	w.manage()
	w.restarted(func() {})
	w.restarted(func() {
		w.halt()
		w.secret("db", "p", "2")
		w.secret("db", "p", "3")
		w.manage()
	}, "shop")
	w.restarted(func() { w.halt(); w.manage() })

	w.policy("closed", "pause: {reason: audit}")
	w.restarted(func() { w.secret("db", "p", "4") })
	w.restarted(func() { w.policy("closed", "priority: 1") }, "shop")

	w.policy("closed", "pause: {reason: audit}")
	w.restarted(func() { w.secret("db", "p", "5") })
	w.restarted(func() { w.remove(&v1alpha1.ConfigPolicy{}, "closed") }, "shop")
}
