package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// quiet is the context of all: the log says nothing.
var quiet = logr.NewContext(context.Background(), logr.Discard())

// manager is the leader, on what it sees of the world.
type manager struct {
	world *world
	rules *rules
	run   *config.Offline
	// view is each kind as it was at some moment, pods the Pods.
	view   map[reflect.Type][]client.Object
	at     map[reflect.Type]int64
	pods   []*corev1.Pod
	podsAt int
	seen   time.Time
	// looked is true while nothing that it sees has changed since its last pass, wake when it looks again.
	looked bool
	wake   time.Time
	// passes count, dies is true of the one in which it is killed.
	passes int
	dies   bool
	// wrote is what its pass has written, and knows of.
	wrote []client.Object
	// unstable is true while writes fail.
	unstable bool
}

// cached are the kinds that a manager has caches of.
var cached = []client.Object{
	&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &corev1.ConfigMap{}, &corev1.Secret{},
	&v1alpha1.ConfigRollout{}, &v1alpha1.ClusterConfigPolicy{}, &v1alpha1.ConfigPolicy{},
}

func newManager(w *world, r *rules) *manager {
	m := &manager{world: w, rules: r}
	w.oracle.sees = m.sees
	m.begin()
	return m
}

// begin is a new process: nothing is known, and all is read.
func (m *manager) begin() {
	w := m.world
	m.view, m.at, m.looked = map[reflect.Type][]client.Object{}, map[reflect.Type]int64{}, false
	o := config.Options{Options: decision.Options{MaxRolling: w.rolling, CoalesceWindow: 2 * time.Second}, Namespaces: nil, Now: func() time.Time { return w.now }}
	m.run = config.NewOffline(kube.Offline{Client: seeing{w.store, m}, Indexer: w.store}, o)
	m.run.ReadPods(seenPods{m})
	m.run.ReadValues(w.store)
	if w.told && m.rules.decide == nil {
		m.run.DecideBy(func(o decision.Observed, op decision.Options) decision.Plan {
			p := decision.Decide(o, op)
			for _, s := range p.Steps {
				w.notef("   step %v %s->%s", s.Path, s.From, s.To)
			}
			for _, s := range p.Holds {
				w.notef("   hold %v %s %s %v", s.Path, s.Reason, s.Message, s.Until)
			}
			return p
		})
	}
	if m.rules.decide != nil {
		m.run.DecideBy(m.rules.decide)
	}
	m.refresh(0)
}

// sees is the value of an object in the cache.
func (m *manager) sees(o content.Object) string {
	for _, obj := range m.view[reflect.TypeOf(o.Kind.New())] {
		switch is := obj.(type) {
		case *corev1.Secret:
			if is.Name == o.Name {
				return string(is.Data["v"])
			}
		case *corev1.ConfigMap:
			if is.Name == o.Name {
				return is.Data["v"]
			}
		}
	}
	return ""
}

// refresh looks again at some of the kinds.
func (m *manager) refresh(lazy float64) {
	w := m.world
	for _, kind := range cached {
		if m.view[reflect.TypeOf(kind)] == nil || !w.chance(lazy) {
			m.catchUp(kind)
		}
	}
	if m.podsAt != w.podsAt && (!w.chance(lazy) || w.now.Sub(m.seen) > 15*time.Second) {
		m.pods, m.podsAt, m.looked = w.allPods(), w.podsAt, false
	}
	if m.podsAt == w.podsAt {
		m.seen = w.now
	}
}

func (w *world) allPods() []*corev1.Pod {
	var all []*corev1.Pod
	for _, u := range w.units {
		for _, p := range u.pods {
			all = append(all, p.object)
		}
	}
	return all
}

// catchUp has a cache show what there is.
func (m *manager) catchUp(kind client.Object) {
	is, t := m.world.store.Objects(kind, ""), reflect.TypeOf(kind)
	if was, known := m.view[t]; known && slices.Equal(was, is) {
		return
	}
	m.view[t], m.looked = is, false
}

// act is one pass, if there is any reason for it.
func (m *manager) act() {
	w := m.world
	lazy := 0.0
	if w.storm {
		lazy = 0.3
	}
	if w.storm && w.chance(0.01) {
		w.notef("the manager is killed")
		w.count("kills")
		m.begin()
	}
	m.refresh(lazy)
	if m.looked && (m.wake.IsZero() || w.now.Before(m.wake)) {
		return
	}
	m.passes++
	m.looked, m.dies, m.unstable = true, w.storm && w.chance(0.02), w.storm && w.chance(0.1)
	w.count("passes")
	result, err := m.run.Reconcile(quiet, reconcile.Request{})
	m.over()
	w.notef("pass %d: again in %s, %v", m.passes, result.RequeueAfter, err)
	m.wake = time.Time{}
	switch {
	case m.dies:
		w.notef("the manager is killed amid its writes")
		w.count("kills amid writes")
		m.begin()
	case err != nil:
		m.wake = w.now.Add(time.Second)
	case result.RequeueAfter > 0:
		m.wake = w.now.Add(result.RequeueAfter)
	}
}

// over is the end of a pass: what it has written is checked, and seen from then on.
func (m *manager) over() {
	w := m.world
	w.oracle.byRing = true
	w.oracle.check()
	w.oracle.byRing = false
	for _, obj := range m.wrote {
		m.catchUp(obj)
	}
	m.looked, m.wrote = m.looked && len(m.wrote) == 0, nil
}

// errTransient heals automatically.
var errTransient = apierrors.NewInternalError(errors.New("it failed for a moment"))

// write makes a write, or not. What becomes of it follows from the pass and the object, as several
// are made at a time.
func (m *manager) write(obj client.Object, write func() error) error {
	w := m.world
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, m.passes, w.oracle.writes == 0, reflect.TypeOf(obj), obj.GetName())
	dice := h.Sum64() % 8
	switch {
	case m.dies && dice < 4:
		return fault.ErrStopped
	case m.unstable && dice == 0:
		return errTransient
	case m.unstable && dice == 1:
		return apierrors.NewConflict(schema.GroupResource{}, obj.GetName(), errors.New("another client was faster"))
	}
	w.oracle.mu.Lock()
	defer w.oracle.mu.Unlock()
	err := write()
	if m.dies || m.unstable && dice == 2 {
		return fault.ErrStopped // it was made, and the answer is lost
	}
	if err == nil {
		m.wrote = append(m.wrote, obj)
	}
	return err
}

// seeing is the client of the manager: it reads from caches.
type seeing struct {
	client.Client

	m *manager
}

// Get implements [client.Reader].
func (s seeing) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	view, ok := s.m.view[reflect.TypeOf(obj)]
	if !ok {
		return s.Client.Get(ctx, key, obj, opts...)
	}
	for _, is := range view {
		if client.ObjectKeyFromObject(is) == key {
			reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(is.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}, key.Name)
}

// List implements [client.Reader].
func (s seeing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var kind client.Object
	switch list.(type) {
	case *appsv1.DeploymentList:
		kind = cached[0]
	case *appsv1.StatefulSetList:
		kind = cached[1]
	case *appsv1.DaemonSetList:
		kind = cached[2]
	case *v1alpha1.ConfigRolloutList:
		kind = cached[5]
	case *v1alpha1.ClusterConfigPolicyList:
		kind = cached[6]
	case *v1alpha1.ConfigPolicyList:
		kind = cached[7]
	default:
		return s.Client.List(ctx, list, opts...)
	}
	var items []runtime.Object
	for _, obj := range s.m.view[reflect.TypeOf(kind)] {
		items = append(items, obj)
	}
	return apimeta.SetList(list, items)
}

// Create implements [client.Writer].
func (s seeing) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return s.m.write(obj, func() error { return s.Client.Create(ctx, obj, opts...) })
}

// Patch implements [client.Writer].
func (s seeing) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return s.m.write(obj, func() error { return s.Client.Patch(ctx, obj, patch, opts...) })
}

// Update implements [client.Writer].
func (s seeing) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return s.m.write(obj, func() error { return s.Client.Update(ctx, obj, opts...) })
}

// Delete implements [client.Writer]. Pods are the world's.
func (s seeing) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return s.m.write(obj, func() error {
		if _, ok := obj.(*corev1.Pod); ok {
			s.m.world.deletePod(obj.GetName())
			return nil
		}
		return s.Client.Delete(ctx, obj, opts...)
	})
}

// Status implements [client.StatusClient].
func (s seeing) Status() client.SubResourceWriter { return seeingStatus{s.Client.Status(), s.m} }

type seeingStatus struct {
	client.SubResourceWriter

	m *manager
}

// Update implements [client.SubResourceWriter].
func (s seeingStatus) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return s.m.write(obj, func() error { return s.SubResourceWriter.Update(ctx, obj, opts...) })
}

// deletePod takes a Pod away.
func (w *world) deletePod(name string) {
	w.count("stuck Pods replaced")
	for _, u := range w.units {
		u.pods = slices.DeleteFunc(u.pods, func(p *pod) bool { return p.object.Name == name })
	}
	w.podsAt++
}

// seenPods are the Pods as the manager sees them.
type seenPods struct{ m *manager }

// In implements [pods.Reader].
func (s seenPods) In(context.Context, string) pods.Pods { return pods.Pods{Items: s.m.pods} }

// Keep implements [pods.Reader].
func (seenPods) Keep(map[string]bool) {}
