package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

var allZones = []string{"zone-a", "zone-b", "zone-c"}

// TestGuardsHoldFromTheFirstRequest drains all zones all the time while the API server is killed and
// started again: from before it is ready, and until it knows the kind of the budgets.
// No manager runs at first, and no Pod goes; then one answers, and one zone at a time has Pods that
// are down. Where there is no budget, evictions go on.
func TestGuardsHoldFromTheFirstRequest(t *testing.T) {
	t.Parallel()
	cp := testenv.Own(t, controlplane.Options{Nodes: 3})
	w := newWorldOn(t, cp, "default")
	installKinds(t, w.client)
	address := w.register()
	unlabeled, free := newWorldOn(t, cp, "unlabeled"), newWorldOn(t, cp, "free")
	for _, other := range []*world{unlabeled, free} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other.namespace}}
		if err := w.client.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		other.group(zone("zone-a", 1))
	}
	unlabeled.create(budget())
	w.group(zone("zone-a", 2), zone("zone-b", 2), zone("zone-c", 2))
	w.create(budget(most(1)))
	stop := w.manageAt(cp, address)
	w.labeledForEvictions()
	stop()
	unlabeled.eventuallyRefused(func() error { return unlabeled.evict("zone-a-0", client.DryRunAll) }, "with ZoneAwarePodDisruptionBudget")

	before := w.uids()
	draining := w.drains()
	for range 3 {
		w.restart(cp, unlabeled)
	}
	wantNo(t, free.evict("zone-a-0"))
	if evicted := draining.stop(); len(evicted) > 0 {
		t.Errorf("without a manager were evicted: %v", evicted)
	}
	if after := w.uids(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the Pods are %v, and were %v", after, before)
	}

	w.manageAt(cp, address)
	draining = w.drains()
	testenv.Eventually(t, func(context.Context) error { return draining.some() })
	w.restart(cp, unlabeled)
	testenv.Eventually(t, func(context.Context) error { return draining.some() })
	draining.stop()
}

// register declares the webhooks of the guards at a loopback address, and the policies about what
// they do not answer, as they are shipped.
func (w *world) register() (address string) {
	w.t.Helper()
	port, err := controlplane.FreePort()
	if err != nil {
		w.t.Fatal(err)
	}
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	declared := guard.Declare(w.options)
	registration := admission.Registration{Metadata: metav1.ObjectMeta{Name: "guards"}, Client: admission.ByURL("https://" + address), Namespaces: []string{w.namespace}}
	for _, obj := range append(registration.Configurations(declared.Webhooks), declared.Unanswered...) {
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
	return address
}

// manageAt runs a manager of the namespace, until the end of the test or the stop.
func (w *world) manageAt(cp *controlplane.ControlPlane, address string) (stop func()) {
	w.t.Helper()
	return testenv.Managed(w.t, fault.New(), func(ctx context.Context, log logr.Logger) error {
		return manager.Run(ctx, cp.Config(), manager.Options{
			Rings: []string{manager.RingZones}, Namespaces: []string{w.namespace}, Zones: zones.Options{Now: time.Now}, MetricsAddress: "0", ProbeAddress: "0", Log: log,
			Admission: admission.Options{Enabled: true, Address: address, Hosts: []string{"127.0.0.1"}, Namespace: w.namespace, Own: []string{"guards"}, Only: []string{"guards"}, Now: time.Now},
		})
	})
}

func (w *world) labeledForEvictions() {
	w.t.Helper()
	testenv.Eventually(w.t, func(ctx context.Context) error {
		ns := &corev1.Namespace{}
		if err := w.client.Get(ctx, client.ObjectKey{Name: w.namespace}, ns); err != nil {
			return err
		}
		if ns.Labels["spillway.dev/guards-evictions"] != "true" {
			return fmt.Errorf("namespace %s has the labels %v", w.namespace, ns.Labels)
		}
		return nil
	})
}

// restart kills the API server and starts it, and returns once it knows the kind of the budgets.
func (w *world) restart(cp *controlplane.ControlPlane, unlabeled *world) {
	w.t.Helper()
	cp.StopAPIServer()
	if err := cp.StartAPIServer(context.WithoutCancel(w.t.Context())); err != nil {
		w.t.Fatal(err)
	}
	unlabeled.eventuallyRefused(func() error { return unlabeled.evict("zone-a-0", client.DryRunAll) }, "with ZoneAwarePodDisruptionBudget")
}

// uids are those of the Pods of all zones.
func (w *world) uids() map[string]types.UID {
	w.t.Helper()
	uids := map[string]types.UID{}
	for _, zone := range allZones {
		for i := range 2 {
			pod := &corev1.Pod{}
			name := fmt.Sprintf("%s-%d", zone, i)
			w.get(name, pod)
			uids[name] = pod.UID
		}
	}
	return uids
}

// drain is a drain of all zones, and the witness of what is down meanwhile.
type drain struct {
	stop func() []string

	mu      sync.Mutex
	evicted []string
	seen    int
}

// some is nil if Pods were evicted since it was nil last.
func (d *drain) some() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.evicted) == d.seen {
		return errors.New("nothing was evicted")
	}
	d.seen = len(d.evicted)
	return nil
}

// drains evicts the Pods of all zones, each zone beside the others, without a pause, until it is
// stopped. Meanwhile a witness lists the Pods, and fails if two zones have some that are down.
func (w *world) drains() *drain {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d, all := &drain{}, sync.WaitGroup{}
	for _, zone := range allZones {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				pod := fmt.Sprintf("%s-%d", zone, i%2)
				err := w.client.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pod}}, &policyv1.Eviction{})
				if err == nil {
					d.mu.Lock()
					d.evicted = append(d.evicted, pod)
					d.mu.Unlock()
				}
			}
		})
	}
	all.Go(func() {
		for ctx.Err() == nil {
			if down := w.down(ctx); len(down) > 1 {
				w.t.Errorf("down at the same time: %v", down)
				return
			}
		}
	})
	d.stop = sync.OnceValue(func() []string {
		cancel()
		all.Wait()
		return d.evicted
	})
	w.t.Cleanup(func() { d.stop() })
	return d
}

// down are the zones with Pods that do not exist, are terminating or not ready.
func (w *world) down(ctx context.Context) []string {
	pods := &corev1.PodList{}
	if err := w.client.List(ctx, pods, client.InNamespace(w.namespace)); err != nil {
		return nil
	}
	ready := map[string]int{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				ready[pod.Name[:strings.LastIndexByte(pod.Name, '-')]]++
			}
		}
	}
	var down []string
	for _, zone := range allZones {
		if ready[zone] < 2 {
			down = append(down, zone)
		}
	}
	return down
}
