package decision

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

var (
	seeds = flag.Int("seeds", 60, "how many worlds to simulate")
	seed  = flag.Int("seed", -1, "the one world to simulate")
)

// twelve is a package whose plans have twelve steps and every kind of task.
const twelve = `
version: "%s"
parameters: [{name: NODES, default: "1"}, {name: EXTRA, default: "true"}, {name: COLOR, default: red, trigger: paint}]
tasks:
- {name: base, kind: Apply, spec: {resources: [base.yaml]}}
- {name: app, kind: Apply, spec: {resources: [app.yaml]}}
- {name: job, kind: Apply, spec: {resources: [job.yaml]}}
- {name: unjob, kind: Delete, spec: {resources: [job.yaml]}}
- {name: extra, kind: Toggle, spec: {parameter: EXTRA, resources: [extra.yaml]}}
- {name: pipe, kind: Pipe, spec: {pod: pod.yaml, pipe: [{file: /tmp/x, kind: Secret, key: x}]}}
- {name: use, kind: Apply, spec: {resources: [use.yaml]}}
- {name: child, kind: KudoOperator, spec: {package: db, operatorVersion: "1"}}
- {name: nop, kind: Dummy, spec: {done: true}}
templates:
  base.yaml: |
    {apiVersion: v1, kind: ConfigMap, metadata: {name: base}, data: {nodes: "{{ .Params.NODES }}", color: "{{ .Params.COLOR }}", version: "{{ .OperatorVersion }}"}}
    ---
    {apiVersion: v1, kind: Secret, metadata: {name: base}}
  app.yaml: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {replicas: {{ .Params.NODES }}, template: {spec: {}}}}"
  job.yaml: "{apiVersion: batch/v1, kind: Job, metadata: {name: job}}"
  extra.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}"
  use.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: use}, data: {x: '{{ .Pipes.x }}'}}"
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata: {name: any}
    spec: {volumes: [{name: v, emptyDir: {}}], initContainers: [{name: i, volumeMounts: [{name: v, mountPath: /tmp}]}]}
plans:
  deploy: &all
    strategy: serial
    phases:
    - {name: one, strategy: serial, steps: [{name: nop, tasks: [nop]}, {name: base, tasks: [base]}, {name: app, tasks: [app]}, {name: job, tasks: [job]}]}
    - {name: two, steps: [{name: unjob, tasks: [unjob]}, {name: extra, tasks: [extra]}, {name: pipe, tasks: [pipe]}, {name: more, tasks: [base, nop]}]}
    - {name: three, strategy: serial, steps: [{name: use, tasks: [use]}, {name: child, tasks: [child]}, {name: both, tasks: [app, extra]}, {name: last, tasks: [nop]}]}
  update: *all
  upgrade: *all
  paint: *all
  backup: &small {phases: [{name: p, steps: [{name: s, tasks: [nop]}]}]}
  cleanup: *small
`

// simulation is a world in which a leader stops between any two writes, another
// manager writes what it can, views are old, and users change their minds.
type simulation struct {
	*world

	t    *testing.T
	rnd  *rand.Rand
	past []*world
	// leads is since which moment of the past the leader sees everything.
	leads int
	// pending are writes that the leader has announced.
	pending []write.Write
	// guarded worlds refuse changes while a plan runs.
	guarded bool
	made    map[string]int
	log     []string
}

func TestSimulation(t *testing.T) {
	if *seed >= 0 {
		simulate(t, *seed)
		return
	}
	for n := range *seeds {
		simulate(t, n)
		if t.Failed() {
			t.Fatalf("replay it with -run TestSimulation -seed=%d -v", n)
		}
	}
}

func simulate(t *testing.T, n int) {
	t.Helper()
	s := &simulation{t: t, rnd: rand.New(rand.NewPCG(1, uint64(n))), made: map[string]int{}}
	s.world = newWorld(t, fmt.Sprintf(twelve, "1"), fmt.Sprintf(twelve, "2"))
	s.install(t, "db-1", simple)
	s.guarded = s.chance(0.5)
	if s.chance(0.5) {
		s.annotate(vocabulary.PlanGates, s.someGates())
	}
	if s.chance(0.5) {
		s.refuseInstance()
	}
	for range 400 {
		s.remember()
		s.tick(true)
		s.check()
	}
	for range 2000 {
		s.remember()
		if !s.tick(false) {
			break
		}
		s.check()
	}
	s.finish()
	if t.Failed() || *seed >= 0 {
		t.Logf("seed %d, guarded %v\n%s", n, s.guarded, strings.Join(s.log, "\n"))
	}
}

func (s *simulation) chance(p float64) bool { return s.rnd.Float64() < p }

func (s *simulation) notef(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// remember keeps the world as it is, for those whose views are old.
func (s *simulation) remember() {
	c := *s.world
	c.instance = s.instance.DeepCopy()
	c.versions, c.pins, c.refusals = maps.Clone(s.versions), maps.Clone(s.pins), maps.Clone(s.refusals)
	c.objects = maps.Clone(s.objects) // objects are replaced, never changed
	c.gates = slices.Clone(s.gates)
	c.story = nil
	s.past = append(s.past, &c)
}

// view is the world as it was some time ago, but not before a moment.
func (s *simulation) view(from int) *world {
	from = max(from, len(s.past)-10)
	v := s.past[from+s.rnd.IntN(len(s.past)-from)]
	if s.chance(0.6) {
		v = s.past[len(s.past)-1]
	}
	return v
}

// tick makes one thing happen. It returns false when all is settled and nothing is left.
func (s *simulation) tick(storm bool) bool {
	s.now = s.now.Add(time.Duration(s.rnd.IntN(2000)) * time.Millisecond)
	switch {
	case storm && s.chance(0.03):
		s.user()
	case storm && s.chance(0.05):
		s.notef("the leader stops")
		s.pending, s.leads = nil, len(s.past)-1
		clear(s.refusals)
	case storm && s.chance(0.1):
		s.weather()
	case storm && s.chance(0.11):
		s.zombie()
	default:
		return s.lead(storm)
	}
	return true
}

// user changes something, if the guard lets it.
func (s *simulation) user() {
	running := s.instance.Status.AggregatedStatus.ActivePlan != ""
	change := []func(*v1beta1.InstanceSpec){
		parameters("NODES", fmt.Sprint(1+s.rnd.IntN(3))), parameters("EXTRA", fmt.Sprint(s.chance(0.5))),
		parameters("COLOR", []string{"red", "blue"}[s.rnd.IntN(2)]),
		func(spec *v1beta1.InstanceSpec) { spec.PlanExecution.PlanName = "backup" },
		func(spec *v1beta1.InstanceSpec) { spec.OperatorVersion.Name = "app-2" },
	}[s.rnd.IntN(5)]
	if running && s.chance(0.2) {
		s.notef("the user gives up %s", s.uid())
		s.annotate(vocabulary.AbandonPlan, s.uid())
		return
	}
	if running && s.guarded {
		return
	}
	s.set(change)
	s.notef("the user asks for %s %v %s", s.instance.Spec.OperatorVersion.Name, s.instance.Spec.Parameters, s.instance.Spec.PlanExecution.PlanName)
}

// weather makes a Deployment unwell, or the API server refuse something.
func (s *simulation) weather() {
	cm := ref("v1", "ConfigMap", "base")
	switch s.rnd.IntN(6) {
	case 0:
		s.unhealthy["app"] = true
	case 1:
		delete(s.unhealthy, "app")
	case 2:
		s.refuseInstance()
	case 4:
		s.annotate(vocabulary.PlanGates, s.someGates())
	case 3:
		s.refuses[cm] = write.Refusal{Reason: "not now"}
	default:
		delete(s.refuses, cm)
	}
}

// zombie acts as a manager that was leader once: what it has seen is old, and it writes
// a status before it observes that another manager leads.
func (s *simulation) zombie() {
	v := s.view(0)
	o, p := v.decide()
	o.NewUID = "zombie"
	if p.Changes && s.writeStatus(o, p) {
		s.notef("another manager writes: %s", p.Sentence)
	}
}

// lead is what the leader does: it makes a write that it has announced, or looks
// and decides.
func (s *simulation) lead(storm bool) bool {
	if len(s.pending) > 0 {
		write := s.pending[0]
		s.pending = s.pending[1:]
		s.count(write)
		s.do(write)
		s.ripen()
		s.leads = len(s.past)
		s.notef("the leader does %s %s", write.Act, write.Ref)
		return true
	}
	s.decideGates(storm)
	if !storm {
		clear(s.refuses)
		clear(s.unhealthy)
		s.ripen()
		s.remember()
		s.leads = len(s.past) - 1
	}
	v := s.view(s.leads)
	v.uids, v.now = s.uids+1000, s.now
	s.uids += 2000
	o, p := v.decide()
	return s.permit(o, p) || !storm && s.waits(p)
}

// permit writes the status, and announces what it permits.
func (s *simulation) permit(o Snapshot, p Decision) bool {
	switch {
	case p.Changes && !s.writeStatus(o, p):
		s.notef("the leader's view is old")
		return true
	case !p.Changes && o.Instance.ResourceVersion != s.instance.ResourceVersion:
		return true
	case p.Changes:
		s.notef("the leader writes: %s", p.Sentence)
		s.leads = len(s.past)
	}
	s.checkGates(&o, p.Writes)
	s.pending = p.Writes
	return p.Changes || len(p.Writes) > 0
}

// waits lets the time pass that is waited for.
func (s *simulation) waits(p Decision) bool {
	if p.Wake.IsZero() {
		return false
	}
	s.now = p.Wake
	return true
}

// ripen makes of each object what its controller would.
func (s *simulation) ripen() {
	for ref, u := range s.objects {
		s.objects[ref] = u.DeepCopy()
		s.grow(ref)
		if ref.Kind == "Instance" {
			s.objects[ref].Object["status"] = map[string]any{
				"observedGeneration": int64(1), "lastAppliedInstanceSpec": s.objects[ref].Object["spec"],
				"aggregatedStatus": map[string]any{"status": "COMPLETE"},
			}
		}
	}
}

// count notes what is created by which step of which execution.
func (s *simulation) count(w write.Write) {
	if w.Act != write.Apply || s.objects[w.Ref] != nil || s.refuses[w.Ref].Reason != "" {
		return
	}
	a := w.Object.GetAnnotations()
	key := fmt.Sprint(w.Ref, a[vocabulary.ExecutionAnnotation], a[vocabulary.PhaseAnnotation], a[vocabulary.StepAnnotation])
	if s.made[key]++; s.made[key] > 1 {
		s.t.Errorf("created twice: %s", key)
	}
}

// check is the oracle: it knows the rules, and nothing of how they are kept.
func (s *simulation) check() {
	status := &s.instance.Status
	var running []string
	for name, p := range status.PlanStatus {
		if p.Status.IsRunning() {
			running = append(running, name)
		}
	}
	if active := status.AggregatedStatus.ActivePlan; len(running) > 1 || strings.Join(running, "") != active {
		s.t.Errorf("running are %v, active is %q", running, active)
	}
	was := s.past[len(s.past)-1].instance.Status
	if before, now := was.LastAppliedInstanceSpec, status.LastAppliedInstanceSpec; !cmp.Equal(before, now) {
		if e := status.Execution; !s.sameValues(before, now) && (e == nil || e.Result != v1beta1.ResultComplete || !e.Advances) {
			s.t.Errorf("the snapshot moved: %+v", e)
		}
	}
}

// sameValues is true of two specs whose templates see the same.
func (s *simulation) sameValues(a, b *v1beta1.InstanceSpec) bool {
	if a == nil || a.OperatorVersion != b.OperatorVersion {
		return false
	}
	version := s.versions[a.OperatorVersion.Name]
	before, _ := choice.Values(&version.Spec, a.Parameters, nil)
	after, _ := choice.Values(&version.Spec, b.Parameters, nil)
	return cmp.Equal(before, after)
}

// finish compares the end with that of a life without disturbance.
func (s *simulation) finish() {
	status := &s.instance.Status
	if status.AggregatedStatus.ActivePlan != "" || len(s.pending) > 0 {
		s.t.Errorf("it never completes: %s", status.WaitingFor)
		return
	}
	_, p := s.decide()
	if len(p.problems) > 0 {
		return // two triggers at the same time: a user must fix that
	}
	if status.Attempted != nil || status.LastAppliedInstanceSpec == nil {
		s.action()
	}
	undisturbed := newWorld(s.t, fmt.Sprintf(twelve, "1"), fmt.Sprintf(twelve, "2"))
	undisturbed.install(s.t, "db-1", simple)
	undisturbed.instance.Annotations = map[string]string{vocabulary.PlanGates.Native: vocabulary.PlanGates.Get(s.instance.Annotations)}
	undisturbed.instance.Spec = *choice.Target(&s.instance.Spec)
	(&simulation{world: undisturbed, t: s.t, rnd: s.rnd, made: map[string]int{}}).drain()
	if diff := cmp.Diff(contents(undisturbed), contents(s.world)); diff != "" {
		s.t.Errorf("the end differs (-undisturbed +this):\n%s", diff)
	}
}

// action tries again what was given up.
func (s *simulation) action() {
	s.annotate(vocabulary.RetryPlan, s.uid())
	if e := s.instance.Status.Execution; !e.Advances || e.Result == v1beta1.ResultComplete {
		s.set(func(spec *v1beta1.InstanceSpec) { spec.PlanExecution = v1beta1.PlanExecution{PlanName: "deploy"} })
	}
	s.drain()
}

// drain lets the leader act, without faults, until nothing is left.
func (s *simulation) drain() {
	for range 2000 {
		s.remember()
		if !s.lead(false) {
			return
		}
	}
	s.t.Error("it never completes")
}

// contents are the objects without what tells one run from another.
func contents(w *world) map[string]string {
	all := map[string]string{}
	for ref, u := range w.objects {
		u = u.DeepCopy()
		u.SetUID("")
		u.SetAnnotations(nil)
		delete(u.Object, "status")
		if ref.Name == "use" || strings.Contains(ref.Name, ".") {
			unstructured.RemoveNestedField(u.Object, "data")
			ref.Name = strings.Join(slices.DeleteFunc(strings.Split(ref.Name, "."), func(part string) bool {
				return slices.Contains([]string{"deploy", "update", "upgrade", "paint"}, part)
			}), ".")
			u.SetName(ref.Name)
		}
		all[ref.String()] = fmt.Sprint(u.Object)
	}
	return all
}
