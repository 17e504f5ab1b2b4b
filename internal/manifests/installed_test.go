package manifests_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/plans"
	"github.com/spillway-dev/spillway/internal/zones"
)

// TestMain has a control plane of its own: policies are installed, and left, for the whole cluster.
func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{Nodes: 2, Alone: true}) }

// installation is a namespace with everything that is installed for it but the Deployment
// of the manager, which runs in this process as the service account of the installation.
type installation struct {
	t         *testing.T
	user      client.Client
	namespace string
	next      http.RoundTripper
	// name is that of what is installed.
	name    string
	refused sync.Map
	// hashes is true if the config ring runs.
	hashes bool
}

func install(t *testing.T, change ...func(*manifests.Options)) *installation {
	t.Helper()
	c, err := client.New(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := &installation{t: t, user: c, namespace: testenv.Namespace(t)}
	o := manifests.Default(manager.Rings()...)
	o.Namespace, o.Values.WatchNamespaces, o.Values.PackageKinds, o.Values.Webhooks.Enabled = i.namespace, []string{i.namespace}, true, false
	for _, c := range change {
		c(&o)
	}
	i.name = o.Values.Name()
	all, err := manifests.Objects(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range all {
		if obj.GetKind() == "Deployment" || obj.GetKind() == "Namespace" && obj.GetName() == i.namespace {
			continue
		}
		testenv.Apply(t, c, obj)
	}
	i.evaluated()
	return i
}

// evaluated waits until the API server evaluates all policies: it takes them in the order in which
// they were written, and the last is one of the test.
func (i *installation) evaluated() {
	i.t.Helper()
	name := "last." + i.namespace
	last := admission.Policy(name, admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: admission.On(admissionregistrationv1.Create, "", "v1", "configmaps"),
		Validations:      []admissionregistrationv1.Validation{{Expression: "object.metadata.name != '" + name + "'"}},
	})
	for _, obj := range []client.Object{last, admission.Binding(name, name, admissionregistrationv1.Deny)} {
		if err := i.user.Create(i.t.Context(), obj); err != nil {
			i.t.Fatal(err)
		}
		i.t.Cleanup(func() { _ = i.user.Delete(context.Background(), obj) })
	}
	testenv.Eventually(i.t, func(ctx context.Context) error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: i.namespace, Name: name}}
		if err := i.user.Create(ctx, probe, client.DryRunAll); !apierrors.IsInvalid(err) {
			return errors.Join(errors.New("the policies are not evaluated"), err)
		}
		return nil
	})
}

func (i *installation) identity() string {
	return "system:serviceaccount:" + i.namespace + ":" + i.name
}

// manage runs the manager as it is installed.
func (i *installation) manage(rings ...string) {
	i.hashes = slices.Contains(rings, manager.RingConfig)
	o := manager.Options{
		Rings: rings, Namespaces: []string{i.namespace}, Config: config.Options{Now: time.Now}, Zones: zones.Options{Now: time.Now}, Plans: plans.Options{Now: time.Now},
		LeaderElect: true, LeaseName: manager.LeaseName, LeaseNamespace: i.namespace, MetricsAddress: "0", ProbeAddress: "0",
	}
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + i.namespace, "system:authenticated"}
	cfg := testenv.Shared().ConfigAs(i.identity(), groups...)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { i.next = next; return i })
	testenv.Managed(i.t, fault.New(), func(ctx context.Context, log logr.Logger) error {
		o.Log = log
		return manager.Run(ctx, cfg, o)
	})
}

func (i *installation) apply(manifests ...string) {
	i.t.Helper()
	for _, manifest := range manifests {
		obj := i.object(manifest)
		testenv.Eventually(i.t, func(ctx context.Context) error { // a kind may not be served yet
			return i.user.Apply(ctx, client.ApplyConfigurationFromUnstructured(obj.DeepCopy()), client.FieldOwner("user"), client.ForceOwnership)
		})
	}
}

func (i *installation) object(manifest string) *unstructured.Unstructured {
	i.t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &obj.Object); err != nil {
		i.t.Fatal(err)
	}
	obj.SetNamespace(i.namespace)
	return obj
}

// has waits until a field of an object is something, and returns it.
func (i *installation) has(manifest string, is func(string) bool, path ...string) string {
	i.t.Helper()
	obj, value := i.object(manifest), ""
	testenv.Eventually(i.t, func(ctx context.Context) (err error) {
		value, err = testenv.Field(ctx, i.user, obj, is, path...)
		return err
	})
	return value
}

func equal(want string) func(string) bool { return func(s string) bool { return s == want } }

// runs waits until there are so many ready Pods of a StatefulSet with an image.
func (i *installation) runs(set, image string, replicas int) {
	i.t.Helper()
	testenv.Eventually(i.t, func(ctx context.Context) error {
		pods, n := &corev1.PodList{}, 0
		if err := i.user.List(ctx, pods, client.InNamespace(i.namespace), client.MatchingLabels{"app": set}); err != nil {
			return err
		}
		for _, p := range pods.Items {
			if p.Spec.Containers[0].Image == image && p.DeletionTimestamp == nil && isReady(&p) {
				n++
			}
		}
		if n != replicas || len(pods.Items) != replicas {
			return fmt.Errorf("%d of %d Pods of %s run %s, want %d", n, len(pods.Items), set, image, replicas)
		}
		return nil
	})
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

func zone(group, name, image, strategy string, replicas int, annotations string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %[2]s, labels: {rollout-group: %[1]s}, annotations: {spillway.dev/update-on-config-change: "true"%[6]s}},
spec: {replicas: %[5]d, serviceName: x, podManagementPolicy: Parallel, updateStrategy: {type: %[4]s}, selector: {matchLabels: {app: %[2]s}}, template: {metadata: {labels: {app: %[2]s}},
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: %[3]s, envFrom: [{configMapRef: {name: app}}]}]}}}}`, group, name, image, strategy, replicas, annotations)
}

const operator = `{apiVersion: kudo.dev/v1beta1, kind: OperatorVersion, metadata: {name: app-1}, spec: {operator: {name: app}, version: "1", parameters: [{name: IMAGE, default: v1}],
plans: {deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: app, tasks: [app]}]}]}},
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml, set.yaml]}}], templates: {app.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}}", set.yaml: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: '{{ .Name }}'},
 spec: {replicas: 1, serviceName: x, selector: {matchLabels: {app: '{{ .Name }}'}}, template: {metadata: {labels: {app: '{{ .Name }}'}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: '{{ .Params.IMAGE }}'}]}}}}"}}}`

const instance = `{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: db, labels: {kudo.dev/operator: app}}, spec: {operatorVersion: {name: app-1}, parameters: {IMAGE: %s}}}`

// A release of config, a StatefulSet that is stuck, rollouts of zones by each update strategy, a downscale and a
// plan succeed with exactly what is installed for the rings that do them, alone and, by another name, together: the
// permissions, and the policies about the identity. The API server refuses none of the
// requests that it takes.
func TestWhatIsInstalledIsEnough(t *testing.T) {
	stories := map[string]func(*installation){
		manager.RingConfig: (*installation).tellConfig, manager.RingZones: (*installation).tellZones, manager.RingPlans: (*installation).tellPlans,
	}
	for _, rings := range [][]string{{manager.RingConfig}, {manager.RingZones}, {manager.RingPlans}, manager.Rings()} {
		t.Run(strings.Join(rings, ","), func(t *testing.T) {
			i := install(t, func(o *manifests.Options) {
				o.Values.Rings, o.Values.PackageKinds = rings, slices.Contains(rings, manager.RingPlans)
				if len(rings) > 1 {
					o.Values.FullnameOverride = "releases"
				}
			})
			i.manage(rings...)
			for _, ring := range rings {
				if tell := stories[ring]; tell != nil {
					tell(i)
				}
			}
			i.refused.Range(func(request, answer any) bool {
				t.Errorf("refused: %s: %s", request, answer)
				return true
			})
		})
	}
}

func (i *installation) tellConfig() {
	const set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: single, annotations: {spillway.dev/update-on-config-change: "true", spillway.dev/stuck-pods: Replace}},
spec: {replicas: 1, serviceName: x, selector: {matchLabels: {app: single}}, template: {metadata: {labels: {app: single}, annotations: {%s: crash}},
spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: %s, envFrom: [{configMapRef: {name: single}}]}]}}}}`
	const behavior = "testenv.spillway.dev/behavior"
	i.t.Helper()
	i.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: single}, data: {a: "1"}}`, fmt.Sprintf(set, "note", "v1"))
	i.runs("single", "v1", 1)
	before := i.has(fmt.Sprintf(set, "note", "v1"), func(s string) bool { return s != "" }, hash...)
	i.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: single}, data: {a: "2"}}`)
	i.has(fmt.Sprintf(set, "note", "v1"), func(s string) bool { return s != "" && s != before }, hash...)
	i.runs("single", "v1", 1)

	crashes := fmt.Sprintf(set, behavior, "v2")
	i.apply(crashes)
	i.has(`{apiVersion: v1, kind: Pod, metadata: {name: single-0}}`, equal("crash"), "metadata", "annotations", behavior)
	i.apply(fmt.Sprintf(set, "note", "v3"))
	i.runs("single", "v3", 1)
}

func (i *installation) tellZones() {
	i.t.Helper()
	i.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: "1"}}`)
	apply := func(image string, replicas int) {
		for _, z := range [][]string{{"deleted", "OnDelete"}, {"held", "RollingUpdate"}} {
			i.apply(zone(z[0], z[0]+"-a", image, z[1], replicas, ""))
			follower := zone(z[0], z[0]+"-b", image, z[1], replicas, ", grafana.com/rollout-downscale-leader: "+z[0]+"-a")
			i.apply(strings.Replace(follower, fmt.Sprintf("replicas: %d, ", replicas), "", 1)) // the manager sets them
		}
		for _, name := range []string{"deleted-a", "deleted-b", "held-a", "held-b"} {
			i.runs(name, image, replicas)
		}
		for _, name := range []string{"deleted", "held"} {
			i.has(`{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: `+name+`}}`, equal("Complete"), "status", "phase")
		}
	}
	apply("v1", 2)
	if i.hashes { // zone by zone
		before := i.has(zone("held", "held-a", "v1", "RollingUpdate", 2, ""), func(s string) bool { return s != "" }, hash...)
		i.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {a: "2"}}`)
		i.has(zone("held", "held-a", "v1", "RollingUpdate", 2, ""), func(s string) bool { return s != "" && s != before }, hash...)
		apply("v1", 2)
	}
	apply("v2", 2)
	apply("v2", 1)
}

func (i *installation) tellPlans() {
	i.t.Helper()
	i.apply(operator, fmt.Sprintf(instance, "v1"))
	i.has(fmt.Sprintf(instance, "v1"), equal("COMPLETE"), "status", "aggregatedStatus", "status")
	i.runs("db", "v1", 1)
	i.apply(fmt.Sprintf(instance, "v2"))
	i.runs("db", "v2", 1)
	if err := i.user.Delete(i.t.Context(), i.object(fmt.Sprintf(instance, "v2"))); err != nil {
		i.t.Fatal(err)
	}
	i.runs("db", "none", 0)
}

// hash is where the hash of a workload's config is.
var hash = []string{"spec", "template", "metadata", "annotations", "spillway.dev/config-hash"}

// RoundTrip remembers what permissions or policies refuse; a precondition that does not hold
// is no refusal.
func (i *installation) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := i.next.RoundTrip(r)
	if err == nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnprocessableEntity) {
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if resp.StatusCode == http.StatusForbidden || bytes.Contains(body, []byte("denied request")) {
			i.refused.Store(r.Method+" "+r.URL.Path, string(body))
		}
	}
	return resp, err
}
