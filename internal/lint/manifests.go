package lint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/source"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Manifests are all objects that are looked at together.
type Manifests struct {
	Options

	// Unread are the mistakes that keep documents from being read.
	Unread  []*source.Error
	Objects []*Object
	// schemas find what the API server would refuse.
	schemas schemas
	// configs are the ConfigMaps and Secrets, by what refers to them.
	configs map[content.Object]*Object
	// scalers are what writes the replicas of something else.
	scalers []scaler
	// bindings give roles to service accounts, among others.
	bindings []roleBinding
	// mentions are what names config.
	mentions mentions
}

// Object is one of them.
type Object struct {
	source.Document

	// Typed is the object as its kind; nil if that is not known, or if something in
	// it is wrong, as Mistakes say.
	Typed    client.Object
	Mistakes []*source.Error
	// placed is true if the manifest names the namespace.
	placed bool
}

func understand(documents []source.Document, unread error, options Options) (*Manifests, error) {
	s, err := loadSchemas()
	if err != nil {
		return nil, err
	}
	m := &Manifests{Options: options, Unread: source.Errors(unread), schemas: s, configs: map[content.Object]*Object{}, mentions: newMentions()}
	for i := range documents {
		o := &Object{Document: documents[i], placed: documents[i].Object.GetNamespace() != ""}
		source.InNamespace(documents[i:i+1], options.Namespace)
		o.Typed, err = o.Into(options.Scheme)
		if err != nil && !errors.Is(err, source.ErrUnknownKind) {
			o.Mistakes = source.Errors(err)
		}
		m.add(o)
	}
	return m, nil
}

func (m *Manifests) add(o *Object) {
	m.Objects = append(m.Objects, o)
	if s, ok := o.scaler(); ok {
		m.scalers = append(m.scalers, s)
	}
	if b, ok := o.roleBinding(); ok {
		m.bindings = append(m.bindings, b)
	}
	m.mentions.read(o, m.Scheme.Recognizes(o.Object.GroupVersionKind()))
	if ref := o.asConfig(); o.isConfig() && m.configs[ref] == nil {
		m.configs[ref] = o
	}
}

// isConfig is true of a ConfigMap and of a Secret.
func (o *Object) isConfig() bool {
	return o.is("", string(content.ConfigMap)) || o.is("", string(content.Secret))
}

// asConfig is how a ConfigMap or a Secret is referred to.
func (o *Object) asConfig() content.Object {
	return content.Object{Kind: content.Kind(o.kind()), Namespace: o.namespace(), Name: o.name()}
}

// What an object is called.
func (o *Object) name() string      { return o.Object.GetName() }
func (o *Object) namespace() string { return o.Object.GetNamespace() }
func (o *Object) kind() string      { return o.Object.GetKind() }

// String is how findings call the object.
func (o *Object) String() string {
	name := o.kind() + " " + o.name()
	if !o.placed {
		return name
	}
	return name + " in namespace " + o.namespace()
}

// is true of an object of a kind in a group.
func (o *Object) is(group, kind string) bool {
	gvk := o.Object.GroupVersionKind()
	return gvk.Group == group && gvk.Kind == kind
}

// ignores is true if the object's author says that a finding is meant as it is.
func (o *Object) ignores(code string) bool { return slices.Contains(o.ignored(), code) }

// ignored are the codes that the object's author names.
func (o *Object) ignored() []string {
	return strings.FieldsFunc(vocabulary.LintIgnore.Get(o.Object.GetAnnotations()), func(r rune) bool { return r == ',' || r == ' ' })
}

// named is what a reference between objects finds.
type named interface {
	client.Object
	comparable
}

// each visits the objects of a type, in their order.
func each[T named](m *Manifests, visit func(*Object, T)) {
	for _, o := range m.Objects {
		if typed, ok := o.Typed.(T); ok {
			visit(o, typed)
		}
	}
}

// find is the object of a type by its name, nil if it is not among the manifests.
func find[T named](m *Manifests, namespace, name string) (*Object, T) {
	for _, o := range m.Objects {
		if typed, ok := o.Typed.(T); ok && o.namespace() == namespace && o.name() == name {
			return o, typed
		}
	}
	var none T
	return nil, none
}

// pods is the template of what an object runs, and where it stands; nil if it runs
// nothing.
func (o *Object) pods() (template *corev1.PodTemplateSpec, path []string) {
	switch t := o.Typed.(type) {
	case *appsv1.Deployment:
		return &t.Spec.Template, fields("spec.template")
	case *appsv1.StatefulSet:
		return &t.Spec.Template, fields("spec.template")
	case *appsv1.DaemonSet:
		return &t.Spec.Template, fields("spec.template")
	case *appsv1.ReplicaSet:
		return &t.Spec.Template, fields("spec.template")
	case *batchv1.Job:
		return &t.Spec.Template, fields("spec.template")
	case *batchv1.CronJob:
		return &t.Spec.JobTemplate.Spec.Template, fields("spec.jobTemplate.spec.template")
	case *corev1.Pod:
		return &corev1.PodTemplateSpec{ObjectMeta: t.ObjectMeta, Spec: t.Spec}, nil
	default:
		return nil, nil
	}
}

// canTrack is true of kinds whose config can be followed.
func (o *Object) canTrack() bool {
	switch o.Typed.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
		return true
	default:
		return false
	}
}

// fields takes a path such as spec.stages[2].name apart.
func fields(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// item is the path of an item of a list.
func item(list string, i int, rest ...string) []string {
	return append(append(fields(list), strconv.Itoa(i)), rest...)
}

// annotation is where an annotation of the object stands, and label a label.
func annotation(name string) []string { return []string{"metadata", "annotations", name} }
func label(name string) []string      { return []string{"metadata", "labels", name} }

// keyed is where a key stands, among the annotations or the labels.
func (o *Object) keyed(key vocabulary.Key) []string {
	if _, name, ok := key.Lookup(o.Object.GetAnnotations()); ok {
		return annotation(name)
	}
	_, name, _ := key.Lookup(o.Object.GetLabels())
	return label(name)
}

// ringField is where what a ring complains of stands: "annotation x" or "spec.y".
func (o *Object) ringField(field string) []string {
	name, isAnnotation := strings.CutPrefix(field, "annotation ")
	if !isAnnotation {
		return fields(field)
	}
	if _, labelled := o.Object.GetLabels()[name]; labelled && o.Object.GetAnnotations()[name] == "" {
		return label(name)
	}
	return annotation(name)
}

// plural is a number of things: "1 stage", "2 stages".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// locate is the path of the first map below a path of which something is true; the
// path itself, if there is none.
func (o *Object) locate(from []string, is func(path []string, value map[string]any) bool) []string {
	value := any(o.Object.Object)
	for _, field := range from {
		value = step(value, field)
	}
	if found := locate(value, from, is); found != nil {
		return found
	}
	return from
}

// step is a field of a map, or an item of a list.
func step(value any, field string) any {
	switch v := value.(type) {
	case map[string]any:
		return v[field]
	case []any:
		if i, err := strconv.Atoi(field); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

func locate(value any, path []string, is func([]string, map[string]any) bool) []string {
	switch v := value.(type) {
	case map[string]any:
		if is(path, v) {
			return path
		}
		for _, key := range sortedKeys(v) {
			if found := locate(v[key], append(slices.Clone(path), key), is); found != nil {
				return found
			}
		}
	case []any:
		for i := range v {
			if found := locate(v[i], append(slices.Clone(path), strconv.Itoa(i)), is); found != nil {
				return found
			}
		}
	}
	return nil
}

// sortedKeys are the keys of a map, sorted, so that findings come in the same order
// every time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
