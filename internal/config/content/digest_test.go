package content

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func richMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "app", Namespace: "shop", UID: "u", ResourceVersion: "7",
		Labels:        map[string]string{"app": "x"},
		Annotations:   map[string]string{"spillway.dev/ignore": "true", "note": "secret stuff"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
}

// Defect 1 of wave: all of every ConfigMap and Secret was in memory.
func TestDigestKeepsNoValue(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: richMeta(), Data: map[string][]byte{"p": []byte("hunter2")}}
	Digest(secret)
	if strings.Contains(secret.String(), "hunter2") || len(secret.Data["p"]) != digestSize {
		t.Errorf("the value is kept: %v", secret)
	}
	if secret.Labels != nil || secret.ManagedFields != nil || len(secret.Annotations) != 1 {
		t.Errorf("more metadata is kept than is read: %+v", secret.ObjectMeta)
	}
	if !factOf(secret).ignored {
		t.Error("our own annotation is lost")
	}
}

// KUDO takes any value of its annotation.
func TestWhatKUDOSkipsIsIgnored(t *testing.T) {
	for annotation, want := range map[string]bool{"kudo.dev/skip-hash-calculation": true, "kudo.dev/other": false} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app", Annotations: map[string]string{annotation: ""}}}
		Digest(cm)
		if factOf(cm).ignored != want {
			t.Errorf("%s: ignored %v", annotation, !want)
		}
	}
}

// A transform may receive an object twice.
func TestDigestOfADigestIsItself(t *testing.T) {
	for name, obj := range map[string]client.Object{
		"ConfigMap": &corev1.ConfigMap{ObjectMeta: richMeta(), Data: map[string]string{"a": "1"}, BinaryData: map[string][]byte{"b": {0}}},
		"Secret":    &corev1.Secret{ObjectMeta: richMeta(), Data: map[string][]byte{"a": []byte("1")}},
	} {
		t.Run(name, func(t *testing.T) {
			Digest(obj)
			once := obj.DeepCopyObject()
			Digest(obj)
			if diff := cmp.Diff(once, obj); diff != "" {
				t.Errorf("it changed again:\n%s", diff)
			}
		})
	}
}

func TestDigestTellsValuesApart(t *testing.T) {
	a := &corev1.ConfigMap{Data: map[string]string{"k": "1"}}
	b := &corev1.ConfigMap{BinaryData: map[string][]byte{"k": []byte("1")}}
	c := &corev1.ConfigMap{Data: map[string]string{"k": "2"}}
	for _, o := range []client.Object{a, b, c} {
		Digest(o)
	}
	fa, fb, fc := factOf(a), factOf(b), factOf(c)
	if fa.digests["k"] != fb.digests["k"] {
		t.Error("text and binary of the same bytes differ")
	}
	if fa.digests["k"] == fc.digests["k"] {
		t.Error("different values have one digest")
	}
}

func TestOnlyOwnersThatWaveWroteAreKept(t *testing.T) {
	yes := true
	m := richMeta()
	m.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1"},
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "owner", UID: "2", Controller: &yes},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "3"},
	}
	kept := identity(&m).OwnerReferences
	if len(kept) != 1 || kept[0].Name != "web" {
		t.Errorf("owners = %v", kept)
	}
}

func TestSharing(t *testing.T) {
	for with, want := range map[string]bool{"": false, "*": true, "shop": true, "a, shop ,b": true, "shopping": false} {
		if got := (fact{sharedWith: with}).isSharedWith("shop"); got != want {
			t.Errorf("isSharedWith with %q = %v", with, got)
		}
	}
}
