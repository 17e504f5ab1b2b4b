package agent_test

import (
	"context"
	"fmt"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// From an Assemblage to what runs, with bindings; then another version of it, then
// nothing.
func TestASyncFromItsBeginningToItsEnd(t *testing.T) {
	w := newWorld(t)
	w.manage()
	first, second := w.publish("v1"), w.publish("v2")
	more := "bindings: [{name: region, value: eu}]\npackage: {kustomize: {substitute: {region: '$(region)-1'}}}"
	w.assign("c1", w.sync("shop", "v1", more))
	s := w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "applied "+first)
	if s.Resolved != first || s.LastSucceededRevision != "shop-v1" || s.LastTransitionTime == nil {
		t.Errorf("%+v", s)
	}
	w.data("app", map[string]string{"version": "v1", "region": "eu-1"})
	w.assign("c1", w.sync("shop", "v2", more))
	w.becomes("c1", "shop", "shop-v2", v1alpha1.StateSucceeded, "applied "+second)
	w.data("app", map[string]string{"version": "v2", "region": "eu-1"})
	w.has(1, 1)
	w.remove(&v1alpha1.Assemblage{}, "c1")
	w.gone(&v1alpha1.Assemblage{}, "c1")
	w.data("app", nil)
	w.has(0, 0)
}

// What Spillway has no field for is said in the words of Flux, and Flux does it; one module waits for another.
func TestFluxDoesWhatIsHandedThrough(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publishFiles("v1", map[string]string{"cm.yaml": w.configMap("app", "{version: v1}")})
	spec := "package: {kustomize: {spec: {namePrefix: eu-, commonMetadata: {labels: {team: shop}}, patches: [{target: {kind: ConfigMap}, patch: '[{\"op\": \"add\", \"path\": \"/data/patched\", \"value\": \"yes\"}]'}]}}}"
	w.assign("c1", w.sync("late", "v1", "dependsOn: [base]\npackage: {kustomize: {spec: {namePrefix: late-}}}"))
	w.becomes("c1", "late", "late-v1", v1alpha1.StateWaiting, "dependency '"+w.namespace+"/c1-base' not found")
	w.data("late-app", nil)
	w.assign("c1", w.sync("late", "v1", "dependsOn: [base]\npackage: {kustomize: {spec: {namePrefix: late-}}}"), w.sync("base", "v1", spec))
	w.becomes("c1", "base", "base-v1", v1alpha1.StateSucceeded, "")
	w.data("eu-app", map[string]string{"version": "v1", "patched": "yes"})
	w.becomes("c1", "late", "late-v1", v1alpha1.StateSucceeded, "")
	w.data("late-app", map[string]string{"version": "v1"})
	w.remove(&v1alpha1.Assemblage{}, "c1")
	w.gone(&v1alpha1.Assemblage{}, "c1")
	w.data("eu-app", nil)
	w.data("late-app", nil)
}

// What a Kustomization of a user applies is taken over as "spillway fleet import" says: the sync makes the same
// objects, and none of them is deleted by that, although the Kustomization prunes.
func TestWhatFluxAppliesIsTakenOver(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publishFiles("v1", map[string]string{"cm.yaml": w.configMap("app", "{version: v1, region: '${region}'}")})
	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "theirs"}}
	source.Spec = sourcev1.GitRepositorySpec{URL: w.url, Reference: &sourcev1.GitRepositoryRef{Tag: "v1"}, Interval: metav1.Duration{Duration: 600e9}}
	w.create(source)
	theirs := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "theirs"}}
	theirs.Spec = kustomizev1.KustomizationSpec{
		Interval: metav1.Duration{Duration: 600e9}, Prune: true, Wait: true, SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: "GitRepository", Name: "theirs"},
		CommonMetadata: &kustomizev1.CommonMetadata{Labels: map[string]string{"team": "shop"}}, PostBuild: &kustomizev1.PostBuild{Substitute: map[string]string{"region": "eu"}},
	}
	w.create(theirs)
	w.data("app", map[string]string{"version": "v1", "region": "eu"})
	was := &corev1.ConfigMap{}
	if err := w.client.Get(t.Context(), w.key("app"), was); err != nil {
		t.Fatal(err)
	}
	sync, notes, err := fluxspec.SyncOf(theirs, source)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"suspend": true, "deletionPolicy": "Orphan"}}`))
	if err := w.client.Patch(t.Context(), theirs, patch); err != nil {
		t.Fatal(err)
	}
	w.assign("c1", v1alpha1.NamedSync{Assignment: v1alpha1.Assignment{Name: "shop", Revision: "shop-v1"}, Sync: sync})
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "")
	w.remove(&kustomizev1.Kustomization{}, "theirs")
	w.gone(&kustomizev1.Kustomization{}, "theirs")
	testenv.Eventually(t, func(ctx context.Context) error { // by now it is the sync's
		is := &corev1.ConfigMap{}
		if err := w.client.Get(ctx, w.key("app"), is); err != nil || is.UID != was.UID || is.Labels["team"] != "shop" || is.Labels["kustomize.toolkit.fluxcd.io/name"] != "c1-shop" {
			return fmt.Errorf("%s was %s, and is %s with %v: %w", is.Name, was.UID, is.UID, is.Labels, err)
		}
		return nil
	})
}

// The three ways to treat what a user changes by hand, as docs/fleet.md has them: Flux corrects it when it looks again; it keeps
// an object that says so; and it leaves all as it is while the Kustomization is suspended, which Spillway does not end.
func TestChangesByHand(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.publishFiles("v1", map[string]string{"cm.yaml": w.configMap("corrected", "{of: git}") + "---\n" + w.configMap("kept", "{of: git}")})
	w.assign("c1", w.sync("shop", "v1", ""))
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateSucceeded, "")
	w.annotate(&corev1.ConfigMap{}, "kept", "kustomize.toolkit.fluxcd.io/reconcile", "disabled")
	byHand, ofGit := map[string]string{"of": "hand"}, map[string]string{"of": "git"}
	edit := func() {
		for _, name := range []string{"corrected", "kept"} {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"data": {"of": "hand"}}`))
			if err := w.client.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}, patch); err != nil {
				t.Fatal(err)
			}
		}
	}
	suspend := func(is bool) {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"suspend": %t}}`, is))
		if err := w.client.Patch(t.Context(), &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c1-shop"}}, patch); err != nil {
			t.Fatal(err)
		}
	}
	edit()
	w.annotate(&kustomizev1.Kustomization{}, "c1-shop", "reconcile.fluxcd.io/requestedAt", "1")
	w.data("corrected", ofGit)
	w.data("kept", byHand)

	suspend(true)
	w.becomes("c1", "shop", "shop-v1", v1alpha1.StateWaiting, "is suspended")
	edit()
	w.annotate(&kustomizev1.Kustomization{}, "c1-shop", "reconcile.fluxcd.io/requestedAt", "2")
	w.assign("c1", w.sync("shop", "v1", "interval: 7m")) // Spillway applies the Kustomization again, and leaves it suspended
	testenv.Eventually(t, func(context.Context) error {
		if k := w.kustomization("c1-shop"); k.Spec.Interval.Minutes() != 7 || !k.Spec.Suspend {
			return fmt.Errorf("the Kustomization is %+v", k.Spec)
		}
		return nil
	})
	w.data("corrected", byHand)
	suspend(false)
	w.data("corrected", ofGit)
	w.data("kept", byHand)
}
