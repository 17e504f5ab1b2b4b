// Package manifest reads documents as manifests that belong together: which object runs
// which Pods, names which config, writes whose replicas. It finds nothing itself.
//
// What refers to an object may be outside of the manifests. Wherever a reference cannot
// be resolved, the answer is the one with which no rule finds anything wrong.
package manifest

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/reloader"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/source"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Options say how to look.
type Options struct {
	// Scheme has the kinds that are understood.
	Scheme *runtime.Scheme
	// Namespace is that of objects that name none.
	Namespace string
	// Now is from when on maintenance windows are looked for.
	Now time.Time
	// Minor is the minor version of Kubernetes 1 that the manifests are for, 0 for the latest.
	Minor int
	// Reloader has annotations of Reloader read, as by a manager with the flag; nil for none.
	Reloader *reloader.Options
}

// Manifests are all objects that are looked at together.
type Manifests struct {
	Options

	// Unread are the mistakes that keep documents from being read.
	Unread  []*source.Error
	Objects []*Object
	// Schemas find what the API server would refuse.
	Schemas Schemas
	// Configs are the ConfigMaps and Secrets, by what refers to them.
	Configs map[content.Object]*Object
	// Scalers are what writes the replicas of something else.
	Scalers []scaler
	// bindings give roles to service accounts, among others.
	bindings []roleBinding
	// Mentions are what names config.
	Mentions mentions
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

// New sorts out the objects of the documents. What the API server would refuse is not found
// without the schemas of [LoadSchemas].
func New(documents []source.Document, unread error, options Options) *Manifests {
	m := &Manifests{Options: options, Unread: source.Errors(unread), Configs: map[content.Object]*Object{}, Mentions: newMentions()}
	for i := range documents {
		o := &Object{Document: documents[i], placed: documents[i].Object.GetNamespace() != ""}
		source.InNamespace(documents[i:i+1], options.Namespace)
		var err error
		if o.Typed, err = o.Into(options.Scheme); err != nil && !errors.Is(err, source.ErrUnknownKind) {
			o.Mistakes = source.Errors(err)
		}
		m.add(o)
	}
	return m
}

func (m *Manifests) add(o *Object) {
	m.Objects = append(m.Objects, o)
	if s, ok := o.scaler(); ok {
		m.Scalers = append(m.Scalers, s)
	}
	if b, ok := o.roleBinding(); ok {
		m.bindings = append(m.bindings, b)
	}
	m.Mentions.read(o, m.Scheme.Recognizes(o.Object.GroupVersionKind()) && !o.isRelease())
	if ref := o.AsConfig(); o.IsConfig() && m.Configs[ref] == nil {
		m.Configs[ref] = o
	}
}

// IsConfig is true of a ConfigMap and of a Secret.
func (o *Object) IsConfig() bool {
	return o.Is("", string(content.ConfigMap)) || o.Is("", string(content.Secret))
}

// AsConfig is how a ConfigMap or a Secret is referred to.
func (o *Object) AsConfig() content.Object {
	return content.Object{Kind: content.Kind(o.Kind()), Namespace: o.Namespace(), Name: o.Name()}
}

// String is how findings call the object.
func (o *Object) String() string {
	name := o.Kind() + " " + o.Name()
	if !o.placed {
		return name
	}
	return name + " in namespace " + o.Namespace()
}

// Name is the name of the object.
func (o *Object) Name() string { return o.Object.GetName() }

// Namespace is the namespace of the object.
func (o *Object) Namespace() string { return o.Object.GetNamespace() }

// Is true of an object of a kind in a group.
func (o *Object) Is(group, kind string) bool {
	gvk := o.Object.GroupVersionKind()
	return gvk.Group == group && gvk.Kind == kind
}

// Kind is the kind of the object.
func (o *Object) Kind() string { return o.Object.GetKind() }

// Ignores is true if the object's author says that a finding is meant as it is.
func (o *Object) Ignores(code string) bool { return slices.Contains(o.Ignored(), code) }

// Ignored are the codes that the object's author names.
func (o *Object) Ignored() []string {
	return strings.FieldsFunc(vocabulary.LintIgnore.Get(o.Object.GetAnnotations()), func(r rune) bool { return r == ',' || r == ' ' })
}

// Pods is the template of what an object runs, and where it stands; nil if it runs
// nothing.
func (o *Object) Pods() (template *corev1.PodTemplateSpec, path []string) {
	switch t := o.Typed.(type) {
	case *appsv1.Deployment:
		return &t.Spec.Template, Fields("spec.template")
	case *appsv1.StatefulSet:
		return &t.Spec.Template, Fields("spec.template")
	case *appsv1.DaemonSet:
		return &t.Spec.Template, Fields("spec.template")
	case *appsv1.ReplicaSet:
		return &t.Spec.Template, Fields("spec.template")
	case *batchv1.Job:
		return &t.Spec.Template, Fields("spec.template")
	case *batchv1.CronJob:
		return &t.Spec.JobTemplate.Spec.Template, Fields("spec.jobTemplate.spec.template")
	case *corev1.Pod:
		return &corev1.PodTemplateSpec{ObjectMeta: t.ObjectMeta, Spec: t.Spec}, nil
	default:
		return nil, nil
	}
}

// Reloads is true of a workload that a manager reads the annotations of Reloader of.
func (m *Manifests) Reloads(o *Object) bool {
	return m.Reloader.Concerns(o.Namespace(), o.Typed.GetAnnotations(), workload.TemplateOf(o.Typed).Annotations)
}

// CanTrack is true of kinds whose config can be followed.
func (o *Object) CanTrack() bool {
	switch o.Typed.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
		return true
	default:
		return false
	}
}

// named is what a reference between objects finds.
type named interface {
	client.Object
	comparable
}

// Each visits the objects of a type, in their order.
func Each[T named](m *Manifests, visit func(*Object, T)) {
	for _, o := range m.Objects {
		if typed, ok := o.Typed.(T); ok {
			visit(o, typed)
		}
	}
}

// Find is the object of a type by its name, nil if it is not among the manifests.
func Find[T named](m *Manifests, namespace, name string) (*Object, T) {
	for _, o := range m.Objects {
		if typed, ok := o.Typed.(T); ok && o.Namespace() == namespace && o.Name() == name {
			return o, typed
		}
	}
	var none T
	return nil, none
}

// Run is something that runs Pods.
type Run struct {
	O      *Object
	labels labels.Set
}

// Selected are the runs that a selector finds; none if it cannot be understood.
func (m *Manifests) Selected(namespace string, selector *metav1.LabelSelector) []Run {
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(m.Runs(namespace), func(w Run) bool { return !s.Matches(w.labels) })
}

// Runs are those in a namespace.
func (m *Manifests) Runs(namespace string) []Run {
	var found []Run
	for _, o := range m.Objects {
		template, _ := o.Pods()
		if template == nil || o.Namespace() != namespace {
			continue
		}
		found = append(found, Run{o, template.Labels})
	}
	return found
}

// running are fields by which kinds that are not known here say how many Pods they run,
// what is in them, or which chart or repository has them.
var running = regexp.MustCompile(`^(replicas|replicaCount|instances|nodeSets|containers|chart|repoURL)$`)

// MayRunPods is true if something among the manifests may bring Pods to a namespace
// that the manifests do not show: an operator's resource, a release, an Instance.
func (m *Manifests) MayRunPods(namespace string) bool {
	return slices.ContainsFunc(m.Objects, func(o *Object) bool {
		if !m.isOperated(o) {
			return false
		}
		return !o.placed || o.Namespace() == namespace || slices.Contains(namespacesIn(o.Object.Object["spec"], nil), namespace)
	})
}

func (m *Manifests) isOperated(o *Object) bool {
	switch o.Typed.(type) {
	case *v1beta1.Instance, *kustomizev1.Kustomization, *helmv2.HelmRelease:
		return true
	default:
		return !m.Scheme.Recognizes(o.Object.GroupVersionKind()) && hasField(o.Object.Object["spec"], running)
	}
}

// isRelease reports whether an object is a release of Helm: its values may name anything.
func (o *Object) isRelease() bool {
	_, is := o.Typed.(*helmv2.HelmRelease)
	return is
}

// hasField is true of a value with a field of such a name, however deep.
func hasField(value any, name *regexp.Regexp) bool {
	switch v := value.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return hasField(item, name) })
	case map[string]any:
		for key, inner := range v {
			if name.MatchString(key) || hasField(inner, name) {
				return true
			}
		}
	}
	return false
}

// KeyUse is one of our keys as an object has it.
type KeyUse struct {
	vocabulary.Entry

	Name, Value string
	At          vocabulary.Place
	Path        []string
}

// Keys are the labels and annotations of an object, those of its Pods last.
func (o *Object) Keys() []KeyUse {
	uses := slices.Concat(
		usesIn(o.Object.GetAnnotations(), vocabulary.Annotation, []string{"metadata", "annotations"}),
		usesIn(o.Object.GetLabels(), vocabulary.Label, []string{"metadata", "labels"}),
	)
	if template, path := o.Pods(); template != nil && path != nil {
		uses = append(uses, usesIn(template.Annotations, vocabulary.Template, append(slices.Clone(path), "metadata", "annotations"))...)
	}
	return uses
}

func usesIn(values map[string]string, place vocabulary.Place, path []string) []KeyUse {
	var uses []KeyUse
	for _, name := range SortedKeys(values) {
		uses = append(uses, KeyUse{Entry: Entries()[name], Name: name, Value: values[name], At: place, Path: append(slices.Clone(path), name)})
	}
	return uses
}

// IsOurs is true of a name that the vocabulary has.
func (u *KeyUse) IsOurs() bool { return u.Native != "" }

// Entries are the keys of the vocabulary, by all of their names.
var Entries = sync.OnceValue(func() map[string]vocabulary.Entry {
	found := map[string]vocabulary.Entry{}
	for _, e := range vocabulary.Entries() {
		for _, name := range e.Names() {
			found[name] = e
		}
	}
	return found
})
