package manager_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// A client that has the manager's token can neither run other images in the workloads of
// others, nor delete Pods that the rings never delete; and what the rings do is allowed.
func TestTheManagersIdentityMayWriteOnlyWhatTheRingsNeed(t *testing.T) {
	w := restricted(t)
	for name, test := range map[string]struct {
		patch   string
		refused bool
	}{
		"another image":           {`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"mine"}]}}}}`, true},
		"a service account":       {`{"spec":{"template":{"spec":{"serviceAccountName":"admin"}}}}`, true},
		"a host network":          {`{"spec":{"template":{"spec":{"hostNetwork":true}}}}`, true},
		"a field removed":         {`{"spec":{"template":{"spec":{"securityContext":null}}}}`, true},
		"another selector":        {`{"spec":{"minReadySeconds":7}}`, true},
		"a hash":                  {`{"spec":{"template":{"metadata":{"annotations":{"spillway.dev/config-hash":"1"}}}}}`, false},
		"a record":                {`{"metadata":{"annotations":{"spillway.dev/config-change":"{}"}}}`, false},
		"replicas":                {`{"spec":{"replicas":0}}`, false},
		"a partition":             {`{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":3}}}}`, false},
		"a strategy":              {`{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`, false},
		"a scheduler that is not": {`{"spec":{"template":{"spec":{"schedulerName":"default-scheduler"}}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "set"}}
			patch := client.RawPatch(types.StrategicMergePatchType, []byte(test.patch))
			w.check(t, "change", test.refused, w.as.Patch(t.Context(), set, patch, client.DryRunAll))
			if err := w.user.Patch(t.Context(), set, patch, client.DryRunAll); err != nil {
				t.Errorf("a user is refused: %v", err)
			}
		})
	}
	for pod, refused := range map[string]bool{"set-0": false, "of-nothing": true, "suspended": false, "of-another": true} {
		t.Run("pod "+pod, func(t *testing.T) {
			err := w.as.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: pod}}, client.DryRunAll)
			w.check(t, "delete", refused, err)
		})
	}
}

// Of a CronJob, such a client can record what it was run with, and change nothing of what it runs.
func TestTheManagersIdentityChangesNoCronJob(t *testing.T) {
	w := restricted(t)
	c := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "nightly"}}
	c.Spec.Schedule = "@yearly"
	c.Spec.JobTemplate.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "x"}}}
	if err := w.user.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for patch, refused := range map[string]bool{
		`{"metadata":{"annotations":{"` + vocabulary.ConfigSeen.Native + `":"run@1"}}}`:            false,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"x"}]}}`: true,
		`{"spec":{"suspend":true}}`: true,
		`{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"mine"}]}}}}}}`: true,
	} {
		err := w.as.Patch(t.Context(), c.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
		if denied := err != nil && strings.Contains(err.Error(), "the manager of Spillway may change"); denied != refused || !refused && err != nil {
			t.Errorf("%s is refused: %v", patch, err)
		}
	}
}

// Of a Rollout of Argo, such a client can ask for a restart, and change nothing of what it runs.
func TestTheManagersIdentityRestartsRollouts(t *testing.T) {
	w := restricted(t)
	testenv.InstallRollouts(t, w.user)
	testenv.ApplyManifest(t, w.user, `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: shop, namespace: `+w.namespace+`}, spec: {replicas: 1, template: {spec: {containers: [{name: c, image: x}]}}}}`)
	r := &unstructured.Unstructured{}
	r.SetAPIVersion("argoproj.io/v1alpha1")
	r.SetKind("Rollout")
	r.SetNamespace(w.namespace)
	r.SetName("shop")
	for patch, refused := range map[string]bool{
		`{"metadata":{"annotations":{"` + vocabulary.ConfigSeen.Native + `":"run@1"}},"spec":{"restartAt":"2026-01-01T00:00:00Z"}}`: false,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"x"}]}}`:                                  true,
		`{"spec":{"replicas":0}}`: true,
		`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"mine"}]}}}}`: true,
	} {
		w.check(t, "change", refused, w.as.Patch(t.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll))
	}
}

// Of a namespace, such a client can change the label by which Scales are guarded, and not
// those by which the security of Pods is.
func TestTheManagersIdentityMayWriteOneLabelOfANamespace(t *testing.T) {
	w := restricted(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	write := func(as client.Client, metadata string) error {
		return as.Patch(t.Context(), ns.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":`+metadata+`}`)), client.DryRunAll)
	}
	if err := w.user.Patch(t.Context(), ns.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"},"annotations":{"a":"b"}}}`))); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, func(context.Context) error {
		if err := write(w.as, `{"labels":{"probe":"x"}}`); !apierrors.IsInvalid(err) {
			return errors.Join(errNotYet, err)
		}
		return nil
	})
	for metadata, refused := range map[string]bool{
		`{"labels":{"` + vocabulary.PreparesScales.Native + `":"true"}}`:  false,
		`{"labels":{"` + vocabulary.PreparesScales.Native + `":null}}`:    false,
		`{"labels":{"` + vocabulary.GuardsEvictions.Native + `":"true"}}`: false,
		`{"labels":{"empty":""}}`:              true,
		`{"finalizers":["example.test/stay"]}`: true,
		`{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"none","uid":"11111111-2222-3333-4444-555555555555"}]}`: true,
		`{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}`:                                                     true,
		`{"labels":{"team":null}}`: true,
		`{"labels":{"team":"b"}}`:  true,
		`{"annotations":{"scheduler.alpha.kubernetes.io/node-selector":"a=b"}}`: true,
		`{"annotations":{"a":null}}`: true,
	} {
		w.check(t, "change", refused, write(w.as, metadata))
		if err := write(w.user, metadata); err != nil {
			t.Errorf("a user is refused: %v", err)
		}
	}
}

// Through the status of a Pod, such a client can withdraw a delete that was permitted, and
// change neither its state nor its labels, by which Services send it traffic.
func TestTheManagersIdentityMayWriteOneAnnotationOfAPod(t *testing.T) {
	w := restricted(t)
	write := func(as client.Client, patch string) error {
		return as.Status().Patch(t.Context(), w.pod("set-0", nil), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
	}
	testenv.Eventually(t, func(context.Context) error {
		if err := write(w.as, `{"metadata":{"labels":{"probe":"x"}}}`); !apierrors.IsInvalid(err) {
			return errors.Join(errNotYet, err)
		}
		return nil
	})
	for patch, refused := range map[string]bool{
		`{"metadata":{"annotations":{"` + vocabulary.Withdrawn.Native + `":"7"}}}`: false,
		`{"metadata":{"annotations":{"other":"7"}}}`:                               true,
		`{"metadata":{"labels":{"app":"theirs"}}}`:                                 true,
		`{"metadata":{"finalizers":["a.b/c"]}}`:                                    true,
		`{"status":{"podIP":"10.0.0.66","podIPs":[{"ip":"10.0.0.66"}]}}`:           true,
		`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`:             true,
	} {
		w.check(t, "change", refused, write(w.as, patch))
		if err := write(w.user, patch); err != nil {
			t.Errorf("a user is refused: %s: %v", patch, err)
		}
	}
}

// Where the manager may create and delete ConfigMaps and Secrets, such a client can delete snapshots and
// nothing else, by no door: not by a label, an owner, an adoption or the name of the manager's field manager
// in its own request. That is everywhere if pins are on in all namespaces, or in some by their labels, also
// in those without.
func TestTheManagersIdentityMayDeleteOnlySnapshots(t *testing.T) {
	t.Run("in a namespace that is named", func(t *testing.T) { onlySnapshots(t) })
	t.Run("in all", func(t *testing.T) { onlySnapshots(t, pin.Namespaces{All: true}) })
	t.Run("without the labels", func(t *testing.T) {
		onlySnapshots(t, pin.Namespaces{Selector: labels.SelectorFromSet(labels.Set{"team": "another"})})
	})
}

func onlySnapshots(t *testing.T, pins ...pin.Namespaces) {
	t.Helper()
	w := restricted(t, pins...)
	immutable := true
	object := func(name string, metadata metav1.ObjectMeta, isImmutable *bool) *corev1.Secret {
		metadata.Namespace, metadata.Name = w.namespace, name
		return &corev1.Secret{ObjectMeta: metadata, Immutable: isImmutable}
	}
	label := map[string]string{vocabulary.Snapshot.Native: "true"}
	of := map[string]string{vocabulary.SnapshotOf.Native: "uid/db"}
	other := &corev1.ConfigMap{}
	if err := w.user.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "other"}, other); err != nil {
		t.Fatal(err)
	}
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: other.UID} // or it is collected
	plain, snapshot := object("db", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{owner}}, nil), object("db-0123456789", metav1.ObjectMeta{Labels: label, Annotations: of}, &immutable)
	labeled := object("labeled", metav1.ObjectMeta{Labels: label}, nil)
	for _, obj := range []client.Object{plain, snapshot, labeled} {
		if err := w.user.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, func(context.Context) error {
		if err := w.as.Delete(t.Context(), plain.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) {
			return errors.Join(errNotYet, err)
		}
		return nil
	})
	deletes := func(obj client.Object) error { return w.as.Delete(t.Context(), obj, client.DryRunAll) }
	creates := func(obj client.Object) error {
		return w.as.Create(t.Context(), obj, client.DryRunAll, client.FieldOwner("spillway"))
	}
	patches := func(metadata string) error {
		return w.as.Patch(t.Context(), plain.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":`+metadata+`}`)), client.DryRunAll, client.FieldOwner("spillway"))
	}
	for name, test := range map[string]struct {
		err     error
		refused bool
	}{
		"delete a Secret":                 {deletes(plain.DeepCopy()), true},
		"delete what is labeled alone":    {deletes(labeled.DeepCopy()), true},
		"delete a snapshot":               {deletes(snapshot.DeepCopy()), false},
		"create a Secret":                 {creates(object("mine", metav1.ObjectMeta{}, nil)), true},
		"create one with the label alone": {creates(object("mine", metav1.ObjectMeta{Labels: label}, nil)), true},
		"create one that can be changed":  {creates(object("mine-0123456789", metav1.ObjectMeta{Labels: label, Annotations: of}, nil)), true},
		"create a snapshot":               {creates(object("mine-0123456789", metav1.ObjectMeta{Labels: label, Annotations: of}, &immutable)), false},
		"add the label":                   {patches(`{"labels":{"spillway.dev/snapshot":"true"}}`), true},
		"add an owner":                    {patches(`{"ownerReferences":[{"apiVersion":"kudo.dev/v1beta1","kind":"Instance","name":"i","uid":"11111111-2222-3333-4444-555555555555","controller":true}]}`), true},
		"adopt it":                        {patches(`{"annotations":{"spillway.dev/adopt":"true"}}`), true},
		"remove an owner, as of wave":     {patches(`{"ownerReferences":null}`), false},
	} {
		denied := apierrors.IsInvalid(test.err) && strings.Contains(test.err.Error(), "the manager of Spillway may create and delete only ConfigMaps and Secrets")
		if denied != test.refused || !test.refused && test.err != nil {
			t.Errorf("%s: refused is to be %v: %v", name, test.refused, test.err)
		}
	}
	if err := w.user.Delete(t.Context(), plain.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("a user is refused: %v", err)
	}
}

// restrictedWorld is a namespace with what an installation restricts, a user who may do
// anything, and the manager's identity, which has the permissions of the rings.
type restrictedWorld struct {
	namespace string
	user, as  client.Client
}

func (w *restrictedWorld) check(t *testing.T, verb string, refused bool, err error) {
	t.Helper()
	denied := apierrors.IsInvalid(err) && strings.Contains(err.Error(), "the manager of Spillway may "+verb+" only")
	if refused != denied || !refused && err != nil {
		t.Errorf("refused is to be %v: %v", refused, err)
	}
}

func restricted(t *testing.T, pinned ...pin.Namespaces) *restrictedWorld {
	t.Helper()
	w := &restrictedWorld{namespace: testenv.Namespace(t), user: newClient(t, testenv.Shared())}
	rings := []string{manager.RingConfig, manager.RingZones}
	o := manifests.Default(rings...)
	pinned = append(pinned, pin.In(w.namespace))
	o.Namespace = w.namespace
	o.Values.SetPins(pinned[0])
	o.Values.Reloader.CronJobs = true
	objects, err := manifests.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := o.RulesOfRole("spillway")
	if err != nil {
		t.Fatal(err)
	}
	pins, err := manifests.PinRules(pinned[0])
	if err != nil {
		t.Fatal(err)
	}
	rules = append(rules, pins...)
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"patch"}}) // as with --wave-cleanup
	identity := "system:serviceaccount:" + w.namespace + ":spillway"
	testenv.Grant(t, w.user, w.namespace, identity, append(rules, rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, Verbs: []string{"get"}}))
	if w.as, err = client.New(testenv.Shared().ConfigAs(identity), client.Options{}); err != nil {
		t.Fatal(err)
	}
	w.create(t)
	for _, obj := range objects {
		if strings.HasSuffix(obj.GetName(), ".manager.spillway.dev") {
			testenv.Apply(t, w.user, obj)
			t.Cleanup(func() { _ = w.user.Delete(context.Background(), obj) })
		}
	}
	for _, probe := range []func() error{ // until the API server evaluates both policies
		func() error { return w.as.Delete(t.Context(), w.pod("of-nothing", nil), client.DryRunAll) },
		func() error {
			return w.as.Patch(t.Context(), w.set(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minReadySeconds":1}}`)), client.DryRunAll)
		},
	} {
		testenv.Eventually(t, func(context.Context) error {
			if err := probe(); !apierrors.IsInvalid(err) {
				return errNotYet
			}
			return nil
		})
	}
	return w
}

// create makes a StatefulSet, and waits for its Pod; and Pods that no ring may delete.
func (w *restrictedWorld) create(t *testing.T) {
	t.Helper()
	set, other := w.set(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "other"}}
	for _, obj := range []client.Object{set, other} {
		if err := w.user.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	suspended := w.pod("suspended", nil)
	suspended.Spec.NodeName, suspended.Spec.SchedulerName = "", vocabulary.SuspendedScheduler
	suspended.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: vocabulary.SchedulingGate}}
	for _, obj := range []client.Object{
		suspended, w.pod("of-nothing", nil),
		w.pod("of-another", metav1.NewControllerRef(other, corev1.SchemeGroupVersion.WithKind("ConfigMap"))),
	} {
		if err := w.user.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, func(ctx context.Context) error {
		return w.user.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "set-0"}, &corev1.Pod{})
	})
}

func (w *restrictedWorld) set() *appsv1.StatefulSet {
	one, labels, yes := int32(1), map[string]string{"app": "set"}, true
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "set"},
		Spec: appsv1.StatefulSetSpec{Replicas: &one, ServiceName: "x", Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				Containers:      []corev1.Container{{Name: "c", Image: "v1"}},
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes},
			},
		}},
	}
}

func (w *restrictedWorld) pod(name string, owner *metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "c", Image: "v1"}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return pod
}

var errNotYet = errors.New("the API server does not evaluate the policy yet")
