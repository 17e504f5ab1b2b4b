package config

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
)

// TestRetries checks what becomes of a read or a write that failed: it is put off, longer
// each time, until it succeeds or the spec is another. A conflict is not, because the
// decision behind it does not hold any more.
func TestRetries(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	refused := errors.New("refused")
	wrote := func(errs ...error) func(*observer) time.Time {
		return func(o *observer) (wake time.Time) {
			w := decision.Workload{Workload: o.cache["u"].workload}
			for _, err := range errs {
				write := decision.Write{Workload: &w, Rolls: true}
				wake = o.learn(noon, &results{{Change: write.Change(), Write: write, Err: err}}, false)
			}
			return wake
		}
	}
	for name, test := range map[string]struct {
		do   func(*observer) time.Time
		want *decision.Retry
		wake time.Duration
	}{
		"a write that was made":             {do: wrote(nil), wake: -1},
		"a write that failed":               {do: wrote(refused), want: &decision.Retry{At: noon.Add(500 * time.Millisecond), Reason: "refused", Write: true}, wake: 500 * time.Millisecond},
		"one that failed three times":       {do: wrote(refused, refused, refused), want: &decision.Retry{At: noon.Add(2 * time.Second), Reason: "refused", Write: true}, wake: 2 * time.Second},
		"one that was made at last":         {do: wrote(refused, refused, nil), wake: -1},
		"a conflict":                        {do: wrote(ring.ErrConflict), wake: 10 * time.Millisecond},
		"a third conflict":                  {do: wrote(ring.ErrConflict, ring.ErrConflict, ring.ErrConflict), wake: 40 * time.Millisecond},
		"a conflict after a write":          {do: wrote(ring.ErrConflict, nil, ring.ErrConflict), wake: 10 * time.Millisecond},
		"a conflict of one that had failed": {do: wrote(refused, ring.ErrConflict), want: &decision.Retry{At: noon.Add(500 * time.Millisecond), Reason: "refused", Write: true}, wake: 10 * time.Millisecond},
		"Pods that were freed": {do: func(o *observer) time.Time {
			write := decision.Write{Workload: &decision.Workload{Workload: o.cache["u"].workload}, Deletes: []workload.WaitingPod{{Name: "a"}}}
			return o.learn(noon, &results{{Change: write.Change(), Write: write}}, false)
		}},
		"a read that failed": {do: func(o *observer) time.Time {
			o.retries.Refuse(noon, reading(&o.cache["u"].workload), "unread")
			return o.learn(noon, &results{}, false)
		}, want: &decision.Retry{At: noon.Add(500 * time.Millisecond), Reason: "unread"}, wake: 500 * time.Millisecond},
		"what became due during the pass": {do: func(o *observer) time.Time {
			wrote(refused)(o)
			o.options.Now = func() time.Time { return noon.Add(time.Second) }
			return o.learn(noon, &results{}, false)
		}, want: &decision.Retry{At: noon.Add(500 * time.Millisecond), Reason: "refused", Write: true}, wake: 500 * time.Millisecond},
		"another spec": {do: func(o *observer) time.Time {
			wrote(refused)(o)
			o.retries.Refuse(noon, reading(&o.cache["u"].workload), "unread")
			o.read(t.Context(), deployment("2", 2), nil, noon)
			return o.learn(noon, &results{}, false)
		}, wake: -1},
		"the same spec with another status": {do: func(o *observer) time.Time {
			wrote(refused)(o)
			o.read(t.Context(), deployment("2", 1), nil, noon)
			return o.learn(noon, &results{}, false)
		}, want: &decision.Retry{At: noon.Add(500 * time.Millisecond), Reason: "refused", Write: true}, wake: 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObserver(Options{Now: func() time.Time { return noon }}, nil, content.Source{})
			o.read(t.Context(), deployment("1", 1), nil, noon)
			wake := test.do(o)
			got := retryOf(o.retries.Refusals(noon), &o.cache["u"].workload)
			if (got == nil) != (test.want == nil) || got != nil && *got != *test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
			if wake.IsZero() != (test.wake < 0) || !wake.IsZero() && wake.Sub(noon) != test.wake {
				t.Errorf("it observes again at %s, want after %s", wake, test.wake)
			}
		})
	}
}

// deployment is one of a version and a generation.
func deployment(version string, generation int64) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", ResourceVersion: version, Generation: generation}}
}
