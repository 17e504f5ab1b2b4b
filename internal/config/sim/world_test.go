package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

const namespace = "ns"

var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)

// The fates of a Pod, the worst last. They are how values begin.
const (
	good  = "good"
	never = "never"
	late  = "late"
	crash = "crash"
)

// What keeps new Pods of a workload from running, though their content does not.
const (
	full  = "no node"  // they are never scheduled
	quota = "no quota" // they cannot be created
)

// unit is a workload, and what of it only the world knows.
type unit struct {
	kind, name string
	uid        types.UID
	replicas   int
	// sick Pods never get ready.
	sick bool
	// noRoom is why new Pods do not run, refused is true if one could not be created.
	noRoom     string
	refused    bool
	uses       []content.Object
	pods       []*pod
	nth        int
	progressed time.Time
	// has is what the template was written for: by whom it was created or rolled, by object.
	has map[content.Object]string
	// hasOf is the same of earlier templates.
	hasOf map[string]map[content.Object]string
	// earlier are the templates before the present one, the last first.
	earlier []corev1.PodTemplateSpec
	// ranBad is when a Pod last ran a bad content, touched when a user last wrote the workload.
	ranBad, touched time.Time
	// unhashed is true of a template that a user has written without a hash: its Pods start with the
	// present content immediately, and the ring writes the hash of that.
	unhashed bool
	// ailing is true of one that crashed before the ring has touched it.
	ailing bool
	// rolled is when the ring rolled it last, zero once it was whole since.
	rolled time.Time
	// shows are the bad values that the ring rolled it for while it was whole, so that its Pods show them, and
	// crashes is since when these crash.
	shows   map[content.Object]string
	crashes time.Time
}

func (u *unit) key() client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: u.name} }

// pod is a Pod.
type pod struct {
	object   *corev1.Pod
	template string
	// annotations are those of its template.
	annotations map[string]string
	fate        string
	started     time.Time
	takes       time.Duration
	lasts       time.Duration
	blip        time.Time
	since       time.Time
	scheduled   bool
	ready       bool
	crashed     bool
	sick        bool
}

// world is what there is, and the dice.
type world struct {
	rnd    *rand.Rand
	now    time.Time
	store  *apiserver.Store
	oracle *oracle
	units  []*unit
	// all are the objects, live their values: "good-3", or none if they do not exist.
	all    []content.Object
	live   map[content.Object]string
	before map[content.Object][]string
	absent map[content.Object]time.Time
	values int
	names  int
	// stage is how many workloads the first stage has, rolling how many may roll at a time.
	stage, rolling int
	hooked         bool
	storm          bool
	flaps          bool
	keen           float64
	// trouble is how many of the workloads cannot show that a content works.
	trouble float64
	podsAt  int
	counts  map[string]int
	told    bool
	log     []string
}

// empty is an API server without objects, for all worlds.
var empty = sync.OnceValue(func() *apiserver.Store {
	kinds, err := kube.NewScheme()
	if err != nil {
		panic(err)
	}
	return apiserver.New(kinds, time.Now)
})

func newWorld(seed uint64, told bool) *world {
	w := &world{
		rnd: rand.New(rand.NewPCG(seed, 5)), now: noon, storm: true, told: told, live: map[content.Object]string{},
		before: map[content.Object][]string{}, absent: map[content.Object]time.Time{}, counts: map[string]int{},
	}
	w.store = empty().Clone(func() time.Time { return w.now })
	w.oracle = &oracle{world: w, failed: map[content.Object]map[string]bool{}, reach: map[reached][]*unit{}, digests: map[string]reached{}, judged: map[string]bool{}}
	w.store.OnChange = w.oracle.changed
	w.stage, w.hooked, w.flaps, w.keen = 1, w.chance(0.5), w.chance(0.6), 0.3+0.7*w.rnd.Float64()
	w.trouble = 0.1 + 0.4*w.rnd.Float64()
	if w.chance(0.3) {
		w.rolling = 1 + w.rnd.IntN(2)
	}
	w.addPolicy()
	for i := range 1 + w.rnd.IntN(3) {
		o := content.Object{Kind: content.ConfigMap, Namespace: namespace, Name: fmt.Sprintf("c%d", i)}
		if w.chance(0.5) {
			o.Kind = content.Secret
		}
		w.all = append(w.all, o)
		w.put(o, w.value(good))
	}
	w.now = w.now.Add(time.Hour)
	for range 3 + w.rnd.IntN(5) {
		w.addUnit()
	}
	return w
}

func (w *world) addPolicy() {
	p := policy.Default()
	if w.chance(0.4) {
		w.stage = 1 + w.rnd.IntN(2)
		p.Spec.Stages[0].Workloads = new(intstr.FromInt(w.stage))
		p.Spec.Stages[1].MaxUnavailable = new(intstr.FromInt(1 + w.rnd.IntN(2)))
	}
	w.must(w.store.Create(quiet, p))
}

func (w *world) must(err error) {
	if err != nil {
		w.oracle.complainf("the world fails: %v", err)
	}
	w.oracle.check()
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

func (w *world) seconds(from, to int) time.Duration {
	return time.Duration(from+w.rnd.IntN(to-from+1)) * time.Second
}

func (w *world) count(what string) { w.counts[what]++ }

func (w *world) notef(format string, args ...any) {
	if w.told {
		w.log = append(w.log, w.now.Format("15:04:05  ")+fmt.Sprintf(format, args...))
	}
}

// value is a new value with a fate.
func (w *world) value(fate string) string {
	w.values++
	return fmt.Sprintf("%s-%d", fate, w.values)
}

func fateOf(value string) string { fate, _, _ := strings.Cut(value, "-"); return fate }

// put writes a value into an object, or creates the object with it.
func (w *world) put(o content.Object, value string) {
	var obj client.Object
	if o.Kind == content.Secret {
		obj = &corev1.Secret{Data: map[string][]byte{"v": []byte(value)}}
	} else {
		obj = &corev1.ConfigMap{Data: map[string]string{"v": value}}
	}
	obj.SetNamespace(o.Namespace)
	obj.SetName(o.Name)
	w.oracle.edited(o, value)
	w.live[o], w.before[o] = value, append(w.before[o], value)
	delete(w.absent, o)
	if w.store.Object(obj, client.ObjectKeyFromObject(obj)) == nil {
		// What has failed is known by the hash of the workload that has failed with it, if nothing else
		// of that has changed.
		delete(w.oracle.failed, o)
		for digest, r := range w.oracle.digests {
			if r.object == o {
				w.oracle.digests[digest] = reached{o, strings.TrimSuffix(r.value, ofBefore) + ofBefore}
			}
		}
		w.must(w.store.Create(quiet, obj))
	} else {
		w.must(w.store.Update(quiet, obj))
	}
	content.Digest(obj)
	w.oracle.digests[content.DigestAs(obj, string(obj.GetUID()))] = reached{o, value}
}

// addUnit adds a workload that runs.
func (w *world) addUnit() {
	w.names++
	u := &unit{kind: []string{workload.Deployment, workload.Deployment, workload.StatefulSet, workload.DaemonSet}[w.rnd.IntN(4)], name: "w" + string(rune('a'+w.names%26)) + string(rune('a'+w.names/26)), replicas: 1 + w.rnd.IntN(3), has: map[content.Object]string{}, hasOf: map[string]map[content.Object]string{}, progressed: w.now, touched: w.now, unhashed: true}
	held, noRoom := w.strike(u)
	for _, i := range w.rnd.Perm(len(w.all))[:1+w.rnd.IntN(min(2, len(w.all)))] {
		u.uses = append(u.uses, w.all[i])
	}
	obj := workload.New(u.kind)
	obj.SetNamespace(namespace)
	obj.SetName(u.name)
	obj.SetAnnotations(map[string]string{vocabulary.ConfigTracked.Native: "true"})
	w.fill(u, obj, held)
	if w.hooked {
		obj = w.admitted(nil, obj)
	}
	w.must(w.store.Create(quiet, obj))
	u.uid = obj.GetUID()
	w.units = append(w.units, u)
	for _, o := range u.uses {
		u.has[o] = w.live[o]
	}
	for range u.replicas {
		w.start(u, u.template(w))
	}
	for _, p := range u.pods {
		if p.fate == good && !u.sick {
			p.takes = 0
		}
	}
	u.noRoom = noRoom // those that there are run
	w.notef("%s %s uses %v, %d replicas, sick %v, held %v, %s", u.kind, u.name, u.uses, u.replicas, u.sick, held, u.noRoom)
}

// strike decides whether a new workload can show that a content works.
func (w *world) strike(u *unit) (held bool, noRoom string) {
	if !w.chance(w.trouble) {
		return false, ""
	}
	switch w.rnd.IntN(6) {
	case 0, 1:
		u.sick = true
	case 2:
		u.replicas = 0
	case 3:
		return true, ""
	case 4:
		return false, full
	case 5:
		return false, quota
	}
	return false, ""
}

// fill is the spec of a workload; it is held back where a user decides when its Pods are replaced.
func (w *world) fill(u *unit, obj client.Object, held bool) {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": u.name}}}
	c := corev1.Container{Name: "c", Image: "x"}
	for _, o := range u.uses {
		from := corev1.EnvFromSource{}
		if o.Kind == content.Secret {
			from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: o.Name}}
		} else {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: o.Name}}
		}
		c.EnvFrom = append(c.EnvFrom, from)
	}
	t.Spec.Containers = []corev1.Container{c}
	selector, n := &metav1.LabelSelector{MatchLabels: t.Labels}, int32(u.replicas)
	switch o := obj.(type) {
	case *appsv1.Deployment:
		o.Spec = appsv1.DeploymentSpec{Replicas: &n, Selector: selector, Template: t, ProgressDeadlineSeconds: new(int32(120)), Paused: held}
	case *appsv1.StatefulSet:
		o.Spec = appsv1.StatefulSetSpec{Replicas: &n, Selector: selector, Template: t}
		if held {
			o.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}
	case *appsv1.DaemonSet:
		o.Spec = appsv1.DaemonSetSpec{Selector: selector, Template: t}
		if held {
			o.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}
	}
}

// object is the workload as the API server has it, nil if it is gone.
func (u *unit) object(w *world) client.Object { return w.store.Object(workload.New(u.kind), u.key()) }

func (u *unit) template(w *world) *corev1.PodTemplateSpec { return workload.TemplateOf(u.object(w)) }

// fingerprint identifies a template, as a revision does.
func fingerprint(t *corev1.PodTemplateSpec) string {
	return vocabulary.ConfigHash.Get(t.Annotations) + "/" + t.Annotations["restarted"]
}

// start creates a Pod from a template, unless there is no room for it.
func (w *world) start(u *unit, t *corev1.PodTemplateSpec) {
	if u.refused = u.noRoom == quota; u.refused {
		return
	}
	u.nth++
	p := &pod{template: fingerprint(t), annotations: t.Annotations, fate: good, takes: w.seconds(2, 20), lasts: w.seconds(5, 25), sick: u.sick}
	meta := metav1.ObjectMeta{
		Namespace: namespace, Name: fmt.Sprintf("%s-%d", u.name, u.nth), UID: types.UID(fmt.Sprintf("%s-%d", u.uid, u.nth)),
		Labels: map[string]string{"app": u.name, appsv1.StatefulSetRevisionLabel: p.template}, CreationTimestamp: metav1.NewTime(w.now),
		OwnerReferences: []metav1.OwnerReference{{Kind: u.kind, Name: u.name, UID: u.uid, Controller: new(true)}},
	}
	if u.kind == workload.StatefulSet {
		meta.Name = fmt.Sprintf("%s-%d", u.name, w.freeOrdinal(u))
	}
	if u.kind == workload.Deployment {
		meta.OwnerReferences[0].Kind, meta.OwnerReferences[0].Name = "ReplicaSet", u.name+"-x"
	}
	if hash, name, ok := vocabulary.ConfigHash.Lookup(t.Annotations); ok {
		meta.Annotations = map[string]string{name: hash}
	}
	p.object = &corev1.Pod{ObjectMeta: meta}
	u.pods = append(u.pods, p)
	if u.noRoom == full {
		p.show(w)
		return
	}
	p.run(w, u)
}

// run starts the containers of a Pod; they read what its objects contain now.
func (p *pod) run(w *world, u *unit) {
	p.scheduled, p.started, p.since = true, w.now, w.now
	for _, o := range u.uses {
		p.fate = worse(p.fate, fateOf(w.live[o]))
	}
	p.show(w)
}

// give makes room for the Pods of a workload.
func (w *world) give(u *unit) {
	u.noRoom = ""
	for _, p := range u.pods {
		if !p.scheduled {
			p.run(w, u)
		}
	}
}

func (w *world) freeOrdinal(u *unit) int {
	for i := 0; ; i++ {
		if !slices.ContainsFunc(u.pods, func(p *pod) bool { return p.object.Name == fmt.Sprintf("%s-%d", u.name, i) }) {
			return i
		}
	}
}

func worse(a, b string) string {
	order := []string{good, late, never, crash}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// live lets a Pod do what it does.
func (p *pod) live(w *world, u *unit) {
	if p.scheduled && p.fate != good {
		u.ranBad = w.now
	}
	if !p.scheduled {
		return
	}
	ready := !w.now.Before(p.started.Add(p.takes)) && !p.sick && !w.now.Before(p.blip)
	crashed := p.crashed
	switch p.fate {
	case crash:
		ready, crashed = false, !w.now.Before(p.started.Add(3*time.Second))
	case never:
		ready = false
	case late:
		crashed = crashed || !w.now.Before(p.started.Add(p.takes+p.lasts))
		ready = ready && !crashed
	}
	if ready == p.ready && crashed == p.crashed {
		return
	}
	if ready != p.ready {
		p.since = w.now
	}
	p.ready, p.crashed = ready, crashed
	w.notef("%s (%s): ready %v, crashes %v", p.object.Name, p.fate, ready, crashed)
	p.show(w)
}

// show makes of a Pod what the API server says of it.
func (p *pod) show(w *world) {
	w.podsAt++
	o := p.object.DeepCopy()
	o.ResourceVersion = fmt.Sprint(w.podsAt)
	o.Status = corev1.PodStatus{Phase: corev1.PodPending}
	if !p.scheduled {
		o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		p.object = o
		return
	}
	o.Spec.NodeName, o.Status.Phase, o.Status.StartTime = "n", corev1.PodRunning, &metav1.Time{Time: p.started}
	status := corev1.ConditionFalse
	if p.ready {
		status = corev1.ConditionTrue
	}
	o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(p.since)}}
	if p.crashed {
		o.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	}
	p.object = o
}

func isBad(value string) bool { return value != "" && fateOf(value) != good }
