package proxy_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// Defect 1: the hub's one source moved every cluster at the same time.
func TestDefect1ClustersAtDifferentRevisions(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for i := range 2 {
		w.join(i)
		w.create(w.on(i), namespaceOf(w))
	}
	w.publish("v1")
	w.publish("v2")
	for _, name := range []string{"c0", "c1"} {
		w.bootstrap(name, w.sync("flux", "v1", inCluster))
		w.becomes(remote(), name, "flux-v1", v1alpha1.StateSucceeded, "")
	}
	w.has(w.hub, 2, 1)
	w.bootstrap("c0", w.sync("flux", "v2", inCluster))
	w.becomes(remote(), "c0", "flux-v2", v1alpha1.StateSucceeded, "")
	w.data(0, map[string]string{"version": "v2", "where": "in c0"})
	w.data(1, map[string]string{"version": "v1", "where": "in c1"})
	w.has(w.hub, 2, 2)
}

// Defect 3: a status did not say of which revision it spoke. What is copied back is of
// the assignment that was sent, also of one revision assigned twice.
func TestDefect3TheStatusIsOfTheAssignment(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.publish("v1")
	for _, at := range []string{"2026-01-01T00:00:00.000001Z", "2026-01-02T00:00:00.000001Z"} {
		w.assign("c0", w.sync("shop", "v1", inCluster+"\nassignedAt: "+at))
		testenv.Eventually(t, func(context.Context) error {
			s := w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "")
			if s.AssignedAt == nil || s.AssignedAt.UTC().Format("2006-01-02T15:04:05.000000Z") != at {
				return fmt.Errorf("it speaks of %v", s.AssignedAt)
			}
			return nil
		})
	}
}

// Defect 4: the Assemblage was never deleted on the cluster. It is, but for what others
// have in it.
func TestDefect4OthersKeepWhatIsTheirs(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.publish("v1")
	w.assign("c0", w.sync("shop", "v1", inCluster))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "")
	theirs := &v1alpha1.Assemblage{}
	if err := w.on(0).Get(t.Context(), w.key("c0"), theirs); err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{apiVersion: fleet.squaremo.dev/v1alpha1, kind: Assemblage, metadata: {name: c0, namespace: %s}, spec: {syncs: [{name: theirs, source: {git: {url: %q, version: {tag: none}}}}]}}`, w.namespace, w.url)
	if err := w.on(0).Patch(t.Context(), theirs, client.RawPatch(types.ApplyYAMLPatchType, []byte(patch)), client.FieldOwner("them")); err != nil {
		t.Fatal(err)
	}
	w.has(w.on(0), 2, 2)
	w.remove(w.hub, proxied(), "c0")
	w.gone(w.hub, proxied(), "c0")
	w.data(0, nil)
	w.has(w.on(0), 1, 1)
	if err := w.on(0).Get(t.Context(), w.key("c0"), theirs); err != nil || len(theirs.Spec.Syncs) != 1 || len(theirs.Annotations) > 0 {
		t.Errorf("what is left is %+v, %v, %v", theirs.Spec, theirs.Annotations, err)
	}
}

// Defect 6: one cluster's bad binding aborted the module on all of them.
func TestDefect6ABadBindingHoldsItsClusterAlone(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.join(1)
	w.publish("v1")
	w.publish("v2")
	bound := "controlPlaneBindings: [{name: place, objectFieldRef: {kind: ConfigMap, name: $(CLUSTER_NAME)-region, fieldPath: /data/name}}]\n" +
		"package: {kustomize: {substitute: {where: $(place)}}}"
	for i := range 2 {
		w.create(w.hub, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("c%d-region", i)}, Data: map[string]string{"name": fmt.Sprintf("r%d", i)},
		})
		w.assign(fmt.Sprintf("c%d", i), w.sync("shop", "v1", bound))
		w.becomes(proxied(), fmt.Sprintf("c%d", i), "shop-v1", v1alpha1.StateSucceeded, "")
	}
	w.data(1, map[string]string{"version": "v1", "where": "r1"})
	w.remove(w.hub, &corev1.ConfigMap{}, "c1-region")
	w.becomes(proxied(), "c1", "shop-v1", v1alpha1.StateWaiting, `binding "place": ConfigMap c1-region does not exist`)
	for i := range 2 {
		w.assign(fmt.Sprintf("c%d", i), w.sync("shop", "v2", bound))
	}
	w.becomes(proxied(), "c0", "shop-v2", v1alpha1.StateSucceeded, "")
	w.becomes(proxied(), "c1", "shop-v2", v1alpha1.StateWaiting, "does not exist")
	w.data(1, map[string]string{"version": "v1", "where": "r1"}) // and is not taken away
	w.create(w.hub, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c1-region"}, Data: map[string]string{"name": "new"}})
	w.becomes(proxied(), "c1", "shop-v2", v1alpha1.StateSucceeded, "")
	w.data(1, map[string]string{"version": "v2", "where": "new"})
}

// Converged, nothing is written on the hub, nor to a cluster.
func TestDefect8ConvergedNothingIsWritten(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.publish("v1")
	w.assign("c0", w.sync("shop", "v1", inCluster))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "")
	before := w.version(0)
	w.faults.Reset()
	for i := range 3 { // each of these is looked at, the last proves it
		w.annotate(w.hub, proxied(), "c0", "test/touched", fmt.Sprint(i))
	}
	w.assign("c0", w.sync("shop", "v1", inCluster), w.sync("more", "none", ""))
	w.becomes(proxied(), "c0", "more-none", v1alpha1.StateWaiting, "source cannot be fetched")
	if after := w.version(0); after != before+1 {
		t.Errorf("generation %d, after it was %d", after, before)
	}
	sent := 0
	for _, r := range w.faults.Writes() {
		switch {
		case r.Verb == "patch" && r.Resource == "assemblages":
			sent++
		case r.Resource != "proxyassemblages" || r.Subresource != "status":
			t.Errorf("%v", r)
		}
	}
	if sent != 1 {
		t.Errorf("it was sent %d times", sent)
	}
}

// version is the generation of the Assemblage on a cluster.
func (w *world) version(i int) int64 {
	w.Helper()
	a := &v1alpha1.Assemblage{}
	if err := w.on(i).Get(w.Context(), w.key(fmt.Sprintf("c%d", i)), a); err != nil {
		w.Fatal(err)
	}
	return a.Generation
}

func (w *world) annotate(c client.Client, obj client.Object, name, key, value string) {
	w.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)))
	if err := c.Patch(w.Context(), obj, patch); err != nil {
		w.Fatal(err)
	}
}

// Kept from fleeet: without a kubeconfig there is nothing of Flux, and with it
// there is.
func TestAMissingKubeconfig(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publish("v1")
	w.bootstrap("c0", w.sync("flux", "v1", inCluster))
	w.assign("c0", w.sync("shop", "v1", inCluster))
	for _, obj := range []client.Object{remote(), proxied()} {
		testenv.Eventually(t, func(context.Context) error {
			s := w.status(obj, "c0")
			if len(s.Syncs) == 0 || s.Syncs[0].State != v1alpha1.StateWaiting || s.Syncs[0].Message != "Secret c0-kubeconfig with a kubeconfig not found" {
				return fmt.Errorf("%+v", s.Syncs)
			}
			return nil
		})
	}
	w.has(w.hub, 0, 0)
	w.create(w.on(0), namespaceOf(w))
	w.join(0)
	w.becomes(remote(), "c0", "flux-v1", v1alpha1.StateSucceeded, "")
}

// A kubeconfig that is replaced: by one that cannot be used, and by one that can.
func TestARotatedKubeconfig(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.publish("v1")
	w.publish("v2")
	w.assign("c0", w.sync("shop", "v1", inCluster))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "")
	good := w.rotate("c0", []byte("users: [{name: u, user: {exec: {command: rm}}}]"))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateFailed, `Secret c0-kubeconfig: invalid kubeconfig: user "u" runs a program`)
	w.rotate("c0", []byte(strings.Replace(string(good), "token: ", "token: revoked", 1)))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateWaiting, "the cluster refuses the kubeconfig in Secret c0-kubeconfig: not accepted (any more)")
	w.rotate("c0", good)
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateSucceeded, "")
	w.assign("c0", w.sync("shop", "v2", inCluster))
	w.becomes(proxied(), "c0", "shop-v2", v1alpha1.StateSucceeded, "")
}

// rotate replaces a kubeconfig, and returns the one before.
func (w *world) rotate(cluster string, kubeconfig []byte) (former []byte) {
	w.Helper()
	secret := &corev1.Secret{}
	if err := w.hub.Get(w.Context(), w.key(cluster+"-kubeconfig"), secret); err != nil {
		w.Fatal(err)
	}
	former, secret.Data["value"] = secret.Data["value"], kubeconfig
	if err := w.hub.Update(w.Context(), secret); err != nil {
		w.Fatal(err)
	}
	return former
}

// A cluster on which Spillway does not run says so, and its ProxyAssemblage can go.
func TestAClusterWithoutSpillway(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(bare)
	name := fmt.Sprintf("c%d", bare)
	w.publish("v1")
	w.assign(name, w.sync("shop", "v1", inCluster))
	w.becomes(proxied(), name, "shop-v1", v1alpha1.StateWaiting, "does not know the kind Assemblage; run Spillway there with --rings=assemblage")
	w.remove(w.hub, proxied(), name)
	w.gone(w.hub, proxied(), name)
}

// Two ProxyAssemblages do not fight over one Assemblage.
func TestTwoProxiesOfOneAssemblage(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(0)
	w.publish("v1")
	a := &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c0", Annotations: map[string]string{"spillway.dev/proxied-by": "another"}}}
	w.create(w.on(0), namespaceOf(w))
	w.create(w.on(0), a)
	w.assign("c0", w.sync("shop", "v1", inCluster))
	w.becomes(proxied(), "c0", "shop-v1", v1alpha1.StateFailed, "Assemblage c0 is written by another ProxyAssemblage")
	w.remove(w.hub, proxied(), "c0")
	w.gone(w.hub, proxied(), "c0")
	if w.version(0) != 1 {
		t.Error("it was written to")
	}
}

// Where the Assemblage may not be watched it is looked at from time to time.
func TestWhereItMayNotBeWatched(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(1)
	w.mayOnly(1, "no-watch", `"get","create","patch","delete"`, `"create"`)
	w.publish("v1")
	w.assign("c1", w.sync("shop", "v1", inCluster))
	w.becomes(proxied(), "c1", "shop-v1", v1alpha1.StateSucceeded, "")
}

// What the API server of a cluster does not accept is said: what may be accepted later as
// something that is waited for.
func TestWhatAClusterRefusesIsSaid(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.join(1)
	w.mayOnly(1, "no-write", `"get","list","watch"`, `"none"`)
	w.publish("v1")
	w.assign("c1", w.sync("shop", "v1", inCluster))
	s := w.becomes(proxied(), "c1", "shop-v1", v1alpha1.StateWaiting, "the API server refused a write: send Assemblage c1: assemblages")
	if s.Reason != "WriteRefused" || !strings.Contains(s.Message, "forbidden") {
		t.Errorf("%+v", s)
	}
	w.concluded(proxied(), "c1", "the API server refused a write: send Assemblage c1")
	w.mayOnly(1, "no-namespace", `"get","list","watch","create","patch"`, `"none"`)
	w.becomes(proxied(), "c1", "shop-v1", v1alpha1.StateWaiting, "the API server refused a write: create namespace "+w.namespace+" on the cluster: namespaces is forbidden")
	w.create(w.on(1), namespaceOf(w))
	w.becomes(proxied(), "c1", "shop-v1", v1alpha1.StateSucceeded, "")
	w.mayOnly(1, "no-write", `"get","list","watch"`, `"none"`)
	w.remove(w.hub, proxied(), "c1")
	w.concluded(proxied(), "c1", "cannot be removed: the API server refused a write: send Assemblage c1")
	w.mayOnly(1, "no-watch", `"get","create","patch","delete"`, `"create"`)
	w.gone(w.hub, proxied(), "c1")
}

// mayOnly has the hub connect as a user who may do no more than that.
func (w *world) mayOnly(i int, user, assemblages, namespaces string) {
	w.Helper()
	manifests := []string{
		fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q},"rules":[`+
			`{"apiGroups":["fleet.squaremo.dev"],"resources":["assemblages"],"verbs":[%s]},`+
			`{"apiGroups":[""],"resources":["namespaces"],"verbs":[%s]}]}`, user, assemblages, namespaces),
		fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":%[1]q},`+
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%[1]q},"subjects":[{"kind":"User","name":%[1]q,"apiGroup":"rbac.authorization.k8s.io"}]}`, user),
	}
	for _, manifest := range manifests {
		testenv.ApplyManifest(w.T, w.on(i), manifest)
	}
	raw, err := os.ReadFile(testenv.Workload(i).Kubeconfig())
	if err != nil {
		w.Fatal(err)
	}
	w.rotate(fmt.Sprintf("c%d", i), []byte(strings.Replace(string(raw), "token: ", "as: "+user+"\n    token: ", 1)))
}
