package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// of is a workload of a kind, given as YAML.
func of(t *testing.T, kind, text string) client.Object {
	t.Helper()
	obj := New(kind)
	if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// TestWhatIsRolling checks when the Pods of a workload are still being replaced, and
// whether its controller does that: what is not certain counts as unfinished.
func TestWhatIsRolling(t *testing.T) {
	for name, test := range map[string]struct {
		kind, text         string
		rolling, replacing bool
	}{
		"a Deployment that is complete":  {Deployment, "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}}", false, false},
		"one that was not observed":      {Deployment, "{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}}", true, true},
		"one that makes progress":        {Deployment, "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Progressing, status: 'True', reason: ReplicaSetUpdated}]}}", true, true},
		"one that makes none":            {Deployment, "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded}]}}", true, true},
		"one with a condition of before": {Deployment, "{metadata: {generation: 2}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}}", true, true},
		"one of unknown progress":        {Deployment, "{metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [{type: Progressing, status: Unknown, reason: NewReplicaSetAvailable}]}}", true, true},
		"one without a status":           {Deployment, "{metadata: {generation: 1}}", true, true},
		"one that a user has paused":     {Deployment, "{metadata: {generation: 2}, spec: {paused: true}, status: {observedGeneration: 2}}", true, false},

		"a StatefulSet at its revision":     {StatefulSet, "{metadata: {generation: 2}, status: {observedGeneration: 2, currentRevision: a, updateRevision: a}}", false, false},
		"one between two":                   {StatefulSet, "{metadata: {generation: 2}, status: {observedGeneration: 2, currentRevision: a, updateRevision: b}}", true, true},
		"one of OnDelete":                   {StatefulSet, "{metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, currentRevision: a, updateRevision: b}}", true, false},
		"one with a partition":              {StatefulSet, "{metadata: {generation: 2}, spec: {updateStrategy: {rollingUpdate: {partition: 1}}}, status: {observedGeneration: 2, currentRevision: a, updateRevision: b}}", true, false},
		"one with a partition of 0":         {StatefulSet, "{metadata: {generation: 2}, spec: {updateStrategy: {rollingUpdate: {partition: 0}}}, status: {observedGeneration: 2, currentRevision: a, updateRevision: a}}", false, false},
		"a DaemonSet on all nodes":          {DaemonSet, "{metadata: {generation: 2}, status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}", false, false},
		"one that lacks a node":             {DaemonSet, "{metadata: {generation: 2}, status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}", true, true},
		"one of which no Pod is available":  {DaemonSet, "{metadata: {generation: 2}, status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 2}}", true, true},
		"one whose Pods a user has to kill": {DaemonSet, "{metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 1}}", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := of(t, test.kind, test.text)
			if rolling, replacing := IsRolling(obj), IsReplacing(obj); rolling != test.rolling || replacing != test.replacing {
				t.Errorf("rolling %v, replacing %v; want %v, %v", rolling, replacing, test.rolling, test.replacing)
			}
		})
	}
	if other := (&corev1.Pod{}); !IsRolling(other) || IsReplacing(other) {
		t.Error("what is no workload must not count as complete")
	}
}

// TestStallsAt checks when a Deployment has failed of which Kubernetes does not say so.
func TestStallsAt(t *testing.T) {
	const progressing = "conditions: [{type: Progressing, status: 'True', reason: ReplicaSetUpdated, lastUpdateTime: '2026-05-04T12:00:00Z'}]"
	for text, want := range map[string]string{
		"{metadata: {generation: 2}, spec: {progressDeadlineSeconds: 600}, status: {observedGeneration: 2, " + progressing + "}}":               "12:11:00",
		"{metadata: {generation: 3}, spec: {progressDeadlineSeconds: 600}, status: {observedGeneration: 2, " + progressing + "}}":               "00:00:00",
		"{metadata: {generation: 2}, spec: {progressDeadlineSeconds: 600, paused: true}, status: {observedGeneration: 2, " + progressing + "}}": "00:00:00",
		"{metadata: {generation: 2}, status: {observedGeneration: 2, " + progressing + "}}":                                                     "00:00:00",
		"{metadata: {generation: 2}, spec: {progressDeadlineSeconds: 600}, status: {observedGeneration: 2}}":                                    "00:00:00",
		"{metadata: {generation: 2}, spec: {progressDeadlineSeconds: 600}, status: {observedGeneration: 2, " +
			strings.ReplaceAll(progressing, "ReplicaSetUpdated", "NewReplicaSetAvailable") + "}}": "00:00:00",
	} {
		if got := StallsAt(of(t, Deployment, text)).UTC().Format(time.TimeOnly); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestTimeToRoll checks that a workload has time to replace its Pods one after the other.
func TestTimeToRoll(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"StatefulSet {}":                                  ProgressDeadline,
		"StatefulSet {spec: {replicas: 3}}":               3 * ProgressDeadline,
		"StatefulSet {spec: {replicas: 0}}":               ProgressDeadline,
		"DaemonSet {status: {desiredNumberScheduled: 5}}": 5 * ProgressDeadline,
		"DaemonSet {}":                                    ProgressDeadline,
		"Deployment {spec: {replicas: 3}}":                -1,
	} {
		kind, manifest, _ := strings.Cut(text, " ")
		if got := TimeToRoll(of(t, kind, manifest)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestTheDigestOfATemplate checks that what the ring itself writes into a Pod template does
// not make it another one, and that everything else does.
func TestTheDigestOfATemplate(t *testing.T) {
	const template = "{spec: {template: {metadata: {annotations: {a: b%}}, spec: {schedulingGates: [{name: other/gate}%], containers: [{name: c, image: x}]}}}}"
	digest := func(annotations, gates string) string {
		return TemplateDigest(of(t, Deployment, strings.Replace(strings.Replace(template, "%", annotations, 1), "%", gates, 1)))
	}
	plain := digest("", "")
	for _, hash := range vocabulary.ConfigHash.Names() {
		if digest(", "+hash+": abc", ", {name: "+vocabulary.SchedulingGate+"}") != plain {
			t.Errorf("%s or our gate changes the digest", hash)
		}
	}
	if digest(", c: d", "") == plain || digest("", ", {name: a/b}") == plain {
		t.Error("another client's change does not change the digest")
	}
}

// TestIsRelevant checks that a workload is relevant as long as there is something to do or
// to undo on it, even if it is not tracked.
func TestIsRelevant(t *testing.T) {
	for text, want := range map[string]bool{
		"{}":                                    false,
		"{metadata: {annotations: {other: x}}}": false,
		"{metadata: {annotations: {spillway.dev/pause: 'true'}}}":                                    false,
		"{metadata: {annotations: {spillway.dev/update-on-config-change: 'true'}}}":                  true,
		"{metadata: {annotations: {wave.pusher.com/update-on-config-change: 'false'}}}":              true,
		"{metadata: {annotations: {spillway.dev/config-status: '{}'}}}":                              true,
		"{metadata: {annotations: {spillway.dev/suspended: pods}}}":                                  true,
		"{metadata: {annotations: {wave.pusher.com/scheduling-disabled: x}}}":                        true,
		"{metadata: {finalizers: [" + vocabulary.ConfigFinalizer + "]}}":                             true,
		"{metadata: {finalizers: [other/finalizer]}}":                                                false,
		"{spec: {template: {spec: {schedulerName: " + vocabulary.SuspendedScheduler + "}}}}":         true,
		"{spec: {template: {spec: {schedulingGates: [{name: " + vocabulary.SchedulingGate + "}]}}}}": true,
		"{spec: {template: {spec: {schedulingGates: [{name: other/gate}]}}}}":                        false,
	} {
		if got := IsRelevant(of(t, Deployment, text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestADeletedWorkloadIsLeftAlone checks that only what blocks its deletion is still
// removed.
func TestADeletedWorkloadIsLeftAlone(t *testing.T) {
	const text = `{metadata: {%finalizers: [` + vocabulary.ConfigFinalizer + `], annotations: {spillway.dev/update-on-config-change: "true"}},
	  spec: {template: {spec: {schedulerName: ` + vocabulary.SuspendedScheduler + `}}}}`
	w := Read(of(t, Deployment, strings.Replace(text, "%", "", 1)))
	if !w.Settings.Tracked || !w.Suspension.IsSuspended() || !w.Legacy.Finalizer {
		t.Fatalf("%+v", w)
	}
	w = Read(of(t, Deployment, strings.Replace(text, "%", `deletionTimestamp: "2026-05-04T09:00:00Z", `, 1)))
	if w.Settings.Tracked || w.Suspension.IsSuspended() || !w.Legacy.Finalizer {
		t.Errorf("%+v", w)
	}
}

// TestTheZoneOfAStatefulSet checks that a zone counts as open unless its update strategy
// makes sure that a new template replaces no Pod.
func TestTheZoneOfAStatefulSet(t *testing.T) {
	for text, want := range map[string]Zone{
		"{}": {Open: true},
		"{metadata: {labels: {rollout-group: g}}, spec: {updateStrategy: {type: OnDelete}}}":                                               {Group: "g"},
		"{metadata: {labels: {rollout-group: g}}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate}}}":                             {Group: "g", Open: true},
		"{metadata: {labels: {rollout-group: g}}, spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}}":                   {Group: "g", Open: true},
		"{metadata: {labels: {rollout-group: g}}, spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 3}}}}":                   {Group: "g"},
		"{metadata: {labels: {rollout-group: g}}, spec: {updateStrategy: {rollingUpdate: {partition: 1}}}}":                                {Group: "g"},
		"{metadata: {labels: {rollout-group: g}}, spec: {updateStrategy: {rollingUpdate: {partition: 0}}}}":                                {Group: "g", Open: true},
		"{metadata: {labels: {rollout-group: g}, annotations: {spillway.dev/rollout-group: h}}, spec: {updateStrategy: {type: OnDelete}}}": {Group: "h"},
	} {
		if got := Read(of(t, StatefulSet, text)).Zone; got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	if got := Read(of(t, Deployment, "{metadata: {labels: {rollout-group: g}}}")).Zone; got != (Zone{}) {
		t.Errorf("a Deployment is in a group: %+v", got)
	}
}

// pods is an API server with these Pods, or one that cannot answer.
type pods struct {
	client.Reader

	items []corev1.Pod
	err   error
}

func (p pods) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.PodList).Items = p.items
	return p.err
}

// TestWaitingPods checks which Pods are deleted when a workload is released: its own, never
// scheduled, suspended by us, not being deleted, and not kept at their revision.
func TestWaitingPods(t *testing.T) {
	set := of(t, StatefulSet, "{metadata: {name: set, uid: set}, spec: {selector: {matchLabels: {app: a}}, updateStrategy: {rollingUpdate: {partition: 1}}}}")
	pod := func(name string, change ...func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), ResourceVersion: "1", OwnerReferences: []metav1.OwnerReference{{UID: "set", Controller: new(true)}},
		}}
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: vocabulary.SchedulingGate}}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	waiting, err := WaitingPods(t.Context(), pods{items: []corev1.Pod{
		pod("set-0"), pod("set-1"),
		pod("set-2", func(p *corev1.Pod) { p.Spec.SchedulingGates, p.Spec.SchedulerName = nil, vocabulary.SuspendedScheduler }),
		pod("set-3", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
		pod("set-4", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }),
		pod("set-5", func(p *corev1.Pod) { p.Spec.SchedulingGates[0].Name = "other/gate" }),
	}}, set)
	if err != nil {
		t.Fatal(err)
	}
	s := Suspension{Waiting: waiting}
	if got := fmt.Sprint(namesOf(waiting), namesOf(s.Deletable())); got != "[set-0 set-1 set-2] [set-1 set-2]" {
		t.Errorf("waiting and deletable are %s", got)
	}
	if _, err := WaitingPods(t.Context(), pods{err: context.DeadlineExceeded}, set); err == nil {
		t.Error("a read that failed counts as no Pods")
	}
}

func namesOf(waiting []WaitingPod) []string {
	names := make([]string, 0, len(waiting))
	for _, p := range waiting {
		names = append(names, p.Name)
	}
	return names
}

// TestWhatIsSettled checks that a released workload is settled only when it is known that
// none of its Pods waits, and that no new one will.
func TestWhatIsSettled(t *testing.T) {
	for name, test := range map[string]struct {
		s    Suspension
		want bool
	}{
		"never suspended":      {Suspension{}, true},
		"a gate":               {Suspension{Gate: 1}, false},
		"wave's scheduler":     {Suspension{Scheduler: true}, false},
		"no Pod waits":         {Suspension{Freeing: true, Seen: true, Known: true}, true},
		"a Pod waits":          {Suspension{Freeing: true, Seen: true, Known: true, Waiting: []WaitingPod{{Name: "a"}}}, false},
		"not known":            {Suspension{Freeing: true, Seen: true}, false},
		"not seen":             {Suspension{Freeing: true, Known: true}, false},
		"freed, but suspended": {Suspension{Gate: 1, Freeing: true, Seen: true, Known: true}, false},
	} {
		if got := test.s.IsSettled(); got != test.want {
			t.Errorf("%s: settled %v", name, got)
		}
	}
}

// patchOf are the operations of an edit: "test /metadata/uid".
func patchOf(operations []Operation) []string {
	all := make([]string, 0, len(operations))
	for _, o := range operations {
		all = append(all, o.Op+" "+o.Path)
	}
	return all
}

// TestEveryWriteHasItsPreconditions checks that a patch fails if the workload is another, has
// another spec, or is no longer opted in; and that a gate or an owner is removed only where
// it was seen.
func TestEveryWriteHasItsPreconditions(t *testing.T) {
	w := Read(of(t, StatefulSet, `{metadata: {name: a, uid: u, generation: 4, finalizers: [x/y, `+vocabulary.ConfigFinalizer+`], annotations: {spillway.dev/update-on-config-change: "true"}},
	  spec: {template: {spec: {schedulingGates: [{name: other/gate}, {name: `+vocabulary.SchedulingGate+`}]}}}}`))
	w.Hashes = &content.Hashes{Desired: "h"}
	e := EditStored(&w)
	e.Release()
	e.SetHash(time.Time{})
	want := []string{
		"test /metadata/uid", "test /metadata/generation", "test /metadata/annotations/spillway.dev~1update-on-config-change",
		"test /spec/template/spec/schedulingGates/1/name", "remove /spec/template/spec/schedulingGates/1",
		"add /metadata/annotations/spillway.dev~1suspended", // its Pods are not replaced by its controller
		"add /spec/template/metadata/annotations", "add /spec/template/metadata/annotations/spillway.dev~1config-hash",
	}
	if got := patchOf(e.Operations()); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	w.Legacy.Owns = []Owned{{Object: content.Object{Kind: content.ConfigMap, Name: "c"}, Index: 0, UID: "u"}, {Object: content.Object{Kind: content.ConfigMap, Name: "c"}, Index: 2, UID: "u"}}
	var patches []string
	for _, p := range Disown(&w) {
		patches = append(patches, p.Object.GetName()+": "+strings.Join(patchOf(p.Operations), ", "))
	}
	if want := []string{ // the later place first, so that the earlier one stays where it is; the finalizer last
		"c: test /metadata/ownerReferences/2/uid, remove /metadata/ownerReferences/2",
		"c: test /metadata/ownerReferences/0/uid, remove /metadata/ownerReferences/0",
		"a: test /metadata/uid, test /metadata/finalizers/1, remove /metadata/finalizers/1",
	}; !slices.Equal(patches, want) {
		t.Errorf("%q\nwant %q", patches, want)
	}
}

// TestWhatIsUsed checks that an object counts in every way that a Pod can use it, and that
// what annotations name never blocks a workload.
func TestWhatIsUsed(t *testing.T) {
	d := of(t, Deployment, `{metadata: {namespace: shop, name: a, annotations: {spillway.dev/update-on-config-change: "true", spillway.dev/extra-configmaps: "extra, other/extra", spillway.dev/track-image-pull-secrets: "true"}},
	  spec: {template: {spec: {imagePullSecrets: [{name: pull}], volumes: [{name: v, secret: {secretName: mounted, optional: true}}],
	    containers: [{name: c, envFrom: [{configMapRef: {name: env}}]}]}}}}`)
	used := func() (all []string) {
		for _, ref := range ManifestOf(d).Uses {
			all = append(all, fmt.Sprint(ref.Object.From("shop"), " ", ref.Required))
		}
		slices.Sort(all)
		return all
	}
	want := []string{"ConfigMap env true", "ConfigMap extra false", "ConfigMap other/extra false", "Secret mounted false", "Secret pull false"}
	if got := used(); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	d.GetAnnotations()["spillway.dev/update-on-config-change"] = "false"
	if got := used(); !slices.Equal(got, []string{"ConfigMap env true", "Secret mounted false"}) {
		t.Errorf("of a workload that is not tracked the other annotations count: %q", got)
	}
}
