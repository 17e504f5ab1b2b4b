package guard_test

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
)

func wantPrepared(t *testing.T, pods *testenv.Pods, want ...string) {
	t.Helper()
	if got := pods.Prepared(); !slices.Equal(got, want) {
		t.Errorf("prepared: %v, want %v", got, want)
	}
}

func TestPodsThatGoAreTold(t *testing.T) {
	for name, lower := range map[string]func(*world, string, int32) error{
		"by the object":    (*world).patch,
		"by an autoscaler": func(w *world, name string, n int32) error { return w.scale(name, n) },
	} {
		t.Run(name, func(t *testing.T) {
			w, pods := newWorld(t), testenv.ServePods(t)
			w.guarded()
			w.group(zone("zone-a", 3, told(pods)), zone("zone-b", 3))
			wantNo(t, lower(w, "zone-a", 1))
			wantPrepared(t, pods, "zone-a-1", "zone-a-2")
			s := w.status()
			if s.Downscale == nil || s.Downscale.Zone != "zone-a" || s.Downscale.From != 3 || s.Downscale.To != 1 || s.Downscale.AdmittedAt == nil {
				t.Errorf("written down: %+v", s.Downscale)
			}
			if s.Lock == nil || s.Lock.Holder != "downscale/zone-a" || s.Lock.Purpose != v1alpha1.PurposeDownscale || s.Lock.Expires == nil {
				t.Errorf("lock: %+v", s.Lock)
			}
			w.ready("zone-a", 1)
			wantNo(t, lower(w, "zone-a", 0)) // which settles the one before
			wantPrepared(t, pods, "zone-a-0", "zone-a-1", "zone-a-2")
			if s = w.status(); len(s.Downscales) != 1 || s.Downscales[0].To != 1 {
				t.Errorf("remembered: %+v", s.Downscales)
			}
		})
	}
}

func TestADryRunCallsNoPod(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	w.group(zone("zone-a", 2, told(pods)))
	wantNo(t, w.scale("zone-a", 1, client.DryRunAll))
	if len(pods.Calls()) > 0 || w.status().Lock != nil {
		t.Errorf("calls %v, lock %v", pods.Calls(), w.status().Lock)
	}
}

// Defect 8: rollout-operator patches the object under admission, so an autoscaler gets
// a conflict, and a patch is tried over and over.
func TestDefect8AnAutoscalersWriteIsAdmitted(t *testing.T) {
	for name, lower := range map[string]func(*world, string, int32) error{
		"put of the scale": func(w *world, name string, n int32) error { return w.scale(name, n) },
		"patch":            (*world).patch,
	} {
		t.Run(name, func(t *testing.T) {
			w, pods := newWorld(t), testenv.ServePods(t)
			w.guarded()
			w.group(zone("zone-a", 2, told(pods)), zone("zone-b", 2))
			pods.Answer("zone-a-1", func(rw http.ResponseWriter, r *http.Request) {
				<-time.After(1500 * time.Millisecond) // it has to take its time: that is the case
				pods.Obey(rw, r)
			})
			wantNo(t, lower(w, "zone-a", 1))
			if n := pods.Calls()["POST zone-a-1"]; n != 1 {
				t.Errorf("the Pod was called %d times", n)
			}
		})
	}
}

func TestWhatPodsMayDo(t *testing.T) {
	elsewhere := testenv.ServePods(t)
	big := []byte(strings.Repeat("x", 1<<20))
	for name, test := range map[string]struct {
		answer  func(*testenv.Pods) http.HandlerFunc
		timeout time.Duration
		passes  bool
	}{
		"fails": {answer: func(*testenv.Pods) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
		}},
		"never answers": {timeout: time.Second, answer: func(*testenv.Pods) http.HandlerFunc {
			return func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					<-r.Context().Done()
				}
			}
		}},
		"hangs up": {answer: func(*testenv.Pods) http.HandlerFunc {
			return func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		}},
		"sends elsewhere": {answer: func(*testenv.Pods) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://"+elsewhere.IP+":"+elsewhere.Port+"/", http.StatusTemporaryRedirect)
			}
		}},
		"talks for 20 MB": {passes: true, answer: func(p *testenv.Pods) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				p.Obey(w, r)
				for range 20 {
					_, _ = w.Write(big)
				}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, pods := newWorld(t), testenv.ServePods(t)
			w.options.PodTimeout = cmp.Or(test.timeout, w.options.PodTimeout)
			w.guarded()
			w.group(zone("zone-a", 4, told(pods)), zone("zone-b", 1))
			pods.Answer("zone-a-2", test.answer(pods))
			err := w.scale("zone-a", 1)
			if test.passes {
				wantNo(t, err)
				wantPrepared(t, pods, "zone-a-1", "zone-a-2", "zone-a-3")
				return
			}
			wantError(t, err, "downscale of statefulsets/zone-a in "+w.namespace+
				" from 4 to 1 replicas is not allowed because one or more pods failed to prepare for shutdown.")
			wantPrepared(t, pods)
			if n := *w.set("zone-a").Spec.Replicas; n != 4 {
				t.Errorf("%d replicas", n)
			}
			if len(elsewhere.Calls()) > 0 {
				t.Errorf("a redirect was followed: %v", elsewhere.Calls())
			}
		})
	}
}

// A call that is under way when another one fails ends before it is undone: of two calls
// nothing says which a Pod obeys first.
func TestACallThatIsUnderWayEndsBeforeItIsUndone(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	w.group(zone("zone-a", 3, told(pods)), zone("zone-b", 1))
	called, obeyed := make(chan struct{}), make(chan struct{})
	pods.Answer("zone-a-1", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			<-called
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})
	pods.Answer("zone-a-2", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			close(called)
			<-time.After(300 * time.Millisecond) // longer than zone-a-1 takes to fail, whether the caller waits or not
			defer close(obeyed)
		}
		pods.Obey(rw, r)
	})
	wantError(t, w.scale("zone-a", 1), "one or more pods failed to prepare for shutdown.")
	<-obeyed
	wantPrepared(t, pods)
	if s := w.status(); s.Downscale != nil || s.Lock != nil {
		t.Errorf("written down: %+v, lock %+v", s.Downscale, s.Lock)
	}
}

// A Pod that has not answered in its time may obey later. The downscale stays written
// down, and the scaling ring undoes it once more; but the lock is free immediately, and
// what is refused is noted.
func TestAPodThatMayObeyLaterIsNotUndone(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.options.PodTimeout = time.Second
	w.guarded()
	w.group(zone("zone-a", 2, told(pods)), zone("zone-b", 1))
	denied, obeyed := make(chan struct{}), make(chan struct{})
	pods.Answer("zone-a-1", func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			<-denied
			defer close(obeyed)
		}
		pods.Obey(rw, r)
	})
	wantError(t, w.scale("zone-a", 1), "one or more pods failed to prepare for shutdown.")
	close(denied)
	<-obeyed
	wantPrepared(t, pods, "zone-a-1")
	s := w.status()
	if s.Downscale == nil || !s.Downscale.Refused || s.Lock != nil {
		t.Errorf("written down: %+v, lock %+v", s.Downscale, s.Lock)
	}
	if r := s.RefusedDownscales; len(r) != 1 || r[0].Zone != "zone-a" || !strings.Contains(r[0].Message, "zone-a-1") {
		t.Errorf("noted: %+v", r)
	}
	wantError(t, w.scale("zone-a", 1), "the lock is held by downscale/zone-a, which was refused: its Pods are called to stay")
	w.create(budget(most(1)))
	wantNo(t, w.evict("zone-b-0"))
}

// Defect 9: rollout-operator undoes with the context of a request that is over.
func TestDefect9OfAHundredPodsOneFailsAndAllOthersAreUndone(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.options.PodTimeout = time.Second
	w.guarded()
	w.group(zone("zone-a", 100, told(pods)), zone("zone-b", 1))
	var once sync.Once
	pods.Answer("zone-a-40", func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { <-r.Context().Done() })
		panic(http.ErrAbortHandler)
	})
	wantError(t, w.scale("zone-a", 0), "one or more pods failed to prepare for shutdown.")
	wantPrepared(t, pods)
	undone := 0
	for call := range pods.Calls() {
		if strings.HasPrefix(call, "DELETE ") {
			undone++
		}
	}
	if undone < 100 {
		t.Errorf("%d were undone", undone)
	}
}

func TestTheGroupDecides(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	recent := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	w.group(zone("zone-a", 2, told(pods)),
		zone("zone-b", 2, annotated("grafana.com/last-downscale", recent), labeled("grafana.com/min-time-between-zones-downscale", "1h")))
	prefix := "downscale of statefulsets/zone-a in " + w.namespace + " from 2 to 1 replicas is not allowed because "
	at, _ := time.Parse(time.RFC3339, recent)
	wantError(t, w.scale("zone-a", 1), prefix+"statefulset zone-b was downscaled at "+at.UTC().String()+" and is labelled to wait 1h0m0s between zone downscales")

	// Issue 61: the annotation wins over the label.
	w.edit("zone-b", annotated("grafana.com/min-time-between-zones-downscale", "1s"))
	w.edit("zone-b", func(s *sts) { s.Spec.Template.Spec.Containers[0].Image = "v2" })
	testenv.Eventually(t, func(ctxT) error {
		if s := w.set("zone-b"); s.Status.ObservedGeneration != s.Generation {
			return errors.New("not observed")
		}
		return nil
	})
	wantError(t, w.scale("zone-a", 1), prefix+"statefulset zone-b has 2 non-updated replicas and 0 non-ready replicas")

	w.edit("zone-b", func(s *sts) { s.Spec.Template.Spec.Containers[0].Image = "v1" })
	w.edit("zone-b", annotated("grafana.com/last-downscale", "yesterday"))
	wantError(t, w.scale("zone-a", 1), prefix+"parsing downscale annotations failed.")
	if calls := pods.Calls(); len(calls) > 0 {
		t.Errorf("Pods were called: %v", calls)
	}
}

func TestWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		change option
		want   string
	}{
		"port":    {annotated("grafana.com/prepare-downscale-http-port", ""), "the grafana.com/prepare-downscale-http-port annotation is not set or empty."},
		"path":    {annotated("grafana.com/prepare-downscale-http-path", ""), "the grafana.com/prepare-downscale-http-path annotation is not set or empty."},
		"service": {func(s *sts) { s.Spec.ServiceName = "" }, "the serviceName is not set or empty."},
		"scheme":  {annotated("spillway.dev/prepare-downscale-http-scheme", "ftp"), `must be "http" or "https".`},
	} {
		t.Run(name, func(t *testing.T) {
			w, pods := newWorld(t), testenv.ServePods(t)
			w.guarded()
			w.group(zone("zone-a", 2, told(pods), test.change))
			wantError(t, w.scale("zone-a", 1), "from 2 to 1 replicas is not allowed because ")
			wantError(t, w.patch("zone-a", 1), test.want)
		})
	}
}

// Issue 79: a downscale and a rollout exclude each other, and what waits says for what.
func TestIssue79ARolloutAndADownscaleExcludeEachOther(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	w.group(zone("zone-a", 2, told(pods)), zone("zone-b", 2))
	g := &v1alpha1.RolloutGroup{}
	w.get(ingester, g)
	since := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	g.Status.Lock = &v1alpha1.Lock{Holder: "rollout/ingester", Purpose: v1alpha1.PurposeRollout, Zone: "zone-b", Since: metav1.NewMicroTime(since)}
	wantNo(t, w.client.Status().Update(t.Context(), g))
	wantError(t, w.scale("zone-a", 1), "the lock is held by rollout/ingester for rollout of zone-b since 4 May 12:00:00 UTC")
	if calls := pods.Calls(); len(calls) > 0 {
		t.Errorf("Pods were called: %v", calls)
	}
}

// Defect 6, issue 81: rollout-operator admits two zones at a time.
func TestDefect6TwoZonesAtTheSameInstant(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	hour := annotated("spillway.dev/min-time-between-zones-downscale", "1h")
	w.group(zone("zone-a", 2, told(pods), hour), zone("zone-b", 2, told(pods), hour))
	for round := range *rounds {
		var errs [2]error
		var group sync.WaitGroup
		for i, name := range []string{"zone-a", "zone-b"} {
			group.Go(func() {
				errs[i] = retry.RetryOnConflict(retry.DefaultRetry, func() error { return w.scale(name, 1) }) // with the status of the StatefulSet
			})
		}
		group.Wait()
		admitted := 0
		for _, err := range errs {
			if err == nil {
				admitted++
			} else if !strings.Contains(err.Error(), "is not allowed because") {
				t.Fatal(err)
			}
		}
		if admitted != 1 {
			t.Fatalf("round %d: %d were admitted: %v", round, admitted, errs)
		}
		w.restore()
	}
}

// restore brings both zones back, and makes the group forget.
func (w *world) restore() {
	w.t.Helper()
	for _, name := range []string{"zone-a", "zone-b"} {
		if *w.set(name).Spec.Replicas != 2 {
			wantNo(w.t, w.patch(name, 2))
		}
		w.ready(name, 2)
	}
	g := &v1alpha1.RolloutGroup{}
	w.get(ingester, g)
	g.Status = v1alpha1.RolloutGroupStatus{}
	wantNo(w.t, w.client.Status().Update(w.t.Context(), g))
}

// A StatefulSet whose group has no object is not scaled down: no rollout could be kept
// from doing something else at the same time.
func TestNoLockNoDownscale(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	w.create(zone("zone-a", 2, told(pods)))
	w.ready("zone-a", 2)
	wantError(t, w.scale("zone-a", 1), "the lock of group ingester cannot be acquired: its RolloutGroup does not exist")
}

func TestWithoutAGroupThereIsNothingToLock(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	w.create(zone("alone", 3, told(pods), func(s *sts) { s.Labels["rollout-group"] = "" }))
	w.ready("alone", 3)
	pods.Answer("alone-2", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTeapot) })
	wantError(t, w.scale("alone", 1), "one or more pods failed to prepare for shutdown.")
	wantPrepared(t, pods)
	pods.Answer("alone-2", nil)
	wantNo(t, w.scale("alone", 1))
	wantPrepared(t, pods, "alone-1", "alone-2")
}

// Issue 125: ordinals may start elsewhere than at 0.
func TestIssue125OrdinalsMayStartAnywhere(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	w.group(zone("zone-a", 3, told(pods), func(s *sts) { s.Spec.Ordinals = &ordinals{Start: 5} }))
	wantNo(t, w.scale("zone-a", 2))
	wantPrepared(t, pods, "zone-a-7")
}

func (w *world) edit(name string, change option) {
	w.t.Helper()
	set := w.set(name)
	changed := set.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	change(changed)
	if err := w.client.Patch(w.t.Context(), changed, client.MergeFrom(set)); err != nil {
		w.t.Fatal(fmt.Errorf("edit %s: %w", name, err))
	}
}

// A rollout that takes the lock at the very instant of a downscale: one of them has it.
func TestIssue79ARolloutAndADownscaleAtTheSameInstant(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	w.group(zone("zone-a", 2, told(pods)), zone("zone-b", 2))
	for round := range *rounds {
		var scaled, rolls error
		var group sync.WaitGroup
		group.Go(func() { scaled = w.scale("zone-a", 1) })
		group.Go(func() { rolls = w.startRollout() })
		group.Wait()
		if (scaled == nil) == (rolls == nil) {
			t.Fatalf("round %d: the downscale: %v, the rollout: %v", round, scaled, rolls)
		}
		w.restore()
	}
}

// startRollout takes the lock as the rollout does: by compare-and-swap, if it is free.
func (w *world) startRollout() error {
	g := &v1alpha1.RolloutGroup{}
	w.get(ingester, g)
	if g.Status.Lock != nil {
		return errors.New("the lock is held by " + g.Status.Lock.Holder)
	}
	g.Status.Lock = &v1alpha1.Lock{Holder: "rollout/ingester", Purpose: v1alpha1.PurposeRollout, Zone: "zone-b", Since: metav1.NowMicro()}
	return w.client.Status().Update(w.t.Context(), g)
}

// A Pod that does not run counts as prepared only if its claims were never bound.
func TestAPodThatMayHaveDataIsPrepared(t *testing.T) {
	w, pods := newWorld(t), testenv.ServePods(t)
	w.guarded()
	claims := func(s *sts) { s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*claim("data")} }
	alone := func(s *sts) { delete(s.Labels, "rollout-group") }
	kept, other := claim("data-zone-a-1"), claim("data-zone-c-1")
	kept.Spec.VolumeName, other.Spec.VolumeName = "its-volume", "its-volume"
	w.group(zone("zone-b", 1))
	w.create(kept, other, zone("zone-a", 2, told(pods), claims), zone("zone-c", 2, told(pods), claims, alone), zone("zone-d", 2, told(pods), claims, alone))
	for _, name := range []string{"zone-a", "zone-c", "zone-d"} {
		testenv.Eventually(t, func(ctxT) error {
			if s := w.set(name); s.Status.Replicas != 2 {
				return fmt.Errorf("%s has %d Pods", name, s.Status.Replicas)
			}
			return nil
		})
	}
	const sentence = " does not run, so it cannot be prepared, and PersistentVolumeClaim data-"
	wantError(t, w.scale("zone-a", 1), "one or more pods failed to prepare for shutdown. Pod zone-a-1"+sentence+"zone-a-1 may have its data")
	wantError(t, w.scale("zone-c", 1), "one or more pods failed to prepare for shutdown. Pod zone-c-1"+sentence+"zone-c-1 may have its data")
	wantNo(t, w.scale("zone-d", 1))
	if s := w.status(); s.Lock != nil || s.Downscale != nil || len(pods.Calls()) > 0 {
		t.Errorf("lock %+v, written down %+v, calls %v", s.Lock, s.Downscale, pods.Calls())
	}
}

// claim is a claim that no controller binds.
func claim(name string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.StorageClassName = new("none")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return c
}
