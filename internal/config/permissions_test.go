package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/gates"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/notify"
)

// TestEveryPermissionIsUsedAndNoOtherIsNeeded runs the story with nothing but the
// generated role, in namespaced mode, and compares what was granted with what
// was asked for.
func TestEveryPermissionIsUsedAndNoOtherIsNeeded(t *testing.T) {
	w := newWorld(t)
	installDriver(t, w)
	o := manifests.Default(manager.RingConfig)
	o.Values.WaveCleanup, o.Values.WatchNamespaces = true, w.options.Namespaces
	rules, err := o.RulesOfRole("spillway")
	if err != nil {
		t.Fatal(err)
	}
	user := "manager-of-" + w.namespace
	w.grant(user, rules)
	w.options.CoalesceWindow = 0
	w.policy("staged", oneFirst)
	faultWorld(w)
	inj := fault.New()
	run := manager.Options{Rings: []string{manager.RingConfig}, Namespaces: w.options.Namespaces, Config: w.options, Gates: gates.Options{Off: true}, Notify: notify.Options{Off: true}}
	stop := w.barrier.Run(t, testenv.Shared().ConfigAs(user), inj, run)
	w.eventually(func() error { return want(0, len(w.deploymentNow("old").Finalizers)) })
	w.configMap("later", "a", "1")
	w.hashed("missing", "")
	w.tellGated()
	w.tellRecorded()
	granted := grantedToRing(t, rules)
	delete(granted, "create localsubjectaccessreviews.authorization.k8s.io") // of the webhook: TestAHashIsForWhoMayReadWhatIsHashed
	testenv.Exactly(t, granted, inj.Requests)
	stop()
}

// tellRecorded has what an earlier manager has recorded moved to a record, which changes and ends.
func (w *world) tellRecorded() {
	w.t.Helper()
	w.secret("db", "p", "x")
	w.apply(deployment("recorded", envFrom(secretRef("db"))))
	w.hashed("recorded", "")
	says := func(failures int, contents ...string) {
		for i := range contents {
			contents[i] = fmt.Sprintf(`{"kind":"Secret","namespace":%q,"name":"db","digest":%q,"at":"2026-01-01T00:00:00Z","cause":"1 of 1 Pods CrashLoopBackOff"}`, w.namespace, contents[i])
		}
		w.annotate("recorded", native+"config-failed", "["+strings.Join(contents, ",")+"]")
		w.eventually(func() error {
			r := w.record("Secret", "db")
			return want(true, r != nil && len(r.Failures) == failures)
		})
	}
	says(1, "earlier")
	says(2, "earlier", "earlier still")
	w.retry("db", time.Now())
	w.eventually(func() error { return want(0, len(w.failedWith("Secret", "db"))) })
}

// tellGated changes what two Deployments share, which a gate keeps from the second one, and
// changes it once more, so that the first gate is no longer asked for. That comes after they
// have a hash: what has none runs with what exists when it starts, and has no stages.
func (w *world) tellGated() {
	w.t.Helper()
	w.policy("gated", "objects: [{name: gated}]\n  "+gatedStages)
	w.configMap("gated", "a", "1")
	hashes := map[string]string{}
	for _, name := range []string{"gated1", "gated2"} {
		w.apply(deployment(name, envFrom(configMapRef("gated"))))
	}
	for _, name := range []string{"gated1", "gated2"} {
		hashes[name] = w.hashed(name, "")
	}
	w.ready("gated1", "gated2")
	w.configMap("gated", "a", "2")
	first := w.gate()
	w.configMap("gated", "a", "3")
	w.eventually(func() error {
		gates := w.gates()
		return want(true, len(gates) == 1 && gates[0].UID != first.UID)
	})
	if err := want(hashes["gated2"], w.hash("gated2")); err != nil {
		w.t.Error(err)
	}
	w.policy("gated", "objects: [{name: gated}]\n  stages: [{name: all, gates: [{name: later, when: During}]}]")
	w.eventually(func() error {
		gates := w.gates()
		return want(true, slices.ContainsFunc(gates, func(g v1alpha1.RolloutGate) bool { return g.Spec.EndedAt != nil }))
	})
}

// grantedToRing are the permissions without those of the controllers of gates and Notifiers.
func grantedToRing(t *testing.T, rules []rbacv1.PolicyRule) map[string]bool {
	t.Helper()
	ring, err := manifests.RulesOf(manager.RingConfig)
	if err != nil {
		t.Fatal(err)
	}
	granted, own := testenv.Permissions(rules), testenv.Permissions(ring)
	for _, part := range []string{manifests.Gates, manifests.Notify} {
		others, err := manifests.RulesOf(part)
		if err != nil {
			t.Fatal(err)
		}
		for permission := range testenv.Permissions(others) {
			if !own[permission] {
				delete(granted, permission)
			}
		}
	}
	return granted
}

func (w *world) grant(user string, rules []rbacv1.PolicyRule) {
	w.t.Helper()
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: w.namespace}, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: w.namespace},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		},
	} {
		if err := w.client.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
}

// What the secrets store CSI driver mounts counts by its versions.
func TestSecretsStoreVersionsRoll(t *testing.T) {
	w := newWorld(t)
	installDriver(t, w)
	w.manage()
	spec := `containers: [{name: c, image: x}]
volumes: [{name: v, csi: {driver: secrets-store.csi.k8s.io, volumeAttributes: {secretProviderClass: vault}}}]`
	w.apply(deployment("web", spec))
	first := w.hashed("web", "")
	w.mounted("pod-1", "vault", "v1")
	second := w.hashed("web", first)
	w.mounted("pod-1", "other", "v9") // another class
	w.settled()
	if err := want(second, w.hash("web")); err != nil {
		t.Error(err)
	}
	w.mounted("pod-1", "vault", "v2")
	w.hashed("web", second)
}

// mounted says that a Pod has a version of a class mounted, as the driver does.
func (w *world) mounted(pod, class, version string) {
	w.t.Helper()
	w.apply(fmt.Sprintf(`apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClassPodStatus
metadata: {name: %s-%s}
status: {podName: %s, secretProviderClassName: %s, mounted: true, objects: [{id: secret/db, version: %s}]}`, pod, class, pod, class, version))
}

// installDriver installs the driver's kind, as far as it matters here, for all
// tests: a manager looks for it when it starts.
func installDriver(t *testing.T, w *world) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: secretproviderclasspodstatuses.secrets-store.csi.x-k8s.io}
spec:
  group: secrets-store.csi.x-k8s.io
  scope: Namespaced
  names: {kind: SecretProviderClassPodStatus, plural: secretproviderclasspodstatuses, singular: secretproviderclasspodstatus}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`), &crd.Object); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd.DeepCopy()), client.FieldOwner("user")); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error { // until a client that comes new finds it
		_, err := newClient(t).RESTMapper().RESTMapping(schema.GroupKind{
			Group: "secrets-store.csi.x-k8s.io", Kind: "SecretProviderClassPodStatus",
		}, "v1")
		return err
	})
}
