package trials_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

func configTrials() []trial {
	return []trial{
		{point: "config: records", promise: "a time in the future, on the workload of one user, keeps no other from being rolled", brief: true, try: tryRecords},
		{point: "config: references", promise: "a reference to a namespace that is not watched, or not shared, is left out and reported; the rest is followed", brief: true, try: tryReferences},
		{point: "config: kept Pods", promise: "Pods of an OnDelete StatefulSet that run the old config are counted and named", try: tryKeptPods},
		{point: "config: wave's traces", promise: "what wave left on workloads is named before changing over, and wave's flags are accepted", try: tryWave},
		{point: "config: restart", promise: "after a restart only what changed is read", try: tryRestart},
		{point: "config: quiet", promise: "nothing is written while nothing changes", try: tryQuiet},
		{point: "config: stuck Pod", promise: "of an OrderedReady StatefulSet that was corrected, explain says that only deleting its Pod helps", try: tryStuckPod},
	}
}

func configMap(name, value string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {a: %q}}`, name, value)
}

// deployment has no Pods: what is tried is the template.
func deployment(name, config string, annotations ...string) string {
	return workload("Deployment", name, config, "replicas: 0", "", annotations...)
}

// workload is tracked, and uses a ConfigMap.
func workload(kind, name, config, spec, pod string, annotations ...string) string {
	var b strings.Builder
	for i := 0; i < len(annotations); i += 2 {
		fmt.Fprintf(&b, ", %s: %q", annotations[i], annotations[i+1])
	}
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: %s, metadata: {name: %s, annotations: {spillway.dev/update-on-config-change: "true"%s}},
spec: {%s, selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %s}%s}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: %q,
envFrom: [{configMapRef: {name: %s}}]}]%s}}}}`, kind, name, b.String(), spec, name, name, annotationsOf(pod), image(), config, pod)
}

// neverReady keeps Pods from being ready: a gate that no controller opens; where kubelets are only
// played, they take an annotation.
const neverReady = `, readinessGates: [{conditionType: trials.spillway.dev/ready}]`

func annotationsOf(pod string) string {
	if strings.Contains(pod, neverReady) {
		return `, annotations: {testenv.spillway.dev/behavior: never-ready}`
	}
	return ""
}

func tryRecords(w *world) {
	w.apply(configMap("app", "1"), deployment("mine", "app", "spillway.dev/config-change", `{"at":"2099-01-01T00:00:00Z"}`))
	w.manage("--update-rate=10", "--update-burst=5")
	w.apply(deployment("other", "app"))
	before := w.hashed(deployment("other", "app"), "")
	w.apply(configMap("app", "2"))
	w.hashed(deployment("other", "app"), before)
}

func tryReferences(w *world) {
	w.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + w.namespace + `-other}}`)
	w.t.Cleanup(func() {
		_ = w.client.Delete(context.Background(), w.object(`{apiVersion: v1, kind: Namespace, metadata: {name: `+w.namespace+`-other}}`))
	})
	w.manage("--namespaces=" + w.namespace + "," + w.namespace + "-other")
	for name, ref := range map[string]string{"unwatched": "kube-system/kube-root-ca.crt", "unshared": w.namespace + "-other/none"} {
		web := deployment(name, name, "spillway.dev/extra-configmaps", ref)
		w.apply(configMap(name, "1"), web)
		before := w.hashed(web, "")
		w.field(web, has(ref), "metadata", "annotations", "spillway.dev/config-status")
		w.apply(configMap(name, "2"))
		w.hashed(web, before)
	}
}

func tryKeptPods(w *world) {
	w.manage()
	db := workload("StatefulSet", "db", "app", "serviceName: x, replicas: 1, updateStrategy: {type: OnDelete}", "")
	w.apply(configMap("app", "1"), db)
	w.hashed(db, "") // its Pod was made before
	w.pods("db-0")
	w.says("1 of 1 Pods run an earlier revision", "status")
	w.says("delete pod/db-0", "explain", "statefulset/db")
}

func tryWave(w *world) {
	late := deployment("late", "none", "wave.pusher.com/scheduling-disabled", "default-scheduler")
	w.apply(strings.Replace(late, "containers:", "schedulerName: wave.pusher.com/invalid, containers:", 1))
	w.eventually(func(context.Context) error {
		if out, _ := w.run("check", "--namespaces="+w.namespace, "--kubeconfig="+w.kubeconfig); !strings.Contains(out, "deployment/late in namespace "+w.namespace+" was suspended by wave") {
			return fmt.Errorf("check says %s", out)
		}
		return nil
	})
	w.manage("--zap-log-level=debug", "--zap-devel", "--sync-period=10h")
	w.apply(configMap("app", "1"), deployment("web", "app"))
	w.hashed(deployment("web", "app"), "")
	w.manager.stop() // with exit code 0, and without an error
}

func tryRestart(w *world) {
	const workloads = 20
	for i := range workloads {
		name := fmt.Sprintf("app-%d", i)
		w.apply(configMap(name, "1"), deployment(name, name))
	}
	w.manage()
	first := deployment("app-0", "app-0")
	for i := range workloads {
		name := fmt.Sprintf("app-%d", i)
		w.hashed(deployment(name, name), "")
	}
	before := w.hashed(first, "")
	w.manager.stop()
	w.apply(configMap("app-0", "2"))
	requests := w.counted()
	w.manage()
	w.hashed(first, before)
	read := requests(func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/configmaps/")
	})
	if len(read) != 1 {
		w.t.Errorf("after one edit, a restart reads %v", read)
	}
}

func tryQuiet(w *world) {
	w.apply(configMap("app", "1"), deployment("web", "app"))
	requests := w.counted()
	w.manage()
	w.hashed(deployment("web", "app"), "")
	w.apply(deployment("last", "app")) // written after everything that was due
	w.hashed(deployment("last", "app"), "")
	writes := func(r *http.Request) bool {
		return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/deployments/web")
	}
	if made := requests(writes); len(made) != 1 {
		w.t.Errorf("one change was written by %v", made)
	}
}

func tryStuckPod(w *world) {
	w.manage()
	db := workload("StatefulSet", "db", "app", "serviceName: x, replicas: 1", neverReady)
	w.apply(configMap("app", "1"), db)
	w.hashed(db, "") // its Pod was made before, and is never ready
	w.says("only deleting it helps", "explain", "statefulset/db")
	w.says("delete pod/db-0", "explain", "statefulset/db")
}
