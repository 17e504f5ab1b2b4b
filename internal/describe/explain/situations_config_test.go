package explain_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	tracked  = `annotation: spillway.dev/update-on-config-change: "true"`
	usesApp  = `container: envFrom: [{configMapRef: {name: app}}]`
	appAtOne = `apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data: {level: "1"}
---
`
)

// configSituations are what the config ring waits for.
var configSituations = []situation{{
	name: "a tracked workload lacks a Secret", plant: deployment("web", tracked, needsDB),
	times: "since", ask: "deployment/web", through: "Deployment Secret", root: "secret/db", says: "Secret db not found",
	next: "kubectl create secret generic db -n NS --from-literal=password=VALUE",
}, {
	name: "a tracked workload lacks a key", plant: `apiVersion: v1
kind: Secret
metadata: {name: db}
stringData: {user: x}
---
` + deployment("web", tracked, needsDB),
	ask: "deployments.apps/web", root: "secret/db", says: "Secret db has no key password",
	next: `kubectl patch secret/db -n NS --type=merge -p '{"stringData":{"password":"VALUE"}}'`,
}, {
	name: "a tracked workload lacks a ConfigMap", plant: workload("DaemonSet", "agent", tracked, usesApp),
	ask: "ds/agent", root: "configmap/app", says: "ConfigMap app not found", next: "kubectl create configmap app -n NS --from-literal=KEY=VALUE",
}, {
	name: "a workload is paused", plant: appAtOne + deployment("web", tracked, usesApp, `annotation: spillway.dev/pause: "true"`),
	owner: "user", ask: "deploy/web", root: "deployment/web", says: "paused", next: "spillway resume deployment/web -n NS",
}, {
	name: "a ConfigMap whose workload is paused", plant: appAtOne + deployment("web", tracked, usesApp, `annotation: spillway.dev/pause: "true"`),
	ask: "configmap/app", through: "ConfigMap Deployment", by: "ConfigMap app: 0 of 1 tracked workloads are up to date", root: "deployment/web", says: "paused", next: "spillway resume deployment/web -n NS",
}, {
	name: "Pods wait for a user to delete them", plant: appAtOne + workload("StatefulSet", "db", tracked, usesApp, "spec: serviceName: x", "spec: updateStrategy: {type: OnDelete}"),
	act: func(w *world) {
		w.pods("db", func(*corev1.Pod) {})
		w.apply(strings.Replace(strings.TrimSuffix(appAtOne, "---\n"), `"1"`, `"2"`, 1))
	},
	ask: "sts/db", root: "statefulset/db", says: "1 of 1 Pods run an earlier revision: its update strategy is OnDelete; delete them", next: "kubectl delete pod/db-0 -n NS",
}, {
	name: "a corrected StatefulSet waits for its broken Pod", plant: appAtOne + workload("StatefulSet", "db", tracked, usesApp, neverReady, "spec: serviceName: x"),
	act: func(w *world) {
		w.pods("db", func(*corev1.Pod) {})
		w.apply(strings.Replace(strings.TrimSuffix(appAtOne, "---\n"), `"1"`, `"2"`, 1))
	},
	ask: "sts/db", through: "StatefulSet Pod", root: "pod/db-0", says: "only deleting it helps", next: "kubectl delete pod/db-0 -n NS",
}, {
	name: "another workload takes up the budget", plant: appAtOne + deployment("first", tracked, usesApp, crash, `annotation: spillway.dev/priority: "9"`),
	act: func(w *world) {
		w.pods("first", func(*corev1.Pod) {}) // it is rolling now, for as long as it crashes
		w.apply(deployment("second", tracked, usesApp))
	},
	ask: "deploy/second", through: "Deployment Deployment Pod", root: "pod/first-*", says: "exited with code 1", next: "kubectl logs pod/NAME -n NS -c app --previous",
}, {
	name: "a rolled workload does not come up", plant: appAtOne + deployment("web", tracked, usesApp, still), act: waiting("web", "InvalidImageName", ""),
	times: "since", owner: "replicaset/web-*", ask: "deploy/web", through: "Deployment Pod", root: "pod/web-*", says: "cannot pull the image app:v1", next: "kubectl describe pod/NAME -n NS",
}}
