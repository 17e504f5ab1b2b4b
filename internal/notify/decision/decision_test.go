package decision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/notify/decision"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// group is a subject with rollouts that began one minute after the other.
func group(rollouts ...decision.Rollout) decision.Subject {
	for i := range rollouts {
		if rollouts[i].StartedAt.IsZero() {
			rollouts[i].StartedAt = noon.Add(time.Duration(i) * time.Minute)
		}
		if rollouts[i].State >= decision.Ended && rollouts[i].EndedAt.IsZero() {
			rollouts[i].EndedAt = rollouts[i].StartedAt.Add(time.Second)
		}
	}
	return decision.Subject{Key: "RolloutGroup/u1", Ring: "zones", Kind: "RolloutGroup", Name: "ingester", Rollouts: rollouts}
}

func running(id string) decision.Rollout { return decision.Rollout{ID: id, Reason: "Running"} }

func stopped(id, sentence string) decision.Rollout {
	return decision.Rollout{ID: id, State: decision.Stopped, Reason: "GateRefused", Sentence: sentence}
}

func ended(id, outcome string) decision.Rollout {
	return decision.Rollout{ID: id, State: decision.Ended, Reason: outcome}
}

// teller is a Notifier, and what it has told.
type teller struct {
	notifier v1alpha1.Notifier
	now      time.Time
	// unread are the kinds that are not read.
	unread bool
	told   []string
	ids    []string
}

func newTeller(change ...func(*v1alpha1.NotifierSpec)) *teller {
	n := v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "n", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	n.Spec.Webhook = &v1alpha1.WebhookNotifier{}
	for _, c := range change {
		c(&n.Spec)
	}
	return &teller{notifier: n, now: noon.Add(time.Hour)}
}

func (l *teller) observed(subjects []decision.Subject) *decision.Observed {
	return &decision.Observed{Now: l.now, Notifier: &l.notifier, Subjects: subjects, Missing: func(string) *decision.Gone {
		if l.unread {
			return nil
		}
		return &decision.Gone{Ring: "zones", Kind: "RolloutGroup", Outcome: decision.OutcomeDeleted}
	}}
}

// sees plays what the manager does, with a receiver that has all that is sent.
func (l *teller) sees(subjects ...decision.Subject) *teller {
	for range 100 {
		p := decision.Decide(l.observed(subjects))
		switch {
		case p.Persist:
			l.notifier.Status = p.Status
		case len(p.Deliver) > 0:
			for _, m := range p.Deliver {
				l.told, l.ids = append(l.told, said(&m)), append(l.ids, m.ID)
			}
			l.notifier.Status = decision.Delivered(p.Status, p.Deliver, nil, l.now)
		default:
			return l
		}
	}
	panic("it does not come to rest")
}

func said(m *v1alpha1.NotifierMessage) string {
	text := fmt.Sprintf("%s %s (%s, %s)", m.Rollout, m.Phase, m.Reason, m.Severity)
	if m.Sentence != "" {
		text += ": " + m.Sentence
	}
	return text
}

func (l *teller) has(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, l.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	l.told = nil
}

// TestRollouts has the courses of rollouts, as statuses show them one after the other.
func TestRollouts(t *testing.T) {
	t.Parallel()
	deleted := []decision.Subject(nil)
	for name, test := range map[string]struct {
		seen [][]decision.Subject
		want []string
	}{
		"one that is seen at every moment": {
			[][]decision.Subject{{group()}, {group(running("1"))}, {group(stopped("1", "why"))}, {group(running("1"))}, {group(ended("1", "Complete"))}},
			[]string{"1 Started (Running, info)", "1 Stopped (GateRefused, error): why", "1 Ended (Complete, info)"},
		},
		"one that no manager saw begin":  {[][]decision.Subject{{group(stopped("1", "why"))}}, []string{"1 Started (Running, info)", "1 Stopped (GateRefused, error): why"}},
		"one that no manager saw at all": {[][]decision.Subject{{group(ended("1", "Complete"))}}, []string{"1 Started (Running, info)", "1 Ended (Complete, info)"}},
		"another sentence is no news":    {[][]decision.Subject{{group(stopped("1", "why"))}, {group(stopped("1", "also"))}}, []string{"1 Started (Running, info)", "1 Stopped (GateRefused, error): why"}},
		"stopped twice": {
			[][]decision.Subject{{group(stopped("1", "why"))}, {group(running("1"))}, {group(stopped("1", "again"))}},
			[]string{"1 Started (Running, info)", "1 Stopped (GateRefused, error): why", "1 Stopped (GateRefused, error): again"},
		},
		"several at a time": {
			[][]decision.Subject{{group(running("1"))}, {group(ended("1", "Superseded"), ended("2", "Failed"), running("3"))}},
			[]string{"1 Started (Running, info)", "1 Ended (Superseded, info)", "2 Started (Running, info)", "2 Ended (Failed, warning)", "3 Started (Running, info)"},
		},
		"returned": {
			[][]decision.Subject{{group(decision.Rollout{ID: "v2", State: decision.Returned, Reason: "RolledBack", Sentence: "v2 failed"})}},
			[]string{"v2 Started (Running, info)", "v2 Returned (RolledBack, warning): v2 failed"},
		},
		"deleted": {
			[][]decision.Subject{{group(stopped("1", "why"))}, deleted},
			[]string{"1 Started (Running, info)", "1 Stopped (GateRefused, error): why", "1 Ended (Deleted, warning)"},
		},
		"deleted after it had ended": {[][]decision.Subject{{group(ended("1", "Complete"))}, deleted}, []string{"1 Started (Running, info)", "1 Ended (Complete, info)"}},
		"continued after it had ended": {
			[][]decision.Subject{{group(ended("1", "Failed"))}, {group(running("1"))}, {group(ended("1", "Complete"))}},
			[]string{"1 Started (Running, info)", "1 Ended (Failed, warning)", "1 Started (Running, info)", "1 Ended (Complete, info)"},
		},
		"no history has it any more": {
			[][]decision.Subject{{group(running("1"))}, {group(decision.Rollout{ID: "9", Reason: "Running", StartedAt: noon.Add(time.Minute)})}},
			[]string{"1 Started (Running, info)", "1 Ended (Unknown, warning)", "9 Started (Running, info)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTeller()
			for _, s := range test.seen {
				l.sees(s...)
			}
			l.has(t, test.want...)
			seen := map[string]bool{}
			for _, id := range l.ids {
				if seen[id] || !strings.HasPrefix(id, "u1/") {
					t.Errorf("the identity %s", id)
				}
				seen[id] = true
			}
		})
	}
}

// TestWhatWasBefore checks that a new Notifier tells of no rollout that had ended, and that an
// old one that is not in the history any more brings none of them back.
func TestWhatWasBefore(t *testing.T) {
	t.Parallel()
	past := ended("1", "Complete")
	past.StartedAt = noon.Add(-2 * time.Hour)
	l := newTeller().sees(group(past))
	l.has(t)
	l.sees(group(past, running("2")))
	l.has(t, "2 Started (Running, info)")
	l.notifier.Status.Told[0].Rollout = "pruned"
	l.sees(group(past, running("2"))).sees(group()).sees(group(past))
	l.has(t)
}

// TestWhatIsNotRead checks that nothing has ended that is not known to have.
func TestWhatIsNotRead(t *testing.T) {
	t.Parallel()
	l := newTeller().sees(group(running("1")))
	l.unread = true
	l.sees()
	l.unread = false
	l.sees(group(ended("1", "Complete")))
	l.has(t, "1 Started (Running, info)", "1 Ended (Complete, info)")
}

// TestReleaseComesAgain checks that the same content has another identity when it is released
// another time.
func TestReleaseComesAgain(t *testing.T) {
	t.Parallel()
	release := decision.Subject{Key: "ConfigPolicy/u1/Secret db@abc", Ring: "config", Kind: "Secret", Name: "db", Rollouts: []decision.Rollout{{ID: "abc"}}}
	l := newTeller().sees(release).sees()
	l.now = l.now.Add(time.Hour)
	l.sees(release)
	if len(l.ids) != 3 || l.ids[0] == l.ids[2] {
		t.Errorf("the identities %q", l.ids)
	}
}

// TestFilter checks what filters let through, and that one that is not valid tells nothing and
// records nothing.
func TestFilter(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string][]string{
		`severity == "error"`:       {"1 Stopped (GateRefused, error): why"},
		`phase in ["Started"]`:      {"1 Started (Running, info)"},
		`object.kind == "Instance"`: nil,
		`object.name == "ingester"`: {"1 Started (Running, info)", "1 Stopped (GateRefused, error): why"},
		`ring == "zones" && object.namespace == "shop" && reason == "GateRefused"`: {"1 Stopped (GateRefused, error): why"},
		// What cannot be judged is sent.
		`int(reason) > 1 || phase == "Started"`: {"1 Started (Running, info)", "1 Stopped (GateRefused, error): why"},
	} {
		l := newTeller(func(s *v1alpha1.NotifierSpec) { s.Filter = filter })
		l.sees(group(stopped("1", "why"))).has(t, want...)
	}
	for filter, want := range map[string]string{
		"severity":          `spec.filter: "severity" has the type string, and must have the type bool; its variables are the strings ring, phase,`,
		"sevrity == 'x'":    `spec.filter: "sevrity == 'x'": undeclared reference to 'sevrity'`,
		"object.nme == 'x'": "spec.filter: ",
		"(":                 "spec.filter: ",
	} {
		l := newTeller(func(s *v1alpha1.NotifierSpec) { s.Filter = filter })
		p := decision.Decide(l.observed([]decision.Subject{group(running("1"))}))
		if p.Persist || p.Problem == nil || !strings.Contains(p.Problem.Error(), want) {
			t.Errorf("%s: %+v", filter, p)
		}
	}
}

// TestSuspend checks that nothing is reported later of what happened meanwhile.
func TestSuspend(t *testing.T) {
	t.Parallel()
	l := newTeller(func(s *v1alpha1.NotifierSpec) { s.Suspend = true }).sees(group(stopped("1", "why")))
	l.has(t)
	l.notifier.Spec.Suspend = false
	l.sees(group(stopped("1", "why"))).sees(group(ended("1", "Complete")))
	l.has(t, "1 Ended (Complete, info)")
}

// TestAlerts checks that an Alertmanager gets what is wrong, and that this is over, whatever the
// filter.
func TestAlerts(t *testing.T) {
	t.Parallel()
	l := newTeller(func(s *v1alpha1.NotifierSpec) {
		s.Webhook, s.Alertmanager, s.Filter = nil, &v1alpha1.AlertmanagerNotifier{}, `severity == "error"`
	})
	l.sees(group(running("1"))).sees(group(stopped("1", "why")))
	if p := decision.Decide(l.observed([]decision.Subject{group(stopped("1", "still"))})); len(p.Stopped) != 1 || p.Stopped[0].Sentence != "still" || p.Stopped[0].ID != l.ids[0] {
		t.Errorf("what lasts is %+v, told %q", p.Stopped, l.ids)
	}
	l.sees(group(running("1"))).sees(group(stopped("1", "again"))).sees(group(ended("1", "Complete")))
	l.has(t, "1 Stopped (GateRefused, error): why", "1 Resumed (Running, info)", "1 Stopped (GateRefused, error): again", "1 Resumed (Running, info)")
}

// TestBounds checks that nothing grows without end, and that what is dropped is counted.
func TestBounds(t *testing.T) {
	t.Parallel()
	l := newTeller()
	var subjects []decision.Subject
	for i := range 600 {
		s := group(stopped("1", strings.Repeat("x", 5000)))
		s.Key, s.Name = fmt.Sprintf("RolloutGroup/u%03d", i), fmt.Sprint("g", i)
		subjects = append(subjects, s)
	}
	p := decision.Decide(l.observed(subjects))
	s := &p.Status
	if len(s.Queue) != 64 || s.Pending != 64 || s.Dropped != 2*512-64 || p.Dropped != 2*512-64 || len(s.Told) != 512 || p.Untold != 600-512 || len(s.Queue[63].Sentence) != 1024 {
		t.Errorf("queue %d, pending %d, dropped %d, told %d, untold %d", len(s.Queue), s.Pending, s.Dropped, len(s.Told), p.Untold)
	}
	if last := s.Queue[63]; last.Name != "g511" || last.Phase != v1alpha1.RolloutStopped {
		t.Errorf("the newest message is dropped; the last is %s %s", last.Name, last.Phase)
	}
	flapping := newTeller()
	for range 50 {
		flapping.sees(group(stopped("1", "why"))).sees(group(running("1")))
	}
	if len(flapping.told) != 1+8 {
		t.Errorf("%d messages about one rollout", len(flapping.told))
	}
}

// TestRetries checks that a message is kept, and sent again later and later, and that what the
// receiver rejects holds up the others only so often.
func TestRetries(t *testing.T) {
	t.Parallel()
	l := newTeller()
	subjects := []decision.Subject{group(stopped("1", "why"))}
	l.notifier.Status = decision.Decide(l.observed(subjects)).Status
	waits := []time.Duration{}
	for range 12 {
		p := decision.Decide(l.observed(subjects))
		if len(p.Deliver) != 2 {
			t.Fatalf("it delivers %d", len(p.Deliver))
		}
		l.notifier.Status = decision.Delivered(p.Status, nil, &decision.Failure{Text: strings.Repeat("y", 1000)}, l.now)
		s := &l.notifier.Status
		p = decision.Decide(l.observed(subjects))
		if p.Persist || len(p.Deliver) > 0 || !p.Wake.Equal(s.RetryAt.Time) || len(s.LastError) != 512 || s.Pending != 2 {
			t.Fatalf("after a failure: %+v", p)
		}
		waits, l.now = append(waits, p.Wake.Sub(l.now)), p.Wake
	}
	if waits[0] != time.Second || waits[1] != 2*time.Second || waits[11] != 5*time.Minute {
		t.Errorf("it waits %s", waits)
	}
	p := decision.Decide(l.observed(subjects))
	l.notifier.Status = decision.Delivered(p.Status, p.Deliver[:1], &decision.Failure{Text: "no", Rejected: true}, l.now)
	for i := range 4 {
		if s := &l.notifier.Status; s.Pending != 1 || int(s.Attempts) != i+1 || s.LastDelivery == nil {
			t.Fatalf("after %d rejections: %+v", i+1, s)
		}
		l.notifier.Status = decision.Delivered(l.notifier.Status, nil, &decision.Failure{Text: "no", Rejected: true}, l.now)
	}
	if s := &l.notifier.Status; s.Pending != 0 || s.Dropped != 1 || s.Attempts != 0 || s.RetryAt != nil {
		t.Errorf("after the last rejection: %+v", s)
	}
}

// TestVerify checks that a new generation is tried, also while a retry is waited for, and that
// one without messages is tried again if it fails.
func TestVerify(t *testing.T) {
	t.Parallel()
	l := newTeller()
	l.notifier.Generation = 1
	p := decision.Decide(l.observed(nil))
	if p.Persist || !p.Verify {
		t.Errorf("a new Notifier: %+v", p)
	}
	l.notifier.Status = decision.Delivered(p.Status, nil, &decision.Failure{Text: errors.ErrUnsupported.Error()}, l.now)
	l.notifier.Status.ObservedGeneration = 1
	if p = decision.Decide(l.observed(nil)); p.Verify || p.Wake.IsZero() {
		t.Errorf("it waits: %+v", p)
	}
	l.notifier.Generation = 2
	if p = decision.Decide(l.observed(nil)); !p.Verify {
		t.Errorf("another spec: %+v", p)
	}
	l.notifier.Generation, l.now = 1, l.notifier.Status.RetryAt.Time
	if p = decision.Decide(l.observed(nil)); !p.Verify {
		t.Errorf("it is time: %+v", p)
	}
}
