package admit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// arriving is a workload in a request, changed as a test needs it.
func arriving(change ...func(*workload.Workload)) *workload.Workload {
	w := &workload.Workload{
		Name: workload.Name{Kind: workload.Deployment, Namespace: "shop", Name: "a"}, Object: &appsv1.Deployment{},
		Settings: workload.Settings{Tracked: true, Dialect: "spillway.dev/update-on-config-change"},
		Template: workload.Template{Hash: "old", HashName: "spillway.dev/config-hash", Annotated: true},
		Hashes:   &content.Hashes{Desired: "new"},
	}
	for _, c := range change {
		c(w)
	}
	w.Object.SetAnnotations(map[string]string{vocabulary.ConfigTracked.Native: "true"})
	return w
}

func current(w *workload.Workload) { w.Template.Hash = "new" }

var now = time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)

func bareTemplate(w *workload.Workload) { w.Template.Hash, w.Template.Annotated = "", false }
func gated(w *workload.Workload)        { w.Suspension.Gate, w.Template.Gates = 1, 1 }
func untracked(w *workload.Workload)    { w.Settings.Tracked = false }
func lacks(w *workload.Workload) {
	w.Hashes, w.Missing = nil, []content.Missing{{Object: content.Object{Kind: content.Secret, Namespace: "shop", Name: "db"}}}
}

// replicas is a Deployment of which so many Pods are available.
func replicas(n, available int32) func(*workload.Workload) {
	return func(w *workload.Workload) {
		w.Object = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &n}, Status: appsv1.DeploymentStatus{AvailableReplicas: available}}
	}
}

// rolled is one that another client has rolled before, for another config.
func rolled(ago time.Duration) func(*workload.Workload) {
	return func(w *workload.Workload) { w.Records.Roll = workload.Roll{Admitted: now.Add(-ago), Was: "older"} }
}

// unready is one that was not ready before it got its config.
func unready(w *workload.Workload) {
	w.Records.Roll = workload.Roll{Was: "old", Unready: true, Available: 1}
}

func set(w *workload.Workload) { w.Object = &appsv1.StatefulSet{} }

// text is what admission does, an operation a line.
func text(a answer) string {
	var b strings.Builder
	for _, op := range a.operations {
		b.WriteString(strings.TrimSuffix(op.Op+" "+op.Path+" "+encoded(op.Value), " null") + "\n")
	}
	for _, w := range a.warnings {
		b.WriteString("warns: " + w + "\n")
	}
	return b.String()
}

func TestAdmit(t *testing.T) {
	const (
		hashes   = "add /spec/template/metadata/annotations/spillway.dev~1config-hash \"new\"\n"
		bareHash = "add /spec/template/metadata/annotations {}\n" + hashes
		recorded = `add /metadata/annotations/spillway.dev~1config-change "{\"admitted\":\"2026-05-04T09:00:00Z\"}"` + "\n"
		// ofNew is the mark of the hash in what is recorded.
		ofNew  = `,\"of\":\"b2853ed1e23c4971\"`
		opened = "test /spec/template/spec/schedulingGates/0/name \"spillway.dev/config-missing\"\nremove /spec/template/spec/schedulingGates/0\n"
		waits  = "warns: Pods are waiting for their config: Secret db not found\n"
		marked = "add /metadata/annotations/spillway.dev~1suspended \"scheduling-gate\"\n"
	)
	was := func(more string) string { return strings.Replace(recorded, `\"}`, `\",`+more+`}`, 1) }
	running := arriving(current)
	for name, test := range map[string]struct {
		attempt attempt
		by      workload.SuspendBy
		want    string
	}{
		"created with all its config, it gets the hash":           {attempt{now: arriving(bareTemplate)}, "", bareHash + recorded},
		"created as a copy of one with a hash, it gets its own":   {attempt{now: arriving()}, "", hashes + recorded},
		"created as a copy of one that is right, it is left":      {attempt{now: arriving(current)}, "", ""},
		"created before its config, it is suspended":              {attempt{now: arriving(bareTemplate, lacks)}, "", marked + "add /spec/template/spec/schedulingGates [{\"name\":\"spillway.dev/config-missing\"}]\n" + waits},
		"a gate of the user's own stays":                          {attempt{now: arriving(bareTemplate, lacks, func(w *workload.Workload) { w.Template.Gates = 1 })}, "", marked + "add /spec/template/spec/schedulingGates/- {\"name\":\"spillway.dev/config-missing\"}\n" + waits},
		"or as wave does":                                         {attempt{now: arriving(bareTemplate, lacks, func(w *workload.Workload) { w.Template.Scheduler = "mine" })}, workload.SuspendByScheduler, "add /metadata/annotations/wave.pusher.com~1scheduling-disabled \"mine\"\nadd /spec/template/spec/schedulerName \"wave.pusher.com/invalid\"\n" + waits},
		"or not at all":                                           {attempt{now: arriving(bareTemplate, lacks)}, workload.SuspendNot, waits},
		"suspended already, it stays so":                          {attempt{now: arriving(bareTemplate, lacks, gated), before: arriving(bareTemplate, lacks, gated)}, "", waits},
		"replaced by a manifest without the gate, it still waits": {attempt{now: arriving(bareTemplate, lacks), before: arriving(bareTemplate, lacks, gated)}, "", marked + "add /spec/template/spec/schedulingGates [{\"name\":\"spillway.dev/config-missing\"}]\n" + waits},
		"updated when all exists, it is released":                 {attempt{now: arriving(bareTemplate, gated), before: arriving(bareTemplate, gated)}, "", opened + bareHash + recorded},
		"a StatefulSet's Pods must be released then":              {attempt{now: arriving(bareTemplate, gated, set), before: arriving(gated)}, "", opened + "add /metadata/annotations/spillway.dev~1suspended \"waiting-pods\"\n" + bareHash + recorded},
		"opted out, it is released":                               {attempt{now: arriving(gated, untracked), before: arriving(gated)}, "", opened},
		"not tracked, it is not changed":                          {attempt{now: arriving(untracked, bareTemplate)}, "", ""},
		"it remembers the config that it had":                     {attempt{now: arriving(), before: arriving(replicas(1, 1))}, "", hashes + was(`\"was\":\"old\"`)},
		"and that it was never ready":                             {attempt{now: arriving(), before: arriving(replicas(2, 1))}, "", hashes + was(`\"was\":\"old\",\"unready\":true,\"available\":1`)},
		"and that it had no Pods":                                 {attempt{now: arriving(), before: arriving(replicas(0, 0))}, "", hashes + was(`\"was\":\"old\",\"unready\":true`)},
		"not what the config may be the cause of": {
			attempt{now: arriving(rolled(time.Minute)), before: arriving(replicas(1, 0))}, "", hashes + was(`\"was\":\"old\"`),
		},
		"but what is so for long": {
			attempt{now: arriving(rolled(time.Hour)), before: arriving(replicas(1, 0))}, "", hashes + was(`\"was\":\"old\",\"unready\":true`),
		},
		"the same config is compared with what was before it": {
			attempt{now: arriving(unready), before: running}, "", hashes + was(`\"was\":\"old\",\"unready\":true,\"available\":1`),
		},
		"an update that rolls anyway takes the config along": {attempt{now: arriving(), before: running}, "", hashes + recorded},
		"one that does not, rolls nothing":                   {attempt{now: arriving(), before: arriving(), unchanged: true}, "", ""},
		"a hash that a replace would drop is kept":           {attempt{now: arriving(bareTemplate), before: arriving(), unchanged: true}, "", "add /spec/template/metadata/annotations {}\nadd /spec/template/metadata/annotations/spillway.dev~1config-hash \"old\"\n"},
		"an undo to a suspended revision is released":        {attempt{now: arriving(bareTemplate, gated), before: running, unchanged: true}, "", opened + bareHash + recorded},
		"what runs is not suspended":                         {attempt{now: arriving(lacks), before: running}, "", ""},
		"what needs content that is held keeps its pins": {
			attempt{now: arriving(func(w *workload.Workload) { w.Pinning.On = true }), before: running, newer: newer{"ConfigMap app-1 has no key b", "ConfigMap app is paused"}}, "",
			"warns: new Pods cannot start: ConfigMap app-1 has no key b; the present content is held: ConfigMap app is paused\n",
		},
		"what cannot be read is left to the ring":    {attempt{now: arriving(func(w *workload.Workload) { w.Hashes = nil })}, "", ""},
		"what cannot be read is no reason to refuse": {attempt{now: arriving(func(w *workload.Workload) { w.Denied = []string{"Secret vault/db cannot be read"} })}, "", "warns: config changes do not roll it: Secret vault/db cannot be read\n"},
		"a roll of the ring's stays on record": {
			attempt{now: arriving(func(w *workload.Workload) { w.Records.Roll.At = now.Add(-time.Hour) }), before: running}, "",
			hashes + `add /metadata/annotations/spillway.dev~1config-change "{\"at\":\"2026-05-04T08:00:00Z\",\"admitted\":\"2026-05-04T09:00:00Z\"}"` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.attempt.now.Object.GetAnnotations() == nil {
				test.attempt.now.Object.SetAnnotations(map[string]string{vocabulary.ConfigTracked.Native: "true"})
			}
			got := text(decide(test.attempt, Options{SuspendBy: test.by, Now: func() time.Time { return now }}))
			if strings.Count(got, ofNew) != strings.Count(got, "config-change") {
				t.Errorf("what is recorded is not of the hash: %s", got)
			}
			got = strings.ReplaceAll(got, ofNew, "")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// encoded is a value as JSON.
func encoded(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func TestSameTemplate(t *testing.T) {
	base := func(change ...func(*corev1.PodTemplateSpec)) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "x"}}
		for _, c := range change {
			c(&d.Spec.Template)
		}
		return d
	}
	hash := func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{vocabulary.ConfigHash.Native: "x"}
	}
	gate := func(t *corev1.PodTemplateSpec) {
		t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: vocabulary.SchedulingGate}}
	}
	image := func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = "y" }
	for name, test := range map[string]struct {
		a, b *appsv1.Deployment
		want bool
	}{
		"the same":       {base(), base(), true},
		"but the hash":   {base(hash), base(), true},
		"but the gate":   {base(gate), base(), true},
		"another image":  {base(hash), base(hash, image), false},
		"another gate":   {base(), base(func(t *corev1.PodTemplateSpec) { t.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x"}} }), false},
		"another metric": {base(), base(func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{"scrape": "true"} }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sameTemplate(test.a, test.b); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
