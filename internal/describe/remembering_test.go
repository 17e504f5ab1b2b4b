package describe

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// furnish begins with something of each ring.
func (w *remembering) furnish() {
	for _, namespace := range w.spaces {
		for range 3 {
			w.setConfig(namespace)
			w.setWorkload(namespace)
			w.group(namespace)
			w.cluster(namespace)
			w.assigns(namespace)
		}
		w.policy(namespace)
		w.module(namespace)
	}
}

// step lets something happen.
func (w *remembering) step() {
	namespace := w.of(w.spaces...)
	happen := []func(namespace string){
		w.setConfig, w.setConfig, w.setConfig, w.lacks, w.setWorkload, w.setWorkload, w.setWorkload, w.pauses, w.manages, w.manages, w.manages, w.sets, w.pods,
		w.policy, w.answers, w.labels, w.group, w.group, w.module, w.cluster, w.assigns, w.assigns, w.instance, w.passes, w.passes, w.passes, w.passes, w.passes,
	}
	happen[w.IntN(len(happen))](namespace)
}

// passes lets time pass: often to the moment at which something is said to change, or to just before.
func (w *remembering) passes(string) {
	by := time.Duration(w.IntN([]int{2, 30, 600}[w.IntN(3)])) * time.Minute
	switch to := w.IntN(4); {
	case w.wake.After(w.now) && to == 0:
		by = w.wake.Sub(w.now)
	case w.wake.After(w.now) && to == 1:
		by = w.wake.Sub(w.now) - time.Nanosecond
	case to == 2:
		by = time.Duration(w.IntN(100)) * time.Second
	}
	w.now = w.now.Add(by)
	w.didf("%s pass", by)
}

func (w *remembering) didf(format string, args ...any) {
	w.done = append(w.done, fmt.Sprintf(format, args...))
}

func (w *remembering) name() string { return w.of("a", "b", "c") }

// applyf applies a manifest as a user does. A user may be refused.
func (w *remembering) applyf(namespace, format string, args ...any) {
	w.t.Helper()
	testenv.ApplyManifest(w.t, w.client, strings.ReplaceAll(fmt.Sprintf(format, args...), "NAMESPACE", namespace))
	w.didf(format, args...)
}

// patchf changes an object, or its status, if it exists.
func (w *remembering) patchf(version, kind, namespace, name, format string, args ...any) {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(version)
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
	err := w.client.Patch(w.t.Context(), obj.DeepCopy(), patch)
	if strings.HasPrefix(format, `{"status"`) {
		err = w.client.Status().Patch(w.t.Context(), obj, patch)
	}
	w.check(err)
	w.didf(kind+" "+name+" "+format, args...)
}

func (w *remembering) drop(kind, namespace, name string) {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(map[string]string{"ConfigMap": "v1", "Secret": "v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1"}[kind])
	if obj.GetAPIVersion() == "" {
		obj.SetAPIVersion("spillway.dev/v1alpha1")
	}
	obj.SetKind(kind)
	obj.SetNamespace(namespace)
	obj.SetName(name)
	w.check(w.client.Delete(context.WithoutCancel(w.t.Context()), obj))
	w.didf("%s %s is deleted", kind, name)
}

func (w *remembering) check(err error) {
	w.t.Helper()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		w.t.Error(err)
	}
}

func (w *remembering) setConfig(namespace string) {
	w.applyf(namespace, "{apiVersion: v1, kind: %s, metadata: {name: %s, namespace: NAMESPACE, annotations: {spillway.dev/pause: %q, spillway.dev/ignore: %q, spillway.dev/shared-with: %q}}, %s: {k: %s}}",
		"ConfigMap", w.name(), w.of("", "", "", "true"), w.of("", "", "", "true"), w.of("", "*"), "data", w.of("v1", "v2", "v3"))
}

func (w *remembering) lacks(namespace string) { w.drop("ConfigMap", namespace, w.name()) }

func (w *remembering) setWorkload(namespace string) {
	kind, more := "Deployment", ""
	if w.IntN(3) == 0 {
		kind, more = "StatefulSet", ", serviceName: x"
	}
	name := w.name()
	if w.IntN(10) == 0 {
		w.drop(kind, namespace, name)
		return
	}
	w.applyf(namespace, `{apiVersion: apps/v1, kind: %s, metadata: {name: %s, namespace: NAMESPACE, labels: {env: %s}, annotations: {spillway.dev/update-on-config-change: %q, spillway.dev/extra-configmaps: %q, spillway.dev/priority: %q}},
spec: {replicas: %d%s, selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, spec: {schedulerName: none, containers: [{name: c, image: x, envFrom: [{configMapRef: {name: %s, optional: %v}}]}]}}}}`,
		kind, name, w.of("dev", "prod"), w.of("true", "true", "true", "false"), w.of("", "", w.of(w.spaces...)+"/"+w.name()), w.of("0", "5"),
		w.IntN(2), more, kind+name, kind+name, w.name(), w.IntN(3) == 0)
}

func (w *remembering) pauses(namespace string) {
	w.patchf("apps/v1", w.of("Deployment", "StatefulSet"), namespace, w.name(), `{"metadata": {"annotations": {"spillway.dev/pause": %s}}}`, w.of(`"true"`, "null"))
}

// manages is a pass of the manager, which rolls, records, and asks at gates.
func (w *remembering) manages(string) {
	_, err := w.manager.Reconcile(w.t.Context(), reconcile.Request{})
	w.check(err)
	w.now = w.now.Add(time.Second) // no look is taken at the very moment that it records
	w.didf("the manager has decided")
}

// sets is the status of a Deployment or a StatefulSet, which its controller may correct.
func (w *remembering) sets(namespace string) {
	w.patchf("apps/v1", w.of("Deployment", "StatefulSet"), namespace, w.name(), `{"status": {"replicas": 1, "updatedReplicas": %d, "readyReplicas": %d}}`, w.IntN(2), w.IntN(2))
}

// pods is how a Pod does, of which no scheduler and no kubelet says anything.
func (w *remembering) pods(namespace string) {
	list := &corev1.PodList{}
	w.check(w.client.List(w.t.Context(), list, client.InNamespace(namespace)))
	if len(list.Items) == 0 {
		return
	}
	pod := list.Items[w.IntN(len(list.Items))]
	since := w.now.Add(-time.Duration(w.IntN(100)) * time.Second).UTC().Format(time.RFC3339)
	ready := w.of("True", "False")
	w.patchf("v1", "Pod", namespace, pod.Name, `{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": %q, "lastTransitionTime": %q}],
		"containerStatuses": [{"name": "c", "image": "x", "imageID": "x", "ready": %v, "restartCount": %d, "state": {"%s": {}}}]}}`,
		ready, since, ready == "True", w.IntN(4), w.of("waiting", "running"))
}

// policy is a policy of one namespace, or of all.
func (w *remembering) policy(namespace string) {
	kind, meta, only := "ConfigPolicy", "{name: one, namespace: NAMESPACE}", ""
	if w.IntN(3) == 0 {
		kind, meta, only = "ClusterConfigPolicy", "{name: everywhere}", "namespaces: ["+strings.Join(w.spaces, ", ")+"], "
	}
	if w.IntN(5) == 0 {
		w.drop(kind, map[bool]string{true: namespace}[kind == "ConfigPolicy"], map[bool]string{true: "one", false: "everywhere"}[kind == "ConfigPolicy"])
		return
	}
	gates := ""
	if kind == "ConfigPolicy" {
		gates = w.of("", ", gates: [{name: ask}]")
	}
	w.applyf(namespace, "{apiVersion: spillway.dev/v1alpha1, kind: %s, metadata: %s, spec: {%spriority: %d, soak: %s, %s%s stages: [{name: first, workloads: 1%s}, {name: rest, maxUnavailable: %d}]}}",
		kind, meta, only, w.IntN(3), w.of("0s", "90s", "20m"), w.window("maintenanceWindows"), w.of("", "pause: {reason: lunch},"), gates, 1+w.IntN(2))
}

// window is a maintenance window, or none.
func (w *remembering) window(field string) string {
	return w.of("", "", field+": [{schedule: '*/10 * * * *', durationSeconds: 300}],", field+": [{schedule: '0 * * * *', durationSeconds: 1200}],")
}

// answers answers at the gates.
func (w *remembering) answers(namespace string) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("spillway.dev/v1alpha1")
	list.SetKind("RolloutGateList")
	w.check(w.client.List(w.t.Context(), list, client.InNamespace(namespace)))
	for i := range list.Items {
		w.patchf("spillway.dev/v1alpha1", "RolloutGate", namespace, list.Items[i].GetName(), `{"status": {"conditions": [{"type": "Approved", "status": %q, "reason": "X", "message": "", "lastTransitionTime": %q}]}}`,
			w.of("True", "False"), w.now.UTC().Format(time.RFC3339))
	}
}

func (w *remembering) labels(namespace string) {
	w.patchf("v1", "Namespace", "", namespace, `{"metadata": {"labels": {"env": %q}}}`, w.of("dev", "prod"))
}

// group makes one of the StatefulSets a zone of a group, or says how the group is rolled.
func (w *remembering) group(namespace string) {
	if w.IntN(2) == 0 {
		w.applyf(namespace, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: z%s, namespace: NAMESPACE, labels: {rollout-group: g}}, spec: {replicas: %d, serviceName: x, podManagementPolicy: Parallel, updateStrategy: {type: OnDelete},
selector: {matchLabels: {app: z%[1]s}}, template: {metadata: {labels: {app: z%[1]s}, annotations: {v: %[3]q}}, spec: {schedulerName: none, containers: [{name: c, image: x}]}}}}`, w.name(), 1+w.IntN(2), w.of("1", "2"))
		return
	}
	w.applyf(namespace, "{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: g, namespace: NAMESPACE}, spec: {%s minReadySeconds: %d, stuckAfterSeconds: %d%s}}",
		w.window("maintenanceWindows"), w.IntN(200), 60+w.IntN(600), w.of("", ", pause: {reason: lunch}"))
}

func (w *remembering) module(namespace string) {
	w.applyf(namespace, `{apiVersion: fleet.squaremo.dev/v1alpha1, kind: Module, metadata: {name: m, namespace: NAMESPACE}, spec: {suspend: %v, strategy: Incremental, selector: {}, template: {spec: {sync: {source: {git: {url: "https://x.test/a", version: {tag: %s}}}}}},
rollout: {%s minReadySeconds: %d, progressDeadlineSeconds: %d, maxUnreadyClusters: 1, stages: [{name: first, clusters: 1}, {name: rest}]}}}`,
		w.IntN(4) == 0, w.tag(), w.window("windows"), w.IntN(200), 60+w.IntN(600))
	m := &unstructured.Unstructured{}
	m.SetAPIVersion("fleet.squaremo.dev/v1alpha1")
	m.SetKind("Module")
	w.check(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: "m"}, m))
	for _, tag := range []string{"v1", "v2"} { // as the manager does
		w.applyf(namespace, `{apiVersion: spillway.dev/v1alpha1, kind: ModuleRevision, metadata: {name: %s, namespace: NAMESPACE, ownerReferences: [{apiVersion: fleet.squaremo.dev/v1alpha1, kind: Module, name: m, uid: %s, controller: true}]},
spec: {moduleRef: {kind: Module, name: m}, number: %c, template: {sync: {source: {git: {url: "https://x.test/a", version: {tag: %s}}}}}}}`, revisionOf(tag), m.GetUID(), tag[1], tag)
	}
	if w.IntN(2) == 0 {
		w.patchf("fleet.squaremo.dev/v1alpha1", "Module", namespace, "m", `{"status": {"currentRevision": %q}}`, revisionOf(w.tag()))
	}
}

func (w *remembering) tag() string { return w.of("v1", "v2") }

// cluster adds a cluster, or takes one away.
func (w *remembering) cluster(namespace string) {
	name := w.name()
	if w.IntN(4) == 0 {
		w.drop("Secret", namespace, name+"-kubeconfig")
		return
	}
	w.applyf(namespace, "{apiVersion: v1, kind: Secret, metadata: {name: %s-kubeconfig, namespace: NAMESPACE, labels: {spillway.dev/cluster: 'true'}}, stringData: {value: x}}", name)
}

// assigns is what a cluster is assigned, and what it reports.
func (w *remembering) assigns(namespace string) {
	name, tag, at := w.name(), w.tag(), w.now.Add(-time.Duration(1+w.IntN(300))*time.Second).UTC().Format("2006-01-02T15:04:05.000000Z")
	w.applyf(namespace, `{apiVersion: fleet.squaremo.dev/v1alpha1, kind: ProxyAssemblage, metadata: {name: %s, namespace: NAMESPACE}, spec: {kubeconfigRef: {name: %s-kubeconfig}, assemblage: {syncs: [{name: m, revision: %s, assignedAt: %q, source: {git: {url: "https://x.test/a", version: {tag: %s}}}}]}}}`,
		name, name, revisionOf(tag), at, tag)
	w.patchf("fleet.squaremo.dev/v1alpha1", "ProxyAssemblage", namespace, name, `{"status": {"syncs": [{"name": "m", "revision": %q, "assignedAt": %q, "state": %q, "lastTransitionTime": %q, "lastSucceededRevision": %q}]}}`,
		revisionOf(tag), at, w.of("succeeded", "succeeded", "failed", "updating"), at, revisionOf(w.tag()))
}

func (w *remembering) instance(namespace string) {
	w.applyf(namespace, "{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: %s, namespace: NAMESPACE, annotations: {spillway.dev/pause: %q}}, spec: {operatorVersion: {name: x}}}", w.name(), w.of("", "true"))
}

// revisionOf is the name of the revision that module m has of a tag.
func revisionOf(tag string) string {
	return model.RevisionName(KindModule, "m", fleetv1.TemplateSpec{Sync: fleetv1.Sync{Source: &fleetv1.Source{
		Git: &fleetv1.GitSource{URL: "https://x.test/a", Version: fleetv1.GitVersion{Tag: tag}},
	}}})
}
