package simulate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/simulate/world"
	"github.com/spillway-dev/spillway/internal/source"
	"github.com/spillway-dev/spillway/rollout"
)

// rolling lets this many workloads be updating at a time.
func rolling(n int) func(*config.Options) {
	return func(o *config.Options) { o.MaxRolling = n }
}

// scenarios that need other options than the default.
var configured = map[string]func(*config.Options){
	"config-budget":   rolling(2),
	"config-priority": rolling(1),
	"policy-returns":  func(o *config.Options) { o.PinNamespaces = pin.In(o.Namespaces...) },
}

// never are what is never ready after the change, where --ready says so; what the files say in
// kwok's words is what makes it so, or [scene.breakPods].
var never = map[string][]string{
	"kube-broken":    {"deployment/web", "statefulset/db", "daemonset/agent", "job/migrate"},
	"policy-fails":   {"deployment/app1"},
	"policy-returns": {"deployment/app1"},
}

// breaking are the workloads whose Pods are not ready with other config, by the label app.
var breaking = map[string]string{"policy-fails": "app1", "policy-returns": "app1"}

// readiness is that of a scenario.
func (w *scene) readiness() world.Readiness {
	r := world.Readiness{Default: time.Second, Of: map[string]time.Duration{}}
	for _, of := range never[w.scenario] {
		r.Of[of] = world.Never
	}
	return r
}

// What a simulation says is what then happens on a real control plane: the same
// steps in the same order, and the same reasons of what does not move.
func TestWhatIsSimulatedIsWhatHappens(t *testing.T) {
	names := scenarios(t)
	if len(names) < 20 {
		t.Errorf("there are only %d scenarios", len(names))
	}
	installKinds(t, newClient(t))
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configure := configured[name]
			if configure == nil {
				configure = func(*config.Options) {}
			}
			bothWays(t, name, configure)
		})
	}
}

func scenarios(t *testing.T) []string {
	t.Helper()
	bases, err := filepath.Glob("testdata/*/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(bases))
	for _, base := range bases {
		names = append(names, filepath.Base(filepath.Dir(base)))
	}
	return names
}

// read reads a file of a scenario that is played from the moment of benchOptions on.
func read(t *testing.T, name, file string) []source.Document {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name, file))
	if err != nil {
		t.Fatal(err)
	}
	return readAt(t, string(text), benchOptions().Now)
}

// read reads a file of the scenario, whose Pods have a server.
func (w *scene) read(file string) []source.Document {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", w.scenario, file))
	if err != nil {
		w.t.Fatal(err)
	}
	return readAt(w.t, strings.NewReplacer("POD-IP", w.pods.IP, "POD-PORT", w.pods.Port).Replace(string(text)), time.Now())
}

// readAt reads a file of a scenario at some moment. What it may say of time depends on
// that moment, because a window that is written with a day is open on that day.
func readAt(t *testing.T, text string, now time.Time) []source.Document {
	t.Helper()
	if strings.Count(text, "schedule:") != strings.Count(text, "schedule: IN-HALF-A-DAY") {
		t.Fatal("a scenario may not depend on the day: write schedule: IN-HALF-A-DAY")
	}
	later := fmt.Sprintf("%q", fmt.Sprintf("0 %d * * *", (now.UTC().Hour()+12)%24))
	documents, err := source.Read(strings.NewReader(strings.ReplaceAll(text, "IN-HALF-A-DAY", later)), "-")
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// The window of a scenario is closed whenever that is run.
func TestAScenarioDoesNotDependOnTheDay(t *testing.T) {
	t.Parallel()
	base, err := os.ReadFile("testdata/zones-window-closed/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	change := objects(read(t, "zones-window-closed", "change.yaml"))
	for _, clock := range []string{"2026-12-31T22:59:59Z", "2026-12-31T23:30:00Z", "2027-01-01T00:30:00Z", "2026-05-04T12:00:00Z", "2026-05-04T11:59:59Z"} {
		o := benchOptions()
		o.Within = time.Hour
		if o.Now, err = time.Parse(time.RFC3339, clock); err != nil {
			t.Fatal(err)
		}
		r, err := simulate.Run(t.Context(), objects(readAt(t, string(base), o.Now)), change, o)
		if err != nil || len(r.Steps) > 0 || len(r.Stuck) != 1 {
			t.Errorf("at %s: %d steps, %d wait: %v", clock, len(r.Steps), len(r.Stuck), err)
		}
	}
}

func objects(documents []source.Document) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, 0, len(documents))
	for _, d := range documents {
		all = append(all, d.Object)
	}
	return all
}

func bothWays(t *testing.T, name string, configure func(*config.Options)) {
	t.Helper()
	w := newScene(t, name, configure)
	base, change := w.read("base.yaml"), w.read("change.yaml")
	w.play()
	said := w.simulate(base, change)
	w.bringAbout(base)
	testenv.Eventually(t, func(ctx context.Context) error { return w.restsAs(ctx, said.Before) })
	seen := w.simulatePresent(change)
	if app := breaking[name]; app != "" {
		w.breakPods(app)
	}
	w.witness()
	w.apply(change)
	testenv.Eventually(t, func(ctx context.Context) error { return w.restsAs(ctx, said.Stuck) })
	testenv.Eventually(t, func(context.Context) error { return same(said.Steps, w.steps()) })
	if len(said.Stuck) > 0 { // what waits has to go on waiting
		w.awaitCanary()
		if err := same(said.Steps, w.steps()); err != nil {
			t.Errorf("later: %v", err)
		}
	}
	if err := same(seen.Steps, w.steps()); err != nil {
		t.Errorf("from the present state of the cluster: %v", err)
	}
	t.Logf("%d steps, %d are stuck", len(said.Steps), len(said.Stuck))
}

// breakPods makes Pods of a workload that are created from now on never ready, as a value does
// with which they cannot work.
func (w *scene) breakPods(app string) {
	w.t.Helper()
	const policy = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  reinvocationPolicy: Never
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    objectSelector: {matchLabels: {app: APP}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{annotations: {"testenv.spillway.dev/behavior": "never-ready"}}}'}
`
	const binding = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME}
`
	named := strings.NewReplacer("NAME", w.namespace, "APP", app)
	for _, manifest := range []string{policy, binding} {
		testenv.ApplyManifest(w.t, w.client, named.Replace(manifest))
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "probe", Labels: map[string]string{"app": app}}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	w.awaitMutation(pod, func(p *corev1.Pod) bool { return len(p.Annotations) > 0 })
}

// bringAbout makes what stands in files run, before what holds it is in force.
func (w *scene) bringAbout(base []source.Document) {
	w.t.Helper()
	free := slices.Clone(base)
	for i, obj := range simulate.Unhindered(objects(base)) {
		free[i].Object = obj
	}
	if !cmp.Equal(objects(free), objects(base)) {
		w.apply(free)
		testenv.Eventually(w.t, func(ctx context.Context) error { return w.restsAs(ctx, nil) })
	}
	w.apply(base)
}

// awaitCanary makes a group, and waits until the config ring and the zones ring have
// seen to it: by then they have seen what existed before.
func (w *scene) awaitCanary() {
	w.t.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.namespace, Name: canary, Labels: map[string]string{"rollout-group": canary},
		Annotations: map[string]string{"spillway.dev/update-on-config-change": "true"},
	}}
	labels := map[string]string{"app": canary}
	set.Spec.Replicas, set.Spec.Selector = new(int32), &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
	if err := w.client.Create(w.t.Context(), set); err != nil {
		w.t.Fatal(err)
	}
	testenv.Eventually(w.t, func(ctx context.Context) error {
		group := &v1alpha1.RolloutGroup{}
		err := errors.Join(w.client.Get(ctx, client.ObjectKeyFromObject(set), set), w.client.Get(ctx, client.ObjectKeyFromObject(set), group))
		if err == nil && (set.Spec.Template.Annotations["spillway.dev/config-hash"] == "" || group.Status.Phase == "") {
			err = errors.New("the canary was not observed")
		}
		return err
	})
}

// canary is the name of what no scenario has.
const canary = "later"

// simulate runs the scenario without the control plane, with what the manager was given.
func (w *scene) simulate(base, change []source.Document) simulate.Result {
	w.t.Helper()
	said, err := simulate.Run(w.t.Context(), objects(base), objects(change), simulate.Options{
		Now: time.Now(), Namespace: w.namespace, Readiness: w.readiness(), Stop: new(time.Duration), Nodes: nodes,
		Config: w.config, Within: time.Hour,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return said
}

// simulatePresent simulates upon what there is on the control plane by now.
func (w *scene) simulatePresent(change []source.Document) simulate.Result {
	w.t.Helper()
	present, err := simulate.Present(w.t.Context(), w.client, w.namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	seen, err := simulate.Run(w.t.Context(), nil, objects(change), simulate.Options{
		Now: time.Now(), Namespace: w.namespace, Readiness: w.readiness(), Stop: new(time.Duration), Nodes: nodes,
		Config: w.config, Within: time.Hour, Present: present, Installed: w.client.RESTMapper(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return seen
}

// restsAs is nil if the same objects wait for the same reasons, and everything is
// where it should be if none does.
func (w *scene) restsAs(ctx context.Context, stuck []record.Wait) error {
	waits, err := w.waits(ctx)
	if err != nil {
		return err
	}
	var wanted []string
	for _, s := range stuck {
		wanted = append(wanted, fmt.Sprintf("%s %v", s.Object, s.Reason))
	}
	slices.Sort(waits)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, waits, cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("what waits (-simulated +real):\n%s", diff)
	}
	if len(waits) > 0 {
		return nil
	}
	return w.whole(ctx)
}

// same is nil if both tell the same of each object that is rolled out: its steps in
// the same order, where those that one decision has taken may come in any.
func same(simulated, seen []record.Step) error {
	said, done := bySequence(simulated), bySequence(withoutInterruptions(seen))
	for key := range done {
		if _, ok := said[key]; !ok {
			return fmt.Errorf("%s was not simulated: %q", key, lines(done[key]))
		}
	}
	for key, steps := range said {
		if diff := cmp.Diff(lines(steps), lines(alike(steps, done[key]))); diff != "" {
			return fmt.Errorf("%s (-simulated +real):\n%s", key, diff)
		}
	}
	return nil
}

// withoutInterruptions leaves out that a zone was held before any of its Pods was taken,
// and opened again. That happens while the controller has not observed the change of
// another zone, and how long it takes is not simulated.
func withoutInterruptions(steps []record.Step) []record.Step {
	var kept []record.Step
	for _, s := range steps {
		zone, _, _ := strings.Cut(s.Unit, "/")
		isOf := func(k record.Step) bool {
			return k.Namespace == s.Namespace && k.Object == s.Object && strings.HasPrefix(k.Unit+"/", zone+"/")
		}
		ofZone := slices.DeleteFunc(slices.Clone(kept), func(k record.Step) bool { return !isOf(k) })
		if n := len(ofZone); s.Does == "is opened" && n >= 2 && ofZone[n-1].Does == "is held" && ofZone[n-2].Does == "is opened" {
			kept = slices.DeleteFunc(kept, func(k record.Step) bool { return k == ofZone[n-1] })
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// bySequence takes apart what has an order of its own: the workloads under the budget of
// the config ring, each group, each Instance, and phases that go in parallel.
func bySequence(steps []record.Step) map[string][]record.Step {
	sequences := map[string][]record.Step{}
	for _, s := range steps {
		if strings.HasSuffix(s.Object, "/"+canary) {
			continue
		}
		key := s.Ring
		if s.Ring != record.RingConfig {
			key = s.Object
		}
		if phase, _, ok := strings.Cut(s.Unit, "/"); ok && strings.HasPrefix(phase, "step parallel-") {
			key += phase
		}
		sequences[key] = append(sequences[key], s)
	}
	return sequences
}

// alike puts the real steps into the order of the simulated ones, as far as that is
// the order within one decision.
func alike(simulated, seen []record.Step) []record.Step {
	seen = slices.Clone(seen)
	for begin := 0; begin < len(simulated); {
		end := begin
		for end < len(simulated) && simulated[end].Decision == simulated[begin].Decision {
			end++
		}
		if end <= len(seen) {
			order := lines(simulated[begin:end])
			slices.SortStableFunc(seen[begin:end], func(a, b record.Step) int {
				return slices.Index(order, line(a)) - slices.Index(order, line(b))
			})
		}
		begin = end
	}
	return seen
}

func lines(steps []record.Step) []string {
	all := make([]string, 0, len(steps))
	for _, s := range steps {
		all = append(all, line(s))
	}
	return all
}

func line(s record.Step) string { return s.Ring + " " + s.String() }

func planOptions() plans.Options { return plans.Options{Now: time.Now} }

func instances() client.ObjectList { return &v1beta1.InstanceList{} }

func resumed(version string) client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}
}

func (w *scene) plansWait(ctx context.Context) ([]string, error) {
	list := &v1beta1.InstanceList{}
	if err := w.client.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return nil, err
	}
	var waits []string
	for i := range list.Items {
		if e := plans.ExplanationOf(&list.Items[i]); e.Phase != rollout.PhaseComplete {
			waits = append(waits, fmt.Sprintf("instance/%s %s", e.Name, e.Reason))
		}
	}
	return waits, nil
}
