package decision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pods"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/rollout"
)

// secret is the Secret of a name as the cache has it.
func secret(namespace, name, value string, annotations ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid of " + namespace + name), Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		s.Annotations["spillway.dev/"+annotations[i]] = annotations[i+1]
	}
	s.Data = map[string][]byte{"p": []byte(value)}
	return s
}

// using is a workload that uses some Secrets, as they are now.
func using(secrets ...*corev1.Secret) func(*Workload) {
	return func(w *Workload) {
		w.Config, w.Uses = content.Facts{}, nil
		for _, s := range secrets {
			o := content.ObjectOf(s)
			for _, f := range []content.Facts{content.FactsOf(s)} {
				w.Config[o] = f[o]
			}
			w.Uses = append(w.Uses, content.Use{Reference: content.Reference{Object: o}, Exists: true})
		}
	}
}

// rolledFor is a workload that was rolled for these keys, and is not ready.
func rolledFor(ago time.Duration, keys ...string) func(*Workload) {
	return func(w *Workload) {
		current(w)
		rolledAt(now.Add(-ago), rollout.Progressing)(w)
		w.Records.Roll.Changed, w.Records.Roll.Template = keys, workload.TemplateDigest(w.Object)
	}
}

// crashes is one whose Pods crash.
func crashes(w *Workload) {
	w.Pods = pods.State{Readable: true, Of: 3, New: 3, Started: 3, Failing: 3, Reason: "CrashLoopBackOff"}
}

// unreported is a Deployment that made its last progress some time ago, and may make none for
// ten minutes.
func unreported(ago time.Duration) func(*Workload) {
	return func(w *Workload) {
		w.Object = &appsv1.Deployment{
			Spec: appsv1.DeploymentSpec{ProgressDeadlineSeconds: new(int32(600))},
			Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.NewTime(now.Add(-ago)),
			}}},
		}
	}
}

func judged(w *Workload) { w.Judge(now) }

// A Deployment that makes no progress is judged again at the moment at which it has failed.
func TestADeploymentIsJudgedAtItsDeadline(t *testing.T) {
	for ago, want := range map[time.Duration]time.Duration{9 * time.Minute: 2 * time.Minute, 11*time.Minute - time.Second: time.Second} {
		w := outdated("a", using(secret("shop", "db", "1")), unreported(ago), rolledFor(ago, "Secret db: p"), hangs, judged)
		if w.Health.Health != rollout.Progressing {
			t.Errorf("after %s it is %v", ago, w.Health)
		}
		if at := w.wake(now); !at.Equal(now.Add(want)) {
			t.Errorf("after %s it is judged again at %s, want in %s", ago, at, want)
		}
	}
}

// unreadyBefore is one of which so many Pods were available before it was rolled, and some failed.
func unreadyBefore(available int32, failing string) func(*Workload) {
	return func(w *Workload) {
		w.Records.Roll.Unready, w.Records.Roll.Was, w.Records.Roll.Available, w.Records.Roll.Failing = true, "before", available, failing
	}
}

// begun is one that got its first hash before it was ready.
func begun(w *Workload) { w.Records.Roll.Unready, w.Records.Roll.Was = true, "" }

// changedToo is one of which another client changed the Pod template after the roll.
func changedToo(w *Workload) { w.Records.Roll.Template = "another" }

// admitted is one that another client rolled a minute ago, and that had a hash before.
func admitted(was string) func(*Workload) {
	return func(w *Workload) {
		w.Health.Health, w.Records.Roll = rollout.Progressing, workload.Roll{Admitted: now.Add(-time.Minute), Was: was}
	}
}

// refused is one of which the controller cannot create Pods.
func refused(why string) func(*Workload) {
	return func(w *Workload) {
		w.Object = &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: why},
		}}}
		w.Pods, w.Records.Roll.Template = pods.State{Readable: true, Of: 1}, workload.TemplateDigest(w.Object)
	}
}

// stalled is one that Kubernetes reports as failed.
func stalled(w *Workload) {
	w.Health.Health, w.Health.Reason = rollout.Failed, "Progress deadline exceeded"
}

// hangs is one whose Pods run, and are not ready.
func hangs(w *Workload) { w.Pods = pods.State{Readable: true, Of: 3, New: 3, Started: 3} }

// changed is what an outdated workload is to be rolled for.
func changed(keys ...string) func(*Workload) {
	return func(w *Workload) { w.Change.Keys = keys }
}

// failedWith is a workload that has failed with Secrets as they are now.
func failedWith(at time.Time, secrets ...*corev1.Secret) func(*Workload) {
	return func(w *Workload) {
		for _, s := range secrets {
			r, _ := content.FactsOf(s).Release(content.ObjectOf(s))
			w.Records.Failed = append(w.Records.Failed, workload.FailedWith(r, at, "1 of 1 Pods CrashLoopBackOff", ""))
		}
	}
}

// readySince is a workload that is ready.
func readySince(at time.Time) func(*Workload) {
	return func(w *Workload) {
		one := int32(1)
		w.Health.Health, w.Object = rollout.Healthy, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &one}, Status: appsv1.DeploymentStatus{AvailableReplicas: 1}}
		w.Pods = pods.State{Readable: true, Of: 1, New: 1, Started: 1, ReadySince: at}
	}
}

const dbKey, caKey = "Secret db: p", "Secret ca: p"

func TestWhatFailedForOneHoldsTheOthers(t *testing.T) {
	db, ca, other := secret("shop", "db", "bad"), secret("shop", "ca", "1"), secret("shop", "db", "good")
	digest := func(s *corev1.Secret) string {
		r, _ := content.FactsOf(s).Release(content.ObjectOf(s))
		return r.From("shop")
	}
	bad := digest(db)
	held := func(name, cause string, kept string) string {
		return "ConfigFailed: Deployment " + name + " is waiting: " + bad + " failed on deployment/a (" + cause + "); " + kept + "\n"
	}
	const too = "; its Pod template was changed by another client, too"
	const crash, one, two = "3 of 3 Pods CrashLoopBackOff", "1 workload is not rolled", "2 workloads are not rolled"
	failed := func(cause string) string {
		return "Failed: Deployment a failed: " + cause + " (changed: " + bad + ")\n"
	}
	for name, test := range map[string]struct {
		workloads []Workload
		options   Options
		want      string
	}{
		"Pods that crash": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes), outdated("b", using(db), changed(dbKey)), outdated("c", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\nrecords on c\n" + held("b", crash, two) + held("c", crash, two) + failed(crash)},
		"a Deployment that Kubernetes reports": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), hangs, func(w *Workload) { w.Health.Health, w.Health.Reason = rollout.Failed, "Progress deadline exceeded" }),
			outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", "Progress deadline exceeded", one) + failed("Progress deadline exceeded")},
		"a Deployment that Kubernetes does not report": {[]Workload{
			outdated("a", using(db), unreported(11*time.Minute), rolledFor(12*time.Minute, dbKey), hangs, judged), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", "Progress deadline exceeded", one) + failed("Progress deadline exceeded")},
		"a StatefulSet that exceeds its time": {[]Workload{
			outdated("a", ofKind(statefulSet(2, "v2")), using(db), rolledFor(21*time.Minute, dbKey), hangs), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" +
			"ConfigFailed: Deployment b is waiting: " + bad + " failed on statefulset/a (not ready after 20m (progress deadline)); " + one + "\n" +
			"Failed: StatefulSet a failed: not ready after 20m (progress deadline) (changed: " + bad + ")\n"},
		"one that sees already that the object was deleted": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), failedWith(now.Add(-time.Minute), db), func(w *Workload) { w.Config = nil }), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on b\nProgressing: Deployment a is updating: not ready\n" + held("b", "1 of 1 Pods CrashLoopBackOff", one)},
		"one that is late, and has not failed": {[]Workload{
			outdated("a", using(db), rolledFor(11*time.Minute, dbKey), hangs), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "ConfigUnverified: Deployment b is waiting: " + bad + " is not verified: deployment/a is not ready after 10m\nProgressing: Deployment a is updating: not ready\n"},
		"the place in the budget ends, and the next one waits": {[]Workload{
			outdated("a", using(db), rolledFor(10*time.Minute, dbKey), hangs), outdated("b", using(db), changed(dbKey)),
		}, Options{MaxRolling: 1}, "ConfigUnverified: Deployment b is waiting: " + bad + " is not verified: deployment/a is not ready after 10m\nProgressing: Deployment a is updating: not ready\n"},
		"Pods that could not be scheduled": {[]Workload{
			outdated("a", using(db), rolledFor(time.Hour, dbKey), func(w *Workload) {
				w.Pods, w.Health.Health = pods.State{Readable: true, Of: 1, New: 1}, rollout.Failed
			}), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: no new Pod was scheduled\n"},
		"no room for new Pods by a quota": {[]Workload{
			outdated("a", using(db), rolledFor(time.Hour, dbKey), stalled, refused("pods \"a-1\" is forbidden: exceeded quota: full, requested: pods=1")), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: no room for new Pods: exceeded quota: full, requested: pods=1\n"},
		"no room for another new Pod": {[]Workload{
			outdated("a", using(db), rolledFor(time.Hour, dbKey), stalled, func(w *Workload) {
				w.Pods = pods.State{Readable: true, Of: 3, New: 2, Started: 1, Ready: 1, Unschedulable: 1}
			}), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: no room for new Pods: 1 of 3 Pods unschedulable\n"},
		"no room for another new Pod, and one is not ready": {[]Workload{
			outdated("a", using(db), rolledFor(time.Hour, dbKey), stalled, func(w *Workload) { w.Pods = pods.State{Readable: true, Of: 3, New: 2, Started: 1, Unschedulable: 1} }), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", "Progress deadline exceeded", one) + failed("Progress deadline exceeded")},
		"Pods that are not known": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), func(w *Workload) { w.Pods = pods.State{Unknown: "they are being listed"} }),
			outdated("b", using(db), changed(dbKey)),
		}, Options{}, "Progressing: Deployment a is updating: not ready\nConfigUnverified: Deployment b is waiting: " + bad + " is not verified: the Pods of deployment/a are not known: they are being listed\n"},
		"Pods that must not be read": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey)), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
		"another object": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, failedWith(now, db)), outdated("b", using(ca), changed(caKey)),
		}, Options{}, "rolls b\n" + "records on a\n" + failed("1 of 1 Pods CrashLoopBackOff")},
		"an object that the roll was not for": {[]Workload{
			outdated("a", using(db, ca), rolledFor(time.Minute, caKey), crashes), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nrecords on a\nFailed: Deployment a failed: " + crash + " (changed: " + digest(ca) + ")\n"},
		"a change that is not known": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute), crashes, failedWith(now, db)), outdated("b", using(db, ca)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", "1 of 1 Pods CrashLoopBackOff", one) + failed("1 of 1 Pods CrashLoopBackOff")},
		"another content": {[]Workload{
			outdated("a", using(other), changed(dbKey), failedWith(now, db)), outdated("b", using(other), changed(dbKey)),
		}, Options{}, "rolls a\nrolls b\n"},
		"the same content again": {[]Workload{
			outdated("a", using(db), changed(dbKey), failedWith(now.Add(-time.Hour), db)), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("a", "1 of 1 Pods CrashLoopBackOff", two) + held("b", "1 of 1 Pods CrashLoopBackOff", two)},
		"one that was not ready before, and crashes": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, unreadyBefore(0, "")), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", crash, one) + failed(crash)},
		"one that crashed before in another way": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, unreadyBefore(0, "CreateContainerConfigError")), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", crash, one) + failed(crash)},
		"one that crashed before": {[]Workload{
			outdated("a", using(db), rolledFor(time.Hour, dbKey), crashes, unreadyBefore(0, "CrashLoopBackOff")), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
		"one that has just begun, and crashes": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, begun), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
		"one of which some were ready before, and none is": {[]Workload{
			outdated("a", using(db), rolledFor(11*time.Minute, dbKey), hangs, unreadyBefore(1, ""), stalled), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", "Progress deadline exceeded", one) + failed("Progress deadline exceeded")},
		"one of which none was ready before": {[]Workload{
			outdated("a", using(db), rolledFor(11*time.Minute, dbKey), hangs, unreadyBefore(0, ""), stalled), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nFailed: Deployment a failed\n"},
		"one that is as it was before": {[]Workload{
			outdated("a", using(db), rolledFor(11*time.Minute, dbKey), hangs, unreadyBefore(1, ""), stalled, func(w *Workload) { w.Pods.Ready = 1 }), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nFailed: Deployment a failed\n"},
		"one that was not ready before, and whose Pods are not known": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), unreadyBefore(0, ""), func(w *Workload) { w.Pods = pods.State{Unknown: "they are being listed"} }),
			outdated("b", using(db), changed(dbKey)),
		}, Options{}, "Progressing: Deployment a is updating: not ready\nConfigUnverified: Deployment b is waiting: " + bad + " is not verified: the Pods of deployment/a are not known: they are being listed\n"},
		"one that Kubernetes reports, and whose Pods are not known": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), stalled, func(w *Workload) { w.Pods = pods.State{Unknown: "they are being listed"} }),
			outdated("b", using(db), changed(dbKey)),
		}, Options{}, "Failed: Deployment a failed\nConfigUnverified: Deployment b is waiting: " + bad + " is not verified: the Pods of deployment/a are not known: they are being listed\n"},
		"one that is not ready, and of which the Pods before are not known": {[]Workload{
			outdated("a", using(db), changed(dbKey), func(w *Workload) {
				w.Health.Health, w.Pods = rollout.Progressing, pods.State{Unknown: "they are being listed"}
			}),
		}, Options{}, "ConfigUnverified: Deployment a is waiting: it is not ready, and its Pods are not known: they are being listed\n"},
		"one whose template was changed, too": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, changedToo), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", crash+too, one) + failed(crash+too)},
		"one that was rolled by another client": {[]Workload{
			outdated("a", using(db), current, admitted("old"), crashes), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", crash+too, one) + failed(crash+too)},
		"one that was rolled by another client, with the content that it had": {[]Workload{
			outdated("a", using(db), current, admitted(""), crashes), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\n"},
		"one whose template was changed, and nothing would be rolled": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, changedToo), outdated("b", using(ca), changed(caKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
		"one whose template was changed, and another one works": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, changedToo), outdated("b", using(db), changed(dbKey)),
			outdated("c", using(db), current, readySince(now)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
		"one whose template was changed, and some Pods with the content are ready": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, changedToo, func(w *Workload) { w.Pods.Ready = 1 }), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
		"one that is not tracked any more": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, failedWith(now, db), func(w *Workload) { w.Settings.Tracked = false }), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
		"one that is ready for a moment": {[]Workload{
			outdated("a", using(db), current, readySince(now.Add(-time.Minute)), failedWith(now.Add(-time.Hour), db), conditioned(bad)), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "records on b\nConfigFailed: Deployment b is waiting: " + bad + " failed on deployment/a (1 of 1 Pods CrashLoopBackOff); it is ready, soaking until 4 May 09:09:00 UTC; " + one + "\n" +
			"Failed: Deployment a failed: 1 of 1 Pods CrashLoopBackOff (changed: " + bad + "); it is ready, soaking until 4 May 09:09:00 UTC\n"},
		"one that is ready for ten minutes": {[]Workload{
			outdated("a", using(db), current, readySince(now.Add(-10*time.Minute)), failedWith(now.Add(-time.Hour), db)), outdated("b", using(db), changed(dbKey)),
		}, Options{}, "rolls b\n"},
		"a user retries": {[]Workload{
			outdated("a", using(retried(db, now)), rolledFor(time.Minute, dbKey), crashes, failedWith(now.Add(-time.Second), db)),
			outdated("b", using(retried(db, now)), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
		"a retry in the moment of the roll": {[]Workload{
			outdated("a", using(retried(db, now.Add(-time.Minute+100*time.Nanosecond))), rolledFor(time.Minute, dbKey), crashes),
			outdated("b", using(retried(db, now.Add(-time.Minute+100*time.Nanosecond))), changed(dbKey)),
		}, Options{}, "records on a\nrecords on b\n" + held("b", crash, one) + failed(crash)},
		"a retry of the future": {[]Workload{
			outdated("a", using(retried(db, now.Add(time.Second))), rolledFor(time.Minute, dbKey), crashes, failedWith(now.Add(-time.Second), db), conditioned(bad)),
			outdated("b", using(retried(db, now.Add(time.Second))), changed(dbKey)),
		}, Options{}, "records on b\n" + held("b", "1 of 1 Pods CrashLoopBackOff", one) + failed("1 of 1 Pods CrashLoopBackOff")},
		"the object turns it off": {[]Workload{
			outdated("a", using(secret("shop", "db", "bad", "stop-on-failure", "false")), rolledFor(time.Minute, dbKey), crashes),
			outdated("b", using(secret("shop", "db", "bad", "stop-on-failure", "false")), changed(dbKey)),
		}, Options{}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
		"the workload turns it off": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes, failedWith(now, db), conditioned(bad)),
			outdated("b", using(db), changed(dbKey), func(w *Workload) { w.Settings.Unstoppable = true }),
		}, Options{}, "rolls b\n" + failed("1 of 1 Pods CrashLoopBackOff")},
		"the flag turns it off": {[]Workload{
			outdated("a", using(db), rolledFor(time.Minute, dbKey), crashes), outdated("b", using(db), changed(dbKey)),
		}, Options{KeepGoing: true}, "rolls b\nProgressing: Deployment a is updating: not ready\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, text(test.workloads, test.options)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// conditioned is a workload on which the failure is reported.
func conditioned(release string) func(*Workload) {
	return func(w *Workload) {
		w.Records.Condition = &workload.Condition{
			Type: "Ready", Status: "False", Reason: ReasonConfigFailed, Since: now,
			Message: "1 of 1 Pods CrashLoopBackOff (changed: " + release + ")",
		}
	}
}

func retried(s *corev1.Secret, at time.Time) *corev1.Secret {
	s = s.DeepCopy()
	s.Annotations["spillway.dev/retry-config"] = at.Format(time.RFC3339Nano)
	return s
}

// Failures in one namespace hold workloads of another one only where the owner of the object
// has said so.
func TestAFailureCountsWhereTheOwnerOfTheObjectSaysSo(t *testing.T) {
	for name, test := range map[string]struct {
		failed, next, stoppedBy string
		stops                   bool
	}{
		"in the same namespace":              {"a", "a", "", true},
		"in another one":                     {"a", "b", "", false},
		"in that of the object":              {"vault", "b", "", true},
		"of a user of it, for its namespace": {"a", "vault", "", false},
		"where the owner names it":           {"a", "b", "c, a", true},
		"where the owner names another":      {"a", "b", "c", false},
		"where the owner names all":          {"a", "b", "*", true},
	} {
		t.Run(name, func(t *testing.T) {
			ca := secret("vault", "ca", "bad", "stopped-by", test.stoppedBy)
			key := []string{"Secret vault/ca: p"}
			workloads := []Workload{
				outdated("w1", in(test.failed), using(ca), rolledFor(time.Minute, key...), crashes, failedWith(now, ca)),
				outdated("w2", in(test.next), using(ca), changed(key...)),
			}
			if stops := !strings.Contains(text(workloads, Options{}), "rolls w2"); stops != test.stops {
				t.Errorf("stopped is %v, want %v", stops, test.stops)
			}
		})
	}
}

// TestUnready checks what a roll records of a workload that is not ready before it.
func TestUnready(t *testing.T) {
	db := secret("shop", "db", "bad")
	was := func(h rollout.Health) func(*Workload) { return func(w *Workload) { w.Health.Health = h } }
	for name, test := range map[string]struct {
		change []func(*Workload)
		want   bool
	}{
		"ready":               {[]func(*Workload){readySince(now)}, false},
		"not ready":           {[]func(*Workload){was(rollout.Progressing)}, true},
		"rolled a moment ago": {[]func(*Workload){rolledFor(time.Minute, dbKey)}, false},
		"rolled a moment ago, and was ready": {[]func(*Workload){rolledFor(time.Minute, dbKey), ofKind(&appsv1.Deployment{Status: appsv1.DeploymentStatus{
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}},
		}})}, true},
		"rolled a moment ago, was ready, and crashes": {[]func(*Workload){rolledFor(time.Minute, dbKey), crashes, ofKind(&appsv1.Deployment{Status: appsv1.DeploymentStatus{
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}},
		}})}, false},
		"without Pods, and rolled a moment ago": {[]func(*Workload){rolledFor(time.Minute, dbKey), func(w *Workload) {
			w.Object, w.Health.Health = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32)}}, rollout.Healthy
		}}, true},
		"rolled long ago":                    {[]func(*Workload){rolledFor(time.Hour, dbKey)}, true},
		"not ready before that roll either":  {[]func(*Workload){rolledFor(time.Minute, dbKey), func(w *Workload) { w.Records.Roll.Unready = true }}, true},
		"its template was changed since":     {[]func(*Workload){rolledFor(time.Minute, dbKey), func(w *Workload) { w.Records.Roll.Template = "x" }}, true},
		"failed with the config before":      {[]func(*Workload){rolledFor(time.Hour, dbKey), failedWith(now.Add(-time.Minute), db)}, false},
		"was so before it failed":            {[]func(*Workload){rolledFor(time.Hour, dbKey), unreadyBefore(0, ""), failedWith(now.Add(-time.Minute), db)}, true},
		"failed with a config before a roll": {[]func(*Workload){rolledFor(time.Hour, dbKey), failedWith(now.Add(-2*time.Hour), db)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := outdated("a", test.change...)
			if got := w.isUnreadyBefore(now); got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// TestBaseline checks with what the new Pods of a workload are compared that was not ready before: not
// with what a content did that is no better.
func TestBaseline(t *testing.T) {
	db := secret("shop", "db", "bad")
	for name, test := range map[string]struct {
		change  []func(*Workload)
		failing string
	}{
		"never rolled":                              {[]func(*Workload){crashes}, "CrashLoopBackOff"},
		"rolled a moment ago":                       {[]func(*Workload){rolledFor(time.Minute, dbKey), unreadyBefore(1, ""), crashes}, ""},
		"its template was changed since":            {[]func(*Workload){rolledFor(time.Minute, dbKey), unreadyBefore(1, ""), crashes, changedToo}, "CrashLoopBackOff"},
		"failed since":                              {[]func(*Workload){rolledFor(time.Hour, dbKey), unreadyBefore(1, ""), crashes, failedWith(now.Add(-time.Minute), db)}, ""},
		"what it was rolled for was its first hash": {[]func(*Workload){rolledFor(time.Minute, dbKey), unreadyBefore(1, ""), crashes, func(w *Workload) { w.Records.Roll.Was = "" }}, "CrashLoopBackOff"},
	} {
		t.Run(name, func(t *testing.T) {
			w := outdated("a", append([]func(*Workload){using(db)}, test.change...)...)
			if _, got := w.baseline(now); got != test.failing {
				t.Errorf("%q, want %q", got, test.failing)
			}
		})
	}
}

// Time alone ends that others wait for a workload which cannot tell whether it works.
func TestOthersWaitNoLongerThanAWorkloadMayTell(t *testing.T) {
	paused := func(w *Workload) { w.Object = &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Paused: true}} }
	for name, change := range map[string]func(*Workload){
		"it was not ready before": unreadyBefore(1, ""), "it is paused": paused, "there is no room": refused("exceeded quota: full"),
		"its config has changed again": func(w *Workload) { w.Template.Hash = "bad" },
	} {
		t.Run(name, func(t *testing.T) {
			w := outdated("a", using(secret("shop", "db", "1")), rolledFor(time.Minute, dbKey), hangs, change)
			at := w.wake(now)
			if at.IsZero() || at.After(now.Add(workload.ProgressDeadline-time.Minute)) {
				t.Errorf("it is looked at again at %s", at)
			}
		})
	}
}

// TestReleasesAgainstRules checks plans of random worlds against rules that are written a
// second time, without the engine.
func TestReleasesAgainstRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workloads := drawWorkloads(t)
		plan := Decide(Observed{Now: now, Workloads: slices.Clone(workloads)}, Options{})
		for _, write := range plan.Writes {
			if write.Rolls {
				if by := failsFor(write.Workload, workloads); by != "" {
					t.Fatalf("%s is rolled although %s has failed", write.Workload.Name, by)
				}
			}
		}
		for i := range plan.Workloads {
			w := &plan.Workloads[i]
			if s := w.stop; s != nil && s.Reason == ReasonConfigFailed && failsFor(w, workloads) == "" {
				t.Fatalf("%s is stopped by %s, and nothing has failed", w.Name, s.Message())
			}
		}
		again := recordAll(plan)
		for _, write := range Decide(Observed{Now: now, Workloads: again}, Options{}).Writes {
			if !write.Rolls {
				t.Fatalf("%s is written again: %+v", write.Workload.Name, write.Patches)
			}
		}
	})
}

// drawWorkloads are workloads of three namespaces that use Secrets of these.
func drawWorkloads(t *rapid.T) []Workload {
	namespaces := []string{"a", "b", "vault"}
	var secrets []*corev1.Secret
	for _, ns := range namespaces {
		secrets = append(secrets, secret(ns, "s", "1", "stopped-by", rapid.SampledFrom([]string{"", "a", "*"}).Draw(t, "stoppedBy")))
	}
	var workloads []Workload
	for _, ns := range namespaces {
		for i := range rapid.IntRange(0, 4).Draw(t, "workloads") {
			uses := []*corev1.Secret{secrets[rapid.IntRange(0, 2).Draw(t, "uses")], secrets[rapid.IntRange(0, 2).Draw(t, "uses too")]}
			var keys []string
			for _, s := range uses[:rapid.IntRange(0, 2).Draw(t, "known")] {
				keys = append(keys, content.ObjectOf(s).From(ns)+": p")
			}
			kinds := [][]func(*Workload){
				{changed(keys...)},
				{rolledFor(time.Minute, keys...), crashes},
				{rolledFor(time.Minute, keys...), hangs},
				{changed(keys...), failedWith(now.Add(-time.Minute), uses[0])},
				{current, readySince(now.Add(-time.Hour)), failedWith(now.Add(-time.Minute), uses[0])},
			}
			change := append([]func(*Workload){in(ns), using(uses...)}, kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")]...)
			workloads = append(workloads, outdated(fmt.Sprint("w", i), change...))
		}
	}
	return workloads
}

// failsFor is a workload that has failed with something that another one would be rolled for.
func failsFor(w *Workload, among []Workload) string {
	for i := range among {
		failed := &among[i]
		var with []content.Release
		if failed.Pods.Failing > 0 {
			with = failed.ReleasesOf(failed.Records.Roll.Changed)
		}
		for _, f := range failed.Records.Failed {
			if r, ok := failed.Config.Release(f.Object()); ok && failed.Health.Health != rollout.Healthy || ok && !failed.IsCurrent() {
				with = append(with, r)
			}
		}
		for _, r := range w.ReleasesOf(w.Change.Keys) {
			if slices.Contains(with, r) && w.Config.CountsIn(r.Object, failed.Namespace, w.Namespace) {
				return failed.String()
			}
		}
	}
	return ""
}

// recordAll are the workloads of a plan once its records are written.
func recordAll(plan Plan) []Workload {
	workloads := slices.Clone(plan.Workloads)
	for i := range workloads {
		w := &workloads[i]
		c := w.condition(now)
		w.Records.Failed, w.Records.Condition = w.failed(now), c
		w.failure, w.stop, w.kept = nil, nil, workload.Keepings{}
	}
	return workloads
}

// Others wait until it is read whether an object that was created again has the content with which a workload has
// failed. One that is as old as before has another content, if its digest is another.
func TestWhatWasCreatedAgainIsReadFirst(t *testing.T) {
	for name, created := range map[string]time.Time{"again": now, "long ago": now.Add(-time.Hour)} {
		t.Run(name, func(t *testing.T) {
			old, db := secret("shop", "db", "bad"), secret("shop", "db", "bad")
			old.UID, db.CreationTimestamp = "before", metav1.NewTime(created)
			a := outdated("a", using(db), failedWith(now.Add(-time.Minute), old), func(w *Workload) { w.Hashes, w.Records.Failed[0].Hash = nil, "old" })
			b := Decide(Observed{Now: now, Workloads: []Workload{a, outdated("b", using(db), changed(dbKey))}}, Options{}).Workloads[1]
			if held := b.stop != nil && b.stop.Reason == ReasonConfigUnverified; held != created.Equal(now) {
				t.Errorf("%v", b.stop)
			}
		})
	}
}

// Pods that had no room until the deadline of their workload was over have not failed by that.
func TestPodsThatStartLateHaveTheirTime(t *testing.T) {
	db := secret("shop", "db", "1")
	for ago, want := range map[time.Duration]bool{time.Minute: false, time.Hour: true} {
		a := outdated("a", using(db), rolledFor(9*time.Minute, dbKey), hangs, stalled, func(w *Workload) { w.Pods.LastStart = now.Add(-ago) })
		decided := Decide(Observed{Now: now, Workloads: []Workload{a}}, Options{}).Workloads[0]
		if got := decided.failure != nil; got != want {
			t.Errorf("started %s ago: failed %v", ago, got)
		}
		if at := a.wake(now); !want && at.After(now.Add(9*time.Minute)) {
			t.Errorf("it is looked at again at %s", at)
		}
	}
}
