package v1alpha1_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

const manifest = "../../../charts/spillway/generated/zones/spillway.dev_rolloutgroups.yaml"

func TestMain(m *testing.M) { testenv.Main(m, testenv.Options{}) }

// install makes the kind known to the API server.
func install(t *testing.T) client.Client {
	t.Helper()
	_, err := envtest.InstallCRDs(testenv.Shared().Config(), envtest.CRDInstallOptions{Paths: []string{manifest}, ErrorIfPathMissing: true})
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(testenv.Shared().Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWhatTheServerAccepts: what the manager could not understand is refused
// before anybody has to, and the answer names the field.
func TestWhatTheServerAccepts(t *testing.T) {
	c, namespace := install(t), testenv.Namespace(t)
	for spec, refusal := range map[string]string{
		"{}":                                    "",
		"zoneOrder: [b, a]":                     "",
		"zoneOrder: [a, a]":                     "zoneOrder",
		"zoneOrder: ['']":                       "zoneOrder",
		"maxUnavailable: 2":                     "",
		"maxUnavailable: 25%":                   "",
		"maxUnavailable: 100%":                  "",
		"maxUnavailable: 0":                     "maxUnavailable",
		"maxUnavailable: -1":                    "maxUnavailable",
		"maxUnavailable: 0%":                    "maxUnavailable",
		"maxUnavailable: 101%":                  "maxUnavailable",
		"maxUnavailable: '2'":                   "maxUnavailable",
		"minReadySeconds: 30":                   "",
		"minReadySeconds: -1":                   "minReadySeconds",
		"soak: 1h30m":                           "",
		"soak: -5m":                             "soak",
		"soak: five":                            "soak",
		"progressDeadlineSeconds: 0":            "progressDeadlineSeconds",
		"stuckPods: Keep":                       "",
		"stuckPods: keep":                       "stuckPods",
		"stuckAfterSeconds: 60":                 "",
		"stuckAfterSeconds: 0":                  "stuckAfterSeconds",
		"historyLimit: 0":                       "",
		"historyLimit: 101":                     "historyLimit",
		"pause: {reason: lunch, by: alice}":     "",
		"retry: {at: '2026-05-04T12:00:00Z'}":   "",
		"retry: {reason: because}":              "retry.at",
		"windows: ['Mon 09:00']":                "windows",
		"pause: {since: '2026-05-04T12:00:00'}": "since",
	} {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("spec:\n  "+spec), &obj.Object); err != nil {
			t.Fatal(spec, err)
		}
		obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RolloutGroup"))
		obj.SetNamespace(namespace)
		obj.SetGenerateName("g-")
		err := c.Create(t.Context(), obj, client.FieldValidation(metav1.FieldValidationStrict))
		if refusal == "" && err != nil || refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)) {
			t.Errorf("%s: %v, want it refused for %q", spec, err, refusal)
		}
	}
}

// TestStatusComesBackAsItWasWritten: the moments in it to the microsecond.
func TestStatusComesBackAsItWasWritten(t *testing.T) {
	c, namespace := install(t), testenv.Namespace(t)
	group := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ingester"}}
	if err := c.Create(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	at := metav1.NewMicroTime(time.Date(2026, 5, 4, 12, 0, 0, 123456000, time.UTC))
	group.Status = v1alpha1.RolloutGroupStatus{
		Lock:  &v1alpha1.Lock{Holder: "rollout/ingester", Purpose: v1alpha1.PurposeRollout, Zone: "a", Since: at, Expires: &at},
		Moves: []v1alpha1.Move{{Zone: "a", Pod: "a-0", UID: "u", ResourceVersion: "1", Revision: "v2", At: at}, {Zone: "a", Lend: true, At: at}},
		Seen:  &v1alpha1.Seen{Pods: "7", StatefulSets: "8"},
		Zones: []v1alpha1.Zone{{Name: "a", Total: 3, StartedAt: &at, Opened: true}},
		History: []v1alpha1.Rollout{{
			Number: 1, StartedAt: at, FinishedAt: &at, Outcome: "Complete", Zones: []v1alpha1.ZoneRevision{{Name: "a", Revision: "v2"}},
		}},
	}
	want := group.Status.DeepCopy()
	if err := c.Status().Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(want, &group.Status) {
		t.Errorf("%+v, want %+v", group.Status, *want)
	}
}
