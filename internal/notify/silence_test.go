package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/lab/testenv/fault"
)

// silencer has the part of Alertmanager's API that silences need.
type silencer struct {
	mu     sync.Mutex
	status int
	all    []silence
	posts  int
}

type silence struct {
	ID        string            `json:"id"`
	Matchers  []json.RawMessage `json:"matchers"`
	StartsAt  time.Time         `json:"startsAt"`
	EndsAt    time.Time         `json:"endsAt"`
	CreatedBy string            `json:"createdBy"`
	Status    struct {
		State string `json:"state"`
	} `json:"status"`
}

// ServeHTTP implements [http.Handler].
func (s *silencer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != http.StatusOK {
		w.WriteHeader(s.status)
		return
	}
	if path.Base(r.URL.Path) == "alerts" {
		return
	}
	switch r.Method {
	case http.MethodGet:
		_ = json.NewEncoder(w).Encode(s.all) //nolint:errchkjson // it was read as JSON
	case http.MethodPost:
		s.posts++
		n := silence{}
		_ = json.NewDecoder(r.Body).Decode(&n)
		n.Status.State = "active"
		if i := slices.IndexFunc(s.all, func(o silence) bool { return o.ID == n.ID }); i >= 0 {
			s.all[i] = n
			return
		}
		n.ID = fmt.Sprint("s", len(s.all))
		s.all = append(s.all, n)
	case http.MethodDelete:
		for i := range s.all {
			if s.all[i].ID == path.Base(r.URL.Path) {
				s.all[i].Status.State = "expired"
			}
		}
	}
}

// active is how many silences are active, and how many were made in all.
func (s *silencer) active() (active, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.all {
		if s.all[i].Status.State == "active" {
			active++
		}
	}
	return active, len(s.all)
}

func (s *silencer) answers(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// silenced makes a Notifier that silences alerts.
func (w *world) silenced() *silencer {
	w.t.Helper()
	s := &silencer{status: http.StatusOK}
	server := httptest.NewServer(s)
	w.t.Cleanup(server.Close)
	w.secret(map[string]string{"address": server.URL})
	w.notifier("channel", "alertmanager: {silence: true}")
	w.says("channel", fine)
	return s
}

// locks holds the lock of a group for a zone, releases it if there is none.
func (w *world) locks(zone string) {
	w.t.Helper()
	g := &v1alpha1.RolloutGroup{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "ingester"}, g); err != nil {
		w.t.Fatal(err)
	}
	g.Status.Phase, g.Status.Lock = "Complete", nil
	g.Status.Zones = []v1alpha1.Zone{{Name: "zone-a", Ready: 3, Total: 3}, {Name: "zone-b", Ready: 3, Total: 3}}
	if zone != "" {
		g.Status.Phase = "Progressing"
		g.Status.Lock = &v1alpha1.Lock{Holder: "rollout/ingester", Purpose: v1alpha1.PurposeRollout, Zone: zone, Since: metav1.NowMicro()}
	}
	if err := w.client.Status().Update(w.t.Context(), g); err != nil {
		w.t.Fatal(err)
	}
}

// silences waits until exactly these zones are recorded, with as many silences at most as ever
// were made.
func (w *world) silences(s *silencer, most int, zones ...string) {
	w.t.Helper()
	w.once(func() error {
		recorded := w.get("channel").Status.Silenced
		active, all := s.active()
		if !slices.Equal(recorded, zones) || active < 2*len(zones) || len(zones) == 0 && active > 0 || all > most {
			return fmt.Errorf("recorded %q, %d silences are active, %d were made", recorded, active, all)
		}
		return nil
	})
}

// silencesStory takes two zones down, one after the other.
func (w *world) silencesStory(most int) *silencer {
	w.t.Helper()
	w.group("ingester", "", "Running")
	s := w.silenced()
	w.locks("zone-a")
	w.silences(s, most, "zone-a")
	w.locks("zone-b")
	w.silences(s, most, "zone-b")
	w.locks("")
	w.silences(s, most)
	return s
}

// TestSilences checks that each zone has its silences while it is down, and that nothing is
// written or sent once none is.
func TestSilences(t *testing.T) {
	w := newWorld(t)
	w.manage(w.requests)
	s := w.silencesStory(4)
	posts := s.posts
	w.rests(func() { w.locks("") })
	if s.posts != posts {
		t.Error("a silence of nothing")
	}
}

// TestFaultSilences stops the manager at each write of the story, and starts another one: no silence remains, and none is
// made twice.
func TestFaultSilences(t *testing.T) {
	testenv.Story(t, 4, func(t *testing.T, begin fault.Begin) {
		w := newWorld(t)
		w.meanwhile = begin(func(i *fault.Injector) func() { return w.manage(i) })
		w.silencesStory(4)
	})
}

// TestFaultTwoSilencers has two managers that know nothing of each other: one silence more may
// be made in the same moment, and all end.
func TestFaultTwoSilencers(t *testing.T) {
	w := newWorld(t)
	w.manage(fault.New())
	w.manage(fault.New())
	w.silencesStory(8)
}

// TestAnAlertmanagerThatIsDown checks that a silence that cannot be made is reported once, and
// that one that cannot be ended is left to lapse.
func TestAnAlertmanagerThatIsDown(t *testing.T) {
	w := newWorld(t)
	w.manage(w.requests)
	w.group("ingester", "", "Running")
	s := w.silenced()
	s.answers(http.StatusServiceUnavailable)
	w.locks("zone-a")
	testenv.Eventually(t, func(context.Context) error {
		list := w.requests.Requests()
		if !slices.ContainsFunc(list, func(r fault.Request) bool { return r.Verb == "create" && r.Resource == "events" }) {
			return errors.New("there is no Event")
		}
		return nil
	})
	w.locks("")
	w.silences(s, 0)
}

// TestAZoneThatFailsIsNotSilenced checks that the silences end when the rollout stops.
func TestAZoneThatFailsIsNotSilenced(t *testing.T) {
	w := newWorld(t)
	w.manage(w.requests)
	w.group("ingester", "", "Running")
	s := w.silenced()
	w.locks("zone-a")
	w.silences(s, 2, "zone-a")
	w.group("ingester", why, "Running")
	w.silences(s, 2)
}
