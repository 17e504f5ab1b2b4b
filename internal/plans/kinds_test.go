package plans_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

// TestKinds checks that the API server accepts the manifests that users of KUDO have,
// with no unknown field, and that it immediately refuses what can be judged from one
// object alone.
func TestKinds(t *testing.T) {
	c := newQuietCluster(t).client
	namespace := testenv.Namespace(t)
	for name, test := range map[string]struct{ text, refused string }{
		"an Operator": {`{kind: Operator, metadata: {name: zookeeper}, status: {}, spec: {description: d, kudoVersion: "0.19", kubernetesVersion: "1.15", url: u,
		  maintainers: [{name: m, email: e}], namespaceManifest: "kind: Namespace"}}`, ""},
		"an OperatorVersion": {`{kind: OperatorVersion, metadata: {name: zookeeper-3.4-0.3}, status: {}, spec: {
		  operator: {kind: Operator, name: zookeeper}, version: "0.3", appVersion: "3.4", connectionString: "", upgradableFrom: [],
		  templates: {a.yaml: "kind: Service"}, tasks: [
		    {name: a, kind: Apply, spec: {resources: [a.yaml]}}, {name: d, kind: Delete, spec: {resources: [a.yaml]}},
		    {name: t, kind: Toggle, spec: {parameter: P, resources: [a.yaml]}}, {name: x, kind: Dummy, spec: {done: false, wantErr: true, fatal: true}},
		    {name: p, kind: Pipe, spec: {pod: a.yaml, pipe: [{file: /x, kind: Secret, key: k}, {envFile: /y, kind: ConfigMap, key: l}]}},
		    {name: o, kind: KudoOperator, spec: {package: zk, appVersion: "3", operatorVersion: "1", instanceName: i, parameterFile: p.yaml}}],
		  parameters: [{name: P, displayName: p, description: d, required: true, default: "1", trigger: deploy, value-type: integer, immutable: false, enum: ["1", "2"]}, {name: Q}],
		  plans: {deploy: {strategy: serial, timeout: 1h, phases: [{name: p, strategy: parallel, timeout: 10m, steps: [{name: s, timeout: 90s, tasks: [a, p]}]}]},
		    update: {phases: [{name: p, steps: [{name: s, tasks: [a]}]}]}}}}`, ""},
		"an Instance": {`{kind: Instance, metadata: {name: zk}, spec: {operatorVersion: {name: zookeeper-3.4-0.3}, parameters: {P: "1"},
		  planExecution: {planName: deploy, uid: u, status: IN_PROGRESS}}}`, ""},

		"an Instance of nothing":  {`{kind: Instance, metadata: {name: x}, spec: {parameters: {A: b}}}`, "operatorVersion.name must be the name of an OperatorVersion"},
		"a request without end":   {`{kind: Instance, metadata: {name: x}, spec: {operatorVersion: {name: y}, planExecution: {planName: p, uid: "` + strings.Repeat("u", 300) + `"}}}`, "Too long"},
		"a version without end":   {`{kind: Instance, metadata: {name: x}, spec: {operatorVersion: {name: "` + strings.Repeat("u", 300) + `"}}}`, "Too long"},
		"a kind of task":          {`{kind: OperatorVersion, metadata: {name: x}, spec: {tasks: [{name: a, kind: Pray}]}}`, `Unsupported value: "Pray"`},
		"a task twice":            {`{kind: OperatorVersion, metadata: {name: x}, spec: {tasks: [{name: a, kind: Dummy}, {name: a, kind: Dummy}]}}`, "Duplicate value"},
		"a parameter twice":       {`{kind: OperatorVersion, metadata: {name: x}, spec: {parameters: [{name: a}, {name: a}]}}`, "Duplicate value"},
		"a step twice":            {`{kind: OperatorVersion, metadata: {name: x}, spec: {plans: {p: {phases: [{name: a, steps: [{name: s}, {name: s}]}]}}}}`, "Duplicate value"},
		"a strategy":              {`{kind: OperatorVersion, metadata: {name: x}, spec: {plans: {p: {strategy: seriel}}}}`, `Unsupported value: "seriel"`},
		"a timeout":               {`{kind: OperatorVersion, metadata: {name: x}, spec: {plans: {p: {timeout: soon}}}}`, "spec.plans.p.timeout"},
		"a type":                  {`{kind: OperatorVersion, metadata: {name: x}, spec: {parameters: [{name: a, value-type: int}]}}`, `Unsupported value: "int"`},
		"a Toggle of nothing":     {`{kind: OperatorVersion, metadata: {name: x}, spec: {tasks: [{name: a, kind: Toggle, spec: {resources: [a]}}]}}`, "a Toggle needs spec.parameter"},
		"a Pipe of nothing":       {`{kind: OperatorVersion, metadata: {name: x}, spec: {tasks: [{name: a, kind: Pipe, spec: {pod: a}}]}}`, "a Pipe needs spec.pod"},
		"a Pipe of two":           {`{kind: OperatorVersion, metadata: {name: x}, spec: {tasks: [{name: a, kind: Pipe, spec: {pod: a, pipe: [{file: /a, envFile: /b, kind: Secret, key: k}]}}]}}`, "needs either a file or an envFile"},
		"a KudoOperator of none":  {`{kind: OperatorVersion, metadata: {name: x}, spec: {tasks: [{name: a, kind: KudoOperator}]}}`, "a KudoOperator needs spec.package"},
		"a field that is unknown": {`{kind: OperatorVersion, metadata: {name: x}, spec: {plan: {}}}`, `unknown field "spec.plan"`},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.text), &u.Object); err != nil {
				t.Fatal(err)
			}
			u.SetAPIVersion("kudo.dev/v1beta1")
			u.SetNamespace(namespace)
			err := client.WithFieldValidation(c, "Strict").Create(t.Context(), u)
			if test.refused == "" && err != nil || test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("%v, want %q", err, test.refused)
			}
		})
	}
}
