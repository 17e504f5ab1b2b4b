package config_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/lab/testenv"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
	"github.com/spillway-dev/spillway/internal/outbound"
)

// toldOf is a webhook, and the messages that it gets: "Stopped Secret/db: SENTENCE".
type toldOf struct {
	mu   sync.Mutex
	told []string
}

// ServeHTTP implements [http.Handler].
func (o *toldOf) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	e := struct {
		Subject string `json:"subject"`
		Data    struct {
			Phase    string `json:"phase"`
			Sentence string `json:"sentence"`
		} `json:"data"`
	}{}
	_ = json.NewDecoder(r.Body).Decode(&e)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, e.Data.Phase+" "+e.Subject+": "+e.Data.Sentence)
}

// notified makes a Notifier in the world, and lets the manager reach it.
func (w *world) notified() (*toldOf, func(*manager.Options)) {
	w.t.Helper()
	o := &toldOf{}
	server := httptest.NewServer(o)
	w.t.Cleanup(server.Close)
	hosts, err := outbound.ParseHosts([]string{"127.0.0.1"})
	if err != nil {
		w.t.Fatal(err)
	}
	kinds, err := manifests.KindsOfPart(manifests.Notify)
	if err != nil {
		w.t.Fatal(err)
	}
	testenv.Kinds(w.t, w.client, []client.Object{kinds[0]})
	w.secret("channel", "address", server.URL)
	w.apply("apiVersion: spillway.dev/v1alpha1\nkind: Notifier\nmetadata: {name: channel}\nspec: {webhook: {}, secretRef: {name: channel}}")
	return o, func(m *manager.Options) { m.Gates.Hosts = hosts }
}

// says waits until these are the messages, by their beginnings.
func (o *toldOf) says(w *world, want ...string) {
	w.t.Helper()
	w.eventually(func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if !slices.EqualFunc(o.told, want, strings.HasPrefix) {
			return fmt.Errorf("told %q, want %q", o.told, want)
		}
		return nil
	})
}

// A release that stops at its first workload gives exactly these messages, with the sentence of
// the status; what follows the fix is another release.
func TestANotifierTellsOfAReleaseThatStops(t *testing.T) {
	w := newWorld(t)
	w.options.CoalesceWindow = 0
	underGates(w, "stages: [{name: first, workloads: 1}, {name: rest}]")
	w.halt()
	o, reach := w.notified()
	w.manage(reach)
	w.secret("db", "p", "bad")
	r := w.phase("staged", "Failed")
	bad := []string{"Started Secret/db: ", "Stopped Secret/db: " + r.WaitingFor}
	o.says(w, bad...)
	w.secret("db", "p", "fixed")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	w.eventually(func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		got := slices.Clone(o.told)
		for i := range got {
			got[i], _, _ = strings.Cut(got[i], " ")
		}
		if want := []string{"Started", "Stopped", "Ended", "Started", "Ended"}; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			return fmt.Errorf("told %q", o.told)
		}
		return nil
	})
}

// A release that gives workloads their previous config back is reported to be returned.
func TestANotifierTellsOfAReleaseThatIsReturned(t *testing.T) {
	w := newWorld(t)
	pinnable(w)
	w.policy("staged", pinsAndReturns)
	plainly(w, "app1", "app2", "app3")
	o, reach := w.notified()
	w.manage(reach)
	first := w.pinnedAnew("Deployment", "app1", "")
	w.ready("app1", "app2", "app3")
	w.phase("staged", "Complete")
	w.secret("db", "p", "bad")
	w.isBack("Deployment", "app1", first)
	w.eventually(func() error {
		r := w.status("staged").Releases
		o.mu.Lock()
		defer o.mu.Unlock()
		last := len(o.told) - 1
		if len(r) != 1 || r[0].RolledBack != 1 || last < 1 || !strings.HasPrefix(o.told[0], "Started Secret/db: ") || !strings.HasPrefix(o.told[last], "Returned Secret/db: ") {
			return fmt.Errorf("told %q, the status is %+v", o.told, r)
		}
		return nil
	})
}
