package plans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// TestAHundredSteps runs a plan of a hundred serial steps that do nothing.
func TestAHundredSteps(t *testing.T) {
	var steps []string
	for n := range 100 {
		steps = append(steps, fmt.Sprintf("{name: s%d, tasks: [nop]}", n))
	}
	w := newWorld(t, "version: \"1\"\ntasks: [{name: nop, kind: Dummy, spec: {done: true}}]\n"+
		"plans: {deploy: {phases: [{name: main, strategy: serial, steps: ["+strings.Join(steps, ", ")+"]}]}}")
	w.manage()
	w.instances("warm", 1)
	w.until(1, isComplete)
	w.counted.Reset()
	start := time.Now()
	w.instances("web", 1)
	w.until(2, isComplete)
	fmt.Printf("| 100 serial steps that do nothing: from the Instance to its end | %s (at most 2 s) |\n", time.Since(start).Round(time.Millisecond))
	fmt.Printf("| ... API calls | %s |\n", told(w.calls()))
	if n := w.calls()["update instances/status"]; n > 3 {
		t.Errorf("%d writes of the status", n)
	}
}

// five is a package with a step for each of five objects. The Deployment runs a Pod.
const five = `
version: "1"
tasks:
- {name: config, kind: Apply, spec: {resources: [config.yaml]}}
- {name: secret, kind: Apply, spec: {resources: [secret.yaml]}}
- {name: service, kind: Apply, spec: {resources: [service.yaml]}}
- {name: app, kind: Apply, spec: {resources: [app.yaml]}}
- {name: last, kind: Apply, spec: {resources: [last.yaml]}}
templates:
  config.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}'}}"
  secret.yaml: "{apiVersion: v1, kind: Secret, metadata: {name: '{{ .Name }}'}}"
  service.yaml: "{apiVersion: v1, kind: Service, metadata: {name: '{{ .Name }}'}, spec: {clusterIP: None, ports: [{port: 80}]}}"
  app.yaml: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: "{{ .Name }}"}
    spec:
      replicas: 1
      selector: {matchLabels: {app: "{{ .Name }}"}}
      template:
        metadata: {labels: {app: "{{ .Name }}"}BEHAVIOR}
        spec: {containers: [{name: c, image: x}]}
  last.yaml: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{{ .Name }}-last'}}"
plans:
  deploy:
    phases:
    - name: main
      strategy: serial
      steps: [{name: config, tasks: [config]}, {name: secret, tasks: [secret]}, {name: service, tasks: [service]}, {name: app, tasks: [app]}, {name: last, tasks: [last]}]
`

// TestManyInstances deploys many Instances at the same time, each with five steps that each
// apply an object. An object is applied once, and the status is written once for each
// transition: the beginning with the first step, each of the next four, and the end.
func TestManyInstances(t *testing.T) {
	const steps = 5
	w := newWorld(t, strings.ReplaceAll(five, "BEHAVIOR", ""))
	w.instances("web", manyInstances)
	start := time.Now()
	w.manage()
	w.until(manyInstances, isComplete)
	took, calls := time.Since(start), w.calls()
	applies := 0
	for what, n := range calls {
		if strings.HasPrefix(what, "patch ") {
			applies += n
		}
	}
	statuses := calls["update instances/status"]
	fmt.Printf("| %d Instances of %d steps: objects applied | %d (%d) |\n", manyInstances, steps, applies, manyInstances*steps)
	fmt.Printf("| ... writes of the status | %d (at most %d) |\n", statuses, manyInstances*(steps+1))
	fmt.Printf("| ... all API calls | %s |\n", told(calls))
	fmt.Printf("| ... from the first look to the last end | %.1f s |\n", took.Seconds())
	if applies != manyInstances*steps || statuses > manyInstances*(steps+1) {
		t.Errorf("%d applies and %d writes of the status", applies, statuses)
	}
}

// TestStuckInstances has Instances that wait for Pods that never become ready. They
// cost nothing: no write, and no read.
func TestStuckInstances(t *testing.T) {
	w := newWorld(t, strings.ReplaceAll(five, "BEHAVIOR", ", annotations: {testenv.spillway.dev/behavior: never-ready}"))
	w.instances("stuck", stuckInstances)
	w.manage()
	w.until(stuckInstances, func(i *v1beta1.Instance) bool { return strings.Contains(i.Status.WaitingFor, "Available: 0/1") })
	w.settles()
	w.counted.Reset()
	<-time.After(quietFor)
	calls := w.counted.Requests()
	fmt.Printf("| %d stuck Instances: API calls of any sort in %s | %d (0) |\n", stuckInstances, quietFor, len(calls))
	if len(calls) > 0 {
		t.Errorf("%v", calls)
	}
}

// settles waits until what had still to be said about the Deployments has been.
func (w *world) settles() {
	w.t.Helper()
	for {
		before := len(w.counted.Requests())
		<-time.After(time.Second)
		if len(w.counted.Requests()) == before {
			return
		}
	}
}
