package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// graph is a package with a plan for each moment, also for the end.
const graph = `
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: graph-1}
spec:
  operator: {name: graph}
  version: "1"
  parameters: [{name: LEVEL, default: info}]
  tasks: [{name: app, kind: Apply, spec: {resources: [config.yaml, app.yaml]}}, {name: last, kind: Apply, spec: {resources: [last.yaml]}}]
  templates:
    config.yaml: |
      {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Name }}"}, data: {level: "{{ .Params.LEVEL }}"}}
    app.yaml: |
      {apiVersion: apps/v1, kind: Deployment, metadata: {name: "{{ .Name }}"}, spec: {replicas: 1, selector: {matchLabels: {app: "{{ .Name }}"}}, template: {metadata: {labels: {app: "{{ .Name }}"}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x}]}}}}
    last.yaml: |
      {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Name }}-was-cleaned"}}
  plans:
    deploy: &p {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
    update: *p
    cleanup: {phases: [{name: main, steps: [{name: last, tasks: [last]}]}]}
`

// kudo runs the plans of Instances of graph-1, and writes what KUDO's manager writes.
func (w *world) kudo(ctx context.Context) error {
	list := &v1beta1.InstanceList{}
	if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	var errs []error
	for n := range list.Items {
		err := w.kudoRuns(ctx, &list.Items[n])
		if apierrors.IsConflict(err) { // it looks again
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (w *world) kudoRuns(ctx context.Context, i *v1beta1.Instance) error {
	if i.DeletionTimestamp != nil {
		last := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: i.Name + "-was-cleaned"}}
		if err := w.client.Create(ctx, last); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("clean up: %w", err)
		}
		controllerutil.RemoveFinalizer(i, vocabulary.CleanupFinalizer)
		return client.IgnoreNotFound(w.client.Update(ctx, i, client.FieldOwner(vocabulary.KUDOManager)))
	}
	if controllerutil.AddFinalizer(i, vocabulary.CleanupFinalizer) {
		return w.client.Update(ctx, i, client.FieldOwner(vocabulary.KUDOManager))
	}
	level := i.Spec.Parameters["LEVEL"]
	if level == "" {
		level = "info"
	}
	has := &corev1.ConfigMap{}
	err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: i.Name}, has)
	plan := v1beta1.UpdatePlan
	if apierrors.IsNotFound(err) {
		plan = v1beta1.DeployPlan
	} else if err != nil || has.Data["level"] == level {
		return err
	}
	for _, manifest := range []string{
		fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {level: %q}}`, i.Name, level),
		fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: x}]}}}}`, i.Name),
	} {
		if err := w.kudoApplies(ctx, i, manifest, plan); err != nil {
			return err
		}
	}
	if i.Status.PlanStatus == nil {
		i.Status.PlanStatus = map[string]v1beta1.PlanStatus{}
	}
	i.Status.PlanStatus[plan] = v1beta1.PlanStatus{Name: plan, Status: v1beta1.Complete, UID: uuid.NewUUID()}
	return w.client.Status().Update(ctx, i, client.FieldOwner(vocabulary.KUDOManager))
}

// kudoApplies applies an object as KUDO does.
func (w *world) kudoApplies(ctx context.Context, i *v1beta1.Instance, manifest, plan string) error {
	u, err := testenv.AppliedByKUDO(i, "graph", plan, "1", manifest)
	if err != nil {
		return err
	}
	err = w.client.Create(ctx, u.DeepCopy(), client.FieldOwner(vocabulary.KUDOManager))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return w.client.Patch(ctx, u, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(vocabulary.KUDOManager))
}

// runs are the UIDs of the last run of each plan of an Instance.
func (w *world) runs(name string) map[string]types.UID {
	w.t.Helper()
	i := &v1beta1.Instance{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, i); err != nil {
		w.t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for plan, s := range i.Status.PlanStatus {
		if s.UID != "" {
			uids[plan] = s.UID
		}
	}
	return uids
}

func instance(name, level string) string {
	return fmt.Sprintf(`{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: %s}, spec: {operatorVersion: {name: graph-1}, parameters: {LEVEL: %s}}}`, name, level)
}

// level waits until a plan has brought a parameter to the ConfigMap of an Instance.
func (w *world) level(name, level string) {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error { return w.hasLevel(ctx, name, level) })
}

func (w *world) hasLevel(ctx context.Context, name, level string) error {
	cm := &corev1.ConfigMap{}
	if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, cm); err != nil || cm.Data["level"] != level {
		return fmt.Errorf("%s has level %q, want %q: %w", name, cm.Data["level"], level, err)
	}
	return nil
}

// TestFromKUDOAndBack: no plan runs and no Pod is replaced, the webhook goes and comes back, an Instance that is changed
// meanwhile gets what it asks for, and Instances keep their cleanup plans, which the other manager runs.
func TestFromKUDOAndBack(t *testing.T) {
	w := newWorld(t)
	testenv.InstallKinds(t, w.client, "../../../charts/spillway/generated/plans/kudo*.yaml")
	w.apply(graph)
	want := map[string]int{}
	for n := range 5 {
		name := fmt.Sprintf("graph-%d", n)
		w.apply(instance(name, "info"))
		want[name] = 1
	}
	w.apply(formerly("kudo-controller-manager", "kudobuilder/controller:v0.19.0"))
	w.apply(`{apiVersion: v1, kind: Service, metadata: {name: kudo-controller-manager-service}, spec: {selector: {former: kudo-controller-manager}, ports: [{port: 443}]}}`)
	w.apply(fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: %s}, webhooks: [{name: instance-admission.kudo.dev, failurePolicy: Ignore, sideEffects: None, admissionReviewVersions: [v1], timeoutSeconds: 1, namespaceSelector: {matchLabels: {none: such}},
clientConfig: {service: {namespace: %s, name: kudo-controller-manager-service}}, rules: [{apiGroups: [kudo.dev], apiVersions: [v1beta1], operations: [UPDATE], resources: [instances]}]}]}`, vocabulary.KUDOWebhook, w.namespace))
	t.Cleanup(func() {
		_ = w.client.Delete(context.Background(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: vocabulary.KUDOWebhook}})
	})
	w.standIn("kudo-controller-manager", always(w.kudo))
	for name := range want {
		w.level(name, "info")
	}
	w.settled(want)
	before := map[string]map[string]types.UID{}
	for name := range want {
		before[name] = w.runs(name)
	}

	w.says(w.spillway(0), "kudo v0.19.0: deployment/kudo-controller-manager in namespace "+w.namespace, "acts on 5 Instance, 1 OperatorVersion", "kubectl delete mutatingwebhookconfiguration "+vocabulary.KUDOWebhook, "spillway install --rings=plans")
	w.says(w.spillway(0, "do", "--settle=3s", "--webhooks=false"), "mutatingwebhookconfiguration/"+vocabulary.KUDOWebhook+" deleted", "changed over; spillway migrate undo goes back")
	w.settled(want)
	for name := range want {
		if now := w.runs(name); !maps.Equal(now, before[name]) {
			t.Errorf("%s has run %v, and before %v", name, now, before[name])
		}
	}
	w.apply(instance("graph-1", "debug"))
	w.level("graph-1", "debug")
	w.settled(want)

	w.says(w.spillway(0, "undo", "--accept=moving"), "deployment/kudo-controller-manager in namespace "+w.namespace+" scaled to 2")
	w.apply(instance("graph-2", "debug"))
	w.level("graph-2", "debug")
	w.settled(want)
	if now := w.runs("graph-1")["deploy"]; now != before["graph-1"]["deploy"] {
		t.Errorf("graph-1 was deployed again: %s", now)
	}
	if err := w.client.Delete(t.Context(), &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "graph-3"}}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(ctx context.Context) error {
		return w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "graph-3-was-cleaned"}, &corev1.ConfigMap{})
	})
}
