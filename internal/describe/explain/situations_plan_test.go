package explain_test

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// operator is an OperatorVersion with one step that applies some manifests, and an
// Instance of it.
func operator(manifests string, annotations string) string {
	indented := "      " + strings.ReplaceAll(strings.TrimSpace(manifests), "\n", "\n      ")
	return `apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: db-1}
spec:
  operator: {name: db}
  version: "1"
  parameters: [{name: SIZE, default: "1"}]
  tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]
  plans: {deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}}
  templates:
    app.yaml: |
` + indented + "\n---\n" + instance(annotations)
}

func instance(annotations string) string {
	return `apiVersion: kudo.dev/v1beta1
kind: Instance
metadata: {name: db, annotations: {` + annotations + `}}
spec: {operatorVersion: {name: db-1}}
`
}

// stuckJob is a Job whose Pod the kubelet never starts.
const stuckJob = `apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  template:
    metadata: {labels: {app: migrate}, annotations: {testenv.spillway.dev/behavior: still}}
    spec: {restartPolicy: Never, containers: [{name: app, image: x}]}`

// planSituations are what the plan of an Instance waits for.
var planSituations = []situation{{
	name: "a Pod of an Instance cannot pull its image", plant: operator(deployment("web", still), ""), act: waiting("web", "ErrImagePull", ""),
	times: "since", ask: "instance/db", through: "Instance Step Deployment Pod", root: "pod/web-*", says: "cannot pull the image app:v1", next: "kubectl describe pod/NAME -n NS",
}, {
	name: "a gate before a plan", plant: operator(deployment("web", still), "spillway.dev/gates: '[{plan: deploy, when: Before, name: approve}]'"),
	times: "since", ask: "instance/db", through: "Instance RolloutGate", root: "rolloutgate/db-approve-*",
	says: "gate approve of plan deploy has not been decided", next: "spillway approve rolloutgate/NAME -n NS",
}, {
	name:  "a zone of an Instance is paused",
	plant: operator(all(zone("a", `annotation: grafana.com/rollout-paused: '{{ if eq .Params.SIZE "2" }}true{{ else }}false{{ end }}'`, `pod: size: "{{ .Params.SIZE }}"`), zone("b", `pod: size: "{{ .Params.SIZE }}"`)), ""),
	act: func(w *world) {
		w.groupIs("Complete")
		w.apply(strings.ReplaceAll(instance(""), "spec: {", `spec: {parameters: {SIZE: "2"}, `))
	},
	ask: "instance/db", through: "Instance Step StatefulSet RolloutGroup Zone", root: "zone/a", says: "zone a is paused",
	next: "kubectl annotate statefulset/a -n NS grafana.com/rollout-paused-",
}, {
	name: "the OperatorVersion is missing", plant: instance(""),
	ask: "instance/db", root: "operatorversion/db-1", says: "not found", next: "kubectl get operatorversions -n NS",
}, {
	name: "an Instance is paused", plant: operator(deployment("web"), `spillway.dev/pause: "true"`),
	owner: "user", ask: "instance/db", root: "instance/db", says: "paused", next: "spillway resume instance/db -n NS",
}, {
	name: "a plan has failed", plant: operator(`apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {testenv.spillway.dev/behavior: fail}}
    spec: {restartPolicy: Never, containers: [{name: app, image: x}]}`, ""),
	ask: "instances.kudo.dev/db", through: "Instance Step Job Pod", root: "pod/migrate-*", says: "exited with code 1", next: "kubectl logs pod/NAME -n NS -c app",
}, {
	name: "the cleanup of an Instance does not end", plant: strings.Replace(operator(stuckJob, ""), "plans: {", "plans: {cleanup: {phases: [{name: last, steps: [{name: away, tasks: [app]}]}]}, ", 1),
	act: func(w *world) {
		w.eventually(func(ctx context.Context) error {
			i := &v1beta1.Instance{}
			if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "db"}, i); err != nil || len(i.Finalizers) == 0 {
				return fmt.Errorf("it has no finalizer yet: %w", err)
			}
			return w.client.Delete(ctx, i)
		})
	},
	ask: "instance/db", through: "Instance Step Job Pod", by: "step last/away of plan cleanup is running", root: "pod/migrate-*", says: "is starting on node", next: "kubectl describe pod/NAME -n NS",
}, {
	name: "a finalizer keeps an Instance that is deleted", plant: strings.Replace(operator(deployment("web"), ""), "{name: db, annotations", "{name: db, finalizers: [acme.io/keep], annotations", 1),
	act: func(w *world) {
		w.delete(&v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "db"}})
	},
	ask: "instance/db", root: "instance/db", says: "cannot be deleted: finalizer acme.io/keep is not removed yet", next: "kubectl get instance/db -n NS -o jsonpath='{.metadata.finalizers}'",
}, {
	name: "a parameter that the OperatorVersion does not have", plant: operator(deployment("web"), ""),
	act: func(w *world) {
		w.apply(strings.ReplaceAll(instance(""), "spec: {", `spec: {parameters: {COLOR: "red"}, `))
	},
	ask: "instance/db", root: "instance/db", says: "COLOR", next: "kubectl edit instance/db -n NS",
}}
