package simulate_test

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// callStatus patches the status of a StatefulSet that no controller watches for long:
// it has no replicas.
func (a *caller) callStatus() {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "zone"}}
	if err := a.c.Get(a.t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		a.t.Fatal(err)
	}
	patch := func(what, raw string) {
		is := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "zone"}}
		err := a.c.Status().Patch(a.t.Context(), is, client.RawPatch(types.MergePatchType, []byte(raw)), client.FieldOwner("spillway"))
		a.did(what, err, is.Generation == set.Generation, is.Status.CurrentRevision, is.Spec.MinReadySeconds)
	}
	patch("patch the status", fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"currentRevision":"zone-1"}}`, set.UID))
	patch("patch more than the status", `{"spec":{"minReadySeconds":9},"status":{"currentRevision":"zone-2"}}`)
	patch("patch the status of another uid", `{"metadata":{"uid":"wrong"},"status":{"currentRevision":"zone-3"}}`)
	patch("patch the status of an old version", `{"metadata":{"resourceVersion":"1"},"status":{"currentRevision":"zone-3"}}`)
}

// callSelectors asks for some of several ConfigMaps.
func (a *caller) callSelectors() {
	for name, tier := range map[string]string{"s-1": "front", "s-2": "back", "s-3": ""} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name, Labels: map[string]string{"selected": "true"}}}
		if tier != "" {
			cm.Labels["tier"] = tier
		}
		a.did("create", a.c.Create(a.t.Context(), cm))
	}
	list := func(what string, list client.ObjectList, opts ...client.ListOption) {
		err := a.c.List(a.t.Context(), list, append(opts, client.InNamespace(a.namespace))...)
		var names []string
		switch l := list.(type) {
		case *corev1.ConfigMapList:
			for i := range l.Items {
				names = append(names, l.Items[i].Name)
			}
		case *metav1.PartialObjectMetadataList:
			for i := range l.Items {
				names = append(names, l.Items[i].Name)
			}
		}
		a.did(what, err, names)
	}
	for _, text := range []string{"tier=front", "selected,tier!=front", "selected,!tier", "tier in (front, back)", "tier notin (front),selected", "tier=none"} {
		selector, err := labels.Parse(text)
		if err != nil {
			a.t.Fatal(err)
		}
		list(text, &corev1.ConfigMapList{}, client.MatchingLabelsSelector{Selector: selector})
	}
	selected := client.MatchingLabels{"selected": "true"}
	for _, text := range []string{"metadata.name=s-1", "metadata.name!=s-1", "metadata.name=s-1,metadata.namespace=" + a.namespace, "metadata.name=s-1,metadata.name=s-2", "spec.nodeName="} {
		selector, err := fields.ParseSelector(text)
		if err != nil {
			a.t.Fatal(err)
		}
		list("field", &corev1.ConfigMapList{}, selected, client.MatchingFieldsSelector{Selector: selector})
	}
	heads := &metav1.PartialObjectMetadataList{}
	heads.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	list("heads", heads, selected)
	list("Pods that are nowhere", &corev1.PodList{}, client.MatchingFields{"spec.nodeName": "nowhere"})
}

const scaler = `
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: scaler}
spec: {minReplicas: 2, maxReplicas: 3, targetCPUUtilizationPercentage: 80, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}
`

// callConflicts applies fields of another field manager, and another version of a kind.
func (a *caller) callConflicts() {
	manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {color: %s}}"
	_, err := a.apply("user", fmt.Sprintf(manifest, "red"))
	a.did("apply", err)
	_, err = a.apply("other", fmt.Sprintf(manifest, "red"), client.DryRunAll)
	a.did("apply the same", err)
	_, err = a.apply("other", fmt.Sprintf(manifest, "blue"), client.DryRunAll)
	a.did("apply fields of another field manager", err)
	_, err = a.apply("user", fmt.Sprintf(manifest, "green"), client.DryRunAll)
	shared := &corev1.ConfigMap{}
	if err := a.c.Get(a.t.Context(), client.ObjectKey{Namespace: a.namespace, Name: "shared"}, shared); err != nil {
		a.t.Fatal(err)
	}
	a.did("apply by a dry run", err, shared.Data, len(shared.ManagedFields))
	_, err = a.apply("user", scaler)
	a.did("apply an old version", err)
	is := &autoscalingv2.HorizontalPodAutoscaler{}
	err = a.c.Get(a.t.Context(), client.ObjectKey{Namespace: a.namespace, Name: "scaler"}, is)
	metric := is.Spec.Metrics[0]
	a.did("get the new one", err, *is.Spec.MinReplicas, is.Spec.MaxReplicas, is.Spec.ScaleTargetRef, len(is.Spec.Metrics), metric.Type, metric.Resource.Name,
		metric.Resource.Target.Type, *metric.Resource.Target.AverageUtilization)
}

// callDeletions deletes objects that others belong to, in each of the ways.
func (a *caller) callDeletions() {
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		a.deleteOwner(how)
	}
}

func (a *caller) deleteOwner(how metav1.DeletionPropagation) {
	t, ctx := a.t, a.t.Context()
	a.did(string(how), nil)
	made := func(name string, finalizers []string, owners ...*corev1.ConfigMap) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, GenerateName: name + "-", Finalizers: finalizers}}
		for _, owner := range owners {
			cm.OwnerReferences = append(cm.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true)})
		}
		if err := a.c.Create(ctx, cm); err != nil {
			t.Fatal(err)
		}
		return cm
	}
	one, other := made("one", nil), made("other", nil)
	only := made("only", []string{"example.com/wait"}, one)
	both := made("both", nil, one, other)
	a.did("delete", a.c.Delete(ctx, one, client.Preconditions{UID: &one.UID}, client.PropagationPolicy(how)))
	a.becomes("what has another owner", both, "other")
	if how == metav1.DeletePropagationOrphan {
		a.becomes("what belonged to it", only, "")
		a.becomes("the owner", one, "gone")
		return
	}
	a.becomes("what belonged to it", only, "goes one")
	if how == metav1.DeletePropagationForeground {
		a.becomes("the owner", one, "goes")
	}
	last := &corev1.ConfigMap{}
	if err := a.c.Get(ctx, client.ObjectKeyFromObject(only), last); err != nil {
		t.Fatal(err)
	}
	a.did("it has", nil, last.Finalizers)
	last.Finalizers = nil
	a.did("let it go", a.c.Patch(ctx, last, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	a.becomes("what belonged to it", only, "gone")
	a.becomes("the owner", one, "gone")
	a.did("delete the other", a.c.Delete(ctx, other))
	a.becomes("what has no other owner", both, "gone")
}

// becomes waits until an object is gone, or goes, and belongs to these by the names that
// they were made from.
func (a *caller) becomes(what string, obj *corev1.ConfigMap, wanted string) {
	a.t.Helper()
	if err := a.rest(); err != nil {
		a.t.Fatal(err)
	}
	testenv.Eventually(a.t, func(ctx context.Context) error {
		is, err := a.stateOf(ctx, obj)
		if err == nil && is != wanted {
			err = fmt.Errorf("%s is %q, not %q", what, is, wanted)
		}
		return err
	})
}

func (a *caller) stateOf(ctx context.Context, obj *corev1.ConfigMap) (string, error) {
	is := &corev1.ConfigMap{}
	err := a.c.Get(ctx, client.ObjectKeyFromObject(obj), is)
	if apierrors.IsNotFound(err) {
		return "gone", nil
	}
	var state []string
	if is.DeletionTimestamp != nil {
		state = append(state, "goes")
	}
	for _, ref := range is.OwnerReferences {
		state = append(state, ref.Name[:strings.LastIndex(ref.Name, "-")])
	}
	return strings.Join(state, " "), err
}
