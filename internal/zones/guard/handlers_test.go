package guard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/lab/controlplane"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

// routesOn are the handlers by their paths, of a manager that does not run.
func (w *world) routesOn(cp *controlplane.ControlPlane) map[string]webhook.Handler {
	w.t.Helper()
	mgr, err := ctrl.NewManager(cp.Config(), ctrl.Options{Scheme: scheme(w.t), Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		w.t.Fatal(err)
	}
	routes, err := guard.Routes(mgr, w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	handlers := map[string]webhook.Handler{}
	for _, r := range routes {
		handlers[r.Path] = r.Handler
	}
	return handlers
}

func evictionOf(namespace, pod string) webhook.Request {
	return webhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: namespace, Name: pod, Operation: admissionv1.Create, SubResource: "eviction",
	}}
}

func raw(t *testing.T, obj any) runtime.RawExtension {
	t.Helper()
	if s, ok := obj.(string); ok {
		return runtime.RawExtension{Raw: []byte(s)}
	}
	b, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: b}
}

func scaleOf(n int32) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"}, Spec: autoscalingv1.ScaleSpec{Replicas: n}}
}

func deploymentOf(n *int32, labels map[string]string) *appsv1.Deployment {
	d := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: labels}}
	d.Spec.Replicas = n
	return d
}

// Defect 17: rollout-operator panics where a request does not say whether it is a dry
// run. None of these does.
func TestDefect17WhatCannotBeFoundOut(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, testenv.Shared(), testenv.Namespace(t))
	three, two := int32(3), int32(2)
	forbidden := map[string]string{"grafana.com/no-downscale": "true"}
	for name, test := range map[string]struct {
		path, resource string
		before, after  any
		// warns is what the answer warns of, or refuses with when closed.
		warns string
		// denied is true for a refusal either way.
		denied bool
	}{
		"no object before":      {"/admission/no-downscale", "deployments", "", deploymentOf(&two, nil), "can't decode old object, allowing the change", false},
		"no JSON":               {"/admission/no-downscale", "deployments", deploymentOf(&two, nil), "{", "can't decode new object, allowing the change", false},
		"a kind of its own":     {"/admission/no-downscale", "pods", `{"kind":"Pod","apiVersion":"v1"}`, "{}", "can't get old replicas, allowing the change, err: unsupported type", false},
		"no replicas":           {"/admission/no-downscale", "deployments", deploymentOf(nil, forbidden), deploymentOf(&two, nil), "old/new replicas is nil, allowing the change", false},
		"up":                    {"/admission/no-downscale", "deployments", deploymentOf(&two, forbidden), deploymentOf(&three, forbidden), "", false},
		"down, not there":       {"/admission/no-downscale", "deployments", deploymentOf(&three, forbidden), deploymentOf(&two, nil), "can't get deployments/x in namespace " + w.namespace + ", allowing the change: ", false},
		"down by scale":         {"/admission/no-downscale", "deployments", scaleOf(3), scaleOf(0), "can't get deployments/x in namespace " + w.namespace + ", allowing the change: ", false},
		"scale of others":       {"/admission/no-downscale", "widgets", scaleOf(3), scaleOf(2), "unsupported resource widgets", false},
		"prepare, no JSON":      {"/admission/prepare-downscale", "statefulsets", "[", "{}", "can't decode old object, allowing the change", false},
		"prepare, other kind":   {"/admission/prepare-downscale", "deployments", deploymentOf(&three, nil), deploymentOf(&two, nil), "unsupported resource deployments, allowing the change", false},
		"prepare, not there":    {"/admission/prepare-downscale", "statefulsets", scaleOf(3), scaleOf(2), "not found, allowing the change", false},
		"validation, no budget": {"/admission/zpdb-validation", "zpdb", "{}", "[]", "cannot unmarshal", true},
	} {
		t.Run(name, func(t *testing.T) {
			req := webhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: w.namespace, Name: "x", Operation: admissionv1.Update, OldObject: raw(t, test.before), Object: raw(t, test.after),
				Resource: metav1.GroupVersionResource{Resource: test.resource},
			}}
			for _, closed := range []bool{false, true} {
				w.options.FailClosed = closed
				got := w.routesOn(testenv.Shared())[test.path].Handle(t.Context(), req)
				want := !test.denied && (!closed || test.warns == "")
				if got.Allowed != want {
					t.Errorf("closed %v: allowed %v: %+v", closed, got.Allowed, got.Result)
				}
				said := strings.Join(got.Warnings, "")
				if got.Result != nil {
					said += got.Result.Message
				}
				if !strings.Contains(said, test.warns) {
					t.Errorf("closed %v: it said %q, want %q", closed, said, test.warns)
				}
			}
		})
	}
}

func TestEvictionRequestsThatAreNone(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, testenv.Shared(), testenv.Namespace(t))
	handler := w.routesOn(testenv.Shared())["/admission/pod-eviction"]
	for want, change := range map[string]func(*webhook.Request){
		"request operation is not create, got: UPDATE":        func(r *webhook.Request) { r.Operation = admissionv1.Update },
		"request SubResource is not eviction, got: status":    func(r *webhook.Request) { r.SubResource = "status" },
		"request did not include both a namespace and a name": func(r *webhook.Request) { r.Name = "" },
		`pods "x" not found`:                                  func(*webhook.Request) {},
	} {
		req := evictionOf(w.namespace, "x")
		change(&req)
		got := handler.Handle(t.Context(), req)
		if got.Allowed || got.Result.Code != 400 || got.Result.Message != want {
			t.Errorf("%+v, want 400 %q", got.Result, want)
		}
	}
}

// What was admitted is the eviction of one Pod: not of its successor, and of one that is
// no loss not any more once it is one.
func TestAnEvictionIsOfThePodThatWasJudged(t *testing.T) {
	w := newWorld(t)
	w.create(budget())
	gated := func(s *sts) {
		s.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "spillway.dev/test"}}
	}
	other := func(s *sts) {
		s.Spec.Template.Labels, s.Spec.Selector.MatchLabels = map[string]string{"app": "other"}, map[string]string{"app": "other"}
		delete(s.Labels, "rollout-group")
		gated(s)
	}
	w.group(zone("zone-a", 1), zone("zone-b", 1))
	w.create(zone("zone-c", 1, gated), zone("other", 1, other))
	handler := w.routesOn(testenv.Shared())[guard.PathPodEviction]
	for pod, want := range map[string][]string{"zone-c-0": {"uid", "resourceVersion"}, "other-0": nil} {
		testenv.Eventually(t, func(ctx context.Context) error {
			request := evictionOf(w.namespace, pod)
			request.Object = raw(t, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod}})
			response := handler.Handle(ctx, request)
			if !response.Allowed {
				return fmt.Errorf("%s: %s", pod, response.Result.Message)
			}
			if got := pins(t, &response); !slices.Equal(got, want) {
				t.Errorf("%s is pinned by %v, want %v", pod, got, want)
			}
			return nil
		})
	}
	w.guarded()
	testenv.Eventually(t, func(context.Context) error { return w.evict("zone-c-0") })
	wantRefused(t, w.evict("zone-b-0"), 429, "in zone-c")
}

// pins are the preconditions that an answer adds to an eviction.
func pins(t *testing.T, response *webhook.Response) []string {
	t.Helper()
	var found []string
	for _, o := range response.Patches {
		options, ok := o.Value.(map[string]any)
		if !ok || o.Path != "/deleteOptions" {
			t.Fatalf("%+v", o)
		}
		preconditions, _ := options["preconditions"].(map[string]any)
		for _, name := range []string{"uid", "resourceVersion"} {
			if preconditions[name] != nil {
				found = append(found, name)
			}
		}
	}
	return found
}

// What a request says that the object was does not count: neither a label nor where Pods are
// called, nor how many there are.
func TestTheLiveObjectCounts(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.group(zone("zone-a", 2, told(pods)), zone("zone-b", 2))
	handler := w.routesOn(testenv.Shared())[guard.PathPrepareDownscale]
	ask := func(before, after *appsv1.StatefulSet) webhook.Response {
		t.Helper()
		before.Kind, after.Kind, before.APIVersion, after.APIVersion = "StatefulSet", "StatefulSet", "apps/v1", "apps/v1"
		return handler.Handle(t.Context(), webhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Namespace: w.namespace, Name: before.Name, Operation: admissionv1.Update, OldObject: raw(t, before), Object: raw(t, after),
			Resource: metav1.GroupVersionResource{Resource: "statefulsets"},
		}})
	}
	if answer := ask(zone("zone-b", 2, told(pods)), zone("zone-b", 0)); !answer.Allowed {
		t.Errorf("one without the label: %+v", answer.Result)
	}
	if calls, lock := pods.Calls(), w.status().Lock; len(calls) > 0 || lock != nil {
		t.Errorf("one without the label: called %v, lock %+v", calls, lock)
	}
	if answer := ask(zone("zone-a", 50), zone("zone-a", 1)); !answer.Allowed || !strings.Contains(answer.Result.Message, "from 2 to 1 replicas") {
		t.Errorf("one with the label: %+v", answer.Result)
	}
	wantPrepared(t, pods, "zone-a-1")
	if answer := ask(zone("zone-a", 5, func(s *sts) { s.UID = "another" }), zone("zone-a", 1)); answer.Allowed {
		t.Error("a StatefulSet that does not exist any more")
	}
}
