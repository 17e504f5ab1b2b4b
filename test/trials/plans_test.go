package trials_test

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func plansTrials() []trial {
	return []trial{
		{point: "plans: templates", promise: "a template that ends or exhausts what renders it ends its own plan, and stops no ring", try: tryTemplates},
		{point: "plans: readiness", promise: "an Instance is not ready before it was deployed, also with a cleanup plan", try: tryReadiness},
		{point: "plans: Pipes", promise: "a package is accepted with the empty fields that KUDO writes", brief: true, try: tryPipes},
		{point: "plans: fields, kinds", promise: "an unknown field is dropped, a version that is no longer served is named with its successor, and explain of a failed plan ends with an error", try: tryKinds},
		{point: "plans: no end", promise: "simulate of a plan that cannot end, ends and is short", brief: true, try: tryEndless},
		{point: "plans: other owners", promise: "an OperatorVersion of another namespace is used only if its owner shares it", brief: true, try: tryOtherOwners},
	}
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

// ends waits until an Instance has a status.
func (w *world) ends(instance, status string) {
	w.t.Helper()
	w.field(instance, has(status), "status", "aggregatedStatus", "status")
}

func tryTemplates(w *world) {
	w.manage()
	w.apply(version("cycle-1", `{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ print $d }}`, ""),
		version("endless-1", strings.Repeat(`{{ range 200000000000 }}{{ end }}`, 16), ""),
		version("large-1", `{{ $s := "0123456789abcdef" }}`+strings.Repeat(`{{ $s = print $s $s }}`, 28)+`{{ $s }}`, ""), version("good-1", applied, ""))
	for _, name := range []string{"cycle", "endless", "large", "good"} {
		w.apply(instance(name, name+"-1"))
	}
	for _, name := range []string{"cycle", "endless", "large"} {
		w.ends(instance(name, name+"-1"), "FATAL_ERROR")
	}
	w.ends(instance("good", "good-1"), "COMPLETE")
	w.apply(configMap("app", "1"), deployment("web", "app"))
	w.hashed(deployment("web", "app"), "")
}

func tryReadiness(w *world) {
	w.apply(version("app-1", applied, ", cleanup: {strategy: serial, phases: [{name: main, strategy: serial, steps: [{name: app, tasks: [app]}]}]}"))
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kudo.dev/v1beta1")
	list.SetKind("InstanceList")
	changes, err := w.client.Watch(w.t.Context(), list, client.InNamespace(w.namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	defer changes.Stop()
	w.manage()
	w.apply(instance("web", "app-1"))
	w.eventually(func(context.Context) error {
		seen, ok := (<-changes.ResultChan()).Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("the watch ended")
		}
		status, _, _ := unstructured.NestedString(seen.Object, "status", "planStatus", "deploy", "status")
		if isReady(seen) && status != "COMPLETE" {
			w.t.Errorf("it is ready while plan deploy is %q", status)
		}
		if !isReady(seen) {
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

func tryPipes(w *world) {
	pipe := strings.Replace(version("pipe-1", applied, ""), "tasks: [{", `tasks: [{name: files, kind: Pipe, spec: {pod: app.yaml, pipe: [
{file: /tmp/a, envFile: "", kind: Secret, key: a}, {file: "", envFile: /tmp/b, kind: ConfigMap, key: b}]}}, {`, 1)
	w.apply(pipe)
	w.field(pipe, has("envFile"), "spec", "tasks")
}

func tryKinds(w *world) {
	w.manage()
	w.apply(version("field-1", strings.Replace(applied, "metadata:", "unknown: x, metadata:", 1), ""),
		version("retired-1", "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: app}}", ""),
		instance("field", "field-1"), instance("retired", "retired-1"))
	w.ends(instance("field", "field-1"), "COMPLETE")
	w.ends(instance("retired", "retired-1"), "FATAL_ERROR")
	w.field(instance("retired", "retired-1"), has("policy/v1beta1 is no longer served; use policy/v1"), "status", "waitingFor")
	if out, code := w.in("explain", "instance/retired"); code == 0 {
		w.t.Errorf("explain of a plan that failed exits with 0: %s", out)
	}
}

func tryEndless(w *world) {
	stuck := version("stuck-1", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}}", "")
	endless := version("endless-1", strings.Repeat(`{{ range 200000000000 }}{{ end }}`, 16), "")
	for name, manifests := range map[string]string{"stuck": stuck + "\n---\n" + instance("stuck", "stuck-1"), "endless": endless + "\n---\n" + instance("endless", "endless-1")} {
		out, code := w.run("simulate", "-f", w.file(name+".yaml", manifests), "--ready", "deployment/app=never")
		if code == 0 || len(out) > 16<<10 || strings.Contains(out, "goroutine ") {
			w.t.Errorf("%s: exit code %d, %d bytes: %.2000s", name, code, len(out), out)
		}
	}
}

func tryOtherOwners(w *world) {
	other := w.namespace + "-other"
	namespace := `{apiVersion: v1, kind: Namespace, metadata: {name: ` + other + `}}`
	w.apply(namespace)
	w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), w.object(namespace)) })
	in := func(v string) string {
		return strings.Replace(v, "metadata: {name: private", "metadata: {namespace: "+other+", name: private", 1)
	}
	w.apply(in(version("private", applied, "")))
	w.manage("--namespaces=" + w.namespace + "," + other)
	web := strings.Replace(instance("web", "private"), "operatorVersion: {", "operatorVersion: {namespace: "+other+", ", 1)
	w.apply(web)
	w.field(web, has("not found in namespace "+other+", or not shared"), "status", "waitingFor")
	w.apply(in(strings.Replace(version("private", applied, ""), "name: private", "name: private, annotations: {spillway.dev/shared-with: "+w.namespace+"}", 1)))
	w.ends(web, "COMPLETE")
}
