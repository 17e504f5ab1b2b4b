package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// These are the defects of fleeet that concern what is assigned to a cluster,
// by their numbers in the list of them.

// Defect 1: there was one source, whose tag moved every cluster at the same time.
func TestDefect1TwoRevisionsSideBySide(t *testing.T) {
	w := newWorld(t)
	w.manage()
	for _, tag := range []string{"v1", "v2"} {
		w.publishFiles(tag, map[string]string{"cm.yaml": w.configMap("${name}", "{version: "+tag+"}")})
	}
	in := func(name string) string { return "package: {kustomize: {substitute: {name: " + name + "}}}" }
	for _, name := range []string{"one", "two"} {
		w.assign(name, w.sync("shop", "v1", in(name)))
		w.becomes(name, "shop", "shop-v1", v1alpha1.StateSucceeded, "")
	}
	w.has(2, 1) // at one revision they share a source
	w.assign("one", w.sync("shop", "v2", in("one")))
	w.becomes("one", "shop", "shop-v2", v1alpha1.StateSucceeded, "")
	w.data("one", map[string]string{"version": "v2"})
	w.data("two", map[string]string{"version": "v1"})
	w.has(2, 2)
	w.assign("two", w.sync("shop", "v2", in("two")))
	w.becomes("two", "shop", "shop-v2", v1alpha1.StateSucceeded, "")
	w.has(2, 1) // and the old one is collected
}

// Defect 2: a Ready of an older generation was read as the success of a newer one.
// Whenever success is reported, what runs is that revision.
func TestDefect2SuccessIsNeverStale(t *testing.T) {
	w := newWorld(t)
	w.manage()
	c, err := client.NewWithWatch(w.cp.Config(), client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.Watch(t.Context(), &v1alpha1.AssemblageList{}, client.InNamespace(w.namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	const last = 6
	for i := 1; i <= last; i++ {
		w.publish(fmt.Sprintf("v%d", i))
	}
	w.assign("c1", w.sync("shop", "v1", ""))
	for at := 1; at < last; {
		event := <-stream.ResultChan()
		a, ok := event.Object.(*v1alpha1.Assemblage)
		if !ok || len(a.Status.Syncs) == 0 || a.Status.Syncs[0].State != v1alpha1.StateSucceeded {
			continue
		}
		want := fmt.Sprintf("shop-v%d", at)
		if a.Status.Syncs[0].Revision != want {
			continue // the one before is reported once more
		}
		cm := &corev1.ConfigMap{}
		if err := w.client.Get(t.Context(), w.key("app"), cm); err != nil || "shop-"+cm.Data["version"] != want {
			t.Fatalf("%s is said to have succeeded, and %v runs: %v", want, cm.Data, err)
		}
		at++
		w.assign("c1", w.sync("shop", fmt.Sprintf("v%d", at), ""))
	}
}

// Defect 3: what was not healthy in time was updating forever.
func TestDefect3WhatIsNotHealthyHasFailed(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publishFiles("v1", map[string]string{"d.yaml": fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app, namespace: %s}\n"+
		"spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}\n", w.namespace)})
	w.assign("c1", w.sync("shop", "v1", "timeout: 2s"))
	s := w.becomes("c1", "shop", "shop-v1", v1alpha1.StateFailed, "")
	if s.Reason != "HealthCheckFailed" || s.LastSucceededRevision != "" {
		t.Errorf("%+v", s)
	}
	w.publish("v2")
	w.assign("c1", w.sync("shop", "v2", "timeout: 2s"))
	s = w.becomes("c1", "shop", "shop-v2", v1alpha1.StateSucceeded, "")
	if s.LastSucceededRevision != "shop-v2" {
		t.Errorf("%+v", s)
	}
}

// Defect 4: what was removed stayed where it was, and names shifted.
func TestDefect4WhatIsRemovedIsTakenAway(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publishFiles("v1", map[string]string{"cm.yaml": w.configMap("${name}", "{version: v1}")})
	in := func(name string) v1alpha1.NamedSync {
		return w.sync(name, "v1", "package: {kustomize: {substitute: {name: "+name+"}}}")
	}
	w.assign("c1", in("one"), in("two"))
	w.becomes("c1", "two", "two-v1", v1alpha1.StateSucceeded, "")
	w.data("one", map[string]string{"version": "v1"})
	stays := w.kustomization("c1-two").UID
	w.assign("c1", in("two"))
	w.data("one", nil)
	w.gone(&kustomizev1.Kustomization{}, "c1-one")
	if now := w.kustomization("c1-two").UID; now != stays {
		t.Error("the other one is another now")
	}
	w.data("two", map[string]string{"version": "v1"})
	w.has(1, 1)
}

// Defect 4, the other way: what is to be left is left.
func TestDefect4WhatIsToBeLeftIsLeft(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publish("v1")
	w.assign("c1", w.sync("shop", "v1", "deletionPolicy: Orphan"))
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "")
	w.assign("c1")
	w.has(0, 0)
	w.data("app", map[string]string{"version": "v1", "region": "${region}"})
}

// Defect 6: one bad binding stopped everything, and no message said which.
func TestDefect6ABadBindingHoldsItsSyncAlone(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publish("v1")
	w.publishFiles("v2", map[string]string{"cm.yaml": w.configMap("good", "{version: v2}")})
	bound := "bindings: [{name: A, objectFieldRef: {kind: ConfigMap, name: region, fieldPath: /data/name}}]\npackage: {kustomize: {substitute: {region: $(A)}}}"
	w.assign("c1", w.sync("bad", "v1", bound), w.sync("good", "v2", ""))
	w.becomes("c1", "good", "good-v2", v1alpha1.StateSucceeded, "")
	w.becomes("c1", "bad", "bad-v1", v1alpha1.StateWaiting, `binding "A": ConfigMap region does not exist`)
	region := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "region"}, Data: map[string]string{"name": "eu"}}
	w.create(region)
	w.becomes("c1", "bad", "bad-v1", v1alpha1.StateSucceeded, "")
	w.data("app", map[string]string{"version": "v1", "region": "eu"})
	region.Data["name"] = "us"
	if err := w.client.Update(t.Context(), region); err != nil {
		t.Fatal(err)
	}
	w.data("app", map[string]string{"version": "v1", "region": "us"})
	w.remove(region, "region")
	w.becomes("c1", "bad", "bad-v1", v1alpha1.StateWaiting, "does not exist")
	w.data("app", map[string]string{"version": "v1", "region": "us"}) // what ran goes on
	cycle := "bindings: [{name: A, value: $(B)}, {name: B, value: $(A)}]\npackage: {kustomize: {substitute: {region: $(A)}}}"
	w.assign("c1", w.sync("bad", "v1", cycle), w.sync("good", "v2", ""))
	w.becomes("c1", "bad", "bad-v1", v1alpha1.StateFailed, `binding "A": refers to itself: A -> B -> A`)
	secret := strings.Replace(bound, "ConfigMap", "Secret", 1)
	w.assign("c1", w.sync("bad", "v1", secret), w.sync("good", "v2", ""))
	w.becomes("c1", "bad", "bad-v1", v1alpha1.StateFailed, `binding "A": Secret region cannot be bound`)
}

// What the API server does not accept is said of the sync that it is about, and the others
// go on.
func TestWhatIsRefusedIsSaidAndHoldsItsSyncAlone(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publish("v1")
	w.assign("c1", w.sync("first", "v1", ""))
	w.becomes("c1", "first", "first-v1", v1alpha1.StateSucceeded, "")
	none := corev1.ResourceList{"count/kustomizations.kustomize.toolkit.fluxcd.io": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	w.create(quota)
	testenv.Eventually(t, func(ctx context.Context) error { // the API server discovers it
		k := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "x"}}
		k.Spec.SourceRef = kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "x"}
		if err := w.client.Create(ctx, k, client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("it is not refused: %w", err)
		}
		return nil
	})
	w.publish("v2")
	w.assign("c1", w.sync("another", "v1", "prune: false"), w.sync("first", "v2", ""))
	w.becomes("c1", "first", "first-v2", v1alpha1.StateSucceeded, "")
	s := w.becomes("c1", "another", "another-v1", v1alpha1.StateWaiting, "quota: none")
	if s.Reason != "WriteRefused" || !strings.HasPrefix(s.Message, "the API server refused a write: apply Kustomization ") {
		t.Errorf("%+v", s)
	}
}

// Defect 7: nothing was pruned, nothing had an interval, and names could be too long.
func TestDefect7PruneIntervalAndNames(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publishFiles("v1", map[string]string{"a.yaml": w.configMap("a", "{x: y}"), "b.yaml": w.configMap("b", "{x: y}")})
	w.publishFiles("v2", map[string]string{"a.yaml": w.configMap("a", "{x: z}")})
	long := strings.Repeat("long", 50)
	w.assign("c1", w.sync(long, "v1", ""))
	w.becomes("c1", long, long+"-v1", v1alpha1.StateSucceeded, "")
	w.data("b", map[string]string{"x": "y"})
	names, _ := w.flux()
	k := w.kustomization(names[0])
	if len(k.Name) > 63 || !k.Spec.Prune || !k.Spec.Wait || k.Spec.Interval.Duration != 10*time.Minute || k.Spec.Timeout.Duration != 5*time.Minute {
		t.Errorf("%s: %+v", k.Name, k.Spec)
	}
	w.assign("c1", w.sync(long, "v2", ""))
	w.data("a", map[string]string{"x": "z"})
	w.data("b", nil)
}

// Defect 8: the status was written twice in each pass. Now a new revision costs one
// source, one Kustomization, and two writes of the status; and being converged nothing.
func TestDefect8WhatARevisionCosts(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publish("v1")
	w.publish("v2")
	w.assign("c1", w.sync("shop", "v1", ""))
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "")
	w.faults.Reset()
	w.assign("c1", w.sync("shop", "v2", ""))
	w.becomes("c1", "shop", "shop-v2", v1alpha1.StateSucceeded, "")
	w.has(1, 1)
	counted := map[string]int{}
	for _, r := range w.faults.Writes() {
		counted[r.Verb+" "+r.Resource+" "+r.Subresource]++
	}
	for what, most := range map[string]int{
		"patch gitrepositories ": 1, "patch kustomizations ": 1, "update assemblages status": 2, "delete gitrepositories ": 1,
	} {
		if counted[what] > most {
			t.Errorf("%d times %s", counted[what], what)
		}
		delete(counted, what)
	}
	if len(counted) > 0 {
		t.Errorf("and besides %v", counted)
	}
	w.faults.Reset()
	for i := range 3 { // each of these is looked at
		w.annotate(&v1alpha1.Assemblage{}, "c1", "test/touched", fmt.Sprint(i))
		w.annotate(&kustomizev1.Kustomization{}, "c1-shop", "reconcile.fluxcd.io/requestedAt", fmt.Sprint(i))
		w.handled("c1-shop", fmt.Sprint(i))
	}
	for _, r := range w.faults.Writes() {
		if r.Resource != "assemblages" { // which says for a moment that Flux was asked to look again
			t.Errorf("converged, and yet %v", r)
		}
	}
}

func (w *world) annotate(obj client.Object, name, key, value string) {
	w.Helper()
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)))
	if err := w.client.Patch(w.Context(), obj, patch); err != nil {
		w.Fatal(err)
	}
}

// handled waits until Flux has reconciled again and its success is reported.
func (w *world) handled(kustomization, asked string) {
	w.Helper()
	testenv.Eventually(w.T, func(context.Context) error {
		if k := w.kustomization(kustomization); k.Status.LastHandledReconcileAt != asked {
			return errors.New("Flux has not looked again")
		}
		return nil
	})
	w.becomes("c1", "shop", "shop-v2", v1alpha1.StateSucceeded, "")
}

// Kept from fleeet: what another client deletes comes back.
func TestWhatIsDeletedByOthersComesBack(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publish("v1")
	w.assign("c1", w.sync("shop", "v1", ""))
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "")
	former := w.kustomization("c1-shop").UID
	w.remove(&kustomizev1.Kustomization{}, "c1-shop")
	testenv.Eventually(t, func(ctx context.Context) error {
		k := &kustomizev1.Kustomization{}
		if err := w.client.Get(ctx, w.key("c1-shop"), k); err != nil {
			return err
		}
		if k.UID == former {
			return errors.New("it is still the former one")
		}
		return nil
	})
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "")
	w.data("app", map[string]string{"version": "v1", "region": "${region}"})
}

// A source that cannot be fetched is waited for, and said so.
func TestASourceThatCannotBeFetched(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.assign("c1", w.sync("shop", "v9", ""))
	w.becomes("c1", "shop", "shop-v9", v1alpha1.StateWaiting, "source cannot be fetched: "+w.url+` has no "v9"`)
	w.publish("v9")
	w.becomes("c1", "shop", "shop-v9", v1alpha1.StateSucceeded, "")
}

// An artifact of a registry, by digest.
func TestAnArtifactOfARegistry(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.url = "oci://registry.test/" + w.namespace
	digest := "sha256:" + strings.Repeat("0", 64)
	w.publish(digest)
	s := w.sync("shop", "v1", "")
	s.Source = &v1alpha1.Source{OCI: &v1alpha1.OCISource{URL: w.url, Version: v1alpha1.OCIVersion{Digest: digest}}}
	w.assign("c1", s)
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "applied "+digest)
	w.assign("c1")
	w.has(0, 0)
}
