package manifests_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// theft is an installation whose token a client other than the manager has.
type theft struct {
	*installation
	thief client.Client
}

// steal installs what is shipped. With all, the identity also may do whatever the namespace
// has, so that nothing but the policies refuses what it does.
func steal(t *testing.T, packageKinds, all bool, change ...func(*manifests.Options)) *theft {
	t.Helper()
	i := install(t, append(change, func(o *manifests.Options) { o.Values.PackageKinds = packageKinds })...)
	if all {
		anything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
		testenv.Grant(t, i.user, i.namespace, i.identity(), []rbacv1.PolicyRule{anything})
	}
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + i.namespace}
	thief, err := client.New(testenv.Shared().ConfigAs(i.identity(), groups...), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &theft{i, thief}
}

const podTemplate = `metadata: {labels: {app: x}}, spec: {restartPolicy: %s, containers: [{name: c, image: theirs}]}`

// targets are objects that run something, where their image is, as manifests of a name and metadata.
var targets = map[string]string{
	"Pod":         `{apiVersion: v1, kind: Pod, metadata: {name: %s%s}, spec: {nodeName: nowhere, containers: [{name: c, image: theirs}]}}`,
	"Deployment":  `{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s%s}, spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {` + fmt.Sprintf(podTemplate, "Always") + `}}}`,
	"StatefulSet": `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %s%s}, spec: {replicas: 0, serviceName: x, selector: {matchLabels: {app: x}}, template: {` + fmt.Sprintf(podTemplate, "Always") + `}}}`,
	"DaemonSet":   `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: %s%s}, spec: {selector: {matchLabels: {app: x}}, template: {` + fmt.Sprintf(podTemplate, "Always") + `}}}`,
	"CronJob":     `{apiVersion: batch/v1, kind: CronJob, metadata: {name: %s%s}, spec: {suspend: true, schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {` + fmt.Sprintf(podTemplate, "Never") + `}}}}}`,
	"Job":         `{apiVersion: batch/v1, kind: Job, metadata: {name: %s%s}, spec: {suspend: true, template: {` + fmt.Sprintf(podTemplate, "Never") + `}}}`,
}

// podSpec is where a kind has the spec of its Pods.
func podSpec(kind string) []string {
	switch kind {
	case "Pod":
		return []string{"spec"}
	case "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	default:
		return []string{"spec", "template", "spec"}
	}
}

// edit is a change of an object: of its metadata, of its image, or of both.
type edit struct{ metadata, image map[string]any }

func nest(value any, path ...string) map[string]any {
	for _, field := range slices.Backward(path) {
		value = map[string]any{field: value}
	}
	m, _ := value.(map[string]any)
	return m
}

func (w *theft) imageOf(kind string) edit {
	return edit{image: nest([]any{map[string]any{"name": "c", "image": "mine"}}, append(podSpec(kind), "containers")...)}
}

// forgeries are what a client may write to pass as an Instance that applies its own object.
func (w *theft) forgeries() map[string]edit {
	owner := func(apiVersion, kind, uid string, controller bool) edit {
		return edit{metadata: map[string]any{"ownerReferences": []any{map[string]any{"apiVersion": apiVersion, "kind": kind, "name": "db", "uid": uid, "controller": controller}}}}
	}
	return map[string]edit{
		"nothing":              {},
		"the label":            {metadata: nest("kudo", "labels", "heritage")},
		"all labels":           {metadata: map[string]any{"labels": map[string]any{"heritage": "kudo", "kudo.dev/instance": "db", "kudo.dev/operator": "app"}}},
		"the permission":       {metadata: nest("true", "annotations", "spillway.dev/adopt")},
		"the adoption":         {metadata: nest(w.namespace+"/db", "annotations", "spillway.dev/adopt")},
		"the annotation":       {metadata: nest(w.namespace+"/db", "annotations", "spillway.dev/instance")},
		"an Instance":          owner("kudo.dev/v1beta1", "Instance", "11111111-2222-3333-4444-555555555555", true),
		"an owner of none":     owner("kudo.dev/v1beta1", "Instance", "11111111-2222-3333-4444-555555555555", false),
		"a StatefulSet":        owner("apps/v1", "StatefulSet", "11111111-2222-3333-4444-555555555555", true),
		"an owner that is not": owner("v1", "ConfigMap", "11111111-2222-3333-4444-555555555555", true),
	}
}

// ways are how a client may send an edit.
func (w *theft) ways() map[string]func(context.Context, *unstructured.Unstructured, edit) error {
	patch := func(kind types.PatchType, manager string, sub string) func(context.Context, *unstructured.Unstructured, edit) error {
		return func(ctx context.Context, obj *unstructured.Unstructured, e edit) error {
			body := maps.Clone(e.image)
			if body == nil {
				body = map[string]any{}
			}
			body["metadata"] = e.metadata
			if kind == types.ApplyPatchType {
				metadata := map[string]any{"name": obj.GetName(), "namespace": obj.GetNamespace()}
				maps.Copy(metadata, e.metadata)
				body["apiVersion"], body["kind"], body["metadata"] = obj.GetAPIVersion(), obj.GetKind(), metadata
			}
			raw, err := json.Marshal(body)
			if err != nil {
				return err
			}
			to := obj.DeepCopy()
			if sub != "" {
				return w.thief.SubResource(sub).Patch(ctx, to, client.RawPatch(kind, raw), client.FieldOwner(manager))
			}
			var options []client.PatchOption
			if kind == types.ApplyPatchType {
				options = append(options, client.ForceOwnership)
			}
			return w.thief.Patch(ctx, to, client.RawPatch(kind, raw), append(options, client.FieldOwner(manager))...)
		}
	}
	update := func(ctx context.Context, obj *unstructured.Unstructured, e edit) error {
		live := obj.DeepCopy()
		if err := w.user.Get(ctx, client.ObjectKeyFromObject(obj), live); err != nil {
			return err
		}
		merge(live.Object, e.image)
		merge(live.Object, map[string]any{"metadata": e.metadata})
		return w.thief.Update(ctx, live, client.FieldOwner("kudo-manager"))
	}
	all := map[string]func(context.Context, *unstructured.Unstructured, edit) error{
		"merge patch":         patch(types.MergePatchType, "spillway", ""),
		"strategic patch":     patch(types.StrategicMergePatchType, "kudo-manager", ""),
		"server-side apply":   patch(types.ApplyPatchType, "spillway/instance/db", ""),
		"update":              update,
		"patch of the status": patch(types.MergePatchType, "spillway", "status"),
	}
	for _, sub := range []string{"ephemeralcontainers", "resize", "scale"} {
		all["patch of "+sub] = patch(types.MergePatchType, "spillway", sub)
	}
	return all
}

// merge sets fields of an object, of which lists are replaced.
func merge(into, from map[string]any) {
	for k, v := range from {
		if m, ok := v.(map[string]any); ok {
			inner, ok := into[k].(map[string]any)
			if !ok {
				inner = map[string]any{}
				into[k] = inner
			}
			merge(inner, m)
			continue
		}
		into[k] = v
	}
}

// state is what no request of the thief may change.
func (w *theft) state(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	live := obj.DeepCopy()
	if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(obj), live); err != nil {
		return err.Error()
	}
	containers, _, _ := unstructured.NestedSlice(live.Object, append(podSpec(obj.GetKind()), "containers")...)
	image := containers[0].(map[string]any)["image"]
	return fmt.Sprint(live.GetUID(), image, live.GetOwnerReferences(), live.GetAnnotations()["spillway.dev/adopt"], live.GetDeletionTimestamp())
}

// TestAForgeryOpensNothing tries each policy about the manager's identity with each forged label,
// annotation, owner and field manager, in the request that changes an object and in one before it,
// by each verb and subresource, and deletes what it could not change.
func TestAForgeryOpensNothing(t *testing.T) {
	for name, test := range map[string]struct{ packageKinds, all bool }{
		"as installed":       {},
		"with package kinds": {packageKinds: true},
		"with all rights":    {packageKinds: true, all: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := steal(t, test.packageKinds, test.all)
			for kind, manifest := range targets {
				w.attack(t, kind, manifest)
			}
		})
	}
}

func (w *theft) attack(t *testing.T, kind, manifest string) {
	t.Helper()
	obj := w.object(fmt.Sprintf(manifest, "theirs", ""))
	if err := w.user.Create(t.Context(), obj.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	want := w.state(t, obj)
	unharmed := func(what string) {
		t.Helper()
		if got := w.state(t, obj); got != want {
			t.Fatalf("%s: %s: %s is now %s, and was %s", kind, what, obj.GetName(), got, want)
		}
	}
	image := w.imageOf(kind)
	for way, send := range w.ways() {
		for forgery, e := range w.forgeries() {
			both := edit{metadata: e.metadata, image: image.image}
			_ = send(t.Context(), obj, both)
			unharmed(forgery + ", by " + way)
			_ = send(t.Context(), obj, e)
			unharmed(forgery + " first, by " + way)
		}
	}
	for way, send := range w.ways() { // with all that was left by the first of two steps
		_ = send(t.Context(), obj, image)
		unharmed("later, by " + way)
	}
	_ = w.thief.Delete(t.Context(), obj.DeepCopy())
	unharmed("delete")
	_ = w.thief.DeleteAllOf(t.Context(), obj.DeepCopy(), client.InNamespace(w.namespace))
	unharmed("delete all")
}

// TestWhatIsOfAPackageIsFree shows what the policies leave to plans: what an Instance controls or
// a user lets it adopt, and without package kinds nothing.
func TestWhatIsOfAPackageIsFree(t *testing.T) {
	for name, packageKinds := range map[string]bool{"with package kinds": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			w := steal(t, packageKinds, false)
			w.apply(fmt.Sprintf(instance, "v1"))
			uid := w.has(fmt.Sprintf(instance, "v1"), func(s string) bool { return s != "" }, "metadata", "uid")
			owned := `, ownerReferences: [{apiVersion: kudo.dev/v1beta1, kind: Instance, name: db, uid: ` + uid + `, controller: true}]`
			for kind, manifest := range targets {
				for which, metadata := range map[string]string{"owned": owned, "permitted": `, annotations: {spillway.dev/adopt: "true"}`, "named": `, annotations: {spillway.dev/adopt: ` + w.namespace + `/db}`} {
					obj := w.object(fmt.Sprintf(manifest, which, metadata))
					if err := w.user.Create(t.Context(), obj.DeepCopy()); err != nil {
						t.Fatal(err)
					}
					apply := w.ways()["server-side apply"]
					if kind == "Job" { // of which no template changes
						apply = func(context.Context, *unstructured.Unstructured, edit) error { return nil }
					}
					err := errors.Join(apply(t.Context(), obj, w.imageOf(kind)), w.thief.Delete(t.Context(), obj.DeepCopy()))
					if (err == nil) != packageKinds {
						t.Errorf("%s %s: %v", which, kind, err)
					}
				}
			}
		})
	}
}

// TestTheJobsOfGatesCanBeDeleted: a Role lets the manager run them, without package kinds.
func TestTheJobsOfGatesCanBeDeleted(t *testing.T) {
	w := steal(t, false, false)
	testenv.Grant(t, w.user, w.namespace, w.identity(), []rbacv1.PolicyRule{{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create", "delete"}}})
	const owned = `, ownerReferences: [{apiVersion: spillway.dev/v1alpha1, kind: %s, name: g, uid: 11111111-2222-3333-4444-555555555555, controller: true}]`
	for owner, refused := range map[string]bool{"RolloutGate": false, "RolloutGroup": true} {
		job := w.object(fmt.Sprintf(targets["Job"], strings.ToLower(owner), fmt.Sprintf(owned, owner)))
		if err := w.thief.Create(t.Context(), job.DeepCopy(), client.DryRunAll); err != nil {
			t.Errorf("it creates none: %v", err)
		}
		if err := w.user.Create(t.Context(), job.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := w.thief.Delete(t.Context(), job, client.DryRunAll); (err != nil) != refused {
			t.Errorf("of a %s: %v", owner, err)
		}
	}
}

// TestWhatAStolenTokenIsWorth holds the page about security to the API server: each thing that it
// says is forbidden is refused, and each that remains is possible.
func TestWhatAStolenTokenIsWorth(t *testing.T) {
	w := steal(t, true, true)
	strong := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "strong", Namespace: w.namespace}},
	}
	if err := w.user.Create(t.Context(), strong); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.user.Delete(context.Background(), strong) })
	w.apply(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: strong}}`, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: weak}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: theirs}, stringData: {password: x}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: theirs}, spec: {nodeName: nowhere, containers: [{name: c, image: theirs}]}}`)
	create := func(manifest string) error {
		return w.thief.Create(t.Context(), w.object(manifest), client.DryRunAll)
	}
	forbidden := map[string]func() error{
		"a token Secret": func() error { return create(tokenSecret) },
		"a token of nodes": func() error {
			return create(`{apiVersion: v1, kind: Secret, metadata: {name: t}, type: bootstrap.kubernetes.io/token}`)
		},
		"a token": func() error {
			request := &authenticationv1.TokenRequest{}
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "weak"}}
			return w.thief.SubResource("token").Create(t.Context(), account, request)
		},
		"a shell":        func() error { return w.exec(t, "theirs", "c") },
		"another shell":  func() error { return w.exec(t, "theirs", "spillway-pipe") },
		"a shell in one": func() error { return w.exec(t, "db.deploy.main.files.task.pipepod", "c") },
	}
	free := map[string]func() error{
		"read a Secret": func() error {
			return w.thief.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "theirs"}, &corev1.Secret{})
		},
		"change a Secret": func() error {
			return w.thief.Patch(t.Context(), w.object(`{apiVersion: v1, kind: Secret, metadata: {name: theirs}}`), client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"password":"y"}}`)), client.DryRunAll)
		},
		"make a Secret": func() error { return create(`{apiVersion: v1, kind: Secret, metadata: {name: mine}}`) },
	}
	for kind, manifest := range targets {
		as := func(account string) func() error {
			return func() error {
				obj := w.object(fmt.Sprintf(manifest, "mine", ""))
				unstructured.RemoveNestedField(obj.Object, "spec", "nodeName")
				_ = unstructured.SetNestedField(obj.Object, account, append(podSpec(kind), "serviceAccountName")...)
				return w.thief.Create(t.Context(), obj, client.DryRunAll)
			}
		}
		forbidden["a "+kind+" as a strong account"] = as("strong")
		free["run a "+kind+" as an account of the namespace"] = as("weak")
	}
	for what, try := range forbidden {
		if err := try(); err == nil || !strings.Contains(err.Error(), "the manager of Spillway may") {
			t.Errorf("no policy refuses %s: %v", what, err)
		}
	}
	for what, try := range free {
		if err := try(); err != nil {
			t.Errorf("the page says that it may %s: %v", what, err)
		}
	}
}

// TestTheTokenDoesNotBecomeTheDashboards installs the manager and the dashboard as they are by
// default, and takes every way to a token of the dashboard's account that there was.
func TestTheTokenDoesNotBecomeTheDashboards(t *testing.T) {
	for name, all := range map[string]bool{"as installed": false, "with all rights": true} {
		t.Run(name, func(t *testing.T) {
			w := steal(t, all, all, func(o *manifests.Options) {
				o.Values.Webhooks.Enabled = true
				o.Values.Dashboard.Enabled, o.Values.Dashboard.Users = true, []string{"anna"}
			})
			pages := w.namespace + "-dashboard"
			if all {
				anything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
				testenv.Grant(t, w.user, pages, w.identity(), []rbacv1.PolicyRule{anything})
			}
			for _, namespace := range []string{w.namespace, pages} {
				secret := w.object(strings.Replace(tokenSecret, "strong", "spillway-dashboard", 1))
				secret.SetNamespace(namespace)
				pod := w.object(`{apiVersion: v1, kind: Pod, metadata: {name: mine}, spec: {serviceAccountName: spillway-dashboard, automountServiceAccountToken: true,
 securityContext: {runAsNonRoot: true, runAsUser: 1, seccompProfile: {type: RuntimeDefault}}, containers: [{name: c, image: mine, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}`)
				pod.SetNamespace(namespace)
				for _, obj := range []client.Object{secret, pod} {
					if err := w.thief.Create(t.Context(), obj, client.DryRunAll); err == nil {
						t.Errorf("it makes %s %s in namespace %s", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), namespace)
					}
				}
				account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "spillway-dashboard"}}
				if err := w.thief.SubResource("token").Create(t.Context(), account, &authenticationv1.TokenRequest{}); err == nil {
					t.Errorf("it has a token of namespace %s", namespace)
				}
			}
			certificate := w.object(`{apiVersion: v1, kind: Secret, metadata: {name: spillway-webhooks-certificate}}`)
			if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(certificate), certificate); err != nil {
				t.Fatal(err)
			}
			certificate.Object["stringData"] = map[string]any{"tls.crt": "x", "tls.key": "y"}
			if err := w.thief.Update(t.Context(), certificate, client.DryRunAll); err != nil {
				t.Errorf("it may not fill the Secret of its certificate: %v", err)
			}
		})
	}
}

const tokenSecret = `{apiVersion: v1, kind: Secret, metadata: {name: token, annotations: {kubernetes.io/service-account.name: strong}}, type: kubernetes.io/service-account-token}`

// exec asks for a process in a container; no kubelet answers.
func (w *theft) exec(t *testing.T, pod, container string) error {
	t.Helper()
	c, err := kubernetes.NewForConfig(testenv.Shared().ConfigAs(w.identity()))
	if err != nil {
		t.Fatal(err)
	}
	err = c.CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: []string{"sh"}, Stdout: true}, scheme.ParameterCodec).Do(t.Context()).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// What has failed is recorded by the manager alone: no user creates or changes a record, whatever
// permissions it has, and who may delete it does.
func TestOnlyTheManagerRecordsWhatFailed(t *testing.T) {
	i := steal(t, false, true)
	record := func(name string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"object": map[string]any{"kind": "Secret", "name": name}, "failed": int64(0),
		}}
		obj.SetAPIVersion("spillway.dev/v1alpha1")
		obj.SetKind("ConfigRollout")
		obj.SetNamespace(i.namespace)
		obj.SetName("secret-" + name)
		return obj
	}
	if err := i.user.Create(t.Context(), record("forged")); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spillway retry") {
		t.Errorf("a user creates a record: %v", err)
	}
	mine := record("db")
	if err := i.thief.Create(t.Context(), mine); err != nil {
		t.Fatalf("the manager creates a record: %v", err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"failed":7}`))
	if err := i.user.Patch(t.Context(), mine.DeepCopy(), patch); !apierrors.IsInvalid(err) {
		t.Errorf("a user changes a record: %v", err)
	}
	if err := i.thief.Patch(t.Context(), mine.DeepCopy(), patch); err != nil {
		t.Errorf("the manager changes a record: %v", err)
	}
	if err := i.user.Delete(t.Context(), mine); err != nil {
		t.Errorf("a user deletes a record: %v", err)
	}
}
