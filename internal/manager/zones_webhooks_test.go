package manager_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/serve"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/barrier"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/zones"
)

// victim is a namespace whose rings all run, with a manager that serves all webhooks.
type victim struct {
	t         *testing.T
	client    client.Client
	namespace string
	webhooks  *testenv.Webhooks
	declared  []admission.Webhook
	requests  *fault.Injector
	barrier   *barrier.Barrier
	pods      *testenv.Pods
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubernetes.AddToScheme, v1alpha1.AddToScheme, zonesv1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	rings := []string{manager.RingConfig, manager.RingZones, manager.RingPlans}
	kinds, err := manifests.KindsOf(rings)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range kinds {
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("user"), client.ForceOwnership); err != nil {
			t.Fatal(err)
		}
	}
	clock := &barrier.Clock{}
	v := &victim{t: t, client: c, namespace: testenv.Namespace(t), requests: fault.New(), barrier: barrier.New(c, clock), pods: testenv.ServePods(t)}
	for _, ring := range rings {
		v.declared = append(v.declared, manager.Options{}.Declarations(ring).Webhooks...)
	}
	v.webhooks = testenv.RegisterWebhooks(t, v.namespace, v.declared)
	v.create()
	o := options(v.namespace)
	o.LeaderElect, o.Rings, o.Admission = false, rings, v.webhooks.Options
	o.Config, o.Zones, o.Plans = config.Options{Now: clock.Now}, zones.Options{Now: clock.Now}, plans.Options{Now: clock.Now}
	v.barrier.Run(t, testenv.Shared().Config(), v.requests, o)
	v.webhooks.WaitServed(t)
	v.webhooks.WaitConfirmed(t)
	testenv.Eventually(t, func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: v.namespace, Name: "ingester"}, &v1alpha1.RolloutGroup{})
	})
	v.barrier.Wait(t)
	return v
}

// create makes two zones whose Pods listen, a budget, a Secret and an OperatorVersion.
func (v *victim) create() {
	v.t.Helper()
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}, StringData: map[string]string{"password": "hunter2"}},
		&zonesv1.ZoneAwarePodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "ingester"},
			Spec:       zonesv1.ZoneAwarePodDisruptionBudgetSpec{Selector: zonesv1.Selector{MatchLabels: map[string]string{"rollout-group": "ingester"}}},
		},
		v.zone("zone-a", 2), v.zone("zone-b", 2),
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kept", Labels: map[string]string{"grafana.com/no-downscale": "true"}}, Spec: web().Spec},
	}
	for _, obj := range objects {
		obj.SetNamespace(v.namespace)
		if err := v.client.Create(v.t.Context(), obj); err != nil {
			v.t.Fatal(err)
		}
	}
	applyOnce(v.t, v.namespace, strings.Split(idlePackage, "---")[0])
	for _, name := range []string{"zone-a-0", "zone-a-1", "zone-b-0", "zone-b-1"} {
		testenv.Eventually(v.t, func(ctx context.Context) error { return v.listen(ctx, name) })
	}
}

// listen makes a Pod one that runs, at the address of the server that answers for it.
func (v *victim) listen(ctx context.Context, name string) error {
	pod := &corev1.Pod{}
	if err := v.client.Get(ctx, client.ObjectKey{Namespace: v.namespace, Name: name}, pod); err != nil {
		return err
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, v.pods.IP, []corev1.PodIP{{IP: v.pods.IP}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return v.client.Status().Update(ctx, pod)
}

func (v *victim) zone(name string, replicas int32) *appsv1.StatefulSet {
	labels := map[string]string{"name": name, "rollout-group": "ingester"}
	s := &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{Kind: "StatefulSet", APIVersion: "apps/v1"}, ObjectMeta: metav1.ObjectMeta{
		Namespace: v.namespace, Name: name,
		Labels: map[string]string{"rollout-group": "ingester", "grafana.com/prepare-downscale": "true"},
		Annotations: map[string]string{
			"grafana.com/prepare-downscale-http-path": "ingester/prepare-shutdown", "grafana.com/prepare-downscale-http-port": v.pods.Port,
		},
	}}
	s.Spec.Replicas, s.Spec.ServiceName, s.Spec.Selector = &replicas, "ingester", &metav1.LabelSelector{MatchLabels: labels}
	s.Spec.PodManagementPolicy, s.Spec.UpdateStrategy.Type = appsv1.ParallelPodManagement, appsv1.OnDeleteStatefulSetStrategyType
	s.Spec.Template.Labels, s.Spec.Template.Spec.SchedulerName = labels, "none"
	s.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "v1"}}
	return s
}

// forged is what an attacker sends.
type forged struct {
	webhook         string
	before, after   any
	resource, sub   string
	name, operation string
	// allowed, and what is in the answer, without a key.
	allowed bool
	says    string
}

// forgeries are one request for each path, each of which would do or tell something if it came from an
// API server.
func (v *victim) forgeries() map[string]forged {
	scale := func(n int32) any {
		return &autoscalingv1.Scale{TypeMeta: metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"}, Spec: autoscalingv1.ScaleSpec{Replicas: n}}
	}
	evil := v.zone("zone-a", 2)
	evil.Annotations["grafana.com/prepare-downscale-http-path"] = "admin/delete-everything"
	workload := func(kind string) any {
		d := web()
		d.TypeMeta, d.Namespace = metav1.TypeMeta{Kind: kind, APIVersion: "apps/v1"}, v.namespace
		d.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "db"}}}}
		return d
	}
	instance := `{"kind":"Instance","apiVersion":"kudo.dev/v1beta1","metadata":{"name":"x","namespace":"` + v.namespace + `"},` +
		`"spec":{"operatorVersion":{"name":"app-1"},"parameters":{"GUESS":"1"}}}`
	broken := `{"kind":"ZoneAwarePodDisruptionBudget","apiVersion":"rollout-operator.grafana.com/v1","spec":{"podNamePartitionRegex":"("}}`
	return map[string]forged{
		"no-downscale":            {webhook: "no-downscale.zones.spillway.dev", before: scale(3), after: scale(1), resource: "deployments", sub: "scale", name: "kept", says: admission.NoKey},
		"prepare-downscale":       {webhook: "prepare-downscale.zones.spillway.dev", before: evil, after: v.zone("zone-a", 0), resource: "statefulsets", name: "zone-a", says: admission.NoKey},
		"prepare-downscale/scale": {webhook: "prepare-scale.zones.spillway.dev", before: scale(2), after: scale(0), resource: "statefulsets", sub: "scale", name: "zone-a", says: admission.NoKey},
		"pod-eviction": {
			webhook: "pod-eviction.zones.spillway.dev", resource: "pods", sub: "eviction", name: "zone-a-0", operation: "CREATE", says: admission.NoKey,
			after: &policyv1.Eviction{TypeMeta: metav1.TypeMeta{Kind: "Eviction", APIVersion: "policy/v1"}, ObjectMeta: metav1.ObjectMeta{Name: "zone-a-0"}},
		},
		"zpdb-validation": {webhook: "zpdb-validation.zones.spillway.dev", after: broken, resource: "zoneawarepoddisruptionbudgets", name: "x", operation: "CREATE", says: "regex is not valid"},
		"deployments":     {webhook: "deployments.config.spillway.dev", after: workload("Deployment"), resource: "deployments", name: "web", operation: "CREATE", allowed: true},
		"statefulsets":    {webhook: "statefulsets.config.spillway.dev", after: workload("StatefulSet"), resource: "statefulsets", name: "web", operation: "CREATE", allowed: true},
		"daemonsets":      {webhook: "daemonsets.config.spillway.dev", after: workload("DaemonSet"), resource: "daemonsets", name: "web", operation: "CREATE", allowed: true},
		"instances":       {webhook: "instances.plans.spillway.dev", after: instance, resource: "instances", name: "x", operation: "CREATE", allowed: true, says: admission.NoKey},
	}
}

// review is the request as the user that it names would make it.
func (f forged) review(t *testing.T, namespace, user string) []byte {
	t.Helper()
	encode := func(obj any) runtime.RawExtension {
		if text, ok := obj.(string); ok {
			return runtime.RawExtension{Raw: []byte(text)}
		}
		raw, err := json.Marshal(obj)
		if err != nil || obj == nil {
			return runtime.RawExtension{}
		}
		return runtime.RawExtension{Raw: raw}
	}
	kind := metav1.TypeMeta{}
	after := encode(f.after)
	if err := json.Unmarshal(after.Raw, &kind); err != nil {
		t.Fatal(err)
	}
	operation := admissionv1.Update
	if f.operation != "" {
		operation = admissionv1.Operation(f.operation)
	}
	raw, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: "admission.k8s.io/v1"},
		Request: &admissionv1.AdmissionRequest{
			UID: "forged", Namespace: namespace, Name: f.name, Operation: operation, SubResource: f.sub, Object: after, OldObject: encode(f.before),
			Kind: metav1.GroupVersionKind{Kind: kind.Kind}, Resource: metav1.GroupVersionResource{Resource: f.resource},
			UserInfo: authenticationv1.UserInfo{Username: user, Groups: []string{"system:authenticated"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// post sends a review as anybody can who can open a connection.
func post(t *testing.T, url string, review []byte) *admissionv1.AdmissionResponse {
	t.Helper()
	res, err := insecure().Post(url, "application/json", bytes.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(body, answer); err != nil || answer.Response == nil {
		t.Fatalf("%s: %s", res.Status, body)
	}
	return answer.Response
}

// said is all that an answer tells.
func said(r *admissionv1.AdmissionResponse) string {
	text := strings.Join(r.Warnings, " ") + string(r.Patch)
	if r.Result != nil {
		text += r.Result.Message
	}
	return text
}

const admin = "kubernetes-admin-of-the-test"

// Who has no credential and no key has no effect at any of the nine paths, and receives
// nothing: not one request to the API server is made for her. The same requests with
// the key do all of that, so that the table would show it.
func TestWithoutAKeyARequestHasNoEffect(t *testing.T) {
	v := newVictim(t)
	v.grant(admin)
	forgeries := v.forgeries()
	if want := 9; len(forgeries) != want || len(v.declared) != want {
		t.Fatalf("%d forgeries for %d webhooks", len(forgeries), len(v.declared))
	}
	for _, w := range v.declared {
		for name, f := range forgeries {
			if f.webhook != w.Name {
				continue
			}
			for _, at := range w.Served() {
				for _, key := range []string{"", "/" + serve.NewKey(), "/aaaa"} {
					v.mustBeBlind(t, name+" at "+at+key, "https://"+v.webhooks.Options.Address+at, key, f)
				}
			}
		}
	}
	v.withTheKey(t, forgeries)
}

// mustBeBlind sends a forgery as several users, and sees that nothing follows.
func (v *victim) mustBeBlind(t *testing.T, name, url, key string, f forged) {
	t.Helper()
	before := len(v.requests.Requests())
	answer := post(t, url+key, f.review(t, v.namespace, admin))
	if answer.Allowed != f.allowed || len(answer.Patch) > 0 || !strings.Contains(said(answer), f.says) {
		t.Errorf("%s: allowed %v, said %q", name, answer.Allowed, said(answer))
	}
	if strings.Contains(said(answer), "grafana.com/no-downscale") || strings.Contains(said(answer), "GUESS") {
		t.Errorf("%s: it tells what only the API server may say: %q", name, said(answer))
	}
	v.barrier.Wait(t)
	for _, r := range v.requests.Requests()[before:] {
		if isKeyLookup := r.Verb == "list" && r.Resource == "secrets" && key != ""; !isKeyLookup && r.Resource != "leases" && r.Verb != "watch" {
			t.Errorf("%s: the manager asked for %+v", name, r)
		}
	}
	if calls := v.pods.Calls(); len(calls) > 0 {
		t.Errorf("%s: Pods were called: %v", name, calls)
	}
	group := &v1alpha1.RolloutGroup{}
	if err := v.client.Get(t.Context(), client.ObjectKey{Namespace: v.namespace, Name: "ingester"}, group); err != nil {
		t.Fatal(err)
	}
	if group.Status.Lock != nil || group.Status.Downscale != nil {
		t.Errorf("%s: the lock is %+v", name, group.Status.Lock)
	}
}

// grant lets a user read Secrets.
func (v *victim) grant(user string) {
	v.t.Helper()
	testenv.Grant(v.t, v.client, v.namespace, user, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"db"}, Verbs: []string{"get"}}})
}

// withTheKey sends what an API server would, with the key that it has.
func (v *victim) withTheKey(t *testing.T, forgeries map[string]forged) {
	t.Helper()
	ask := func(name, user string) *admissionv1.AdmissionResponse {
		f := forgeries[name]
		return post(t, v.webhooks.URL(t, f.webhook), f.review(t, v.namespace, user))
	}
	for _, kind := range []string{"deployments", "statefulsets", "daemonsets"} {
		if answer := ask(kind, admin); !strings.Contains(string(answer.Patch), "config-hash") {
			t.Errorf("%s: no hash for a user who may read the Secret: %+v", kind, answer)
		}
		if answer := ask(kind, "another-user"); !answer.Allowed || len(answer.Patch) > 0 {
			t.Errorf("%s: for a user who may not read the Secret: %s", kind, answer.Patch)
		}
	}
	if answer := ask("no-downscale", admin); !strings.Contains(said(answer), "it has the label 'grafana.com/no-downscale=true'") {
		t.Errorf("no-downscale: %q", said(answer))
	}
	if answer := ask("instances", admin); !strings.Contains(said(answer), "GUESS") {
		t.Errorf("instances: %+v", said(answer))
	}
	var mu sync.Mutex
	called := map[string]bool{}
	for _, pod := range []string{"zone-a-0", "zone-a-1"} {
		v.pods.Answer(pod, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			called[r.URL.Path] = true
			mu.Unlock()
			v.pods.Obey(w, r)
		})
	}
	if answer := ask("prepare-downscale", admin); !answer.Allowed {
		t.Errorf("prepare-downscale: %q", said(answer))
	}
	mu.Lock()
	defer mu.Unlock()
	if !maps.Equal(called, map[string]bool{"/ingester/prepare-shutdown": true}) { // and not what the request says that it was
		t.Errorf("Pods were called at %v", called)
	}
	if answer := ask("pod-eviction", admin); answer.Allowed || strings.Contains(said(answer), admission.NoKey) {
		t.Errorf("pod-eviction while a downscale is under way: %q", said(answer))
	}
}
