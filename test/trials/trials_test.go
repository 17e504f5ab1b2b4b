//go:build trials

package trials_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func configMap(name, value string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {a: %q}}`, name, value)
}

// deployment has no Pods: what is tried is the template.
func deployment(name, config string, annotations ...string) string {
	var b strings.Builder
	for i := 0; i < len(annotations); i += 2 {
		fmt.Fprintf(&b, ", %s: %q", annotations[i], annotations[i+1])
	}
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, annotations: {spillway.dev/update-on-config-change: "true"%s}},
spec: {replicas: 0, selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}}, spec: {containers: [{name: c, image: x,
envFrom: [{configMapRef: {name: %s}}]}]}}}}`, name, b.String(), name, name, config)
}

// version has one plan with one template, and more plans.
func version(name, template, more string) string {
	return fmt.Sprintf(`{apiVersion: kudo.dev/v1beta1, kind: OperatorVersion, metadata: {name: %s}, spec: {operator: {name: app}, version: "1",
plans: {deploy: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: app, tasks: [app]}]}]}%s},
tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}], templates: {app.yaml: %q}}}`, name, more, template)
}

func instance(name, version string) string {
	return fmt.Sprintf(`{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: %s, labels: {kudo.dev/operator: app}}, spec: {operatorVersion: {name: %s}}}`, name, version)
}

const applied = "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}}"

func isTrue(text string) func(string) bool {
	return func(s string) bool { return strings.Contains(s, text) }
}

// A template that ends or exhausts what renders it ends its own plan, and no ring.
func TestAHostileTemplateEndsItsPlanOnly(t *testing.T) {
	w := newWorld(t)
	w.manage()
	w.apply(version("cycle-1", `{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ print $d }}`, ""), version("endless-1", strings.Repeat(`{{ range 200000000000 }}{{ end }}`, 16), ""),
		version("good-1", applied, ""), instance("cycle", "cycle-1"), instance("endless", "endless-1"), instance("good", "good-1"), configMap("app", "1"), deployment("web", "app"))
	for _, name := range []string{"cycle", "endless"} {
		w.field(instance(name, name+"-1"), isTrue("FATAL_ERROR"), "status", "aggregatedStatus", "status")
	}
	w.field(instance("good", "good-1"), isTrue("COMPLETE"), "status", "aggregatedStatus", "status")
	w.hashed(deployment("web", "app"), "")
	if out, code := w.run("explain", "instance/cycle"); code == 0 {
		t.Errorf("explain of a plan that failed exits with 0: %s", out)
	}
}

// A time in the future, on the workload of one user, keeps no other from being rolled.
func TestATimeInTheFutureStopsNobody(t *testing.T) {
	w := newWorld(t)
	w.apply(configMap("app", "1"), deployment("mine", "app", "spillway.dev/config-change", `{"at":"2099-01-01T00:00:00Z"}`))
	w.manage("--update-rate=10", "--update-burst=5")
	w.apply(deployment("other", "app"))
	before := w.hashed(deployment("other", "app"), "")
	w.apply(configMap("app", "2"))
	w.hashed(deployment("other", "app"), before)
}

// A reference to a namespace that does not share is left out, and the rest is followed.
func TestWhatIsNotSharedIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.manage()
	web := deployment("web", "app", "spillway.dev/extra-configmaps", "kube-system/kube-root-ca.crt")
	w.apply(configMap("app", "1"), web)
	before := w.hashed(web, "")
	w.apply(configMap("app", "2"))
	w.hashed(web, before)
	w.field(web, isTrue("kube-system"), "metadata", "annotations", "spillway.dev/config-status")
}

// Values as long as the API server takes them are quoted in part.
func TestALongValueIsQuotedInPart(t *testing.T) {
	w := newWorld(t)
	w.manage()
	long := strings.Repeat("x", 200<<10)
	web := deployment("web", "app", "spillway.dev/priority", long)
	set := fmt.Sprintf(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: zone-a, labels: {rollout-group: ingester}, annotations: {rollout-max-unavailable: %q}},
spec: {replicas: 0, serviceName: x, updateStrategy: {type: OnDelete}, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: x}]}}}}`, long)
	w.apply(configMap("app", "1"), web, set)
	w.hashed(web, "")
	said := w.field(web, isTrue("must be an integer"), "metadata", "annotations", "spillway.dev/config-status") +
		w.field(`{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: ingester}}`, isTrue("must be a number"), "status", "waitingFor")
	if n := len(said); n > 8<<10 {
		t.Errorf("%d bytes are said", n)
	}
	if n := len(w.said.String()); n > 128<<10 {
		t.Errorf("the log has %d bytes", n)
	}
}

// An Instance is not ready before it was deployed, also where it has a cleanup plan.
func TestAnInstanceIsNotReadyBeforeItIsDeployed(t *testing.T) {
	w := newWorld(t)
	w.apply(version("app-1", applied, ", cleanup: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: app, tasks: [app]}]}]}"))
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kudo.dev/v1beta1")
	list.SetKind("InstanceList")
	watcher, err := client.NewWithWatch(testenv.Shared().Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	changes, err := watcher.Watch(t.Context(), list, client.InNamespace(w.namespace))
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	w.manage()
	w.apply(instance("web", "app-1"))
	testenv.Eventually(t, func(context.Context) error {
		seen, ok := (<-changes.ResultChan()).Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the watch ended")
		}
		status, _, _ := unstructured.NestedString(seen.Object, "status", "planStatus", "deploy", "status")
		ready := isReady(seen)
		if ready && status != "COMPLETE" {
			t.Errorf("it is ready while plan deploy is %q", status)
		}
		if !ready {
			return fmt.Errorf("plan deploy is %q", status)
		}
		return nil
	})
}

func isReady(obj *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" {
			return m["status"] == "True"
		}
	}
	return false
}
