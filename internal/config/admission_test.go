package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// arriving is a workload in a request, changed as a test needs it.
func arriving(change ...func(*Workload)) *Workload {
	w := outdated("a", change...)
	w.object.SetAnnotations(map[string]string{vocabulary.ConfigTracked.Native: "true"})
	return &w
}

func bareTemplate(w *Workload) { w.Template.Hash, w.Template.Annotated = "", false }
func gated(w *Workload)        { w.Suspension.Gate, w.Template.Gates = 1, 1 }
func untracked(w *Workload)    { w.Settings.Tracked = false }
func lacks(w *Workload) {
	w.Hashes, w.Missing = nil, []Missing{{Object: object(Secret, "db")}}
}

func set(w *Workload) { w.object = &appsv1.StatefulSet{} }

// done is what admission does, an operation a line.
func done(a answer) string {
	var b strings.Builder
	for _, op := range a.operations {
		b.WriteString(strings.TrimSuffix(op.Op+" "+op.Path+" "+encode(op.Value), " null") + "\n")
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
		opened   = "test /spec/template/spec/schedulingGates/0/name \"spillway.dev/config-missing\"\nremove /spec/template/spec/schedulingGates/0\n"
		waits    = "warns: Pods wait until their config exists: Secret db does not exist\n"
		marked   = "add /metadata/annotations/spillway.dev~1suspended \"scheduling-gate\"\n"
	)
	running := arriving(current)
	for name, test := range map[string]struct {
		attempt attempt
		by      SuspendBy
		want    string
	}{
		"created with all that it needs, it is right at once":     {attempt{now: arriving(bareTemplate)}, "", bareHash + recorded},
		"created as a copy of one with a hash, it gets its own":   {attempt{now: arriving()}, "", hashes + recorded},
		"created as a copy of one that is right, it is left":      {attempt{now: arriving(current)}, "", ""},
		"created before its config, it is suspended":              {attempt{now: arriving(bareTemplate, lacks)}, "", marked + "add /spec/template/spec/schedulingGates [{\"name\":\"spillway.dev/config-missing\"}]\n" + waits},
		"a gate of the user's own stays":                          {attempt{now: arriving(bareTemplate, lacks, func(w *Workload) { w.Template.Gates = 1 })}, "", marked + "add /spec/template/spec/schedulingGates/- {\"name\":\"spillway.dev/config-missing\"}\n" + waits},
		"or the predecessor's way":                                {attempt{now: arriving(bareTemplate, lacks, func(w *Workload) { w.Template.Scheduler = "mine" })}, SuspendByScheduler, "add /metadata/annotations/wave.pusher.com~1scheduling-disabled \"mine\"\nadd /spec/template/spec/schedulerName \"wave.pusher.com/invalid\"\n" + waits},
		"or not at all":                                           {attempt{now: arriving(bareTemplate, lacks)}, SuspendNot, waits},
		"suspended already, it stays so":                          {attempt{now: arriving(bareTemplate, lacks, gated), before: arriving(bareTemplate, lacks, gated)}, "", waits},
		"replaced by a manifest without the gate, it still waits": {attempt{now: arriving(bareTemplate, lacks), before: arriving(bareTemplate, lacks, gated)}, "", marked + "add /spec/template/spec/schedulingGates [{\"name\":\"spillway.dev/config-missing\"}]\n" + waits},
		"updated when all is there, it is released":               {attempt{now: arriving(bareTemplate, gated), before: arriving(bareTemplate, gated)}, "", opened + bareHash + recorded},
		"a StatefulSet's Pods have to be freed then":              {attempt{now: arriving(bareTemplate, gated, set), before: arriving(gated)}, "", opened + "add /metadata/annotations/spillway.dev~1suspended \"waiting-pods\"\n" + bareHash + recorded},
		"opted out, it is released":                               {attempt{now: arriving(gated, untracked), before: arriving(gated)}, "", opened},
		"out of sight, it is left alone":                          {attempt{now: arriving(untracked, bareTemplate)}, "", ""},
		"an update that rolls anyway takes the config along":      {attempt{now: arriving(), before: running}, "", hashes + recorded},
		"one that does not, rolls nothing":                        {attempt{now: arriving(), before: arriving(), unchanged: true}, "", ""},
		"a hash that a replace would drop is kept":                {attempt{now: arriving(bareTemplate), before: arriving(), unchanged: true}, "", "add /spec/template/metadata/annotations {}\nadd /spec/template/metadata/annotations/spillway.dev~1config-hash \"old\"\n"},
		"an undo to a suspended revision is released":             {attempt{now: arriving(bareTemplate, gated), before: running, unchanged: true}, "", opened + bareHash + recorded},
		"what runs is not suspended":                              {attempt{now: arriving(lacks), before: running}, "", ""},
		"what cannot be read is left to the ring":                 {attempt{now: arriving(func(w *Workload) { w.Hashes = nil })}, "", ""},
		"what may not be read is no reason to refuse":             {attempt{now: arriving(func(w *Workload) { w.Denied = []string{"Secret vault/db may not be read"} })}, "", "warns: its config is not followed: Secret vault/db may not be read\n"},
		"a roll of the ring's stays on record": {
			attempt{now: arriving(rolledAt(now.Add(-time.Hour), 0)), before: running}, "",
			hashes + `add /metadata/annotations/spillway.dev~1config-change "{\"at\":\"2026-05-04T08:00:00Z\",\"admitted\":\"2026-05-04T09:00:00Z\"}"` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.attempt.now.object.GetAnnotations() == nil {
				test.attempt.now.object.SetAnnotations(map[string]string{vocabulary.ConfigTracked.Native: "true"})
			}
			got := done(admit(test.attempt, Options{SuspendBy: test.by, Now: func() time.Time { return now }}))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSameTemplate(t *testing.T) {
	base := func(change ...func(*corev1.PodTemplateSpec)) *appsv1.Deployment {
		d := web("shop")
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
