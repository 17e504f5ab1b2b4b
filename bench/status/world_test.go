package status_test

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

const (
	// atOnce is how many requests the world makes at a time.
	atOnce = 16
	// zonesInGroup is how many StatefulSets a group has, podsInZone how many Pods one has.
	zonesInGroup, podsInZone = 3, 3
	// revisions is how many ModuleRevisions a module has, each with a gate.
	revisions = 20
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

// world is a cluster in which no manager runs. What one would have recorded is played: everything waits.
type world struct {
	t               *testing.T
	client, counted client.Client
	namespace       string
	requests        *fault.Injector
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, namespace: testenv.Namespace(t), requests: fault.New()}
	cfg := testenv.Shared().Config()
	cfg.QPS = -1
	if w.client, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	for _, kinds := range []string{"config", "zones", "plans", "fleet", "gates"} {
		testenv.InstallKinds(t, w.client, "../../charts/spillway/generated/"+kinds+"/*_*.yaml")
	}
	if w.counted, err = client.New(w.requests.Wrap(cfg), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	return w
}

// make makes so much of everything, all of it named after how much it is.
func (w *world) make(s size) {
	w.t.Helper()
	name := fmt.Sprintf("of-%d", s.workloads)
	w.create(&v1beta1.OperatorVersion{ObjectMeta: w.named(name), Spec: v1beta1.OperatorVersionSpec{
		Version: "1", Plans: map[string]v1beta1.Plan{"deploy": {Phases: []v1beta1.Phase{}}},
	}})
	module := &fleetv1.Module{ObjectMeta: w.named(name), Spec: fleetv1.ModuleSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": name}},
		Template: &fleetv1.ModuleTemplate{Spec: fleetv1.TemplateSpec{Sync: synced("v1")}},
	}}
	w.create(module)
	w.each(revisions, func(i int) { w.revision(module, i) })
	w.each(s.workloads, func(i int) { w.workload(fmt.Sprintf("%s-%d", name, i)) })
	w.each(s.groups*zonesInGroup, func(i int) { w.zone(name, i) })
	w.each(s.groups, func(i int) { w.group(fmt.Sprintf("%s-%d", name, i)) })
	w.each(s.instances, func(i int) {
		w.create(&v1beta1.Instance{ObjectMeta: w.named(fmt.Sprintf("%s-%d", name, i)), Spec: v1beta1.InstanceSpec{
			OperatorVersion: v1beta1.ObjectReference{Name: name},
		}})
	})
	w.each(s.clusters, func(i int) {
		meta := w.named(cluster.SecretName(fmt.Sprintf("%s-%d", name, i)))
		meta.Labels = map[string]string{"spillway.dev/cluster": "true", "of": name}
		w.create(&corev1.Secret{ObjectMeta: meta})
		w.assemblage(fmt.Sprintf("%s-%d", name, i), module)
	})
	w.recordModule(module, s.clusters, "the module is paused")
	w.awaitPods(s)
}

func synced(tag string) fleetv1.Sync {
	return fleetv1.Sync{Source: &fleetv1.Source{Git: &fleetv1.GitSource{URL: "https://x.test/a", Version: fleetv1.GitVersion{Tag: tag}}}}
}

// revision is one that the module had before, with the gate of its rollout.
func (w *world) revision(module *fleetv1.Module, i int) {
	r := &spillwayv1.ModuleRevision{ObjectMeta: w.named(fmt.Sprintf("%s-r%d", module.Name, i)), Spec: spillwayv1.ModuleRevisionSpec{
		ModuleRef: spillwayv1.ModuleReference{Kind: model.KindModule, Name: module.Name}, Number: int64(i + 1),
		Template: fleetv1.TemplateSpec{Sync: synced(fmt.Sprintf("v0.%d", i))},
	}}
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(module, fleetv1.GroupVersion.WithKind(model.KindModule))}
	w.create(r)
	g := &spillwayv1.RolloutGate{ObjectMeta: w.named(r.Name), Spec: spillwayv1.RolloutGateSpec{
		TargetRef: spillwayv1.TargetReference{APIVersion: fleetv1.GroupVersion.String(), Kind: model.KindModule, Name: module.Name},
		Revision:  r.Name, Stage: "all", Gate: "approve", When: "After",
	}}
	g.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(r, spillwayv1.GroupVersion.WithKind("ModuleRevision"))}
	w.create(g)
}

// assemblage is what a cluster was assigned: the module as it was before.
func (w *world) assemblage(cluster string, module *fleetv1.Module) {
	a := &fleetv1.ProxyAssemblage{ObjectMeta: w.named(cluster)}
	a.Spec.KubeconfigRef.Name = cluster + "-kubeconfig"
	a.Spec.Assemblage.Syncs = []fleetv1.ProxySync{{
		NamedSync: fleetv1.NamedSync{Assignment: fleetv1.Assignment{Name: module.Name, Revision: fmt.Sprintf("%s-r%d", module.Name, revisions-1)}, Sync: synced("v0")},
	}}
	w.create(a)
}

// awaitPods waits until the controller of the StatefulSets has made all their Pods.
func (w *world) awaitPods(s size) {
	w.t.Helper()
	of := client.MatchingLabels{"size": fmt.Sprintf("of-%d", s.workloads)}
	testenv.Eventually(w.t, func(ctx context.Context) error {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := w.client.List(ctx, pods, client.InNamespace(w.namespace), of)
		if want := s.groups * zonesInGroup * podsInZone; err == nil && len(pods.Items) < want {
			return fmt.Errorf("there are %d of %d Pods", len(pods.Items), want)
		}
		return err
	})
}

// awaitControllers waits until the status of all Deployments is up to date.
func (w *world) awaitControllers() {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		list := &appsv1.DeploymentList{}
		if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if d := &list.Items[i]; d.Status.ObservedGeneration != d.Generation {
				return fmt.Errorf("%s has an old status", d.Name)
			}
		}
		return nil
	})
}

// workload is a Deployment without Pods, and the config that it uses.
func (w *world) workload(name string) {
	w.create(&corev1.ConfigMap{ObjectMeta: w.named(name), Data: map[string]string{"level": "debug"}})
	meta := w.named(name)
	meta.Annotations = map[string]string{"spillway.dev/update-on-config-change": "true"}
	template := template(name)
	template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}}
	w.create(&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
	}})
}

// zone is a StatefulSet with Pods, the zone of a group.
func (w *world) zone(of string, i int) {
	name := fmt.Sprintf("%s-%d-%d", of, i/zonesInGroup, i%zonesInGroup)
	meta := w.named(name)
	meta.Labels = map[string]string{"rollout-group": fmt.Sprintf("%s-%d", of, i/zonesInGroup)}
	template := template(name)
	template.Labels["size"] = of
	w.create(&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(podsInZone)), PodManagementPolicy: appsv1.ParallelPodManagement,
		UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		Selector:       &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
	}})
}

func template(app string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
	}
}

func (w *world) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

func (w *world) each(n int, f func(i int)) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { f(i); return nil })
	}
	_ = group.Wait() // none fails
}

func (w *world) create(obj client.Object) {
	if err := w.client.Create(w.t.Context(), obj); err != nil {
		w.t.Error(err)
	}
}
