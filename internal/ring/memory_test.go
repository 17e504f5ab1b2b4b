package ring_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/spillway-dev/spillway/internal/ring"
)

var errDenied = errors.New("denied by a webhook")

func aConflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "c", errDenied)
}

func change(act, object string) ring.Change { return ring.Change{Act: act, Object: object} }

func TestWhatWasMadeIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	e := ring.Expectations{}
	writes := []ring.Change{change("Delete", "a"), change("Delete", "b")}
	same := func(c *ring.Change) ring.Change { return *c }
	e.Learn(noon, writes[0], nil)
	left, again := ring.Unmade(&e, noon.Add(time.Second), writes, same)
	if len(left) != 1 || left[0] != writes[1] || !again.Equal(noon.Add(ring.ShownWithin)) {
		t.Errorf("left: %v, again at %s", left, again)
	}
	if left, _ = ring.Unmade(&e, noon.Add(ring.ShownWithin), writes, same); len(left) != 2 {
		t.Errorf("it is expected for ever: %v", left)
	}
	e.Learn(noon, writes[0], nil)
	e.Observed(writes[0])
	if left, _ = ring.Unmade(&e, noon, writes, same); len(left) != 2 {
		t.Errorf("what was undone is not made again: %v", left)
	}
}

func TestRefusalsBackOff(t *testing.T) {
	t.Parallel()
	e, c := ring.Expectations{}, change("Delete", "a")
	e.Learn(noon, c, errDenied)
	e.Learn(noon, c, errDenied)
	r := e.Refusals(noon)
	if at := r["a"].At; !at.Equal(noon.Add(time.Second)) || r["a"].Reason != errDenied.Error() || !r.Wake(noon).Equal(at) {
		t.Errorf("refusals: %v", r)
	}
	if !r.PutOff("a", noon) || r.PutOff("a", noon.Add(time.Second)) || r.PutOff("b", noon) {
		t.Error("a refused write waits until it is tried again, and no other does")
	}
	e.Learn(noon, c, aConflict())
	if got := e.Refusals(noon)["a"]; got != r["a"] {
		t.Errorf("a conflict counts as a refusal: %v", got)
	}
	if got := e.Refusals(r["a"].At.Add(ring.Refused().Most)); len(got) != 1 {
		t.Error("forgotten before the longest back-off is over")
	}
	if got := e.Refusals(noon.Add(time.Hour)); len(got) > 0 {
		t.Errorf("not forgotten: %v", got)
	}
	e.Learn(noon, c, errDenied)
	e.Learn(noon, c, nil)
	if got := e.Refusals(noon); len(got) > 0 {
		t.Errorf("refused, though made: %v", got)
	}
	e.Learn(noon, c, errDenied)
	e.Accept("a")
	if got := e.Refusals(noon); len(got) > 0 {
		t.Errorf("refused, though accepted: %v", got)
	}
}

func aConfigMap(uid string, version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: types.UID(uid), ResourceVersion: strconv.Itoa(version)}}
}

type (
	results = ring.Results[*corev1.ConfigMap, string]
	memory  = ring.Memory[*corev1.ConfigMap]
)

// What the API server has answered counts until the cache is as new.
func TestNewest(t *testing.T) {
	t.Parallel()
	var none *corev1.ConfigMap
	written := aConfigMap("1", 7)
	for name, c := range map[string]struct {
		created bool
		cached  *corev1.ConfigMap
		after   time.Duration
		want    string
	}{
		"the cache is older":              {cached: aConfigMap("1", 6), want: "7"},
		"the cache is as new":             {cached: aConfigMap("1", 7), want: "7"},
		"the cache is newer":              {cached: aConfigMap("1", 8), want: "8"},
		"it is a namesake":                {cached: aConfigMap("2", 6), want: "6"},
		"it was deleted":                  {cached: none},
		"it was created just now":         {cached: none, created: true, want: "7"},
		"it was created, and deleted":     {cached: none, created: true, after: 10 * time.Second},
		"it was created a moment ago":     {cached: none, created: true, after: 10*time.Second - 1, want: "7"},
		"it was created, and is shown":    {cached: aConfigMap("1", 9), created: true, want: "9"},
		"it was created, and shown older": {cached: aConfigMap("1", 6), created: true, want: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := memory{}
			ring.Learn(&m, noon, &results{Object: written, Created: c.created}, false)
			got := ""
			if o := m.Newest(c.cached, noon.Add(c.after)); o != nil {
				got = o.ResourceVersion
			}
			if got != c.want {
				t.Errorf("version %q, want %q", got, c.want)
			}
		})
	}
}

// Once the cache has shown the object, or something newer, it decides.
func TestNewestForgetsTheAnswer(t *testing.T) {
	t.Parallel()
	m, none := memory{}, (*corev1.ConfigMap)(nil)
	ring.Learn(&m, noon, &results{Object: aConfigMap("1", 7), Created: true}, false)
	if m.Newest(aConfigMap("1", 6), noon); m.Newest(none, noon) != none {
		t.Error("it was shown and is gone, and counts as not shown yet")
	}
	ring.Learn(&m, noon, &results{Object: aConfigMap("1", 7)}, false)
	m.Newest(aConfigMap("2", 8), noon)
	if o := m.Newest(aConfigMap("1", 6), noon); o.ResourceVersion != "6" {
		t.Errorf("version %s, of an answer that was forgotten", o.ResourceVersion)
	}
}

// A conflict shows that the answer is old: the cache decides.
func TestConflictForgetsTheAnswer(t *testing.T) {
	t.Parallel()
	m := memory{}
	ring.Learn(&m, noon, &results{Object: aConfigMap("1", 7)}, false)
	wake := ring.Learn(&m, noon, &results{Err: aConflict()}, false)
	if o := m.Newest(aConfigMap("1", 6), noon); o.ResourceVersion != "6" {
		t.Errorf("version %s", o.ResourceVersion)
	}
	again := ring.Learn(&m, noon, &results{Err: aConflict()}, false)
	if first := ring.Conflicts().First; !wake.Equal(noon.Add(first)) || !again.Equal(noon.Add(2*first)) {
		t.Errorf("it is observed again at %s and %s", wake, again)
	}
	if wake = ring.Learn(&m, noon, &results{}, false); !wake.IsZero() {
		t.Errorf("it is observed again at %s, without a conflict", wake)
	}
	if wake = ring.Learn(&m, noon, &results{Err: aConflict()}, false); !wake.Equal(noon.Add(ring.Conflicts().First)) {
		t.Errorf("it is observed again at %s after the first conflict in a row", wake)
	}
}

func TestStatusDue(t *testing.T) {
	t.Parallel()
	m, delay := memory{}, 5*time.Second
	for name, c := range map[string]struct {
		status ring.Status
		due    bool
		wake   time.Time
	}{
		"it is the same": {},
		"it permits":     {status: ring.Status{Permits: true}, due: true},
		"it is urgent":   {status: ring.Status{Differs: true, Urgent: true}, due: true},
		"it can wait":    {status: ring.Status{Differs: true}, wake: noon.Add(delay)},
	} {
		if due, wake := m.StatusDue(noon, delay, c.status); due != c.due || !wake.Equal(c.wake) {
			t.Errorf("%s: %v, %s", name, due, wake)
		}
	}
	ring.Learn(&m, noon, &results{}, true)
	ring.Learn(&m, noon.Add(time.Second), &results{}, true)
	differs := ring.Status{Differs: true}
	if due, wake := m.StatusDue(noon.Add(delay-1), delay, differs); due || !wake.Equal(noon.Add(delay)) {
		t.Errorf("before the delay is over: %v, %s", due, wake)
	}
	if due, _ := m.StatusDue(noon.Add(delay), delay, differs); !due {
		t.Error("the delay is over")
	}
	ring.Learn(&m, noon, &results{}, false)
	if due, _ := m.StatusDue(noon.Add(delay), delay, differs); due {
		t.Error("it was the same in between")
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "c", errDenied)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		err            error
		fails, decides bool
	}{
		"none": {}, "refused": {errDenied, true, false}, "conflict": {aConflict(), false, true}, "too late": {ring.ErrTooLate, false, true},
		"terminating": {terminating, false, false},
	} {
		r := results{Err: c.err}
		if r.Failure() != nil != c.fails || r.Conflict() != c.decides {
			t.Errorf("%s: failure %v, conflict %v", name, r.Failure(), r.Conflict())
		}
		r = results{}
		r.Add(change("Delete", "a"), "a", c.err)
		if r.Failure() != nil || r.Conflict() != c.decides {
			t.Errorf("%s of a write: failure %v, conflict %v", name, r.Failure(), r.Conflict())
		}
	}
}

func TestWritten(t *testing.T) {
	t.Parallel()
	if r := (results{}); r.Written() {
		t.Error("nothing was written")
	}
	if r := (results{Object: aConfigMap("1", 7)}); !r.Written() {
		t.Error("the object was written")
	}
}

func TestMemories(t *testing.T) {
	t.Parallel()
	var all ring.Memories[memory]
	key := types.NamespacedName{Namespace: "n", Name: "a"}
	create := func() *memory { return &memory{} }
	first := all.Of(key, create)
	if all.Of(key, create) != first {
		t.Error("a memory was lost")
	}
	if all.Forget(key); all.Of(key, create) == first {
		t.Error("a memory was not forgotten")
	}
}

// A write that is too late is not begun, and one that takes too long is given up.
func TestDo(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return noon }
	began := false
	err := ring.Do(t.Context(), now, noon, func(context.Context) error { began = true; return nil })
	if began || !errors.Is(err, ring.ErrTooLate) || !ring.IsConflict(err) {
		t.Errorf("begun: %v, %v", began, err)
	}
	for until, want := range map[time.Time]time.Duration{
		{}: ring.WriteTimeout, noon.Add(time.Hour): ring.WriteTimeout, noon.Add(time.Second): time.Second,
	} {
		err := ring.Do(t.Context(), now, until, func(ctx context.Context) error {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > want {
				t.Errorf("the deadline is %s", deadline)
			}
			return errDenied
		})
		if !errors.Is(err, errDenied) {
			t.Error(err)
		}
	}
}

// A status that the API server does not accept is not tried again by each event, and the
// attempts become fewer.
func TestAStatusThatIsRefusedIsPutOff(t *testing.T) {
	t.Parallel()
	kind := schema.GroupKind{Kind: "RolloutGroup"}
	invalid := apierrors.NewInvalid(kind, "g", field.ErrorList{field.TooLong(field.NewPath("status"), "", 32768)})
	for name, err := range map[string]error{
		"invalid": invalid, "wrapped": fmt.Errorf("write the status: %w", invalid), "too large": apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"too large for the storage": apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, now, writes := memory{}, noon, 0
			for now.Before(noon.Add(time.Hour)) { // an event comes each second
				if due, _ := m.StatusDue(now, time.Second, ring.Status{Differs: true, Urgent: true}); due {
					writes++
					r := results{Err: err}
					wake := ring.Learn(&m, now, &r, true)
					if r.Failure() != nil || !wake.After(now) {
						t.Fatalf("it is tried again at %s, and fails with %v", wake, r.Failure())
					}
				}
				now = now.Add(time.Second)
			}
			if writes > 40 {
				t.Errorf("%d writes in an hour", writes)
			}
			ring.Learn(&m, now, &results{Object: aConfigMap("1", 7)}, false)
			if due, _ := m.StatusDue(now, time.Second, ring.Status{Permits: true}); !due {
				t.Error("it is put off after one was accepted")
			}
		})
	}
	for name, err := range map[string]error{"conflict": aConflict(), "outage": apierrors.NewInternalError(errors.New("context deadline exceeded"))} {
		m := memory{}
		ring.Learn(&m, noon, &results{Err: err}, true)
		if due, _ := m.StatusDue(noon, time.Second, ring.Status{Permits: true}); !due {
			t.Errorf("%s: it is put off", name)
		}
	}
}
