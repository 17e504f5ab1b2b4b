package plans

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// The kinds of which something special is known.
var (
	namespaceKind   = schema.GroupKind{Kind: "Namespace"}
	crdKind         = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	podKind         = schema.GroupKind{Kind: "Pod"}
	jobKind         = schema.GroupKind{Group: "batch", Kind: "Job"}
	serviceKind     = schema.GroupKind{Kind: "Service"}
	secretKind      = schema.GroupKind{Kind: "Secret"}
	claimKind       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	deploymentKind  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSetKind = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSetKind   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	instanceKind    = schema.GroupKind{Group: v1beta1.GroupVersion.Group, Kind: "Instance"}
)

// enhance makes an object one of the Instance's: labels by which users find it,
// annotations that say which step applied it, an owner, and its namespace.
func (w *work) enhance(u *unstructured.Unstructured, scope Scope) {
	w.place(u, scope)
	labels := u.GetLabels()
	u.SetLabels(w.labelled(labels))
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, w.marks())
	u.SetAnnotations(annotations)
	for _, path := range podTemplates(u) {
		w.enhanceTemplate(u, path)
	}
	w.enhanceClaims(u)
}

// place puts it into the Instance's namespace, and makes the Instance its owner,
// both if it lives in a namespace at all.
func (w *work) place(u *unstructured.Unstructured, scope Scope) {
	if scope != Namespaced {
		u.SetNamespace("")
		return
	}
	u.SetNamespace(w.o.Instance.Namespace)
	owner := map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": "Instance",
		"name": w.o.Instance.Name, "uid": string(w.o.Instance.UID),
	}
	if u.GroupVersionKind().GroupKind() != instanceKind {
		owner["controller"], owner["blockOwnerDeletion"] = true, true
	}
	_ = unstructured.SetNestedSlice(u.Object, []any{owner}, "metadata", "ownerReferences") // metadata is a map
}

func (w *work) labelled(labels map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[vocabulary.Heritage] = vocabulary.HeritageOf
	labels[vocabulary.OperatorLabel] = w.run.version.Operator.Name
	labels[vocabulary.InstanceLabel] = w.o.Instance.Name
	return labels
}

// marks say by which step of which execution an object was applied.
func (w *work) marks() map[string]string {
	return map[string]string{
		vocabulary.PlanAnnotation:      w.run.execution.Plan,
		vocabulary.PhaseAnnotation:     w.phase,
		vocabulary.StepAnnotation:      w.step,
		vocabulary.ExecutionAnnotation: string(w.run.execution.UID),
		vocabulary.Instance.Native:     w.o.Instance.Namespace + "/" + w.o.Instance.Name,
	}
}

// podTemplates are where the Pod templates of an object are.
func podTemplates(u *unstructured.Unstructured) [][]string {
	candidates := [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}}
	return slices.DeleteFunc(candidates, func(path []string) bool {
		_, ok, err := unstructured.NestedMap(u.Object, append(slices.Clone(path), "spec")...)
		return !ok || err != nil || !hasPodTemplate(u)
	})
}

func hasPodTemplate(u *unstructured.Unstructured) bool {
	switch u.GroupVersionKind().Group {
	case "", "apps", "batch":
		return true
	default:
		return false
	}
}

func (w *work) enhanceTemplate(u *unstructured.Unstructured, path []string) {
	template, ok, err := unstructured.NestedMap(u.Object, path...)
	if !ok || err != nil {
		return
	}
	t := &unstructured.Unstructured{Object: template}
	t.SetLabels(w.labelled(t.GetLabels()))
	annotations := t.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[vocabulary.OperatorVersionAnnotation] = w.run.version.Version
	t.SetAnnotations(annotations)
	_ = unstructured.SetNestedMap(u.Object, t.Object, path...) // it was a map
}

// enhanceClaims labels the claims of a StatefulSet.
func (w *work) enhanceClaims(u *unstructured.Unstructured) {
	if u.GroupVersionKind().GroupKind() != statefulSetKind {
		return
	}
	claims, ok, err := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
	if !ok || err != nil {
		return
	}
	for i := range claims {
		if claim, ok := claims[i].(map[string]any); ok {
			c := &unstructured.Unstructured{Object: claim}
			c.SetLabels(w.labelled(c.GetLabels()))
		}
	}
	_ = unstructured.SetNestedSlice(u.Object, claims, "spec", "volumeClaimTemplates") // it was a list
}

// uidOf is that of an object as it was seen, empty if it was not there.
func (o *Observed) uidOf(ref Ref) types.UID {
	if live := o.Objects[ref]; live != nil {
		return live.GetUID()
	}
	return ""
}

// isOurs is true of an object that belongs to this Instance, whoever applied it.
func (o *Observed) isOurs(live *unstructured.Unstructured) bool {
	for _, owner := range live.GetOwnerReferences() {
		if owner.UID == o.Instance.UID {
			return true
		}
	}
	if of, ok := live.GetAnnotations()[vocabulary.Instance.Native]; ok {
		return of == o.Instance.Namespace+"/"+o.Instance.Name
	}
	labels := live.GetLabels()
	return labels[vocabulary.Heritage] == vocabulary.HeritageOf && labels[vocabulary.InstanceLabel] == o.Instance.Name
}
