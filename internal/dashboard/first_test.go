package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/rollout"
)

// slow has the first look of a cluster hand on what it is given, and end once there is no more.
func (c *cluster) slow() chan<- describe.Partial {
	parts := make(chan describe.Partial)
	c.holds = func(ctx context.Context, part func(describe.Partial)) {
		for {
			select {
			case <-ctx.Done():
				return
			case p, ok := <-parts:
				if !ok {
					return
				}
				part(p)
			}
		}
	}
	return parts
}

// web is a workload whose state is not known yet.
func web() describe.Unit {
	return describe.Unit{Ref: describe.Ref{Kind: "Deployment", Namespace: "shop", Name: "web"}, Ring: describe.Config, Phase: describe.PhaseReading, Sentence: "Deployment web is being read"}
}

// answer is what a request got.
type answer struct {
	status int
	text   string
}

// asks sends a request, and hands on the answer once there is one.
func asks(t *testing.T, address string, change ...func(*http.Request)) <-chan answer {
	t.Helper()
	answers := make(chan answer, 1)
	go func() {
		status, _, text := ask(t, address, change...)
		answers <- answer{status, text}
	}()
	return answers
}

// mentions fails unless a page contains some texts, and none of others.
func mentions(t *testing.T, page string, wants, not []string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not said:\n%s", want, page)
		}
	}
	for _, text := range not {
		if strings.Contains(page, text) {
			t.Errorf("%q is said:\n%s", text, page)
		}
	}
}

// Before the first look has ended, a page shows what is known so far and what is still being read,
// and receives more. A program, and a page that needs the whole, wait for it.
func TestThePageBeforeAllIsRead(t *testing.T) {
	moving := group(rollout.PhaseProgressing, zone("zone-a", rollout.PhaseProgressing, 1))
	c, address := serve(t, moving)
	parts := c.slow()
	const nothing, none = "Nothing moves", "No ring rolls anything here"

	_, _, text := ask(t, address+"/")
	mentions(t, text, []string{`role="status">Still reading: config, zones, plans, fleet.`, `<a href="/">Read again</a>`, `data-version="1"`}, []string{nothing, "<h2>"})
	_, _, text = ask(t, address+"/past")
	mentions(t, text, []string{"Still reading: config, zones, plans, fleet.", `<a href="/past">Read again</a>`, `data-version="1"`}, []string{none, "<table"})
	programs, pasts, why := asks(t, address+"/", asJSON), asks(t, address+"/past", asJSON), asks(t, address+"/why/rolloutgroup/ingester?namespace=mimir")

	events, leave := follow(t, address+"/live?version=1")
	defer leave()
	next := func(want string) {
		t.Helper()
		if got := <-events; got != want {
			t.Fatalf("event %q, not %q", got, want)
		}
	}
	named := describe.Partial{Units: []describe.Unit{web()}, Reading: describe.Rings()}
	parts <- named
	next("id: 2")
	_, _, text = ask(t, address+"/?all")
	mentions(t, text, []string{"What is being read", `href="/why/deployment/web?namespace=shop"`, `<a href="/?all">Read again</a>`, `data-version="2"`}, []string{nothing, "What waits", "What moves", "What is complete"})
	_, _, text = ask(t, address+"/past")
	mentions(t, text, []string{`href="/past/deployment/web?namespace=shop"`, "Still reading"}, nil)

	parts <- named // that is nothing new
	parts <- describe.Partial{Units: []describe.Unit{web(), moving}, Reading: []string{describe.Config, describe.Fleet}}
	next("id: 3")
	_, _, text = ask(t, address+"/")
	mentions(t, text, []string{"Still reading: config, fleet.", "What is being read", "What moves", "rolloutgroup/ingester", `data-version="3"`}, []string{nothing, "What waits"})

	parts <- describe.Partial{Units: []describe.Unit{moving}, Reading: []string{describe.Fleet}}
	next("id: 4")
	close(parts) // the whole has the same units
	next("id: 5")
	_, _, text = ask(t, address+"/")
	mentions(t, text, []string{"What moves", "rolloutgroup/ingester", `data-version="5"`}, []string{"Still reading", "being read"})
	_, _, text = ask(t, address+"/past")
	mentions(t, text, []string{"rolloutgroup/ingester"}, []string{"Still reading", "data-version"})

	found, all := describe.Description{}, []describe.Unit{}
	if err := errors.Join(json.Unmarshal([]byte((<-programs).text), &found), json.Unmarshal([]byte((<-pasts).text), &all)); err != nil {
		t.Fatal(err)
	}
	for _, units := range [][]describe.Unit{found.Units, all} {
		if len(units) != 1 || units[0].Name != "ingester" {
			t.Errorf("a program gets %+v", units)
		}
	}
	if got := <-why; got.status != http.StatusOK || !strings.Contains(got.text, "<svg") {
		t.Errorf("the page of an object draws nothing: %d: %s", got.status, got.text)
	}
	if c.looks != 1 {
		t.Errorf("%d looks", c.looks)
	}
}

// A first look that fails is an error, whatever it has shown before; a page that is open shows the
// rollouts once they can be read.
func TestTheFirstLookFails(t *testing.T) {
	c, address := serve(t)
	c.err = errors.New("connection refused")
	parts := c.slow()
	ask(t, address+"/")
	program := asks(t, address+"/", asJSON)
	events, leave := follow(t, address+"/live?version=1")
	defer leave()
	parts <- describe.Partial{Units: []describe.Unit{web()}, Reading: []string{describe.Config}}
	if got := <-events; got != "id: 2" {
		t.Fatalf("event %q", got)
	}
	close(parts)
	if got := <-events; got != "id: 3" {
		t.Fatalf("event %q", got)
	}
	for _, path := range []string{"/", "/past"} {
		status, _, text := ask(t, address+path)
		if mentions(t, text, []string{"connection refused"}, []string{"Still reading", "web"}); status != http.StatusBadGateway {
			t.Errorf("%s: status %d", path, status)
		}
	}
	if got := <-program; got.status != http.StatusBadGateway || !strings.Contains(got.text, `"error": "connection refused"`) {
		t.Errorf("a program gets %d: %s", got.status, got.text)
	}
	c.shows(nil, group(rollout.PhaseProgressing))
	if got := <-events; got != "id: 4" {
		t.Fatalf("event %q", got)
	}
	if status, _, text := ask(t, address+"/"); status != http.StatusOK || !strings.Contains(text, "What moves") {
		t.Errorf("status %d: %s", status, text)
	}
}

// A page that is open when the first look fails needs no change of the cluster to look again.
func TestAFailedFirstLookIsTakenAgain(t *testing.T) {
	c, address := serve(t, group(rollout.PhaseProgressing))
	parts := c.slow()
	ask(t, address+"/")
	events, leave := follow(t, address+"/live?version=1")
	defer leave()
	c.mu.Lock()
	c.err = errors.New("connection refused")
	c.mu.Unlock()
	close(parts)
	if got := <-events; got != "id: 2" {
		t.Fatalf("event %q", got)
	}
	c.mu.Lock()
	c.err, c.now = nil, c.now.Add(restMost)
	c.mu.Unlock()
	if got := <-events; got != "id: 3" {
		t.Fatalf("event %q", got)
	}
}

// What is answered before the first look has ended is what a person opens, and what keeps that page
// up to date.
func TestWhatShowsParts(t *testing.T) {
	p := &viewer{Source: &Source{First: 100}}
	for path, want := range map[string]bool{
		"/": true, "/?all": true, "/past": true, "/past/deployment/web": false, "/why/deployment/web": false, "/next": false,
		"/live?version=101": true, "/live?version=100": false, "/live?version=1": false, "/live": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		if got := p.showsParts(r); got != want {
			t.Errorf("%s: %t", path, got)
		}
		if asJSON(r); r.URL.Path != livePath && p.showsParts(r) {
			t.Errorf("%s of a program", path)
		}
	}
}

// Viewers who come while the first look is under way cost none of their own, and all are shown the
// same.
func TestViewersOfTheFirstLook(t *testing.T) {
	c, address := serve(t, group(rollout.PhaseComplete))
	parts := c.slow()
	ask(t, address+"/")
	parts <- describe.Partial{Units: []describe.Unit{web()}, Reading: []string{describe.Config}}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if status, _, text := ask(t, address+"/"); status != http.StatusOK || !strings.Contains(text, "Still reading") {
				t.Errorf("status %d: %s", status, text)
			}
		})
	}
	all.Wait()
	close(parts)
	_, _, text := ask(t, address+"/", asJSON)
	if !strings.Contains(text, "ingester") || c.looks != 1 {
		t.Errorf("%d looks: %s", c.looks, text)
	}
}
