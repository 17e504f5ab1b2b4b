package trials_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

func zonesTrials() []trial {
	return []trial{
		{point: "zones: a blip", promise: "a Pod that is not ready for a moment is not replaced while another zone is disrupted", try: tryBlip},
		{point: "zones: terminating", promise: "no zone rolls while Pods of another one that was scaled down terminate", try: tryTerminating},
		{point: "zones: refused", promise: "a downscale that Pods refuse, or cannot answer, keeps no template from being rolled, and is reported", try: tryRefused},
		{point: "zones: absent Pods", promise: "a Pod that is not running and has a volume is not removed unprepared", try: tryAbsent},
		{point: "zones: metrics", promise: "the metrics of rollout-operator are served", try: tryMetrics},
		{point: "zones: simulate", promise: "simulate plays a change of a group", brief: true, try: trySimulateZones},
		{point: "zones: webhooks", promise: "refusals of downscales and evictions reach the user with their reason", without: "the manager runs outside of the cluster, so that no API server can call it; internal/zones/guard"},
	}
}

const (
	group   = "trial"
	grafana = "grafana.com/"
)

// zone is a StatefulSet of the group.
func zone(name, value string, replicas int, pod string, annotations ...string) string {
	return strings.Replace(strings.Replace(
		workload("StatefulSet", name, "none", fmt.Sprintf("serviceName: x, replicas: %d, podManagementPolicy: Parallel, updateStrategy: {type: OnDelete}", replicas), pod, annotations...),
		`annotations: {spillway.dev/update-on-config-change: "true"`, `labels: {rollout-group: `+group+`}, annotations: {trial: "zone"`, 1),
		"envFrom: [{configMapRef: {name: none}}]", `env: [{name: V, value: "`+value+`"}]`, 1)
}

const rolloutGroup = `{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: ` + group + `}}`

func (w *world) complete() {
	w.t.Helper()
	w.field(rolloutGroup, func(s string) bool { return s == "Complete" }, "status", "phase")
}

// replaced waits until a Pod has another UID.
func (w *world) replaced(pod string, before types.UID) {
	w.t.Helper()
	w.eventually(func(context.Context) error {
		if w.pods(pod)[0] == before {
			return fmt.Errorf("%s is not replaced", pod)
		}
		return nil
	})
}

// passes waits for a pass over the group that is later than what was written before.
func (w *world) passes() {
	w.t.Helper()
	seen := w.field(rolloutGroup, has(""), "metadata", "generation")
	w.apply(fmt.Sprintf(`{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: %s}, spec: {historyLimit: %d}}`, group, len(seen)+4))
	now := w.field(rolloutGroup, func(s string) bool { return s != seen }, "metadata", "generation")
	w.field(rolloutGroup, func(s string) bool { return s == now }, "status", "observedGeneration")
}

func tryBlip(w *world) {
	w.manage()
	w.apply(zone("zone-a", "1", 2, ""), zone("zone-b", "1", 2, ""))
	w.pods("zone-a-1", "zone-b-1")
	w.complete()
	before := w.pods("zone-a-0", "zone-a-1", "zone-b-0", "zone-b-1")
	w.apply(zone("zone-a", "2", 2, neverReady), zone("zone-b", "2", 2, neverReady))
	w.eventually(func(context.Context) error { // one of zone-a is down, and stays so
		if now := w.pods("zone-a-0", "zone-a-1"); now[0] == before[0] && now[1] == before[1] {
			return fmt.Errorf("no Pod of zone-a is replaced: %s", w.field(rolloutGroup, has(""), "status", "phase"))
		}
		return nil
	})
	w.patch("zone-b-0", `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Trial"}]}}`, "status")
	w.passes()
	if now := w.pods("zone-b-0", "zone-b-1"); now[0] != before[2] || now[1] != before[3] {
		w.t.Errorf("Pods of zone-b were replaced: %v, before %v", now, before[2:])
	}
}

func tryTerminating(w *world) {
	w.manage()
	w.apply(zone("zone-a", "1", 2, ""), zone("zone-b", "1", 1, ""))
	w.pods("zone-a-1", "zone-b-0")
	w.complete()
	before := w.pods("zone-b-0")[0]
	w.patch("zone-a-1", `{"metadata":{"finalizers":["trials.spillway.dev/stay"]}}`)
	w.t.Cleanup(func() {
		w.patch("zone-a-1", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["trials.spillway.dev/stay"]}}`)
	})
	w.apply(zone("zone-a", "1", 1, ""))
	w.eventually(func(ctx context.Context) error {
		pod := w.object(`{apiVersion: v1, kind: Pod, metadata: {name: zone-a-1}}`)
		if err := w.client.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: pod.GetName()}, pod); err != nil {
			return err
		}
		if pod.GetDeletionTimestamp() == nil {
			return fmt.Errorf("%s is not terminating", pod.GetName())
		}
		return nil
	})
	w.apply(zone("zone-b", "2", 1, ""))
	w.field(rolloutGroup, has("zone-a-1"), "status", "waitingFor")
	w.passes()
	if now := w.pods("zone-b-0")[0]; now != before {
		w.t.Errorf("zone-b-0 was replaced while zone-a-1 terminates")
	}
	w.patch("zone-a-1", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["trials.spillway.dev/stay"]}}`)
	w.replaced("zone-b-0", before)
	w.complete()
}

// mirrored has a StatefulSet follow a ReplicaTemplate, and removes Pods once they have
// answered; but nothing answers at that port.
var mirrored = []string{
	grafana + "rollout-mirror-replicas-from-resource-name", group, grafana + "rollout-mirror-replicas-from-resource-kind", "ReplicaTemplate",
	grafana + "rollout-mirror-replicas-from-resource-api-version", "rollout-operator.grafana.com/v1",
	grafana + "rollout-delayed-downscale", "1h", grafana + "rollout-prepare-delayed-downscale-url", "http://pod:9/prepare",
}

func replicaTemplate(replicas int) string {
	return fmt.Sprintf(`{apiVersion: rollout-operator.grafana.com/v1, kind: ReplicaTemplate, metadata: {name: %s}, spec: {replicas: %d}}`, group, replicas)
}

func tryRefused(w *world) {
	w.manage("--pod-timeout=1s")
	w.apply(replicaTemplate(2), zone("zone-a", "1", 2, "", mirrored...), zone("zone-b", "1", 1, ""))
	w.pods("zone-a-1", "zone-b-0")
	w.complete()
	before := w.pods("zone-b-0")[0]
	w.apply(replicaTemplate(1))
	w.says("replicas  zone-a is waiting", "explain", "rolloutgroup/"+group)
	w.apply(zone("zone-b", "2", 1, ""))
	w.replaced("zone-b-0", before)
	w.complete()
	if n := w.field(zone("zone-a", "1", 2, ""), has(""), "spec", "replicas"); n != "2" {
		w.t.Errorf("zone-a has %s replicas, and no Pod has answered", n)
	}
}

func tryAbsent(w *world) {
	volume := `{apiVersion: v1, kind: PersistentVolume, metadata: {name: ` + w.namespace + `}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Mi}, storageClassName: "", persistentVolumeReclaimPolicy: Retain,
hostPath: {path: /tmp/` + w.namespace + `}, claimRef: {namespace: ` + w.namespace + `, name: data-zone-a-1}}}`
	w.apply(volume)
	w.t.Cleanup(func() { _ = w.client.Delete(context.Background(), w.object(volume)) })
	w.apply(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-zone-a-1}, spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: ` + w.namespace + `, resources: {requests: {storage: 1Mi}}}}`)
	w.field(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-zone-a-1}}`, has("Bound"), "status", "phase")
	set := strings.Replace(zone("zone-a", "1", 2, ", nodeSelector: {trials.spillway.dev/none: here}", mirrored...), "replicas: 2,",
		`replicas: 2, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Mi}}}}],`, 1)
	w.apply(replicaTemplate(2), set)
	w.pods("zone-a-1") // which stays Pending
	w.manage("--pod-timeout=1s")
	w.field(rolloutGroup, has(""), "status", "phase")
	w.apply(replicaTemplate(1))
	w.says("replicas  zone-a is waiting", "explain", "rolloutgroup/"+group)
	w.passes()
	if n := w.field(set, has(""), "spec", "replicas"); n != "2" {
		w.t.Errorf("zone-a has %s replicas, and the volume of zone-a-1 has data", n)
	}
}

func tryMetrics(w *world) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.manage("--metrics-bind-address=" + address)
	w.apply(zone("zone-a", "1", 1, ""))
	w.complete()
	w.eventually(func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		for _, family := range []string{"rollout_operator_group_reconciles_total", "rollout_operator_last_successful_group_reconcile_timestamp_seconds"} {
			if err == nil && !strings.Contains(string(body), family) {
				err = fmt.Errorf("no metric %s", family)
			}
		}
		return err
	})
}

func trySimulateZones(w *world) {
	base := w.file("base.yaml", zone("zone-a", "1", 2, "")+"\n---\n"+zone("zone-b", "1", 2, ""))
	next := w.file("next.yaml", zone("zone-a", "2", 2, "")+"\n---\n"+zone("zone-b", "2", 2, ""))
	out, code := w.run("simulate", "-f", base, "--change", next)
	last, first := strings.Index(out, "zone-a-1 is updated"), strings.Index(out, "zone-b-0 is updated")
	if code != 0 || last < 0 || first < last {
		w.t.Errorf("exit code %d: %s", code, out)
	}
}
