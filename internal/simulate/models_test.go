package simulate_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/simulate"
)

// modelled is a workload without Spillway; its spec is added to.
const modelled = `
apiVersion: apps/v1
kind: KIND
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: c, image: "app:IMAGE"}]}
`

func modelledAs(t *testing.T, kind, spec, image string) *unstructured.Unstructured {
	t.Helper()
	u, more := &unstructured.Unstructured{}, map[string]any{}
	text := strings.NewReplacer("KIND", kind, "IMAGE", image).Replace(modelled)
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(spec), &more); err != nil {
		t.Fatal(err)
	}
	maps.Copy(u.Object["spec"].(map[string]any), more)
	return u
}

// How long a rollout takes follows from how many Pods may be replaced at a time. Each
// is ready after a minute; there are three nodes.
func TestHowLongTheControllersOfKubernetesTake(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind, spec string
		minutes    int
	}{
		"a quarter of eight at a time":        {"Deployment", "replicas: 8", 2},
		"one of two, and none may be missing": {"Deployment", "replicas: 2", 2},
		"all together":                        {"Deployment", "{replicas: 4, strategy: {rollingUpdate: {maxSurge: 100%}}}", 1},
		"all go before the first comes":       {"Deployment", "{replicas: 4, strategy: {type: Recreate}}", 1},
		"available a minute after ready":      {"Deployment", "{replicas: 2, minReadySeconds: 60}", 4},
		"StatefulSets one by one":             {"StatefulSet", "replicas: 3", 3},
		"two at a time":                       {"StatefulSet", "{replicas: 4, podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}", 2},
		"down to the partition":               {"StatefulSet", "{replicas: 4, updateStrategy: {rollingUpdate: {partition: 3}}}", 1},
		"not without a user":                  {"StatefulSet", "{replicas: 3, updateStrategy: {type: OnDelete}}", 0},
		"DaemonSets node by node":             {"DaemonSet", "", 3},
		"two nodes at a time":                 {"DaemonSet", "updateStrategy: {rollingUpdate: {maxUnavailable: 2}}", 2},
		"no node before a user deletes Pods ": {"DaemonSet", "updateStrategy: {type: OnDelete}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := benchOptions()
			o.Readiness.Default = time.Minute
			before, after := modelledAs(t, test.kind, test.spec, "1"), modelledAs(t, test.kind, test.spec, "2")
			r, err := simulate.Run(t.Context(), []*unstructured.Unstructured{before}, []*unstructured.Unstructured{after}, o)
			if err != nil {
				t.Fatal(err)
			}
			if want := time.Duration(test.minutes) * time.Minute; time.Duration(r.Took) != want || !r.Settled {
				t.Errorf("takes %s, not %s; settled: %t", time.Duration(r.Took), want, r.Settled)
			}
		})
	}
}

// A Pod takes its grace period to stop, in the worst case. That counts where its name or
// its node must be free before the next one comes. Each is ready after a minute; there
// are three nodes.
func TestHowLongItTakesUntilPodsAreGone(t *testing.T) {
	t.Parallel()
	brief := 10 * time.Second
	for name, test := range map[string]struct {
		kind, spec string
		stop       *time.Duration
		takes      time.Duration
	}{
		"half a minute for each":             {"StatefulSet", "replicas: 2", nil, 3 * time.Minute},
		"as it is said":                      {"StatefulSet", "replicas: 2", &brief, 2*time.Minute + 20*time.Second},
		"nodes must be free   ":              {"DaemonSet", "", nil, 4*time.Minute + 30*time.Second},
		"the next ones come before":          {"DaemonSet", "updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}", nil, 3 * time.Minute},
		"names are others":                   {"Deployment", "replicas: 2", nil, 2 * time.Minute},
		"all must be gone before any others": {"Deployment", "{replicas: 2, strategy: {type: Recreate}}", nil, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := benchOptions()
			o.Readiness.Default, o.Stop = time.Minute, test.stop
			before, after := modelledAs(t, test.kind, test.spec, "1"), modelledAs(t, test.kind, test.spec, "2")
			r, err := simulate.Run(t.Context(), []*unstructured.Unstructured{before}, []*unstructured.Unstructured{after}, o)
			if err != nil || time.Duration(r.Took) != test.takes || !r.Settled {
				t.Errorf("takes %s, not %s; settled: %t: %v", time.Duration(r.Took), test.takes, r.Settled, err)
			}
		})
	}
}

// A Pod cannot start before its config exists.
func TestPodsWaitForTheirConfig(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		needs := needsPassword(t, modelledAs(t, kind, "", "1"))
		secret := fromYAML(t, "{apiVersion: v1, kind: Secret, metadata: {name: password}, stringData: {a: b}}")
		r, err := simulate.Run(t.Context(), []*unstructured.Unstructured{needs}, []*unstructured.Unstructured{secret}, benchOptions())
		if err != nil {
			t.Fatal(err)
		}
		if time.Duration(r.Took) != benchOptions().Readiness.Default || !r.Settled {
			t.Errorf("%s: ready after %s; settled: %t", kind, time.Duration(r.Took), r.Settled)
		}
	}
}

// What a change breaks is reported, whichever ring rolls it; what was broken before is reported as
// that.
func TestWhatBreaksIsTold(t *testing.T) {
	t.Parallel()
	job := fromYAML(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: app}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}")
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Job"} {
		works, breaks := []*unstructured.Unstructured{modelledAs(t, kind, "", "1")}, modelledAs(t, kind, "", "2")
		if kind == "Job" {
			works, breaks = []*unstructured.Unstructured{fromYAML(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}")}, job
		}
		r, err := simulate.Run(t.Context(), works, []*unstructured.Unstructured{needsPassword(t, breaks)}, benchOptions())
		if err != nil {
			t.Fatal(err)
		}
		if want := kind + " app is waiting: Secret password not found"; r.Settled || len(r.Stuck) != 1 || r.Stuck[0].Sentence != want {
			t.Errorf("settled: %t, and stuck are %v, not %q", r.Settled, r.Stuck, want)
		}
		other := fromYAML(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}")
		r, err = simulate.Run(t.Context(), []*unstructured.Unstructured{breaks}, []*unstructured.Unstructured{other}, benchOptions())
		if err != nil || !r.Settled || len(r.Stuck) != 1 || !r.WaitedBefore(r.Stuck[0]) {
			t.Errorf("broken before: settled: %t, and stuck are %v: %v", r.Settled, r.Stuck, err)
		}
	}
}

// What leaves its replicas to an autoscaler has as many as that leaves it at least, and
// keeps them; what has none is left alone.
func TestAutoscaledWorkloads(t *testing.T) {
	t.Parallel()
	const autoscaler = `{apiVersion: autoscaling/%s, kind: HorizontalPodAutoscaler, metadata: {name: app}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: app}, %s}}`
	for name, test := range map[string]struct {
		scales, replicas string
		pods             int
	}{
		"the fewest":        {"minReplicas: 3, maxReplicas: 9", "", 3},
		"one is the fewest": {"maxReplicas: 9", "", 1},
		"the most":          {"minReplicas: 2, maxReplicas: 4", "replicas: 6", 4},
		"in between":        {"minReplicas: 2, maxReplicas: 9", "replicas: 6", 6},
		"turned off":        {"minReplicas: 2, maxReplicas: 9", "replicas: 0", 0},
	} {
		for _, version := range []string{"v1", "v2"} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				before, after := modelledAs(t, "StatefulSet", test.replicas, "1"), modelledAs(t, "StatefulSet", test.replicas, "2")
				scales := fromYAML(t, fmt.Sprintf(autoscaler, version, test.scales))
				r, err := simulate.Run(t.Context(), []*unstructured.Unstructured{before, scales}, []*unstructured.Unstructured{after}, benchOptions())
				if err != nil {
					t.Fatal(err)
				}
				if want := time.Duration(test.pods) * benchOptions().Readiness.Default; time.Duration(r.Took) != want || !r.Settled {
					t.Errorf("takes %s, not %s; settled: %t", time.Duration(r.Took), want, r.Settled)
				}
			})
		}
	}
}

// brokenSince are ways in which a Deployment may be broken already, by its condition
// Progressing.
func brokenSince(now time.Time) map[string]appsv1.DeploymentCondition {
	return map[string]appsv1.DeploymentCondition{
		"since it was rolled out": {Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable", LastUpdateTime: metav1.NewTime(now.Add(-time.Hour))},
		"for too long":            {Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", LastUpdateTime: metav1.NewTime(now.Add(-time.Hour))},
		"for a while":             {Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.NewTime(now.Add(-5 * time.Minute))},
	}
}

// broken is a Deployment of a cluster of which the one Pod crashes.
func broken(t *testing.T, condition *appsv1.DeploymentCondition) (*appsv1.Deployment, *corev1.Pod) {
	t.Helper()
	condition.Type = appsv1.DeploymentProgressing
	d, pod := &appsv1.Deployment{}, &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(modelledAs(t, "Deployment", "replicas: 1", "1").Object, d); err != nil {
		t.Fatal(err)
	}
	d.Namespace, d.Name, d.UID, d.Generation = "default", "broken", "u", 1
	d.Spec.ProgressDeadlineSeconds = new(int32(600))
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, Conditions: []appsv1.DeploymentCondition{*condition}}
	pod.Namespace, pod.Name, pod.Status.Phase = "default", "broken-x-y", corev1.PodRunning
	pod.Labels = map[string]string{"pod-template-hash": "x"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "broken-x", Controller: new(true)}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
	return d, pod
}

// What was broken before the change does not make that take longer, when its deadline
// passes.
func TestWhatIsBrokenAlreadyTakesNoTime(t *testing.T) {
	t.Parallel()
	for name, condition := range brokenSince(benchOptions().Now) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, pod := broken(t, &condition)
			o := benchOptions()
			o.Present = []client.Object{d, pod}
			r, err := simulate.Run(t.Context(), nil, []*unstructured.Unstructured{modelledAs(t, "Deployment", "replicas: 2", "1")}, o)
			if err != nil || time.Duration(r.Took) != o.Readiness.Default || !r.Settled || len(r.Stuck) != 1 {
				t.Errorf("takes %s; settled: %t; stuck: %v: %v", time.Duration(r.Took), r.Settled, r.Stuck, err)
			}
		})
	}
}

// A DaemonSet that no node of the cluster is fit for has no Pods there.
func TestADaemonSetWithoutNodes(t *testing.T) {
	t.Parallel()
	d := &appsv1.DaemonSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(modelledAs(t, "DaemonSet", "", "1").Object, d); err != nil {
		t.Fatal(err)
	}
	d.Namespace, d.UID, d.Generation, d.Status.ObservedGeneration = "default", "u", 1, 1
	o := benchOptions()
	o.Present = []client.Object{d}
	r, err := simulate.Run(t.Context(), nil, []*unstructured.Unstructured{modelledAs(t, "DaemonSet", "", "2")}, o)
	if err != nil || !r.Settled || time.Duration(r.Took) > 0 || len(r.Steps) > 0 {
		t.Errorf("takes %s; settled: %t; %q: %v", time.Duration(r.Took), r.Settled, lines(r.Steps), err)
	}
}

// The deadline of a Deployment of a cluster runs from when it got on last there.
func TestTheDeadlineOfWhatIsBrokenGoesOn(t *testing.T) {
	t.Parallel()
	conditions := brokenSince(benchOptions().Now)
	for _, test := range []struct {
		broken string
		after  time.Duration
		reason string
	}{
		{"since it was rolled out", time.Hour, "NewReplicaSetAvailable"},
		{"for too long", time.Second, "ProgressDeadlineExceeded"},
		{"for a while", 4 * time.Minute, "ReplicaSetUpdated"},
		{"for a while", 6 * time.Minute, "ProgressDeadlineExceeded"},
	} {
		condition, o := conditions[test.broken], benchOptions()
		d, pod := broken(t, &condition)
		o.Present = []client.Object{d, pod}
		got, err := simulate.ProgressAfter(t.Context(), d, o, test.after)
		if err != nil || !slices.ContainsFunc(got, func(c appsv1.DeploymentCondition) bool { return c.Reason == test.reason }) {
			t.Errorf("broken %s, %s later: not %s but %v: %v", test.broken, test.after, test.reason, got, err)
		}
	}
}

// What comes later than was looked ahead is not told as something that never comes.
func TestWhatLiesBeyondTheHorizon(t *testing.T) {
	t.Parallel()
	base, err := os.ReadFile("testdata/zones-window-closed/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	change := objects(read(t, "zones-window-closed", "change.yaml"))
	for name, test := range map[string]struct {
		spec    string
		within  time.Duration
		settled bool
		next    time.Time
	}{
		"a window that opens once a month": {`{maintenanceWindows: [{schedule: "0 0 1 * *", durationSeconds: 36000}]}`, 0, false, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)},
		"seen":                             {`{maintenanceWindows: [{schedule: "0 0 1 * *", durationSeconds: 36000}]}`, 60 * 24 * time.Hour, true, time.Time{}},
		"nine days of soaking":             {`{soak: 216h}`, 0, false, time.Date(2026, 5, 13, 12, 1, 0, 0, time.UTC)},
		"a user":                           {`{pause: {reason: "lunch"}}`, 0, false, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := fromYAML(t, "{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: ingester}, spec: "+test.spec+"}")
			o := benchOptions()
			o.Within = test.within
			r, err := simulate.Run(t.Context(), objects(readAt(t, string(base), o.Now)), append([]*unstructured.Unstructured{group}, change...), o)
			if err != nil || r.Settled != test.settled {
				t.Fatalf("settled: %t; stuck: %v: %v", r.Settled, r.Stuck, err)
			}
			if !test.settled && (len(r.Stuck) != 1 || !r.Stuck[0].Next.Equal(test.next)) {
				t.Errorf("the next look is not at %s: %+v", test.next, r.Stuck)
			}
		})
	}
}

// needsPassword makes the containers of a workload need a Secret.
func needsPassword(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	containers, ok, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil || !ok {
		t.Fatal(u, err)
	}
	containers[0].(map[string]any)["envFrom"] = []any{map[string]any{"secretRef": map[string]any{"name": "password"}}}
	if err := unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
	return u
}

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}
