package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// The examples of the rollout RFC as they stand, with what they leave out in place of
// their dots, and the other reading of the second.
const (
	rfcReplace = `
apiVersion: fleet.squaremo.dev/v1alpha1
kind: Module
metadata: {name: replace, namespace: %[1]s}
spec:
  selector: {matchLabels: {env: dev}}
  strategy: Replace
  template: {spec: %[2]s}
`
	rfcIncremental = `
apiVersion: fleet.squaremo.dev/v1alpha1
kind: Module
metadata: {name: staging-canary, namespace: %[1]s}
spec:
  selector: {matchLabels: {env: staging}}
  strategy: Incremental
  rollout: {maxUnreadyClusters: 2}
  template: {spec: %[2]s}
`
	oneCanary = `
apiVersion: fleet.squaremo.dev/v1alpha1
kind: Module
metadata: {name: staging-canary, namespace: %[1]s}
spec:
  selector: {matchLabels: {env: staging}}
  strategy: Incremental
  rollout: {maxUnreadyClusters: 100%%, stages: [{name: canary, clusters: 1}, {name: rest}]}
  template: {spec: %[2]s}
`
	rfcTemplate = `{controlPlaneBindings: [{name: where, value: $(CLUSTER_NAME)}], sync: {
		source: {git: {url: %q, version: {tag: %s}}}, package: {kustomize: {substitute: {where: $(where)}}}}}`
	// slow is ready when the test says so, and not before.
	slow = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: "${where}", namespace: %s}
spec:
  replicas: 0
  selector: {matchLabels: {app: shop}}
  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: shop, image: shop}]}}
`
)

// staged is a world in which a module has come to four clusters of an environment, and
// its next revision is ready on each only once the test says so. The clusters are real:
// each of two API servers is known to the hub by two names.
type staged struct {
	*world

	example  string
	clusters []string
	witness  *witness
}

func stage(t *testing.T, example, env string) *staged {
	t.Helper()
	s := &staged{world: newWorld(t), example: example, clusters: []string{"k0", "k1", "k2", "k3"}}
	s.manage()
	for _, i := range []int{0, 1} {
		s.serve(i)
		s.create(s.on(i), namespaceOf(s.world))
	}
	for i, name := range slices.Concat(s.clusters, []string{"other"}) {
		secret := testenv.KubeconfigSecret(t, s.namespace, name, testenv.Workload(i%2))
		secret.Labels = map[string]string{"spillway.dev/cluster": "true", "env": env}
		if name == "other" {
			secret.Labels["env"] = "prod"
		}
		s.create(s.hub, secret)
	}
	s.publishText("v1", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: '${where}', namespace: %s}}", s.namespace))
	s.publishText("v2", fmt.Sprintf(slow, s.namespace))
	s.witness = s.look()
	s.apply("v1")
	s.isComplete()
	s.apply("v2")
	return s
}

// apply has the module of the example be at a tag.
func (s *staged) apply(tag string) {
	s.Helper()
	wanted := s.parse(tag)
	m := &v1alpha1.Module{ObjectMeta: metav1.ObjectMeta{Namespace: wanted.Namespace, Name: wanted.Name}}
	s.write(m, func() { m.Spec = wanted.Spec })
}

func (s *staged) parse(tag string) *v1alpha1.Module {
	s.Helper()
	m := &v1alpha1.Module{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, s.example, s.namespace, fmt.Sprintf(rfcTemplate, s.url, tag)), m); err != nil {
		s.Fatal(err)
	}
	return m
}

// isComplete waits until the module says that all its clusters are complete.
func (s *staged) isComplete() {
	s.Helper()
	name := s.parse("v1").Name
	testenv.Eventually(s.T, func(ctx context.Context) error {
		m := &v1alpha1.Module{}
		if err := s.hub.Get(ctx, s.key(name), m); err != nil {
			return err
		}
		if m.Status.Phase != "Complete" || m.Status.ObservedGeneration != m.Generation || int(m.Status.Summary.Succeeded) != len(s.clusters) {
			return fmt.Errorf("%s: %s", m.Status.Phase, m.Status.WaitingFor)
		}
		return nil
	})
}

// finish has what runs on a cluster become ready, once it exists.
func (s *staged) finish(name string) {
	s.Helper()
	c := s.on(slices.Index(s.clusters, name) % 2)
	testenv.Eventually(s.T, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, s.key(name), d); err != nil {
			return err
		}
		s.witness.permit(name)
		d.Status.ObservedGeneration = d.Generation
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}
		return c.Status().Update(ctx, d)
	})
}

// comes waits until so many clusters were assigned the next revision, and are not
// ready at it, and returns their names.
func (s *staged) comes(n int) []string {
	s.Helper()
	var down []string
	testenv.Eventually(s.T, func(context.Context) error {
		if down = s.witness.down(); len(down) != n {
			return fmt.Errorf("%v are not ready", down)
		}
		return nil
	})
	return down
}

// ends waits until all clusters are complete, and checks what was seen meanwhile.
func (s *staged) ends(most int) {
	s.Helper()
	s.isComplete()
	for i, name := range s.clusters {
		if err := s.on(i%2).Get(s.Context(), s.key(name), &appsv1.Deployment{}); err != nil {
			s.Error(err)
		}
	}
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	if s.witness.most != most {
		s.Errorf("%d clusters were not ready at a time, not %d: %v", s.witness.most, most, s.witness.story)
	}
	if err := s.hub.Get(s.Context(), s.key("other"), proxied()); client.IgnoreNotFound(err) != nil || err == nil {
		s.Errorf("a cluster that is not selected has an assemblage: %v", err)
	}
}

// witness sees every version of every assemblage of the hub, in the order in which the
// API server took them, and believes no report of a success that cannot be one.
type witness struct {
	t  *testing.T
	mu sync.Mutex
	// assignments are how the clusters stand; most is how many were not ready at a time.
	assignments map[string]assignmentState
	most        int
	// ready are the clusters on which the next revision may be ready.
	ready map[string]bool
	// first is the revision before the next, story which clusters came to be at the
	// next one, each with those that were not ready just then.
	first string
	story []string
}

// assignmentState is what a cluster was assigned, and whether it is ready at that.
type assignmentState struct {
	revision string
	ready    bool
}

// look begins to watch.
func (s *staged) look() *witness {
	s.Helper()
	c, err := client.NewWithWatch(testenv.Shared().Config(), client.Options{Scheme: s.hub.Scheme()})
	if err != nil {
		s.Fatal(err)
	}
	w := &witness{t: s.T, assignments: map[string]assignmentState{}, ready: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.Background())
	events, err := c.Watch(ctx, &v1alpha1.ProxyAssemblageList{}, client.InNamespace(s.namespace))
	if err != nil {
		s.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			w.see(e)
		}
	}()
	s.Cleanup(func() { cancel(); events.Stop(); <-done })
	return w
}

func (w *witness) see(e watch.Event) {
	a, ok := e.Object.(*v1alpha1.ProxyAssemblage)
	if !ok || len(a.Spec.Assemblage.Syncs) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was, is := w.assignments[a.Name], assignmentOf(a)
	if w.first == "" {
		w.first = is.revision
	}
	if is.ready && is.revision != w.first && !w.ready[a.Name] {
		w.t.Errorf("%s is said to be ready, and cannot be", a.Name)
	}
	if was.ready && !is.ready && is.revision == was.revision {
		w.t.Errorf("%s was ready at what it was assigned, and is not any more", a.Name)
	}
	if is.revision != was.revision && is.revision != w.first {
		w.story = append(w.story, fmt.Sprintf("%s while %v are not ready", a.Name, w.unready()))
	}
	w.assignments[a.Name] = is
	w.most = max(w.most, len(w.unready()))
}

func assignmentOf(a *v1alpha1.ProxyAssemblage) assignmentState {
	s := assignmentState{revision: a.Spec.Assemblage.Syncs[0].Revision}
	for _, report := range a.Status.Syncs {
		s.ready = report.Revision == s.revision && report.AssignedAt.Equal(a.Spec.Assemblage.Syncs[0].AssignedAt) && report.State == v1alpha1.StateSucceeded
	}
	return s
}

// unready are the clusters that are not ready at what they were assigned.
func (w *witness) unready() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(w.assignments)) {
		if !w.assignments[name].ready {
			names = append(names, name)
		}
	}
	return names
}

// down are the clusters that are not ready at the next revision.
func (w *witness) down() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(w.unready(), func(name string) bool { return w.assignments[name].revision == w.first })
}

func (w *witness) permit(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready[name] = true
}

// RFC: Replace has all selected clusters update at the same time.
func TestRFCReplace(t *testing.T) {
	s := stage(t, rfcReplace, "dev")
	for _, name := range s.comes(4) { // none of them is ready, and still all were assigned it
		s.finish(name)
	}
	s.ends(4)
}

// RFC: Incremental, read as its algorithm: while fewer than maxUnreadyClusters are not
// ready, one more is updated.
func TestRFCIncrementalAtMostSoManyUnready(t *testing.T) {
	s := stage(t, rfcIncremental, "staging")
	for range 2 {
		for _, name := range s.comes(2) {
			s.finish(name)
		}
		testenv.Eventually(t, func(context.Context) error { // else the next two could be the same
			if down := s.witness.down(); slices.ContainsFunc(down, func(name string) bool { return s.witness.isReady(name) }) {
				return errors.New("not all that are ready are known to be: " + strings.Join(down, ", "))
			}
			return nil
		})
	}
	s.ends(2)
}

func (w *witness) isReady(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready[name]
}

// RFC: Incremental, read as its prose: one canary, and then all the others.
func TestRFCIncrementalOneCanaryThenAll(t *testing.T) {
	s := stage(t, oneCanary, "staging")
	canary := s.comes(1)[0]
	s.finish(canary)
	for _, name := range s.comes(3) {
		s.finish(name)
	}
	s.ends(3)
	if first := s.witness.story[0]; !strings.HasPrefix(first, canary+" while [] ") {
		t.Errorf("it began with %s, not with %s", first, canary)
	}
	for _, then := range s.witness.story[1:] {
		if _, unready, _ := strings.Cut(then, " while "); strings.Contains(unready, canary) {
			t.Errorf("%s: the canary was not ready yet", then)
		}
	}
}

// RFC: bindings are evaluated where assemblages are carried out, so that a user
// with a rollout of their own need not: of both kinds on the hub, and on the cluster.
func TestRFCBindingsAreEvaluatedWhereAssemblagesAreCarriedOut(t *testing.T) {
	const bound = "controlPlaneBindings: [{name: place, objectFieldRef: {kind: ConfigMap, name: '$(CLUSTER_NAME)-region', fieldPath: /data/name}}]\n" +
		"package: {kustomize: {substitute: {where: 'in $(place)'}}}"
	w := newWorld(t)
	w.manage()
	w.create(w.hub, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c0-region"}, Data: map[string]string{"name": "eu"}})
	w.join(0)
	w.publish("v1")
	w.assign("c0", w.sync("shop", "v1", bound))
	w.data(0, map[string]string{"version": "v1", "where": "in eu"})
	w.assign("c0")
	w.data(0, nil)
	w.bootstrap("c0", w.sync("flux", "v1", bound))
	w.data(0, map[string]string{"version": "v1", "where": "in eu"})
}
