package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/rollout"
)

// pinnedTo is a workload with pins for the Secret as it is now, and before for another content.
func pinnedTo(s *corev1.Secret) func(*Workload) {
	return func(w *Workload) {
		o := content.ObjectOf(s)
		digest, _ := content.FactsOf(s).DigestOf(o)
		w.Pinning.On = true
		w.Pinning.References = []pin.Reference{{Kind: o.Kind, Name: o.Name}}
		w.Pinning.Pins = pin.Pins{{Kind: o.Kind, Name: o.Name, Digest: pin.ShortDigest(digest)}}
		w.Records.Answered = workload.Answered{Hash: "new", At: now.Add(-time.Minute), Before: &workload.Before{Hash: "earlier", Pins: "secret/" + s.Name + "=0123456789"}}
	}
}

func asks(how string) func(*Workload) { return func(w *Workload) { w.Settings.OnFailure = how } }

func TestWhatGetsItsPreviousConfig(t *testing.T) {
	db := secret("shop", "db", "bad")
	asking := secret("shop", "db", "bad", "on-config-failure", "Rollback")
	elsewhere := secret("vault", "db", "bad", "on-config-failure", "Rollback")
	r, _ := content.FactsOf(db).Release(content.ObjectOf(db))
	far, _ := content.FactsOf(elsewhere).Release(content.ObjectOf(elsewhere))
	failed := "Failed: Deployment a failed: 3 of 3 Pods CrashLoopBackOff (changed: " + r.From("shop") + ")\n"
	refusing := secret("shop", "db", "bad", "on-config-failure", "Stop")
	keeps := "records on a\nFailed: Deployment a failed: 1 of 1 Pods CrashLoopBackOff (changed: " + r.From("shop") + ")\n"
	recorded := failedWith(now.Add(-time.Second), db)
	fails := func(s *corev1.Secret, change ...func(*Workload)) Workload {
		return outdated("a", append([]func(*Workload){using(s), rolledFor(time.Minute, dbKey), crashes, pinnedTo(s)}, change...)...)
	}
	kept := func(why string) string {
		return "records on a\nFailed: Deployment a failed: 1 of 1 Pods CrashLoopBackOff (changed: " + r.From("shop") + "); the previous config cannot be restored: " + why + "\n"
	}
	zoneOf := func(name string, change ...func(*Workload)) Workload {
		return outdated(name, append([]func(*Workload){ofKind(statefulSet(1, "v2")), zone(false), using(db), rolledFor(time.Minute, dbKey), pinnedTo(db), asks("Rollback")}, change...)...)
	}
	zoneFailed := "Failed: StatefulSet a failed: 1 of 1 Pods CrashLoopBackOff (changed: " + r.From("shop") + ")"
	steady := func(w *Workload) { w.Health.Health = rollout.Healthy }
	inForceFor := map[string]string{
		"because a policy says so":             "{onFailure: Rollback}",
		"the object counts more than a policy": "{onFailure: Rollback}",
		"and so does the workload":             "{onFailure: Rollback}",
		"a policy for something else":          "{onFailure: Rollback, objects: [{name: ca}]}",
		"a policy that is paused":              "{onFailure: Rollback, pause: {by: alice}}",
	}
	for name, test := range map[string]struct {
		workloads []Workload
		options   Options
		want      string
	}{
		"the failure is recorded first":          {[]Workload{fails(db, asks("Rollback"))}, Options{}, "records on a\n" + failed},
		"and then it goes back":                  {[]Workload{fails(db, asks("Rollback"), recorded)}, Options{}, "rolls a\n"},
		"because the object says so":             {[]Workload{fails(asking, recorded)}, Options{}, "rolls a\n"},
		"because a policy says so":               {[]Workload{fails(db, recorded)}, Options{}, "rolls a\n"},
		"the object counts more than a policy":   {[]Workload{fails(refusing, recorded)}, Options{}, keeps},
		"and so does the workload":               {[]Workload{fails(db, asks("Stop"), recorded)}, Options{}, keeps},
		"a policy for something else":            {[]Workload{fails(db, recorded)}, Options{}, keeps},
		"a policy that is paused":                {[]Workload{fails(db, recorded)}, Options{}, kept("ConfigPolicy shop/p0 is paused")},
		"a full budget is no reason to wait":     {[]Workload{fails(db, asks("Rollback"), recorded), outdated("b", rolledFor(time.Minute, "x"), steady)}, Options{MaxRolling: 1}, "rolls a\n"},
		"who does not ask keeps it":              {[]Workload{fails(db, recorded)}, Options{}, "records on a\nFailed: Deployment a failed: 1 of 1 Pods CrashLoopBackOff (changed: " + r.From("shop") + ")\n"},
		"the workload counts more":               {[]Workload{fails(asking, asks("Stop"), recorded)}, Options{}, "records on a\nFailed: Deployment a failed: 1 of 1 Pods CrashLoopBackOff (changed: " + r.From("shop") + ")\n"},
		"nothing is recorded to go back to":      {[]Workload{fails(db, asks("Rollback"), recorded, func(w *Workload) { w.Records.Answered.Before = nil })}, Options{}, kept("no earlier config is recorded")},
		"it is paused":                           {[]Workload{fails(db, asks("Rollback"), recorded, func(w *Workload) { w.Settings.Paused = true })}, Options{}, kept("it is paused")},
		"a snapshot does not exist":              {[]Workload{fails(db, asks("Rollback"), recorded, func(w *Workload) { w.Pinning.LostBefore = w.Records.Answered.Before.Parsed() })}, Options{}, kept("Secret db-0123456789 not found")},
		"it had the same before":                 {[]Workload{fails(db, asks("Rollback"), recorded, func(w *Workload) { w.Records.Answered.Before.Pins = w.Pinning.Pins.String() })}, Options{}, kept("the config before has the same content of what failed, or does not pin it")},
		"an object of another namespace may not": {[]Workload{fails(elsewhere, failedWith(now.Add(-time.Second), elsewhere))}, Options{}, "records on a\nFailed: Deployment a failed: 1 of 1 Pods CrashLoopBackOff (changed: " + far.From("shop") + ")\n"},
		"the other zones first":                  {[]Workload{zoneOf("a", crashes, recorded), zoneOf("b", steady), zoneOf("c", steady)}, Options{}, "rolls b\nrolls c\nrecords on a\n" + zoneFailed + "\n"},
		"then the zone that has failed":          {[]Workload{zoneOf("a", crashes, recorded)}, Options{}, "rolls a\n"},
		"none if one of them cannot":             {[]Workload{zoneOf("a", crashes, recorded), zoneOf("b", steady, asks("Stop"))}, Options{}, "records on a\n" + zoneFailed + "; the previous config cannot be restored: statefulset/b of the same group does not ask for it (spillway.dev/on-config-failure)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Observed{Now: now, Workloads: test.workloads}
			if spec, ok := inForceFor[name]; ok {
				o.Policies = inForce(spec)
			}
			plan := Decide(o, test.options)
			for _, w := range plan.Writes {
				if w.Rolls && w.Workload.back == nil {
					t.Errorf("%s is rolled forward", w.Workload.Name)
				}
			}
			got := textOf(o, test.options)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
