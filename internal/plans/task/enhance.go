package task

import (
	"encoding/base64"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// enhance makes an object the Instance's: it adds labels by which users find it,
// annotations that say which step applied it, an owner, and the namespace.
func (w *work) enhance(u *unstructured.Unstructured, scope object.Scope) {
	w.place(u, scope)
	labels := u.GetLabels()
	u.SetLabels(w.labeled(labels))
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
	encodeTexts(u)
}

// encodeTexts makes the texts of a Secret its data, as the API server stores them: so the Instance
// owns in managedFields what it has applied.
func encodeTexts(u *unstructured.Unstructured) {
	texts, _, err := unstructured.NestedStringMap(u.Object, "stringData")
	data, _, err2 := unstructured.NestedStringMap(u.Object, "data")
	if u.GroupVersionKind().GroupKind() != object.SecretKind || len(texts) == 0 || err != nil || err2 != nil {
		return // the API server says what is wrong
	}
	if data == nil {
		data = map[string]string{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(u.Object, "stringData")
	_ = unstructured.SetNestedStringMap(u.Object, data, "data") // it was a map
}

// place sets the Instance's namespace and makes the Instance the owner, unless the
// object is cluster-scoped, or a chart keeps it.
func (w *work) place(u *unstructured.Unstructured, scope object.Scope) {
	if scope != object.Namespaced {
		u.SetNamespace("")
		return
	}
	u.SetNamespace(w.o.Instance.Namespace)
	if w.staysWithoutInstance(u) {
		return
	}
	owner := map[string]any{
		"apiVersion": v1beta1.GroupVersion.String(), "kind": "Instance",
		"name": w.o.Instance.Name, "uid": string(w.o.Instance.UID),
	}
	if u.GroupVersionKind().GroupKind() != object.InstanceKind {
		owner["controller"], owner["blockOwnerDeletion"] = true, true
	}
	_ = unstructured.SetNestedSlice(u.Object, []any{owner}, "metadata", "ownerReferences") // metadata is a map
}

// marks say which step of which execution applied an object.
func (w *work) marks() map[string]string {
	return map[string]string{
		vocabulary.PlanAnnotation:      w.Execution.Plan,
		vocabulary.PhaseAnnotation:     w.phase,
		vocabulary.StepAnnotation:      w.step,
		vocabulary.ExecutionAnnotation: string(w.Execution.UID),
		vocabulary.Instance.Native:     w.o.self(),
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
	t.SetLabels(w.labeled(t.GetLabels()))
	annotations := t.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[vocabulary.OperatorVersionAnnotation] = w.Version.Spec.Version
	t.SetAnnotations(annotations)
	_ = unstructured.SetNestedMap(u.Object, t.Object, path...) // it was a map
}

// enhanceClaims labels the claims of a StatefulSet.
func (w *work) enhanceClaims(u *unstructured.Unstructured) {
	if u.GroupVersionKind().GroupKind() != object.StatefulSetKind {
		return
	}
	claims, ok, err := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
	if !ok || err != nil {
		return
	}
	for i := range claims {
		if claim, ok := claims[i].(map[string]any); ok {
			c := &unstructured.Unstructured{Object: claim}
			c.SetLabels(w.labeled(c.GetLabels()))
		}
	}
	_ = unstructured.SetNestedSlice(u.Object, claims, "spec", "volumeClaimTemplates") // it was a list
}

func (w *work) labeled(labels map[string]string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[vocabulary.Heritage] = vocabulary.HeritageOf
	labels[vocabulary.OperatorLabel] = w.Version.Spec.Operator.Name
	labels[vocabulary.InstanceLabel] = w.o.Instance.Name
	return labels
}
