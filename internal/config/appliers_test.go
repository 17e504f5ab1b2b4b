package config_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// appliers are the ways in which tools bring manifests to a cluster again and again.
var appliers = map[string]func(w *world, obj *unstructured.Unstructured){
	// Argo CD with ServerSideApply=true.
	"server-side apply": func(w *world, obj *unstructured.Unstructured) {
		w.t.Helper()
		err := w.client.Apply(w.t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner("argocd-controller"), client.ForceOwnership)
		if err != nil {
			w.t.Fatal(err)
		}
	},
	// kubectl apply, Argo CD by default: the patch has what the manifest sets.
	"a merge": func(w *world, obj *unstructured.Unstructured) {
		w.t.Helper()
		raw, err := obj.MarshalJSON()
		if err != nil {
			w.t.Fatal(err)
		}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: obj.GetName()}}
		err = w.client.Patch(w.t.Context(), d, client.RawPatch(types.StrategicMergePatchType, raw), client.FieldOwner("argocd-controller"))
		if client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
		if err != nil {
			w.create(obj)
		}
	},
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), obj, client.FieldOwner("argocd-controller")); err != nil {
		w.t.Fatal(err)
	}
}

// manifest is a tracked Deployment as a repository has it.
func (w *world) manifest(image string) *unstructured.Unstructured {
	w.t.Helper()
	obj := &unstructured.Unstructured{}
	text := strings.Replace(deployment("web", envFrom(configMapRef("app"))), "image: x", "image: "+image, 1)
	if err := yaml.Unmarshal([]byte(text), &obj.Object); err != nil {
		w.t.Fatal(err)
	}
	obj.SetNamespace(w.namespace)
	return obj
}

// TestToolsThatApplyLeaveTheHash: a tool that applies the same manifests again and again neither
// removes the hash nor takes it over, so that neither it nor Spillway writes anything then.
func TestToolsThatApplyLeaveTheHash(t *testing.T) {
	for name, apply := range appliers {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.manage()
			w.configMap("app", "a", "1")
			apply(w, w.manifest("x"))
			first := w.hashed("web", "")
			w.settled()
			rolled := w.replicaSets("web")
			w.settledWith("web", rolled)

			w.requests.take()
			before := w.deploymentNow("web")
			for range 3 {
				apply(w, w.manifest("x"))
			}
			w.settled()
			if d := w.deploymentNow("web"); d.Generation != before.Generation || w.hash("web") != first {
				t.Errorf("the same manifest has changed it: generation %d, hash %s", d.Generation, w.hash("web"))
			}
			for _, request := range w.requests.take() {
				if !strings.HasPrefix(request, "GET") {
					t.Errorf("Spillway has written: %s", request)
				}
			}

			apply(w, w.manifest("z")) // a new image rolls it, with the hash that it has
			w.settledWith("web", rolled+1)
			if got := w.hash("web"); got != first {
				t.Errorf("a new image has changed the hash to %q", got)
			}

			w.configMap("app", "a", "2") // and a new config with the image that it has
			second := w.hashed("web", first)
			w.settledWith("web", rolled+2)
			apply(w, w.manifest("z"))
			w.settled()
			if d := w.deploymentNow("web"); w.hash("web") != second || d.Spec.Template.Spec.Containers[0].Image != "z" {
				t.Errorf("hash %q, image %s", w.hash("web"), d.Spec.Template.Spec.Containers[0].Image)
			}
			w.settledWith("web", rolled+2)
		})
	}
}

// TestAReplacedWorkloadGetsItsHashAgain: a tool that replaces objects removes the hash, which
// Spillway writes again. So each replacement rolls the workload, until the tool no longer does that.
func TestAReplacedWorkloadGetsItsHashAgain(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.configMap("app", "a", "1")
	w.create(w.manifest("x"))
	first := w.hashed("web", "")
	w.settled()

	replaced := w.manifest("x")
	replaced.SetResourceVersion(w.deploymentNow("web").ResourceVersion)
	if err := w.client.Update(t.Context(), replaced, client.FieldOwner("argocd-controller")); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() error {
		return want(first, w.deploymentNow("web").Spec.Template.Annotations[waveHash])
	})
}
