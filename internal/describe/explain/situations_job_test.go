package explain_test

import "strings"

const (
	askingJob = `apiVersion: batch/v1
kind: Job
metadata: {name: once, annotations: {spillway.dev/pin-config: "true", spillway.dev/job-pins: "STATE"}}
spec:
  suspend: true
  template:
    spec: {restartPolicy: Never, containers: [{name: app, image: app:v1, env: [{name: P, valueFrom: {secretKeyRef: {name: db, key: password}}}]}]}
`
	askingCronJob = `apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 0 1 1 *"
  suspend: true
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: app:v1}]}}}}
`
)

// jobSituations are what Jobs with pins wait for.
var jobSituations = []situation{{
	name: "a Job waits for its config before it is pinned", plant: strings.Replace(askingJob, "STATE", "waiting: Secret db not found", 1),
	ask: "job/once", through: "Job Secret", by: "Job once is suspended until its pins can be set: Secret db not found", root: "secret/db", says: "Secret db not found",
	next: "kubectl create secret generic db -n NS --from-literal=password=VALUE",
}, {
	name: "a Job waits for the manager to pin it", plant: `apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {password: x}
---
` + strings.Replace(askingJob, "STATE", "wanted", 1),
	ask: "job/once", through: "Job Manager", by: "Job once is suspended until the manager has set its pins", root: "manager/spillway", says: "none is installed",
	next: "spillway check",
}, {
	name: "a Pod asks for pins", plant: `apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {spillway.dev/pin-config: "true"}}
spec: {nodeSelector: {disk: ssd}, containers: [{name: app, image: app:v1}]}
`, ask: "pod/web", root: "pod/web", says: "no node has the labels of its node selector, disk=ssd", next: "kubectl get nodes -l disk=ssd",
	fact: "annotation spillway.dev/pin-config has no effect on a Pod. Move it to the Deployment or StatefulSet or DaemonSet or Job or CronJob that is meant, or remove it.",
}, {
	name: "a ReplicaSet asks for pins", plant: `apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web, annotations: {spillway.dev/pin-config: "true"}}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {disk: ssd}, containers: [{name: app, image: app:v1}]}}
`, ask: "replicaset/web", through: "ReplicaSet Pod", root: "pod/web-*", says: "no node has the labels of its node selector, disk=ssd", next: "kubectl get nodes -l disk=ssd",
	fact: "annotation spillway.dev/pin-config has no effect on a ReplicaSet. Move it to",
}, {
	name: "a CronJob is suspended", plant: askingCronJob,
	ask: "cronjob/nightly", root: "cronjob/nightly", says: "spec.suspend is set", next: `kubectl patch cronjob/nightly -n NS --type=merge -p '{"spec":{"suspend":false}}'`,
}}
