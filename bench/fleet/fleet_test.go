package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/testenv"
	"github.com/spillway-dev/spillway/internal/testenv/fault"
)

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

const app = "app"

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

func spec(tag string) v1alpha1.ModuleSpec {
	git := &v1alpha1.GitSource{URL: "https://x.test/a", Version: v1alpha1.GitVersion{Tag: tag}}
	return v1alpha1.ModuleSpec{
		Selector: &metav1.LabelSelector{}, Strategy: v1alpha1.Incremental,
		Rollout: &v1alpha1.Rollout{
			MaxUnreadyClusters: new(intstr.FromString("10%")), ProgressDeadlineSeconds: new(int32(3600)),
			Stages: []v1alpha1.Stage{{Name: "canary", Clusters: new(intstr.FromString("1%"))}, {Name: "rest"}},
		},
		Template: &v1alpha1.ModuleTemplate{Spec: v1alpha1.TemplateSpec{Sync: v1alpha1.Sync{Source: &v1alpha1.Source{Git: git}}}},
	}
}

// TestADecision prints how long a decision over many clusters takes in the middle of a
// rollout.
func TestADecision(t *testing.T) {
	o := middle(decided)
	result := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			fleet.Decide(o)
		}
	})
	t.Logf("a decision over %d clusters: %.1f ms, %.1f MB", decided, float64(result.NsPerOp())/1e6, float64(result.AllocedBytesPerOp())/1e6)
}

// middle is a rollout of which half is done.
func middle(n int) fleet.Observed {
	name := func(tag string) string { return fleet.RevisionName(fleet.KindModule, app, spec(tag).Template.Spec) }
	o := fleet.Observed{Now: noon, AsOf: "7", Revisions: []fleet.Revision{{Name: name("v1"), Number: 1}, {Name: name("v2"), Number: 2}}}
	o.Module = fleet.Module{Kind: fleet.KindModule, Name: app, Finalized: true, Spec: spec("v2")}
	o.Module.Status.CurrentRevision = name("v1")
	for i := range n {
		c := "cluster-" + strconv.Itoa(i)
		revision := name([]string{"v1", "v2"}[i%2])
		o.Clusters = append(o.Clusters, fleet.Cluster{Name: c, UID: types.UID(c), Ready: true})
		o.Records = append(o.Records, fleet.Record{
			Cluster: c, Name: c, UID: types.UID(c), Assigned: true, Revision: revision, AssignedAt: noon.Add(-time.Hour), Reported: true,
			State: v1alpha1.StateSucceeded, Since: noon.Add(-time.Hour), Succeeded: revision, DeletionPolicy: v1alpha1.Delete,
		})
	}
	return o
}

// TestANewRevision counts what a new revision costs the hub: one write for each
// cluster, and few besides; and nothing once all is done.
func TestANewRevision(t *testing.T) {
	w := newWorld(t)
	module := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: app}, Spec: spec("v1")}
	if err := w.client.Create(t.Context(), module); err != nil {
		t.Fatal(err)
	}
	w.complete()
	began := time.Now()
	w.requests.Reset()
	patch := client.MergeFrom(module.DeepCopy())
	module.Spec.Template = spec("v2").Template
	if err := w.client.Patch(t.Context(), module, patch); err != nil {
		t.Fatal(err)
	}
	w.complete()
	took := time.Since(began)
	counts := map[string]int{}
	for _, r := range w.requests.Writes() {
		counts[r.Verb+" "+r.Resource+" "+r.Subresource]++
	}
	t.Logf("a new revision for %d clusters, ten per cent at a time: %s, writes %v", clusters, took.Round(time.Millisecond), counts)
	if n := counts["patch proxyassemblages "]; n != clusters {
		t.Errorf("%d writes to assemblages of %d clusters", n, clusters)
	}
	if n := counts["update modules status"]; n > 10+clusters {
		t.Errorf("%d writes of the status for %d clusters", n, clusters)
	}
}

// world is a hub with clusters, and somebody who plays them.
type world struct {
	t         *testing.T
	client    client.WithWatch
	namespace string
	requests  *fault.Injector
}

func newWorld(t *testing.T) *world {
	t.Helper()
	paths := []string{"../../internal/manifests/generated/fleet"}
	if _, err := envtest.InstallCRDs(testenv.Shared().Config(), envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
	scheme, err := kube.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cfg := testenv.Shared().Config()
	cfg.QPS, cfg.Burst = -1, 0
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, namespace: testenv.Namespace(t), requests: fault.New()}
	for i := range clusters {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: cluster.SecretName(fmt.Sprintf("c%d", i)), Labels: map[string]string{"spillway.dev/cluster": "true"},
		}}
		if err := c.Create(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	w.play()
	w.manage()
	return w
}

func (w *world) manage() {
	o := manager.Options{
		Rings: []string{manager.RingFleet}, Namespaces: []string{w.namespace}, MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
		Fleet: fleet.Options{Now: time.Now, Assemblages: func(context.Context, ctrl.Manager, *cluster.Directory) error { return nil }},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Run(ctx, w.requests.Wrap(testenv.Shared().Config()), o) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// play answers every assignment with success.
func (w *world) play() {
	ctx, cancel := context.WithCancel(context.Background())
	events, err := w.client.Watch(ctx, &v1alpha1.ProxyAssemblageList{}, client.InNamespace(w.namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			if a, ok := e.Object.(*v1alpha1.ProxyAssemblage); ok && a.Status.ObservedGeneration != a.Generation {
				w.succeed(ctx, a)
			}
		}
	}()
	w.t.Cleanup(func() { cancel(); events.Stop(); <-done })
}

func (w *world) succeed(ctx context.Context, a *v1alpha1.ProxyAssemblage) {
	now := metav1.NowMicro()
	a.Status = v1alpha1.AssemblageStatus{ObservedGeneration: a.Generation}
	for i := range a.Spec.Assemblage.Syncs {
		s := &a.Spec.Assemblage.Syncs[i]
		a.Status.Syncs = append(a.Status.Syncs, v1alpha1.SyncStatus{
			Name: s.Name, Revision: s.Revision, AssignedAt: s.AssignedAt, State: v1alpha1.StateSucceeded, LastTransitionTime: &now, LastSucceededRevision: s.Revision,
		})
	}
	_ = w.client.Status().Update(ctx, a) // who was faster is answered in turn
}

// complete waits until all clusters run what the module says, however long it takes
// as long as it goes on.
func (w *world) complete() {
	w.t.Helper()
	last, m := "", &v1alpha1.Module{}
	for {
		testenv.Eventually(w.t, func(ctx context.Context) error {
			if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: app}, m); err != nil {
				return err
			}
			if m.Status.Clusters == last {
				return fmt.Errorf("it does not go on at %s: %s %s", last, m.Status.Phase, m.Status.WaitingFor)
			}
			return nil
		})
		last = m.Status.Clusters
		done := []bool{m.Status.Phase == "Complete", m.Status.ObservedGeneration == m.Generation, last == fmt.Sprintf("%d/%d", clusters, clusters)}
		if !slices.Contains(done, false) && m.Status.CurrentRevision == m.Status.TargetRevision {
			return
		}
	}
}
