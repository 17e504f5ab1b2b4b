package config_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/policy"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/zones"
)

// member is a workload of a story. The zones of a group are one unit.
type member struct {
	kind, name, unit string
	pods             int
}

// cast is how many workloads share the Secret of a story. A group has so many zones.
type cast struct{ deployments, groups, zones, daemons int }

func (c cast) members() []member {
	var all []member
	for i := range c.deployments {
		name := fmt.Sprintf("app%02d", i)
		all = append(all, member{"Deployment", name, name, 1})
	}
	for g := range c.groups {
		for z := range c.zones {
			group := fmt.Sprintf("ring%d", g)
			all = append(all, member{"StatefulSet", fmt.Sprintf("%s-%c", group, 'a'+z), group, 1})
		}
	}
	for i := range c.daemons {
		name := fmt.Sprintf("node%d", i)
		all = append(all, member{"DaemonSet", name, name, 3})
	}
	return all
}

func (m *member) manifest(priority string) string {
	text := still(workload(m.kind, m.name, envFrom(secretRef("db")), native+"priority", priority))
	if m.kind == "StatefulSet" {
		text = replaceOnce(text, "metadata: {name: "+m.name, "metadata: {labels: {rollout-group: "+m.unit+"}, name: "+m.name)
		text = replaceOnce(text, "serviceName: x", "serviceName: x\n  podManagementPolicy: Parallel\n  updateStrategy: {type: OnDelete}")
	}
	return text
}

// story is a Secret that many workloads share, under the default policy of an installation.
type story struct {
	*world

	kubelets *kubelets
	members  []member
	// first is the unit that is rolled first: it has the highest priority.
	first   string
	returns bool
	judge   *judge
	inj     *fault.Injector
}

// newStory makes a world in which all workloads of a cast are ready with the first value, and
// a manager has stopped. With returns the policy also gives what fails its previous config back.
func newStory(w *world, c cast, first string, returns bool) *story {
	t := w.t
	t.Helper()
	s := &story{world: w, members: c.members(), first: first, returns: returns, inj: fault.New()}
	s.options.Zones, s.options.CoalesceWindow = true, 0
	objects, err := manifests.KindsOf([]string{manager.RingConfig, manager.RingZones})
	if err != nil {
		t.Fatal(err)
	}
	testenv.Kinds(t, s.client, objects)
	spec := policy.Default().Spec.ConfigPolicySpec
	spec.Stages[0].Soak = nil // the story has no minute
	if returns {
		pinnable(s.world)
		spec.PinConfig, spec.OnFailure = true, v1alpha1.RollbackConfig
	}
	testenv.Apply(t, s.client, &v1alpha1.ConfigPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: policy.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "staged"}, Spec: spec,
	})
	s.kubelets = startKubelets(s.world)
	s.secret("db", "p", "good")
	for i := range s.members {
		priority := "0"
		if s.members[i].unit == first {
			priority = "1"
		}
		s.apply(s.members[i].manifest(priority))
	}
	stop := s.managed(fault.New())
	s.whole("good")
	s.phase("staged", "Complete")
	stop()
	s.judge = newJudge(s)
	return s
}

// managed starts a manager of both rings on a transport.
func (s *story) managed(inj *fault.Injector) (stop func()) {
	o := manager.Options{
		Rings: []string{manager.RingConfig, manager.RingZones}, Namespaces: s.options.Namespaces, Config: s.options,
		Zones:          zones.Options{Now: time.Now, StatusDelay: 300 * time.Millisecond},
		MetricsAddress: "0", ProbeAddress: "0", Version: "test", LeaseNamespace: s.options.LeaseNamespace, LeaseName: s.options.LeaseName,
	}
	return testenv.Managed(s.t, inj, func(ctx context.Context, log logr.Logger) error {
		o.Log = log
		return manager.Run(ctx, inj.Wrap(testenv.Shared().Config()), o)
	})
}

// whole waits until all Pods of all workloads are ready with a value, and no other one exists.
func (s *story) whole(value string) {
	s.t.Helper()
	hash := wantHash(s.t, nil, values{"db": {"p": value}})
	s.eventually(func() error {
		list := &corev1.PodList{}
		if err := s.client.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		has := map[string]int{}
		for i := range list.Items {
			p := &list.Items[i]
			if p.Annotations[waveHash] == hash && isReady(p) && p.DeletionTimestamp == nil {
				has[p.Labels["app"]]++
			} else {
				has[p.Labels["app"]] -= 100
			}
		}
		for _, m := range s.members {
			if has[m.name] != m.pods {
				return fmt.Errorf("%s %s has %d of %d Pods with %q", m.kind, m.name, has[m.name], m.pods, value)
			}
		}
		return nil
	})
}

// templates are the Pod templates of all workloads.
func (s *story) templates() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	for _, m := range s.members {
		raw, err := json.Marshal(s.template(m.kind, m.name))
		if err != nil {
			s.t.Fatal(err)
		}
		all[m.name] = string(raw)
	}
	return all
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// goesBad writes a bad value, and waits until it has come to its end: one unit has failed with
// it, and the others have not got it.
func (s *story) goesBad() {
	s.t.Helper()
	before, pods := s.templates(), s.judge.created()
	s.secret("db", "p", "bad")
	for i := range s.members { // one after another: a machine with other work may take long for all of them
		s.eventually(func() error { return s.isHeld(&s.members[i]) })
	}
	s.eventually(s.isFailed)
	if s.returns {
		s.whole("good")
	}
	s.phase("staged", "Failed")
	s.judge.catchUp()
	now := s.judge.created()
	for _, m := range s.members {
		if m.unit != s.first && now[m.unit] != pods[m.unit] {
			s.t.Errorf("%d Pods of %s were replaced", now[m.unit]-pods[m.unit], m.unit)
		}
	}
	after := s.templates()
	for _, m := range s.members {
		if (s.returns || m.unit != s.first) && after[m.name] != before[m.name] {
			s.t.Errorf("the Pod template of %s is %s, and was %s", m.name, after[m.name], before[m.name])
		}
	}
	s.judge.check(s.t)
	if most := s.judge.most("bad"); most != 1 {
		s.t.Errorf("%d units had Pods with the bad value at the same time", most)
	}
	for _, app := range s.kubelets.ranWith("bad") {
		if s.judge.units[app] != s.first {
			s.t.Errorf("%s ran the bad value", app)
		}
	}
}

// isHeld is nil once a workload says that the bad value has failed, if it is not one of those
// that failed.
func (s *story) isHeld(m *member) error {
	obj := workloads.New(m.kind)
	if err := s.get(obj, m.name); err != nil {
		return err
	}
	status := obj.GetAnnotations()[native+"config-status"]
	if m.unit != s.first && !strings.Contains(status, "ConfigFailed") {
		return fmt.Errorf("%s %s has the condition %q", m.kind, m.name, status)
	}
	return nil
}

// isFailed is nil once the unit that is first says that it failed, and went back if it is to.
func (s *story) isFailed() error {
	for _, m := range s.members {
		obj := workloads.New(m.kind)
		if err := s.get(obj, m.name); err != nil {
			return err
		}
		failed, status := slices.Contains(s.failedWith("Secret", "db"), m.name), obj.GetAnnotations()[native+"config-status"]
		if m.unit == s.first && failed && (!s.returns || strings.Contains(status, rolledBack)) {
			return nil
		}
	}
	return fmt.Errorf("%s has not failed", s.first)
}

// goesWell writes a good value, and waits until all have it.
func (s *story) goesWell(value string) {
	s.t.Helper()
	s.secret("db", "p", value)
	for n := range s.members {
		s.eventually(func() error {
			if ran := len(s.kubelets.ranWith(value)); ran <= n {
				return fmt.Errorf("%d workloads ran %s", ran, value)
			}
			return nil
		})
	}
	s.whole(value)
	s.phase("staged", "Complete")
	s.judge.catchUp()
	s.judge.check(s.t)
}

// judge sees each change of a Pod on a watch of its own, and gives its verdict on each instant
// that the API server reports. It knows nothing of the manager.
type judge struct {
	s     *story
	units map[string]string
	of    map[string]int

	mu   sync.Mutex
	pods map[types.UID]witnessed
	// proven are the hashes with which all Pods of a unit were ready at some time.
	proven map[string]bool
	// together is how many units at most had Pods with a hash at an instant.
	together map[string]int
	// early are units that got a hash before it was proven by another one.
	early []string
	news  map[string]int
	// last is the name of the last Pod that belongs to no unit.
	last string
}

// witnessed is a Pod at an instant.
type witnessed struct {
	unit, hash string
	ready      bool
}

func newJudge(s *story) *judge {
	s.t.Helper()
	j := &judge{s: s, units: map[string]string{}, of: map[string]int{}, pods: map[types.UID]witnessed{}, together: map[string]int{}, news: map[string]int{}}
	for _, m := range s.members {
		j.units[m.name] = m.unit
		j.of[m.unit] += m.pods
	}
	j.proven = map[string]bool{wantHash(s.t, nil, values{"db": {"p": "good"}}): true}
	c, err := testenv.Shared().Clientset()
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := c.CoreV1().Pods(s.namespace).Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok {
				j.see(pod, e.Type == "DELETED")
			}
		}
	}()
	j.catchUp()
	return j
}

// see notes an instant.
func (j *judge) see(pod *corev1.Pod, gone bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := witnessed{unit: j.units[pod.Labels["app"]], hash: pod.Annotations[waveHash], ready: isReady(pod) && pod.DeletionTimestamp == nil}
	if now.unit == "" {
		j.last = pod.Name
		return
	}
	_, known := j.pods[pod.UID]
	if gone {
		delete(j.pods, pod.UID)
		return
	}
	j.pods[pod.UID] = now
	has, ready := map[string]int{}, 0
	for _, p := range j.pods {
		if p.hash == now.hash {
			has[p.unit]++
			if p.unit == now.unit && p.ready {
				ready++
			}
		}
	}
	if !known {
		j.news[now.unit]++
		if has[now.unit] == 1 && len(has) > 1 && !j.proven[now.hash] {
			j.early = append(j.early, now.unit)
		}
	}
	j.together[now.hash] = max(j.together[now.hash], len(has))
	j.proven[now.hash] = j.proven[now.hash] || ready == j.of[now.unit]
}

// catchUp waits until the judge has seen all that has happened so far.
func (j *judge) catchUp() {
	j.s.t.Helper()
	name := fmt.Sprintf("sentinel-%d", time.Now().UnixNano())
	j.s.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + "}\nspec: {containers: [{name: c, image: x}]}")
	j.s.eventually(func() error {
		j.mu.Lock()
		defer j.mu.Unlock()
		return want(name, j.last)
	})
	j.s.remove(&corev1.Pod{}, name)
}

// created is how many Pods of each unit were created so far.
func (j *judge) created() map[string]int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.news)
}

// most is how many units at most had Pods with a value at an instant.
func (j *judge) most(value string) int {
	hash := wantHash(j.s.t, nil, values{"db": {"p": value}})
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.together[hash]
}

// check fails if a unit got a value before another one was ready with it.
func (j *judge) check(t *testing.T) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.early) > 0 {
		t.Errorf("%v got a value that had not proven to work", j.early)
	}
}

// tell tells a story from the bad value to the good one, and says what it cost.
func (s *story) tell() {
	s.t.Helper()
	start := time.Now()
	s.goesBad()
	bad, writes := time.Since(start), len(s.inj.Writes())
	if most := 3*len(s.members) + 20; writes > most { // a failure is said on each workload once
		s.t.Errorf("%d writes until all was stopped, want at most %d", writes, most)
	}
	start = time.Now()
	s.goesWell("good2")
	s.t.Logf("%d workloads, %s first: stopped in %s with %d writes, the good value in %s with %d writes", len(s.members), s.first,
		bad.Round(time.Millisecond), writes, time.Since(start).Round(time.Millisecond), len(s.inj.Writes())-writes)
}

// The smaller casts are for every run, the whole one for a release.
var (
	smallestCast = cast{2, 1, 2, 1}
	smallCast    = cast{8, 1, 3, 1}
	wholeCast    = cast{50, 5, 2, 2}
)

// A Secret goes bad that Deployments, zones of groups and DaemonSets share. With the default
// policy one of them runs it, whichever is first. With onFailure: Rollback all is then as it was
// before. A good value gets to all, one first.
func TestTheStoryOfABadSecret(t *testing.T) {
	for _, c := range []cast{smallCast, wholeCast}[:testenv.Size(1, 2)] {
		for _, of := range []struct {
			first   string
			returns bool
		}{{"app00", false}, {"ring0", true}, {"node0", true}, {"app00", true}, {"ring0", false}, {"node0", false}}[:testenv.Size(3, 6)] {
			t.Run(fmt.Sprintf("%d workloads, %s first, returns %v", len(c.members()), of.first, of.returns), func(t *testing.T) {
				s := newStory(newWorld(t), c, of.first, of.returns)
				s.managed(s.inj)
				s.tell()
			})
		}
	}
}

// Without a policy all workloads get the bad value in the same moment, and the judge says so.
func TestTheJudgeOfTheStory(t *testing.T) {
	s := newStory(newWorld(t), cast{3, 0, 0, 1}, "app00", false)
	s.managed(s.inj)
	s.policy("staged", "{priority: 1}")
	s.secret("db", "p", "bad")
	s.eventually(func() error { return want(4, len(s.kubelets.ranWith("bad"))) })
	s.judge.catchUp()
	if most := s.judge.most("bad"); most != 4 || len(s.judge.early) != 3 {
		t.Errorf("%d units had the bad value at the same time, and %v too early", most, s.judge.early)
	}
}

// aStory is the smallest story in which all that writes takes part: a group is first, and goes
// back.
func aStory(w *world) *story {
	w.t.Helper()
	return newStory(w, smallestCast, "ring0", true)
}

// TestFaultTheStory stops the manager before and after writes of the story, all of them before a
// release, and starts another one that continues.
func TestFaultTheStory(t *testing.T) {
	writes := 0
	t.Run("without a fault", func(t *testing.T) {
		s := aStory(newWorldNow(t))
		s.managed(s.inj)
		s.tell()
		writes = len(s.inj.Writes())
	})
	t.Run("faults", func(t *testing.T) {
		points := testenv.Size(2, writes)
		for i := range points {
			for _, when := range []fault.When{fault.Before, fault.After} {
				n := 1 + i*writes/points
				t.Run(fmt.Sprintf("%s write %d of %d", when, n, writes), func(t *testing.T) {
					s := aStory(newWorld(t))
					s.inj.StopAt(n, when)
					s.meanwhile = s.inj.WithSuccessor(s.managed)
					s.tell()
					if !s.inj.HasStopped() && n < writes*3/4 { // how many writes of a status are one differs
						t.Errorf("only %d writes, want to stop at %d", len(s.inj.Writes()), n)
					}
				})
			}
		}
	})
}

// TestFaultEveryWriteOfTheStory tells the story with managers each of which stops at the first
// write that it can, so that nothing is ever remembered but by what was written. Before a release
// it does so with all workloads.
func TestFaultEveryWriteOfTheStory(t *testing.T) {
	for _, c := range []cast{smallestCast, wholeCast}[:testenv.Size(1, 2)] {
		for _, when := range []fault.When{fault.Before, fault.After} {
			t.Run(fmt.Sprintf("%s each write, %d workloads", when, len(c.members())), func(t *testing.T) {
				s := newStory(newWorld(t), c, "ring0", true)
				n := fault.Relay(when, nil, func(begin fault.Begin) {
					s.meanwhile = begin(s.managed)
					s.tell()
				})
				// Each workload says that the value failed, and gets the good one; nothing is taken back.
				if n < 2*len(s.members) || n > 6*len(s.members)+20 {
					t.Errorf("%d writes for %d workloads", n, len(s.members))
				}
			})
		}
	}
}

// TestFaultTwoManagersTellTheStory has two managers that know nothing of each other.
func TestFaultTwoManagersTellTheStory(t *testing.T) {
	s := aStory(newWorld(t))
	s.managed(s.inj)
	s.managed(fault.New())
	s.tell()
}

// TestFaultCachesLagInTheStory has a manager that again and again sees nothing for a while.
func TestFaultCachesLagInTheStory(t *testing.T) {
	s := aStory(newWorld(t))
	s.managed(s.inj)
	looked, release := 0, func() {}
	t.Cleanup(func() { release() })
	s.meanwhile = func() {
		switch looked++; looked % 8 {
		case 1:
			release = s.inj.HoldWatches()
		case 5:
			release()
		}
	}
	s.tell()
}
