package plans_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/testenv"
	"github.com/spillway-dev/spillway/internal/testenv/fault"
)

// story is a life of an Instance whose plans have twelve steps and every kind of
// task, and what is to be seen of it.
type story struct {
	*cluster

	witness *witness
}

func newStory(t *testing.T) *story {
	t.Helper()
	c := twelveSteps(t)
	s := &story{cluster: c, witness: newWitness(c)}
	c.instance("web", "app-1")
	return s
}

// tell waits for the end of the plan; meanwhile is called all along.
func (s *story) tell(meanwhile func()) {
	s.t.Helper()
	s.eventually(func() error {
		meanwhile()
		if got := s.history("web"); got != "deploy Complete" {
			i := s.now("web")
			return fmt.Errorf("the history is %q; it waits for %q at %q", got, i.Status.WaitingFor, i.Status.Place)
		}
		return nil
	})
	s.witness.check()
}

// end is what the story comes to, without what tells one run from another.
func (s *story) end() map[string]string {
	s.t.Helper()
	end := map[string]string{}
	configMaps, secrets := &corev1.ConfigMapList{}, &corev1.SecretList{}
	s.list(configMaps)
	s.list(secrets)
	for i := range configMaps.Items {
		end["ConfigMap "+configMaps.Items[i].Name] = fmt.Sprint(configMaps.Items[i].Data)
	}
	for i := range secrets.Items {
		end["Secret "+secrets.Items[i].Name] = fmt.Sprint(slices.Sorted(maps.Keys(secrets.Items[i].Data)))
	}
	delete(end, "ConfigMap kube-root-ca.crt")
	end["Deployment app"] = fmt.Sprint(*s.deployment("app").Spec.Replicas)
	end["child"] = s.history("web-db")
	end["inventory"] = fmt.Sprint(len(s.now("web").Status.Inventory))
	return end
}

// witness sees every object that is created, and every status, on watches of its own.
type witness struct {
	c      *cluster
	mu     sync.Mutex
	uids   map[string]map[string]bool
	active []string
}

func newWitness(c *cluster) *witness {
	c.t.Helper()
	w := &witness{c: c, uids: map[string]map[string]bool{}}
	d, err := dynamic.NewForConfig(testenv.Shared().Config())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, resource := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "pods"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, v1beta1.GroupVersion.WithResource("instances"),
	} {
		watch, err := d.Resource(resource).Namespace(c.namespace).Watch(context.Background(), metav1.ListOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(watch.Stop)
		go func() {
			for e := range watch.ResultChan() {
				if u, ok := e.Object.(*unstructured.Unstructured); ok {
					w.see(u)
				}
			}
		}()
	}
	return w
}

func (w *witness) see(u *unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u.GetKind() == "Pod" && !strings.Contains(u.GetName(), ".") {
		return // a Deployment's
	}
	name := u.GetKind() + " " + u.GetName()
	if w.uids[name] == nil {
		w.uids[name] = map[string]bool{}
	}
	w.uids[name][string(u.GetUID())] = true
	if u.GetKind() == "Instance" {
		w.active = append(w.active, running(u))
	}
}

// running are the plans that a status shows to be in progress.
func running(u *unstructured.Unstructured) string {
	statuses, _, _ := unstructured.NestedMap(u.Object, "status", "planStatus")
	var all []string
	for name := range statuses {
		state, _, _ := unstructured.NestedString(statuses, name, "status")
		if v1beta1.ExecutionStatus(state).IsRunning() {
			all = append(all, name)
		}
	}
	return strings.Join(all, " and ")
}

// check fails if something was created twice, or a status showed two plans. An
// object that is created last proves that the witness has seen all before it.
func (w *witness) check() {
	w.c.t.Helper()
	w.c.eventually(func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.uids["ConfigMap use"]) == 0 || len(w.uids["Instance web"]) == 0 {
			return fmt.Errorf("the witness has seen %v", w.uids)
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, uids := range w.uids {
		if len(uids) > 1 {
			w.c.t.Errorf("%s was created %d times", name, len(uids))
		}
	}
	for _, plans := range w.active {
		if strings.Contains(plans, " and ") {
			w.c.t.Errorf("a status showed %s", plans)
		}
	}
}

// without is what the story comes to without a fault.
var without struct {
	sync.Mutex

	end    map[string]string
	writes []fault.Request
}

// undisturbed tells the story without a fault, once for all tests.
func undisturbed(t *testing.T) (end map[string]string, writes int) {
	t.Helper()
	without.Lock()
	defer without.Unlock()
	if without.end == nil {
		t.Run("without a fault", func(t *testing.T) {
			s := &story{cluster: calm(t)}
			s.witness = newWitness(s.cluster)
			s.manage()
			s.instance("web", "app-1")
			s.tell(func() {})
			without.end, without.writes = s.end(), s.faults.Writes()
			for _, w := range without.writes {
				t.Log(w)
			}
		})
	}
	return without.end, len(without.writes)
}

func (s *story) matches(end map[string]string) {
	s.t.Helper()
	if got := s.end(); !maps.Equal(got, end) {
		s.t.Errorf("the end is\n%v\nand not\n%v", got, end)
	}
}

// TestFaultTheManagerStopsAtEveryWrite runs a plan once without a fault, and then
// once for each write of it, stopping the manager before and after that write and
// starting another.
func TestFaultTheManagerStopsAtEveryWrite(t *testing.T) {
	end, writes := undisturbed(t)
	t.Logf("the story has %d writes", writes)
	for n := 1; n <= writes; n++ {
		for _, when := range []fault.When{fault.Before, fault.After} {
			t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				s, inj := newStory(t), fault.New()
				inj.StopAt(n, when)
				stop := s.manageWith(inj)
				successor := sync.OnceFunc(func() { stop(); s.manage() })
				s.tell(func() {
					select {
					case <-inj.Stopped():
						successor()
					default:
					}
				})
				s.matches(end)
			})
		}
	}
}

// TestFaultTwoManagersAtOnce has two managers that know nothing of each other.
func TestFaultTwoManagersAtOnce(t *testing.T) {
	end, _ := undisturbed(t)
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := newStory(t)
			s.manageWith(fault.New())
			s.manageWith(fault.New())
			s.tell(func() {})
			s.matches(end)
		})
	}
}

// TestFaultConflicts refuses every third write.
func TestFaultConflicts(t *testing.T) {
	end, _ := undisturbed(t)
	s, inj, n := newStory(t), fault.New(), 0
	inj.Conflict(func(fault.Request) bool { n++; return n%3 == 1 })
	s.manageWith(inj)
	s.tell(func() {})
	s.matches(end)
}

// TestFaultStatusWritesAreRefused keeps the status from being written for a while:
// nothing happens that it does not tell of.
func TestFaultStatusWritesAreRefused(t *testing.T) {
	end, _ := undisturbed(t)
	s, inj := newStory(t), fault.New()
	refused := make(chan struct{}, 1000)
	inj.Conflict(func(r fault.Request) bool {
		if r.Subresource == "status" {
			select {
			case refused <- struct{}{}:
			default:
			}
			return true
		}
		return false
	})
	s.manageWith(inj)
	for range 5 {
		<-refused
	}
	if s.data("base") != nil || s.data("extra") != nil {
		t.Error("a plan runs of which no status tells")
	}
	inj.Conflict(nil)
	s.tell(func() {})
	s.matches(end)
}

// TestFaultTheAPIServerGoesAway cuts the connection in the middle of a plan.
func TestFaultTheAPIServerGoesAway(t *testing.T) {
	end, _ := undisturbed(t)
	s, inj := newStory(t), fault.New()
	s.manageWith(inj)
	s.eventually(func() error {
		if s.data("base") == nil {
			return fmt.Errorf("it has not begun")
		}
		return nil
	})
	inj.Cut()
	inj.Restore()
	s.tell(func() {})
	s.matches(end)
}
