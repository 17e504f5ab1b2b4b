package task

import (
	"strings"
	"testing"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
)

// TestWhatIsHealthy checks that an object is healthy only if its status says so, of the
// generation that exists: unknown, outdated and terminating are not.
func TestWhatIsHealthy(t *testing.T) {
	const (
		deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 2}, status: "
		job        = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {}, status: "
		deleted    = `deletionTimestamp: "2026-05-04T09:00:00Z"`
		child      = "{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: a, namespace: shop, generation: 3}, spec: {operatorVersion: {name: b-1}, parameters: {X: z}}, status: "
		applied    = "lastAppliedInstanceSpec: {operatorVersion: {name: b-1}, parameters: {X: z}}"
	)
	for name, test := range map[string]struct{ live, lacks, fatal string }{
		"a Deployment that is ready":           {live: deployment + "{observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}]}}"},
		"one without a status":                 {live: deployment + "{}}", lacks: "waiting for Deployment a"},
		"one whose status is of an older spec": {live: deployment + "{observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}]}}", lacks: "waiting for Deployment a"},
		"one with a Pod of the old revision":   {live: deployment + "{observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}]}}", lacks: "Updated: 1/2"},
		"one past its progress deadline": {
			live:  deployment + "{observedGeneration: 2, replicas: 2, updatedReplicas: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}",
			lacks: "waiting for Deployment a", // it may still recover
		},
		"a definition whose names are taken": {
			live:  "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {}, status: {conditions: [{type: NamesAccepted, status: 'False', message: m}, {type: Established, status: 'False'}]}}",
			fatal: "CustomResourceDefinition a defines names that another CustomResourceDefinition has: m; delete one of the two",
		},
		"a Job that is complete":         {live: job + "{conditions: [{type: Complete, status: 'True'}]}}"},
		"a Job without a status":         {live: job + "{}}", lacks: "waiting for Job a to be complete"},
		"a Job that has not failed":      {live: job + "{conditions: [{type: Failed, status: 'False'}, {type: Complete, status: Unknown}]}}", lacks: "waiting for Job a to be complete"},
		"a Job that failed":              {live: job + "{conditions: [{type: Failed, status: 'True', message: BackoffLimitExceeded}]}}", fatal: "Job a failed: BackoffLimitExceeded"},
		"a complete Job that is deleted": {live: strings.Replace(job, "name: a", "name: a, "+deleted, 1) + "{conditions: [{type: Complete, status: 'True'}]}}", lacks: "waiting for Job a"},
		"a Service":                      {live: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP, clusterIP: 10.0.0.1}}"},
		"a Service without a balancer":   {live: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}}", lacks: "waiting for Service a"},
		"a Service with externalIPs":     {live: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, externalIPs: [192.0.2.1]}}"},
		"a Service that is deleted":      {live: "{apiVersion: v1, kind: Service, metadata: {name: a, " + deleted + "}, spec: {type: LoadBalancer, externalIPs: [192.0.2.1]}}", lacks: "waiting for Service a"},
		"a ConfigMap":                    {live: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"},
		"a ConfigMap that is deleted":    {live: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, " + deleted + "}}", lacks: "waiting for ConfigMap a"},
		"a claim that is not bound":      {live: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Pending}}", lacks: "waiting for PersistentVolumeClaim a"},
		"a Pod that is not ready":        {live: "{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: 'False'}]}}", lacks: "waiting for Pod a"},
		"a kind that is not known":       {live: "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, status: {conditions: [{type: Ready, status: 'False', message: because}]}}", lacks: "waiting for Thing a: because"},
		"a child that has its spec":      {live: child + "{observedGeneration: 3, " + applied + ", aggregatedStatus: {status: COMPLETE}}}"},
		"a child that was not observed":  {live: child + "{observedGeneration: 2, " + applied + ", aggregatedStatus: {status: COMPLETE}}}", lacks: "waiting for Instance a to be observed"},
		"a child that never ran":         {live: child + "{observedGeneration: 3}}", lacks: "waiting for plan deploy of Instance a"},
		"a child that has another spec":  {live: child + "{observedGeneration: 3, lastAppliedInstanceSpec: {operatorVersion: {name: b-1}}, aggregatedStatus: {status: COMPLETE}}}", lacks: "waiting for plan deploy"},
		"a child whose plan runs":        {live: child + "{observedGeneration: 3, " + applied + ", waitingFor: x, execution: {plan: update}, aggregatedStatus: {status: IN_PROGRESS, activePlan: update}}}", lacks: "waiting for plan update of Instance a: x"},
		"a child whose plan failed":      {live: child + "{observedGeneration: 3, waitingFor: x, aggregatedStatus: {status: FATAL_ERROR}}}", fatal: "plan deploy of Instance a failed: x"},
		"a child that cannot be decoded": {live: "{apiVersion: kudo.dev/v1beta1, kind: Instance, metadata: {name: a}, spec: 1}", lacks: "it cannot be decoded"},
	} {
		t.Run(name, func(t *testing.T) {
			why, fatal := Judge(manifest(t, test.live))
			want := test.lacks + test.fatal
			if fatal != (test.fatal != "") || (want == "") != (why == "") || !strings.Contains(why, want) {
				t.Errorf("%q, fatal %v; want %q", why, fatal, want)
			}
		})
	}
}

// TestAClaimThatWaitsForItsPodIsHealthy: a claim is bound when a Pod uses it, if its class
// says so, and then no step waits for it.
func TestAClaimThatWaitsForItsPodIsHealthy(t *testing.T) {
	const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: disk}, status: {phase: %}}"
	for name, test := range map[string]struct{ phase, class, want string }{
		"of its first consumer":           {"Pending", "{volumeBindingMode: WaitForFirstConsumer}", ""},
		"of none":                         {"Pending", "{volumeBindingMode: Immediate}", "waiting for PersistentVolumeClaim a"},
		"of a class that does not exist":  {"Pending", "", "waiting for PersistentVolumeClaim a: StorageClass disk not found"},
		"of a class that may not be read": {"Pending", "forbidden", "no permission"},
		"one that has lost its volume":    {"Lost", "{volumeBindingMode: WaitForFirstConsumer}", "waiting for PersistentVolumeClaim a"},
		"one that is bound":               {"Bound", "{volumeBindingMode: Immediate}", ""},
	} {
		r := running(t, "tasks: []")
		live := manifest(t, strings.Replace(claim, "%", test.phase, 1))
		class := object.Ref{GroupVersionKind: classKind, Name: "disk"}
		switch test.class {
		case "":
			r.Snapshot.Objects[class] = nil
		case "forbidden":
			r.Snapshot.Forbidden[class] = "no permission"
		default:
			r.Snapshot.Objects[class] = manifest(t, strings.Replace(test.class, "{", "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: disk}, ", 1))
		}
		if v := r.Snapshot.judge(object.RefOf(live), live, &Needs{}); !strings.Contains(v.lacks, test.want) || (test.want == "") != (v.lacks == "") {
			t.Errorf("%s: %q", name, v.lacks)
		}
	}
}

// TestAZoneIsHealthyWhenItsGroupHasRolledIt checks that a StatefulSet of a group is not
// healthy before the group says so of the very revision that the set has.
func TestAZoneIsHealthyWhenItsGroupHasRolledIt(t *testing.T) {
	const set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: app-a, generation: 1, labels: {rollout-group: app}},
	  spec: {replicas: 1, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, updateRevision: v2, currentRevision: v2}}`
	const group = "{apiVersion: spillway.dev/v1alpha1, kind: RolloutGroup, metadata: {name: app}, status: {%}}"
	for name, test := range map[string]struct{ status, want string }{
		"it has":                         {"zones: [{name: app-a, target: v2, revision: v2, state: Complete}]", ""},
		"it has rolled another revision": {"waitingFor: x, zones: [{name: app-a, target: v1, revision: v1, state: Complete}]", "waiting for RolloutGroup app: x"},
		"it is rolling this one":         {"waitingFor: x, zones: [{name: app-a, target: v2, revision: v1, state: Updating}]", "waiting for RolloutGroup app: x"},
		"it was complete before":         {"waitingFor: x, zones: [{name: app-a, target: v2, revision: v1, state: Complete}]", "waiting for RolloutGroup app: x"},
		"it waits for the Pods":          {"zones: [{name: app-a, target: v2, revision: v2, state: Updating}]", "app-a not rolled yet"},
		"it has rolled another zone":     {"zones: [{name: app-b, target: v2, revision: v2, state: Complete}]", "app-a not rolled yet"},
		"it has no status":               {"", "app-a not rolled yet"},
		"it does not exist":              {"absent", "waiting for RolloutGroup app: not found"},
		"it must not be read":            {"forbidden", "no permission"},
		"there are no groups":            {"no such kind", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, ref := running(t, "{}"), refTo("spillway.dev/v1alpha1", "RolloutGroup", "app")
			live := r.exists(t, set)
			judge := func() (string, Needs) {
				needs := Needs{}
				return r.Snapshot.judge(object.RefOf(live), live, &needs).lacks, needs
			}
			if _, needs := judge(); len(needs.Kinds) != 1 {
				t.Fatalf("it does not ask whether there are groups: %+v", needs)
			}
			r.Snapshot.Kinds[GroupKind] = object.Namespaced
			if _, needs := judge(); len(needs.Objects) != 1 || needs.Objects[0] != ref {
				t.Fatalf("it does not read the group: %+v", needs)
			}
			switch test.status {
			case "absent":
				r.Snapshot.Objects[ref] = nil
			case "forbidden":
				r.Snapshot.Forbidden[ref] = "no permission"
			case "no such kind":
				r.Snapshot.Kinds[GroupKind] = object.NoSuchKind
			default:
				r.exists(t, strings.Replace(group, "%", test.status, 1))
			}
			if got, _ := judge(); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestUnready checks that an Instance without a running plan is ready only while every
// workload of its inventory exists and is healthy.
func TestUnready(t *testing.T) {
	const ready = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1, conditions: [{type: Available, status: 'True'}]}}"
	for name, test := range map[string]struct {
		state func(*testing.T, *Run)
		want  string
		reads int
	}{
		"it was not read":   {state: func(*testing.T, *Run) {}, reads: 1},
		"it is ready":       {state: func(t *testing.T, r *Run) { t.Helper(); r.exists(t, ready) }},
		"it does not exist": {state: func(_ *testing.T, r *Run) { r.absent("apps/v1", "Deployment", "a") }, want: "Deployment a not found"},
		"it must not be read": {state: func(_ *testing.T, r *Run) {
			r.Snapshot.Forbidden[refTo("apps/v1", "Deployment", "a")] = "no permission"
		}, want: "no permission"},
		"it is not ready": {state: func(t *testing.T, r *Run) {
			t.Helper()
			r.exists(t, strings.Replace(ready, "observedGeneration: 1", "observedGeneration: 0", 1))
		}, want: "waiting for Deployment a"},
	} {
		t.Run(name, func(t *testing.T) {
			r := running(t, "{}")
			r.Snapshot.Instance.Status.Inventory = []v1beta1.InventoryEntry{
				{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}, // whatever it is, it does not count
				{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "a"},
			}
			test.state(t, r)
			got, needs := r.Snapshot.Unready()
			if !strings.HasPrefix(got, test.want) || (got == "") != (test.want == "") || len(needs.Objects) != test.reads {
				t.Errorf("%q and reads %v, want %q and %d reads", got, needs.Objects, test.want, test.reads)
			}
		})
	}
}
