package standing_test

import "strings"

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

// planSituations are what the plan of an Instance waits for.
var planSituations = []situation{{
	name: "a Pod of an Instance cannot pull its image", plant: operator(deployment("web", still), ""), act: waiting("web", "ErrImagePull", ""),
	ask: "instance/db", through: "Instance Step Deployment Pod", root: "pod/web-*", says: "cannot pull the image app:v1", next: "kubectl describe pod/NAME -n NS",
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
	ask: "instance/db", root: "operatorversion/db-1", says: "is not there", next: "kubectl get operatorversions -n NS",
}, {
	name: "an Instance is paused", plant: operator(deployment("web"), `spillway.dev/pause: "true"`),
	ask: "instance/db", root: "instance/db", says: "paused", next: "kubectl annotate instance/db -n NS spillway.dev/pause-",
}, {
	name: "a plan has failed", plant: operator(`apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {testenv.spillway.dev/behaviour: fail}}
    spec: {restartPolicy: Never, containers: [{name: app, image: x}]}`, ""),
	ask: "instances.kudo.dev/db", through: "Instance Step Job Pod", root: "pod/migrate-*", says: "ends with exit code 1", next: "kubectl logs pod/NAME -n NS -c app",
}, {
	name: "a parameter that the OperatorVersion does not have", plant: operator(deployment("web"), ""),
	act: func(w *world) {
		w.apply(strings.ReplaceAll(instance(""), "spec: {", `spec: {parameters: {COLOUR: "red"}, `))
	},
	ask: "instance/db", root: "instance/db", says: "COLOUR", next: "kubectl edit instance/db -n NS",
}}
