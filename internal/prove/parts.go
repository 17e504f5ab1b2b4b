package prove

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/simulate"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// part is some of the manifests that has to do with nothing else: neither the rings nor the controllers
// of Kubernetes read anything of another part that can change.
type part struct {
	base, change []*unstructured.Unstructured
	// names are its objects, and what rollouts are called that have none.
	names map[record.Key]bool
	// text is the same for parts that are equal but for names.
	text string
}

// apart returns an explorer for each kind of part, started, or that of the whole if that is one, or if a part does not do
// alone what it does in the whole.
func (e *explorer) apart(ctx context.Context) ([]*explorer, error) {
	whole := []*explorer{e}
	e.report.Parts, e.report.Kinds = 1, 1
	if len(e.Present) > 0 || len(e.Rules) > 0 || e.Exhaustive {
		return whole, nil
	}
	all := split(&e.Options, e.world)
	steps, known := stepsOf(e.steps, all)
	if !known || len(all) < 2 {
		return whole, nil
	}
	kinds, explorers := map[string]*explorer{}, []*explorer(nil)
	for i, p := range all {
		if first := kinds[p.text]; first != nil {
			if first.alike++; !slices.EqualFunc(first.steps, steps[i], isAlike) {
				return whole, nil
			}
			continue
		}
		o := e.Options
		o.Base, o.Change = p.base, p.change
		f := newExplorer(o)
		if err := f.start(ctx); err != nil {
			return nil, err
		}
		if !slices.EqualFunc(f.steps, steps[i], isSame) {
			return whole, nil
		}
		kinds[p.text] = f
		explorers = append(explorers, f)
	}
	e.report.Parts, e.report.Kinds = len(all), len(explorers)
	return explorers, nil
}

// stepsOf returns the steps of each part, false if one is of none.
func stepsOf(steps []record.Step, all []*part) ([][]record.Step, bool) {
	of := make([][]record.Step, len(all))
	for _, s := range steps {
		i := slices.IndexFunc(all, func(p *part) bool { return p.names[record.KeyOf("", s.Namespace, s.Object)] })
		if i < 0 {
			return nil, false
		}
		of[i] = append(of[i], s)
	}
	return of, true
}

// isSame reports whether a step is the same, whatever is done beside it. In which order clusters of a stage are updated depends
// on their UIDs, which are arbitrary.
func isSame(a, b record.Step) bool {
	if a.Decision, b.Decision = 0, 0; a.Ring == record.RingFleet {
		a.Unit, b.Unit = "", ""
	}
	return a == b
}

// isAlike reports whether a step is the same but for names.
func isAlike(a, b record.Step) bool { return a.At == b.At && a.Ring == b.Ring && a.Does == b.Does }

// thing is an object, or what stands for something that several share.
type thing struct {
	key record.Key
	// base are its manifests before the change; changes reports whether that has others.
	base    []*unstructured.Unstructured
	changes bool
	// mentions is every word in them that may be a name.
	mentions map[string]bool
	labels   []labels.Set
	parent   *thing
	// global reports whether it is in no namespace, owned whether something else owns it.
	global, owned bool
}

// root is the thing that stands for all that are connected with one.
func (t *thing) root() *thing {
	if t.parent != t {
		t.parent = t.parent.root()
	}
	return t.parent
}

// readOnly are kinds that nothing in the world writes once they exist.
var readOnly = map[string]bool{
	"configmap": true, "secret": true, "namespace": true, "service": true, "serviceaccount": true, "gatetemplate": true,
	"role": true, "rolebinding": true, "clusterrole": true, "clusterrolebinding": true, "networkpolicy": true, "ingress": true,
	"priorityclass": true, "storageclass": true,
}

const definition = "customresourcedefinition"

// splitter finds the parts of some manifests.
type splitter struct {
	things map[record.Key]*thing
	order  []*thing
	named  map[string][]*thing
	of     map[*unstructured.Unstructured]*thing
	// pins reports whether workloads keep their config, in objects that they share.
	pins bool
}

// isRead reports whether a thing is only read: no ring or controller writes it, and the change leaves it as it is.
func (s *splitter) isRead(t *thing) bool {
	isConfig := t.key.Kind == "configmap" || t.key.Kind == "secret"
	return t.key.Kind == definition || readOnly[t.key.Kind] && !t.changes && !t.owned && (!isConfig || !s.pins)
}

// split returns the parts that the change is in, in the order of their manifests. Everything that a ring decides together,
// or might, is in one part: what mentions or selects one another; a group; the workloads of a policy, and of a limit of
// the manager; the fleet of a namespace; a namespace with an Instance, whose operator may do anything there.
func split(o *Options, start *simulate.Play) []*part {
	s := &splitter{things: map[record.Key]*thing{}, named: map[string][]*thing{}, of: map[*unstructured.Unstructured]*thing{}, pins: !o.Config.PinNamespaces.IsEmpty()}
	for _, u := range o.Base {
		t := s.add(u, o.Namespace, start)
		t.base = append(t.base, u)
	}
	for _, u := range o.Change {
		t := s.add(u, o.Namespace, start)
		t.changes = t.changes || !slices.ContainsFunc(t.base, func(b *unstructured.Unstructured) bool { return equality.Semantic.DeepEqual(b.Object, u.Object) })
	}
	for _, u := range slices.Concat(o.Base, o.Change) {
		s.connect(s.of[u], u, o)
	}
	return s.parts(o)
}

// thing returns what has a key.
func (s *splitter) thing(key record.Key) *thing {
	t := s.things[key]
	if t == nil {
		t = &thing{key: key, mentions: map[string]bool{}}
		t.parent = t
		s.things[key] = t
		s.order = append(s.order, t)
		s.named[key.Name] = append(s.named[key.Name], t)
	}
	return t
}

func (s *splitter) add(u *unstructured.Unstructured, namespace string, start *simulate.Play) *thing {
	key := record.KeyOf(strings.ToLower(u.GetKind()), u.GetNamespace(), u.GetName())
	namespaced, err := start.Store().IsObjectNamespaced(u)
	if namespaced || err != nil {
		key.Namespace = cmp.Or(key.Namespace, namespace)
	}
	t := s.thing(key)
	s.of[u] = t
	t.global, t.owned = err == nil && !namespaced, t.owned || len(u.GetOwnerReferences()) > 0
	words(u.Object, nil, t.mentions)
	template, _, _ := unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels")
	t.labels = append(t.labels, u.GetLabels(), template)
	return t
}

// word is what may be a name.
var word = regexp.MustCompile(`[a-z0-9]([-a-z0-9.]*[a-z0-9])?`)

// words adds every word of a manifest that may be the name of another object.
func words(v any, at []string, to map[string]bool) {
	if isOpaque(at) || isLabels(at) {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			addWords(key, to)
			words(value, append(slices.Clip(at), key), to)
		}
	case []any:
		for _, value := range v {
			words(value, at, to)
		}
	case string:
		addWords(v, to)
	}
}

func addWords(text string, to map[string]bool) {
	for _, w := range word.FindAllString(text, -1) {
		to[w] = true
	}
}

// isLabels reports whether a field has labels, or the name of the object itself.
func isLabels(at []string) bool {
	n := len(at)
	return n > 0 && (at[n-1] == "labels" || at[n-1] == "matchLabels" || at[n-1] == "status") || n == 2 && at[0] == "metadata" && (at[1] == "name" || at[1] == "namespace")
}

// isOpaque reports whether a field is one that no ring reads, but to know whether it has changed: the values of config, and
// what a container runs.
func isOpaque(at []string) bool {
	if len(at) == 2 && (at[0] == "data" || at[0] == "binaryData" || at[0] == "stringData") {
		return true
	}
	i := slices.IndexFunc(at, func(field string) bool { return field == "containers" || field == "initContainers" })
	if i < 0 || i == len(at)-1 {
		return false
	}
	switch field := at[i+1]; field {
	case "name", "envFrom", "volumeMounts", "restartPolicy":
		return false
	case "env":
		return len(at) > i+2 && at[i+2] == "value"
	default:
		return true
	}
}

func (s *splitter) union(a, b *thing) { a.root().parent = b.root() }

// connect connects a thing with all that it may have to do with by one of its manifests.
func (s *splitter) connect(t *thing, u *unstructured.Unstructured, o *Options) {
	if s.isRead(t) {
		return
	}
	for w := range t.mentions {
		for _, other := range s.named[w] {
			if !s.isRead(other) && t.mayMention(other) {
				s.union(t, other)
			}
		}
	}
	if group := vocabulary.GroupOf(u.GetLabels(), u.GetAnnotations()); group != "" {
		s.union(t, s.thing(record.KeyOf("rolloutgroup", t.key.Namespace, group)))
	}
	s.selects(t, u.Object)
	s.share(t, o)
}

// mayMention reports whether a name in a thing may be that of another: of its own namespace, or of one that it names.
func (t *thing) mayMention(other *thing) bool {
	return t.global || other.global || t.key.Namespace == other.key.Namespace || t.mentions[other.key.Namespace]
}

// share connects a thing with what it shares a limit, a policy or a fleet with.
func (s *splitter) share(t *thing, o *Options) {
	all := func(namespace string, is func(*thing) bool) {
		for _, other := range s.order {
			if (namespace == "" || other.key.Namespace == namespace) && is(other) {
				s.union(t, other)
			}
		}
	}
	switch kind := t.key.Kind; {
	case isWorkload(t) && o.Config.SharesBudget():
		s.union(t, s.thing(record.KeyOf("limit", "", "")))
	case isWorkload(t) && o.Config.MaxRollingPerNamespace > 0:
		s.union(t, s.thing(record.KeyOf("limit", t.key.Namespace, "")))
	case kind == strings.ToLower(policy.ClusterKind):
		all("", isWorkload)
	case kind == strings.ToLower(policy.Kind):
		all(t.key.Namespace, isWorkload)
	case slices.Contains(fleetKinds, kind):
		all(t.key.Namespace, func(other *thing) bool {
			return slices.Contains(fleetKinds, other.key.Kind) || other.key.Kind == "secret"
		})
	case kind == "instance":
		all(t.key.Namespace, func(other *thing) bool { return !s.isRead(other) })
	case kind == "namespace":
		all(t.key.Name, func(other *thing) bool { return !s.isRead(other) })
	}
}

// fleetKinds are those by which clusters are assigned what to run. Their Secrets are of the fleet as well.
var fleetKinds = []string{"module", "bootstrapmodule", "cluster"}

func isWorkload(t *thing) bool {
	return t.key.Kind == "deployment" || t.key.Kind == "statefulset" || t.key.Kind == "daemonset"
}

// selects connects a thing with what its selectors select.
func (s *splitter) selects(t *thing, v any) {
	fields, _ := v.(map[string]any)
	for name, value := range fields {
		selector := selectorIn(value)
		if !strings.HasSuffix(strings.ToLower(name), "selector") || selector == nil || isWorkload(t) {
			s.selects(t, value)
			continue
		}
		for _, other := range s.order {
			if (t.global || t.key.Namespace == other.key.Namespace) && !s.isRead(other) && slices.ContainsFunc(other.labels, func(l labels.Set) bool { return selector.Matches(l) }) {
				s.union(t, other)
			}
		}
	}
}

// selectorIn returns the selector that a field has, nil if it has none.
func selectorIn(v any) labels.Selector {
	fields, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	of := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, of) != nil {
		return labels.Everything()
	}
	if selector, err := metav1.LabelSelectorAsSelector(of); err == nil {
		return selector
	}
	return labels.Everything()
}

// parts returns the connected things that the change is in, with what they read.
func (s *splitter) parts(o *Options) []*part {
	members := map[*thing][]*thing{}
	for _, t := range s.order {
		members[t.root()] = append(members[t.root()], t)
	}
	var all []*part
	for _, t := range s.order {
		if of := members[t.root()]; of[0] == t && slices.ContainsFunc(of, func(m *thing) bool { return m.changes }) {
			all = append(all, s.part(of, o))
		}
	}
	return all
}

func (s *splitter) part(members []*thing, o *Options) *part {
	in := map[*thing]bool{}
	for len(members) > 0 { // what is read may name what is read with it
		t := members[0]
		members = members[1:]
		in[t] = true
		for _, other := range s.order {
			if !in[other] && s.isRead(other) && (other.key.Kind == definition || t.mentions[other.key.Name] && t.mayMention(other) || other.key.Kind == "namespace" && other.key.Name == t.key.Namespace) {
				members = append(members, other)
			}
		}
	}
	p := &part{names: map[record.Key]bool{}}
	of := func(all []*unstructured.Unstructured) []*unstructured.Unstructured {
		return slices.DeleteFunc(slices.Clone(all), func(u *unstructured.Unstructured) bool { return !in[s.of[u]] })
	}
	p.base, p.change = of(o.Base), of(o.Change)
	for t := range in {
		p.names[record.KeyOf("", t.key.Namespace, record.Reference(t.key.Kind, t.key.Name))] = true
	}
	p.text = p.withoutNames(in, o)
	return p
}

// withoutNames is what the part says, with a number for each name of an object, and for each value that no ring reads. The
// numbers are those of the names in their order, by which rings decide among equals.
func (p *part) withoutNames(in map[*thing]bool, o *Options) string {
	names := map[string]string{}
	for t := range in {
		names[t.key.Name], names[t.key.Namespace] = "", ""
	}
	for i, name := range slices.Sorted(maps.Keys(names)) {
		names[name] = fmt.Sprintf("\x00%d", i)
	}
	n := &numberer{names: names, values: map[string]string{}}
	var all []any
	for _, of := range [][]*unstructured.Unstructured{p.base, p.change} { // all exist from one moment on, in whichever order they stand
		sorted := slices.SortedStableFunc(slices.Values(of), func(a, b *unstructured.Unstructured) int {
			return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetKind(), b.GetKind()))
		})
		for _, u := range sorted {
			all = append(all, n.number(u.Object, nil))
		}
		all = append(all, "")
	}
	for _, key := range slices.Concat(o.Readiness.Keys(), o.Unprepared) { // what is assumed of one makes it differ
		if _, name, _ := strings.Cut(key, "/"); names[strings.Split(name, "@")[0]] != "" {
			all = append(all, key)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fmt.Sprintf("%p", p)
	}
	return string(text)
}

type numberer struct{ names, values map[string]string }

func (n *numberer) number(v any, at []string) any {
	if isOpaque(at) {
		text := fmt.Sprintf("%#v", v) // keys of maps are in their order
		if n.values[text] == "" {
			n.values[text] = fmt.Sprintf("\x01%d", len(n.values))
		}
		return n.values[text]
	}
	switch v := v.(type) {
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, value := range v {
			all[n.rename(key)] = n.number(value, append(slices.Clip(at), key))
		}
		return all
	case []any:
		all := make([]any, 0, len(v))
		for _, value := range v {
			all = append(all, n.number(value, at))
		}
		return all
	case string:
		return n.rename(v)
	default:
		return v
	}
}

func (n *numberer) rename(text string) string {
	return word.ReplaceAllStringFunc(text, func(w string) string { return cmp.Or(n.names[w], w) })
}
