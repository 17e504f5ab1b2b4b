package simulate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/simulate"
)

// caller does something to an API, and notes how that answers.
type caller struct {
	t         *testing.T
	c         client.Client
	namespace string
	// rest lets the garbage collector do its part, if it must be called.
	rest    func() error
	answers []string
}

// did notes the answer: the reason of an error and the fields that it is about, or what
// became of the object.
func (a *caller) did(what string, err error, facts ...any) {
	a.t.Helper()
	if err != nil {
		facts = []any{apierrors.ReasonForError(err), code(err), causes(err)}
	}
	a.answers = append(a.answers, fmt.Sprint(append([]any{what + ":"}, facts...)...))
}

func code(err error) int32 {
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Code
	}
	return 0
}

// causes are the fields that were refused, and for what.
func causes(err error) []string {
	var all []string
	if status, ok := err.(apierrors.APIStatus); ok && status.Status().Details != nil && (apierrors.IsInvalid(err) || apierrors.IsConflict(err)) {
		for _, c := range status.Status().Details.Causes {
			why := c.Message[strings.LastIndex(c.Message, ": ")+1:] // without the value
			all = append(all, fmt.Sprintf("%s %s:%s", c.Type, c.Field, why))
		}
	}
	slices.Sort(all)
	return all
}

func (a *caller) apply(manager, manifest string, opts ...client.ApplyOption) (*unstructured.Unstructured, error) {
	a.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		a.t.Fatal(err)
	}
	u.SetNamespace(a.namespace)
	if opts == nil {
		opts = []client.ApplyOption{client.ForceOwnership}
	}
	return u, a.c.Apply(a.t.Context(), client.ApplyConfigurationFromUnstructured(u), append(opts, client.FieldOwner(manager))...)
}

const zoneManifest = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: zone, annotations: {%s}}
spec:
  serviceName: x
  replicas: 0
  selector: {matchLabels: {app: zone}}
  template:
    metadata: {labels: {app: zone}}
    spec: {containers: [{name: c, image: %q}]}
`

const moduleEntry = `
apiVersion: fleet.squaremo.dev/v1alpha1
kind: ProxyAssemblage
metadata: {name: east}
spec:
  kubeconfigRef: {name: east-kubeconfig}
  assemblage: {syncs: [{name: %s, revision: %s, assignedAt: "2026-05-04T12:00:00.000000Z", source: {git: {url: "https://example.com/a", version: {tag: v1}}}}]}
`

// call does all that the rings do to an API, and what goes wrong meanwhile.
func (a *caller) call() {
	t, ctx := a.t, a.t.Context()
	cm := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "app"}}
	}
	made := cm()
	made.Finalizers = []string{"example.com/wait"}
	a.did("create", a.c.Create(ctx, made), made.Generation, made.UID != "")
	a.did("create again", a.c.Create(ctx, cm()))
	a.did("get what does not exist", a.c.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "none"}, cm()))

	stale := made.DeepCopy()
	made.Data = map[string]string{"color": "red"}
	a.did("update", a.c.Update(ctx, made), made.Generation, made.ResourceVersion != stale.ResourceVersion)
	same := made.DeepCopy()
	a.did("update nothing", a.c.Update(ctx, same), same.ResourceVersion == made.ResourceVersion)
	a.did("update an old version", a.c.Update(ctx, stale))
	wrong, version := types.UID("wrong"), "1"
	a.did("delete another uid", a.c.Delete(ctx, cm(), client.Preconditions{UID: &wrong}))
	a.did("delete an old version", a.c.Delete(ctx, cm(), client.Preconditions{ResourceVersion: &version}))
	a.did("delete by a dry run", a.c.Delete(ctx, cm(), client.DryRunAll))
	a.did("delete what has a finalizer", a.c.Delete(ctx, cm(), client.Preconditions{UID: &made.UID}))
	is := cm()
	a.did("look", a.c.Get(ctx, client.ObjectKeyFromObject(made), is), is.DeletionTimestamp != nil)
	is.Finalizers = nil
	a.did("take the finalizer away", a.c.Update(ctx, is))
	a.did("look again", a.c.Get(ctx, client.ObjectKeyFromObject(made), cm()))

	_, err := a.apply("user", fmt.Sprintf(zoneManifest, "a: b", "app:1"))
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "zone"}}
	if err := a.c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	a.did("apply", err, set.Generation, set.Spec.UpdateStrategy.Type, *rolling.Partition, rolling.MaxUnavailable.String(), set.Spec.PodManagementPolicy)
	patch := func(what string, kind types.PatchType, raw string, opts ...client.PatchOption) {
		s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "zone"}}
		err := a.c.Patch(ctx, s, client.RawPatch(kind, []byte(raw)), append(opts, client.FieldOwner("spillway"))...)
		if err != nil {
			a.did(what, err)
			return
		}
		a.did(what, nil, s.Generation, *s.Spec.UpdateStrategy.RollingUpdate.Partition, s.Spec.Template.Annotations)
	}
	patch("hold by a merge patch", types.MergePatchType, fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"updateStrategy":{"rollingUpdate":{"partition":7}}}}`, set.UID))
	patch("merge patch of another uid", types.MergePatchType, `{"metadata":{"uid":"wrong"},"spec":{"updateStrategy":{"rollingUpdate":{"partition":8}}}}`)
	patch("merge patch of an old version", types.MergePatchType, `{"metadata":{"resourceVersion":"1"},"spec":{"updateStrategy":{"rollingUpdate":{"partition":8}}}}`)
	patch("dry run", types.MergePatchType, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":9}}}}`, client.DryRunAll)
	patch("JSON patch", types.JSONPatchType, fmt.Sprintf(`[{"op":"test","path":"/metadata/uid","value":%q},{"op":"add","path":"/spec/template/metadata/annotations","value":{"hash":"1"}}]`, set.UID))
	patch("JSON patch whose test fails", types.JSONPatchType, `[{"op":"test","path":"/metadata/generation","value":99},{"op":"add","path":"/spec/template/metadata/annotations","value":{"hash":"2"}}]`)
	_, err = a.apply("user", fmt.Sprintf(zoneManifest, "", "app:2"))
	if err := a.c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
		t.Fatal(err)
	}
	a.did("apply again", err, set.Generation, set.Annotations["a"], *set.Spec.UpdateStrategy.RollingUpdate.Partition, set.Spec.Template.Annotations, set.Spec.Template.Spec.Containers[0].Image)

	for _, module := range []string{"shop", "agent"} {
		_, err = a.apply("spillway-"+module, fmt.Sprintf(moduleEntry, module, "r1"))
		a.did("assign "+module, err)
	}
	u, err := a.apply("spillway-shop", fmt.Sprintf(moduleEntry, "shop", "r2"))
	syncs, _, _ := unstructured.NestedSlice(u.Object, "spec", "assemblage", "syncs")
	a.did("assign shop again", err, len(syncs), u.GetGeneration())
	for _, sync := range syncs {
		a.did("it has", nil, sync.(map[string]any)["name"], sync.(map[string]any)["revision"])
	}
	if err := unstructured.SetNestedField(u.Object, int64(1), "status", "observedGeneration"); err != nil {
		t.Fatal(err)
	}
	a.did("status", a.c.Status().Update(ctx, u), u.GetGeneration())
}

// The store answers as an API server does to whatever the rings do.
func TestTheStoreAnswersAsAnAPIServer(t *testing.T) {
	c := newClient(t)
	installKinds(t, c)
	collected, rest, err := simulate.NewCollected(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	offline := &caller{t: t, c: collected, rest: rest, namespace: "shop"}
	served := &caller{t: t, c: c, rest: func() error { return nil }, namespace: testenv.Namespace(t)}
	for _, a := range []*caller{offline, served} {
		a.call()
		a.callWhatIsRefused()
		a.callStatus()
		a.callSelectors()
		a.callConflicts()
		a.callDeletions()
	}
	if diff := cmp.Diff(served.answers, offline.answers); diff != "" {
		t.Errorf("(-API server +store):\n%s", diff)
	}
}
