package steering_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/steering"
)

// object is one that can be steered.
type object struct {
	manifest, resource string
	// retry is a patch that retries it, empty if that is not done on it; other one that does
	// something else.
	retry, other string
}

const pod = `selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}`

var objects = map[string]object{
	"Deployment":  {manifest: `{apiVersion: apps/v1, kind: Deployment, spec: {` + pod + `}}`, resource: "deployments", other: `{"spec": {"replicas": 3}}`},
	"StatefulSet": {manifest: `{apiVersion: apps/v1, kind: StatefulSet, spec: {` + pod + `}}`, resource: "statefulsets", other: `{"spec": {"replicas": 3}}`},
	"DaemonSet":   {manifest: `{apiVersion: apps/v1, kind: DaemonSet, spec: {` + pod + `}}`, resource: "daemonsets", other: `{"spec": {"minReadySeconds": 3}}`},
	"ConfigMap": {
		manifest: `{apiVersion: v1, kind: ConfigMap, data: {a: b}}`, resource: "configmaps",
		retry: `{"metadata": {"annotations": {"spillway.dev/retry-config": "2026-05-04T12:00:00Z"}}}`, other: `{"data": {"a": "c"}}`,
	},
	"Secret": {
		manifest: `{apiVersion: v1, kind: Secret, stringData: {a: b}}`, resource: "secrets",
		retry: `{"metadata": {"annotations": {"spillway.dev/retry-config": "2026-05-04T12:00:00Z"}}}`, other: `{"immutable": true}`,
	},
	"ConfigPolicy": {
		manifest: `{apiVersion: spillway.dev/v1alpha1, kind: ConfigPolicy, spec: {}}`, resource: "configpolicies", other: `{"spec": {"maxUnavailable": 2}}`,
	},
	"RolloutGroup": {
		manifest: `{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, spec: {}}`, resource: "rolloutgroups",
		retry: `{"spec": {"retry": {"at": "2026-05-04T12:00:00Z", "reason": "again", "by": "ann"}}}`, other: `{"spec": {"maxUnavailable": 2}}`,
	},
	"Instance": {
		manifest: `{apiVersion: kudo.dev/v1beta1, kind: Instance, spec: {operatorVersion: {name: web-1.0.0}}}`, resource: "instances",
		retry: `{"metadata": {"annotations": {"spillway.dev/retry-plan": "{}"}}}`, other: `{"spec": {"parameters": {"a": "b"}}}`,
	},
	"Module": {
		manifest: `{apiVersion: fleet.squaremo.dev/v1alpha1, kind: Module, spec: {selector: {}, template: {spec: {sync: {source: {git: {url: "https://example.com/web", version: {tag: v1}}}}}}}}`,
		resource: "modules", retry: `{"metadata": {"annotations": {"spillway.dev/retry-module": "{}"}}}`, other: `{"spec": {"targetRevision": "x"}}`,
	},
}

// world is a namespace with one of the objects, and those who may do something with it.
type world struct {
	t         *testing.T
	admin     client.Client
	namespace string
	of        object
	kind      string
}

var install sync.Once

func newWorld(t *testing.T, kind string) *world {
	t.Helper()
	t.Parallel()
	w := &world{t: t, admin: testenv.Client(t), namespace: testenv.Namespace(t), of: objects[kind], kind: kind}
	install.Do(func() { w.install() })
	w.create()
	return w
}

// install installs the kinds and the policies.
func (w *world) install() {
	rings := describe.Rings()
	kinds, err := manifests.KindsOf(rings)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []client.Object
	for _, kind := range kinds {
		all = append(all, kind)
	}
	testenv.Kinds(w.t, w.admin, all)
	for _, ring := range rings {
		for _, policy := range steering.Policies(ring) {
			testenv.Apply(w.t, w.admin, policy)
		}
	}
}

func (w *world) create() {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(w.of.manifest), &u.Object); err != nil {
		w.t.Fatal(err)
	}
	u.SetNamespace(w.namespace)
	u.SetName("web")
	if err := w.admin.Create(w.t.Context(), u); err != nil {
		w.t.Fatal(err)
	}
}

// grant lets a user read all, and do what some verbs say with the object.
func (w *world) grant(user string, verbs ...string) client.Client {
	w.t.Helper()
	resources := []string{w.of.resource}
	name := user + "-" + w.namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: resources, Verbs: append(verbs, "get", "list", "patch")},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: name}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := w.admin.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
	scheme, err := kube.NewScheme()
	if err != nil {
		w.t.Fatal(err)
	}
	config := testenv.Shared().Config()
	config.Impersonate.UserName = name
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		w.t.Fatal(err)
	}
	testenv.Eventually(w.t, func(context.Context) error { // until the Role is known
		return w.patch(c, `{}`, client.DryRunAll)
	})
	return c
}

func (w *world) patch(c client.Client, patch string, options ...client.PatchOption) error {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(w.apiVersion())
	u.SetKind(w.kind)
	u.SetNamespace(w.namespace)
	u.SetName("web")
	return c.Patch(w.t.Context(), u, client.RawPatch(types.MergePatchType, []byte(patch)), options...)
}

func (w *world) apiVersion() string {
	version, _, _ := strings.Cut(strings.TrimPrefix(w.of.manifest, "{apiVersion: "), ",")
	return version
}

func (w *world) act(c client.Client, verb act.Verb) error {
	who := act.Author{By: "ann", Reason: "a look", At: metav1.NewTime(time.Now().Truncate(time.Second))}
	_, err := act.Do(w.t.Context(), c, act.Request{Ref: describe.Ref{Kind: w.kind, Namespace: w.namespace, Name: "web"}, Verb: verb}, who)
	return err
}

func (w *world) refused(err error, text string) {
	w.t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), text) {
		w.t.Errorf("got %v, want a refusal that says %q", err, text)
	}
}

func (w *world) done(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Error(err)
	}
}

// watched waits until the policies are in force.
func (w *world) watched(limited client.Client) {
	w.t.Helper()
	testenv.Eventually(w.t, func(context.Context) error {
		if err := w.patch(limited, `{"metadata": {"labels": {"a": "b"}}}`, client.DryRunAll); !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("it is not refused"), err)
		}
		return nil
	})
}

// Who may pause may pause, and do nothing else; so it is with each of the verbs.
func TestOneActAlone(t *testing.T) {
	for kind := range objects {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, kind)
			pauses, resumes := w.grant("pauses", steering.Pause), w.grant("resumes", steering.Resume)
			w.watched(pauses)
			w.refused(w.act(resumes, act.Pause), "it takes the permission to pause "+w.of.resource)
			w.done(w.act(pauses, act.Pause))
			w.refused(w.act(pauses, act.Resume), "it takes the permission to resume "+w.of.resource)
			for _, other := range []string{
				w.of.other, `{"metadata": {"labels": {"a": "b"}}}`, `{"metadata": {"annotations": {"a": "b"}}}`, `{"metadata": {"finalizers": ["a.example.com/b"]}}`,
				`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]}}`,
			} {
				w.refused(w.patch(pauses, other), "you may not change anything else; it takes the permission to update "+w.of.resource)
			}
			w.done(w.act(resumes, act.Resume))
			if w.of.retry == "" {
				return
			}
			w.refused(w.patch(pauses, w.of.retry), "it takes the permission to retry "+w.of.resource)
			w.done(w.patch(w.grant("retries", steering.Retry), w.of.retry))
		})
	}
}

// Who may update an object, or has none of the verbs, is not limited: people who edit, and
// controllers that patch.
func TestOthersAreNotLimited(t *testing.T) {
	for kind := range objects {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, kind)
			w.watched(w.grant("pauses", steering.Pause))
			w.done(w.patch(w.grant("edits-and-pauses", steering.Pause, "update"), w.of.other, client.DryRunAll))
			patches := w.grant("patches")
			w.done(w.patch(patches, w.of.other))
			w.done(w.act(patches, act.Pause))
		})
	}
}

// What is large is compared within what an expression may cost.
func TestMuch(t *testing.T) {
	w := newWorld(t, "ConfigMap")
	pauses := w.grant("pauses", steering.Pause)
	w.watched(pauses)
	data := map[string]string{}
	for i := range 9000 {
		data[fmt.Sprintf("key-%d", i)] = strings.Repeat("x", 80)
	}
	raw, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		t.Fatal(err)
	}
	w.done(w.patch(w.grant("patches"), string(raw)))
	w.done(w.act(pauses, act.Pause))
	w.refused(w.patch(pauses, `{"data": {"key-8999": "y"}}`), "you may not change anything else")
}

// What is said beforehand is what the API server will say.
func TestMissing(t *testing.T) {
	w := newWorld(t, "Deployment")
	for name, c := range map[string]struct {
		verbs []string
		act   string
		want  string
	}{
		"patches":             {nil, steering.Pause, ""},
		"may":                 {[]string{steering.Pause}, steering.Pause, ""},
		"may-another":         {[]string{steering.Resume}, steering.Pause, steering.Pause},
		"may-not-roll-back":   {[]string{steering.Pause}, "", "update"},
		"updates":             {[]string{steering.Resume, "update"}, steering.Pause, ""},
		"updates-rolls-back":  {[]string{steering.Resume, "update"}, "", ""},
		"patches-rolls-back":  {nil, "", ""},
		"of-another-resource": {[]string{steering.Retry}, steering.Pause, ""},
	} {
		needs := authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Version: "v1", Resource: "deployments", Namespace: w.namespace, Name: "web"}
		got, err := act.Missing(t.Context(), w.grant(name, c.verbs...), needs, c.act)
		if err != nil || got != c.want {
			t.Errorf("%s: %q (%v), want %q", name, got, err, c.want)
		}
	}
	needs := authorizationv1.ResourceAttributes{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "default", Name: "web"}
	if got, err := act.Missing(t.Context(), w.grant("elsewhere", steering.Pause), needs, steering.Pause); got != "patch" || err != nil {
		t.Errorf("%q (%v), want patch", got, err)
	}
}

// The policies contain each kind that can be paused by a command.
func TestAllKindsAreLimited(t *testing.T) {
	for _, kind := range act.PausedKinds {
		resource := strings.ToLower(kind) + "s"
		if base, ok := strings.CutSuffix(resource, "ys"); ok {
			resource = base + "ies"
		}
		verbs := slices.Concat(steering.Verbs("", resource), steering.Verbs("apps", resource), steering.Verbs("spillway.dev", resource),
			steering.Verbs("kudo.dev", resource), steering.Verbs("fleet.squaremo.dev", resource))
		if !slices.Contains(verbs, steering.Pause) || !slices.Contains(verbs, steering.Resume) {
			t.Error(fmt.Sprint(kind, " has the verbs ", verbs))
		}
	}
}
