package transport_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/notify/transport"
)

// alertmanager has the part of Alertmanager's API that silences need. It is a model: no test
// asks a real one.
type alertmanager struct {
	mu    sync.Mutex
	all   []map[string]any
	calls []string
}

// ServeHTTP implements [http.Handler].
func (a *alertmanager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+strings.Join(r.URL.Query()["filter"], " ")))
	switch r.Method {
	case http.MethodGet:
		_ = json.NewEncoder(w).Encode(a.all) //nolint:errchkjson // it was read as JSON
	case http.MethodPost:
		s := map[string]any{}
		_ = json.NewDecoder(r.Body).Decode(&s)
		if s["id"] == nil {
			s["id"] = fmt.Sprint("s", len(a.all))
		}
		s["status"] = map[string]any{"state": "active"}
		a.all = slices.DeleteFunc(a.all, func(o map[string]any) bool { return o["id"] == s["id"] })
		a.all = append(a.all, s)
	case http.MethodDelete:
		for _, s := range a.all {
			if strings.HasSuffix(r.URL.Path, "/silence/"+s["id"].(string)) {
				s["status"] = map[string]any{"state": "expired"}
			}
		}
	}
}

func (a *alertmanager) texts() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	texts := make([]string, len(a.all))
	for i, s := range a.all {
		texts[i] = fmt.Sprintf("%s %s %s", s["id"], s["endsAt"], s["status"].(map[string]any)["state"])
	}
	slices.Sort(texts)
	return texts
}

// TestSilences checks that a silence is made, prolonged and ended, that those of others are left
// alone, and what is asked for.
func TestSilences(t *testing.T) {
	t.Parallel()
	a := &alertmanager{}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	target, err := transport.To(loopback(t), "shop", spec(t, "alertmanager: {silence: true}"), secret(map[string]string{"address": server.URL + "/am"}))
	if err != nil {
		t.Fatal(err)
	}
	unit := &transport.Unit{Namespace: "shop", Notifier: "n", StatefulSet: "zone.b"}
	for i := range 3 {
		if failure := target.Silence(t.Context(), unit, noon.Add(time.Duration(i)*transport.RenewEvery)); failure != nil {
			t.Fatal(failure.Text)
		}
	}
	other := *unit
	other.Notifier = "other"
	if failure := target.Silence(t.Context(), &other, noon); failure != nil {
		t.Fatal(failure.Text)
	}
	want := []string{"s0 2026-05-04T12:05:00Z active", "s1 2026-05-04T12:05:00Z active", "s2 2026-05-04T12:03:00Z active", "s3 2026-05-04T12:03:00Z active"}
	if got := a.texts(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if failure := target.EndSilence(t.Context(), unit); failure != nil {
		t.Fatal(failure.Text)
	}
	want[0], want[1] = strings.ReplaceAll(want[0], "active", "expired"), strings.ReplaceAll(want[1], "active", "expired")
	if got := a.texts(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if failure := target.Silence(t.Context(), unit, noon); failure != nil || len(a.texts()) != 6 {
		t.Errorf("one that is over is not prolonged: %+v, %q", failure, a.texts())
	}
	first := []string{
		`GET /am/api/v2/silences namespace="shop" pod=~"zone\\.b-[0-9]+"`, "POST /am/api/v2/silences",
		`GET /am/api/v2/silences namespace="shop" statefulset="zone.b"`, "POST /am/api/v2/silences",
	}
	if !slices.Equal(a.calls[:4], first) || !slices.ContainsFunc(a.calls, regexp.MustCompile(`^DELETE /am/api/v2/silence/s1$`).MatchString) {
		t.Errorf("asked %q", a.calls)
	}
}

// TestSilenceFailures checks what is said of an Alertmanager that does not answer as one.
func TestSilenceFailures(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]string{"<html>": "the answer is no list of silences", "": "the answer is no list of silences"} {
		r := newReceiver(t)
		r.says = says
		target, err := transport.To(loopback(t), "shop", spec(t, "alertmanager: {silence: true}"), secret(map[string]string{"address": r.url}))
		if err != nil {
			t.Fatal(err)
		}
		if failure := target.Silence(t.Context(), &transport.Unit{Namespace: "shop", Notifier: "n", StatefulSet: "b"}, noon); failure == nil || failure.Text != want {
			t.Errorf("%q: %+v", says, failure)
		}
		r.status, r.says = 503, "later"
		if failure := target.EndSilence(t.Context(), &transport.Unit{Namespace: "shop", Notifier: "n", StatefulSet: "b"}); failure == nil || failure.Text != "status 503: later" {
			t.Errorf("%+v", failure)
		}
	}
}
