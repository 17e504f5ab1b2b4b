package v1alpha1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// TestWhatIsAPolicy: what no release could go through is refused, and the answer names the
// field.
func TestWhatIsAPolicy(t *testing.T) {
	c, namespace := install(t), testenv.Namespace(t)
	const kinds = "../../../charts/spillway/generated/config/spillway.dev_"
	_, err := envtest.InstallCRDs(testenv.Shared().Config(), envtest.CRDInstallOptions{
		Paths: []string{kinds + "configpolicies.yaml", kinds + "clusterconfigpolicies.yaml"}, ErrorIfPathMissing: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for spec, refusal := range map[string]string{
		"{}":                                "",
		"stages: []":                        "",
		"maxUnavailable: 0":                 "maxUnavailable",
		"maxUnavailable: 25%":               "",
		"maxFailures: 0":                    "",
		"maxFailures: -1":                   "maxFailures",
		"soak: 10m":                         "",
		"soak: ten":                         "soak",
		"onFailure: Continue":               "",
		"onFailure: Rollback":               "",
		"onFailure: Undo":                   "onFailure",
		"pinConfig: true":                   "",
		"pinConfig: yes please":             "pinConfig",
		"pause: {reason: lunch}":            "",
		"paused: true":                      "paused",
		"objects: [{}]":                     "kind or name must be set",
		"objects: [{name: db}]":             "",
		"objects: [{kind: Pod}]":            "objects[0].kind",
		"stages: [{name: First}]":           "stages[0].name",
		"stages: [{workloads: 1}]":          "name",
		"stages: [{name: a, workloads: 0}]": "workloads",
		"stages: [{name: a, workloads: 1, selector: {}}]":                                   "a stage has either a selector or a number of workloads",
		"stages: [{name: a, workloads: 1}, {name: b, workloads: 50%}, {name: c}]":           "",
		"stages: [{name: a, selector: {matchLabels: {x: z}}}, {name: b, workloads: 1}]":     "stages with workloads must come before the others",
		"stages: [{name: a}, {name: a}]":                                                    "Duplicate",
		"maintenanceWindows: [{schedule: '0 2 * * *', durationSeconds: 60}]":                "",
		"maintenanceWindows: [{schedule: '0 2 * * *'}]":                                     "durationSeconds",
		"stages: [{name: a, selector: {matchExpressions: [{key: x, operator: Exists}]}}]":   "",
		"stages: [{name: a, maxUnavailable: 101%}]":                                         "maxUnavailable",
		"stages: [{name: a, maxFailures: 1, soak: 1h, maxUnavailable: 2}, {name: b}]":       "",
		"selector: {matchLabels: {app: web}}\n  priority: -1000\n  stages: [{name: first}]": "",
	} {
		for _, kind := range []string{"ConfigPolicy", "ClusterConfigPolicy"} {
			refuses(t, c, kind, namespace, spec, refusal)
		}
	}
	const dev = "objects: [{name: db}]\n  namespaceStages: [{name: dev, namespaceSelector: {matchLabels: {env: dev}}"
	for spec, refusal := range map[string]string{
		dev + "}]": "",
		dev + ", soak: 10m, minEvidence: 2}, {name: rest}]":                                                            "",
		dev + ", allowEmpty: true}, {name: two, namespaceSelector: {matchExpressions: [{key: x, operator: Exists}]}}]": "",
		dev + ", minEvidence: 0}]":                                                      "minEvidence",
		dev + "}, {name: dev}]":                                                         "Duplicate",
		strings.TrimPrefix(dev, "objects: [{name: db}]\n  ") + "}]":                     "name them in objects",
		"objects: []\n  " + strings.TrimPrefix(dev, "objects: [{name: db}]\n  ") + "}]": "name them in objects",
		"objects: [{name: db}]\n  namespaceStages: [{name: rest}, {name: dev, namespaceSelector: {matchLabels: {env: dev}}}]": "only the last stage may be without namespaceSelector",
		"objects: [{name: db}]\n  namespaceStages: [{name: a}, {name: b}]":                                                    "only the last stage may be without namespaceSelector",
		"objects: [{name: db}]\n  namespaceStages: [{name: all, namespaceSelector: {}}]":                                      "namespaceSelector must select by some label",
		"objects: [{name: db}]\n  namespaceStages: [{name: all, namespaceSelector: {matchLabels: {}}}]":                       "namespaceSelector must select by some label",
	} {
		refuses(t, c, "ClusterConfigPolicy", namespace, spec, refusal)
	}
}

// refuses fails if a policy with a spec is not refused as it should be, or refused if there is no refusal.
func refuses(t *testing.T, c client.Client, kind, namespace, spec, refusal string) {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("spec:\n  "+spec), &obj.Object); err != nil {
		t.Fatal(spec, err)
	}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	if kind == "ConfigPolicy" {
		obj.SetNamespace(namespace)
	}
	obj.SetGenerateName("p-")
	// None stays: a ClusterConfigPolicy would hold releases of all tests on the API server.
	err := c.Create(t.Context(), obj, client.FieldValidation(metav1.FieldValidationStrict), client.DryRunAll)
	if refusal == "" && err != nil || refusal != "" && (err == nil || !strings.Contains(err.Error(), refusal)) {
		t.Errorf("%s %s: %v, want it refused for %q", kind, spec, err, refusal)
	}
}
