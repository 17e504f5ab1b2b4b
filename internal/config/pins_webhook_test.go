package config_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/admit"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// byWebhook is a world in which no policy points Pods at snapshots, as on an API server that has
// none, and webhooks do.
func byWebhook(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.options.PinNamespaces, w.options.PinBy = pin.In(w.namespace), pin.ByWebhook
	w.webhooks = testenv.RegisterWebhooks(t, w.namespace, admit.Declared(w.options.PinNamespaces).Webhooks)
	return w
}

// serveOrManage starts a manager, which answers the webhooks if there are any.
func (w *world) serveOrManage() {
	w.t.Helper()
	if w.webhooks != nil {
		w.serve()
		return
	}
	w.manage()
}

// Webhooks do what the policies do.
func TestAWebhookPointsPodsAtTheirConfig(t *testing.T) {
	t.Run("of a Deployment", func(t *testing.T) { byWebhook(t).keeps("Deployment", 1) })
	t.Run("of Jobs", func(t *testing.T) {
		w := byWebhook(t)
		w.secret("db", "p", "1")
		w.serve()
		w.apply(job("first", "backoffLimit: 10"))
		if used := w.podOf("first"); !strings.HasPrefix(used, "db-") {
			t.Errorf("the Pod uses the Secret %s", used)
		}
		w.apply("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly, annotations: {spillway.dev/pin-config: 'true'}}\nspec: {schedule: '0 3 * * *', " +
			"jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}}")
		c := &batchv1.CronJob{}
		if err := w.get(c, "nightly"); err != nil || c.Spec.JobTemplate.Annotations[native+"pin-config"] != "true" {
			t.Errorf("its Jobs have the annotations %v (%v)", c.Spec.JobTemplate.Annotations, err)
		}
	})
}

// A Pod with pins never starts with another content: it is not created until the webhook answers.
// Other Pods are not asked about.
func TestPodsWithPinsWaitForTheWebhook(t *testing.T) {
	w := byWebhook(t)
	w.secret("db", "p", "1")
	w.serve()
	w.apply(workload("Deployment", "app", envFrom(secretRef("db")), native+"pin-config", "true"))
	good := snapshotOf(t, w.pinnedAgain("Deployment", "app", ""))
	w.readyWith("app", good, 1)
	w.halt()
	for _, p := range w.live("app") { // one of the revision before may still go
		if p.Spec.Containers[0].EnvFrom[0].SecretRef.Name == good {
			w.remove(&corev1.Pod{}, p.Name)
		}
	}
	w.apply(deployment("free", envFrom(secretRef("db"))))
	w.settledWith("free", 1)
	for _, p := range w.live("app") {
		if p.Annotations[pinAnnotation] != "" {
			t.Errorf("while the webhook does not answer there is %s, which uses %v", p.Name, p.Spec.Containers[0].EnvFrom)
		}
	}
	w.serve()
	w.wakeReplicaSets("app")
	w.readyWith("app", good, 1)

	malformed := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "forged", Annotations: map[string]string{pinAnnotation: "secret/db"}}}
	malformed.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	if err := w.client.Create(t.Context(), malformed); err == nil || !strings.Contains(err.Error(), "secret/db") {
		t.Errorf("a Pod with malformed pins: %v", err)
	}
}

// wakeReplicaSets has the controller of the ReplicaSets of a Deployment act again now: it waits for
// up to minutes after its Pods were refused.
func (w *world) wakeReplicaSets(deployment string) {
	w.t.Helper()
	list := &appsv1.ReplicaSetList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"app": deployment}); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		w.patch(&appsv1.ReplicaSet{}, list.Items[i].Name, `{"metadata":{"annotations":{"test/woken":"now"}}}`)
	}
}
