package zones_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/lab/testenv/measured"
)

// TestNotifierTellsOfARollout: a rollout that begins, stops at a gate, continues and ends gives
// exactly these messages, with the sentence of the status and of the Event.
func TestNotifierTellsOfARollout(t *testing.T) {
	w, p := newWorld(t), measured.New(t)
	var mu sync.Mutex
	var told []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e := struct {
			Data struct {
				Phase    string `json:"phase"`
				Sentence string `json:"sentence"`
				Next     string `json:"next"`
			} `json:"data"`
		}{}
		_ = json.NewDecoder(r.Body).Decode(&e)
		mu.Lock()
		defer mu.Unlock()
		told = append(told, strings.TrimSpace(e.Data.Phase+" "+e.Data.Sentence)+"; "+e.Data.Next)
	}))
	t.Cleanup(server.Close)
	p.Says("zone-b", "0.2")
	w.create(p.Template(w.namespace, "error-rate"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "channel"}, StringData: map[string]string{"address": server.URL}})
	w.gated(onDelete, `[{"name":"error-rate"}]`, measured.Reached(t))
	w.create(&v1alpha1.Notifier{ObjectMeta: metav1.ObjectMeta{Name: "channel"}, Spec: v1alpha1.NotifierSpec{
		Webhook: &v1alpha1.WebhookNotifier{}, SecretRef: v1alpha1.LocalSecretReference{Name: "channel"},
	}})
	w.roll("v2")
	const why = "zone-b is stopped: gate error-rate was refused: failed measurements: 1 (failureLimit 0); last: value 0.2"
	w.saysEventually("Failed", why)
	next := func(verb string) string { return "; spillway " + verb + " rolloutgroup/ingester -n " + w.namespace }
	want := []string{"Started" + next("explain"), "Stopped " + why + next("explain")}
	tells := func() {
		t.Helper()
		w.eventually(func() error {
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(told, want) {
				return fmt.Errorf("told %q, want %q", told, want)
			}
			return nil
		})
	}
	tells()
	w.patch(&v1alpha1.RolloutGroup{}, ingester, `{"spec":{"gates":[{"name":"error-rate","onRefusal":"Continue"}]}}`)
	w.complete("v2")
	want = append(want, "Ended"+next("history"))
	tells()
	w.eventually(func() error { // what was received is then recorded as delivered
		n := &v1alpha1.Notifier{}
		if err := w.get(n, "channel"); err != nil {
			return err
		}
		if len(n.Status.Queue) > 0 {
			return fmt.Errorf("%d messages are not recorded as delivered", len(n.Status.Queue))
		}
		return nil
	})
	w.requests.Reset()
	w.rests()
	tells()
}
