package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/internal/simulate/record"
	"github.com/spillway-dev/spillway/rollout"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// cluster is what a source says, and how often it was asked.
type cluster struct {
	mu      sync.Mutex
	units   []describe.Unit
	err     error
	looks   int
	now     time.Time
	wake    time.Time
	none    string
	changed chan struct{}
	// holds, if it is set, is called by a look before it ends.
	holds func(ctx context.Context, part func(describe.Partial))
}

// shows sets what a look shows from now on, a minute later.
func (c *cluster) shows(err error, units ...describe.Unit) {
	c.mu.Lock()
	c.units, c.err, c.now = units, err, c.now.Add(time.Minute)
	c.mu.Unlock()
	c.changed <- struct{}{}
}

func (c *cluster) look(ctx context.Context, part func(describe.Partial)) (describe.Description, error) {
	if c.holds != nil {
		c.holds(ctx, part)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	return describe.Description{Units: c.units, NoManager: c.none, Wake: c.wake}, c.err
}

func (c *cluster) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

const token = "a-token"

// serve serves the pages of a cluster.
func serve(t *testing.T, units ...describe.Unit) (*cluster, string) {
	t.Helper()
	return serveSteered(t, nil, units...)
}

// serveSteered serves pages on which something can be done.
func serveSteered(t *testing.T, steering Steering, units ...describe.Unit) (*cluster, string) {
	t.Helper()
	return serveAs(t, func(s *Source) { s.Steering = steering }, units...)
}

// serveAs serves pages of which some things are changed.
func serveAs(t *testing.T, change func(*Source), units ...describe.Unit) (*cluster, string) {
	t.Helper()
	c := &cluster{units: units, now: noon, changed: make(chan struct{}, 1)}
	s := Source{
		Place: "all namespaces", Now: c.clock, Changed: c.changed, Look: c.look,
		Named: func(namespace, object string) (describe.Ref, error) {
			return describe.Named(func() (apimeta.RESTMapper, error) { return apimeta.NewDefaultRESTMapper(nil), nil }, namespace, object)
		},
		Explain: func(_ context.Context, ref describe.Ref) (explain.Chain, error) {
			since := noon.Add(-time.Hour)
			return explain.Chain{
				Links: []explain.Link{{Ref: ref, Reason: "MissingConfig", Sentence: "it waits for <b>Secret</b> db", Since: &since, Next: "kubectl create secret generic db -n shop"}},
				Facts: []describe.Fact{{Name: "uses", Values: []string{"Secret db", "missing"}}},
			}, nil
		},
		History: func(_ context.Context, ref describe.Ref) ([]history.Entry, error) {
			if ref.Name == "none" {
				return nil, fmt.Errorf("%s %w in namespace %s", ref, history.ErrNotFound, ref.Namespace)
			}
			began := noon.Add(-time.Minute)
			return []history.Entry{{Ref: ref, What: "config", Change: "Secret db: password", By: "kubectl", Started: &began, Outcome: "Running"}, {Ref: ref, What: "revision 1", By: "anna", Outcome: "Complete"}}, nil
		},
		NoManager: func(context.Context, bool) string { return c.none },
		Forecast: func(_ context.Context, namespace, _ string, ifs []forecast.Supposition) (forecast.Answer, error) {
			when := describe.Range{Earliest: noon.Add(time.Minute), Expected: noon.Add(2 * time.Minute), Latest: noon.Add(4 * time.Minute)}
			course := forecast.Course{Ring: "zones", Namespace: "mimir", Object: "rolloutgroup/ingester", Ends: &when, Steps: []forecast.Coming{{Step: record.Step{Ring: "zones", Object: "rolloutgroup/ingester", Unit: "zone-a", Does: "is opened"}, When: when}}}
			answer := forecast.Answer{Outlook: forecast.Outlook{At: noon, Rollouts: []forecast.Course{course}}}
			if len(ifs) > 0 {
				answer.If = &forecast.Alternative{Suppositions: []string{ifs[0].String()}, Rollouts: []forecast.Course{{
					Ring: "zones", Namespace: "mimir", Object: course.Object, Waits: &record.Wait{Sentence: "zone-a is paused"},
				}}}
			}
			return answer, nil
		},
	}
	change(&s)
	server := httptest.NewServer(New(t.Context(), s, token, 1234))
	t.Cleanup(server.Close)
	return c, server.URL
}

// ask sends a request as a program that knows the token, unless that is changed.
func ask(t *testing.T, address string, change ...func(*http.Request)) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for _, c := range change {
		c(r)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var text strings.Builder
	if _, err := bufio.NewReader(answer.Body).WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, text.String()
}

func asJSON(r *http.Request) { r.Header.Set("Accept", "application/json") }

func group(phase rollout.Phase, parts ...describe.Unit) describe.Unit {
	return describe.Unit{
		Ref: describe.Ref{Kind: "RolloutGroup", Namespace: "mimir", Name: "ingester"}, Ring: describe.Zones, Phase: phase,
		Done: 2, Total: 6, Counted: "Pods", Sentence: "RolloutGroup ingester is waiting", Units: parts,
	}
}

func zone(name string, phase rollout.Phase, done int, pods ...describe.Unit) describe.Unit {
	return describe.Unit{Ref: describe.Ref{Kind: "Zone", Name: name}, Ring: describe.Zones, Phase: phase, Done: done, Total: 3, Counted: "Pods", Sentence: name + " is " + string(phase), Units: pods}
}

// A client without the token is refused, and so is one that comes by another name than
// that of this machine: that is another page in the browser of the person.
func TestGuard(t *testing.T) {
	_, address := serve(t, group(rollout.PhaseComplete))
	without := func(r *http.Request) { r.Header.Del("Authorization") }
	cookie := func(value string) func(*http.Request) {
		return func(r *http.Request) {
			without(r)
			r.AddCookie(&http.Cookie{Name: "spillway-1234", Value: value})
		}
	}
	for name, test := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
	}{
		"a program with the token":      {"/", func(*http.Request) {}, http.StatusOK},
		"a browser that was let in":     {"/", cookie(token), http.StatusOK},
		"another user":                  {"/", without, http.StatusUnauthorized},
		"a forged cookie":               {"/", cookie("another"), http.StatusUnauthorized},
		"a forged token":                {"/?token=another", without, http.StatusUnauthorized},
		"an empty token":                {"/?token=", without, http.StatusUnauthorized},
		"who follows":                   {"/live", without, http.StatusUnauthorized},
		"a file":                        {"/assets/live.js", without, http.StatusUnauthorized},
		"a name that a site has chosen": {"/", func(r *http.Request) { r.Host = "rebound.example:1234" }, http.StatusMisdirectedRequest},
		"localhost":                     {"/", func(r *http.Request) { r.Host = "localhost:1234" }, http.StatusOK},
		"a change":                      {"/", func(r *http.Request) { r.Method = http.MethodPost }, http.StatusForbidden},
		"another page":                  {"/admin", func(*http.Request) {}, http.StatusNotFound},
		"another file":                  {"/assets/..%2fguard.go", func(*http.Request) {}, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			status, header, text := ask(t, address+test.path, test.change)
			if status != test.status {
				t.Errorf("status %d, want %d: %s", status, test.status, text)
			}
			if got := header.Get("Content-Security-Policy"); got != policy {
				t.Errorf("Content-Security-Policy %q", got)
			}
		})
	}
}

// The token does not stay in the address, and leads to no other place.
func TestTheTokenIsRemembered(t *testing.T) {
	_, address := serve(t)
	for path, want := range map[string]string{"/?token=" + token: "/", "/past?a=b&token=" + token: "/past?a=b", "//evil.example/?token=" + token: "/evil.example/"} {
		status, header, _ := ask(t, address+path, func(r *http.Request) { r.Header.Del("Authorization") })
		if status != http.StatusSeeOther || header.Get("Location") != want {
			t.Errorf("%s: status %d, to %q", path, status, header.Get("Location"))
		}
		cookie := header.Get("Set-Cookie")
		for _, part := range []string{"spillway-1234=" + token, "HttpOnly", "SameSite=Strict"} {
			if !strings.Contains(cookie, part) {
				t.Errorf("%s: cookie %q without %s", path, cookie, part)
			}
		}
	}
}

// evil ends what it could stand in: text, an element, an attribute in quotes of either kind, an
// address, a script, and an action of a template.
const evil = `javascript:alert(1)//"><script>alert(1)</script><img src=x onerror=alert(1)>' onclick='alert(1)' </title></select>{{.}}${alert(1)}&lt;%3C`

// serveEvil serves pages on which all that users can write is evil.
func serveEvil(t *testing.T) string {
	t.Helper()
	of := describe.Ref{Kind: "RolloutGroup", APIVersion: "rollout.dev/v1", Namespace: evil, Name: evil}
	when := describe.Range{Earliest: noon, Expected: noon, Latest: noon.Add(time.Minute)}
	waits := group(rollout.Phase(evil), zone(evil, rollout.PhaseFailed, 1, describe.Unit{Ref: describe.Ref{Kind: "Pod", Namespace: evil, Name: evil}, Phase: rollout.Phase(evil), Sentence: evil}))
	waits.Ref, waits.Sentence, waits.Since = of, evil, &noon
	moves, other := waits, waits
	moves.Phase, moves.Name, moves.Counted = rollout.PhaseProgressing, "moves"+evil, evil
	other.Units, other.WaitsFor, other.Name = nil, &of, "other"+evil
	_, address := serveAs(t, func(s *Source) {
		s.Place, s.Steering = evil, &steered{version: evil, denied: evil}
		s.Named = func(string, string) (describe.Ref, error) { return of, nil }
		s.Explain = func(context.Context, describe.Ref) (explain.Chain, error) {
			gate := of
			gate.Kind = describe.KindGate
			return explain.Chain{
				Links: []explain.Link{{Ref: of, Phase: evil, Reason: evil, Sentence: evil, Owner: evil, First: evil, Next: evil}, {Ref: gate}},
				Facts: []describe.Fact{{Name: evil, Values: []string{evil, evil}}},
			}, nil
		}
		s.History = func(context.Context, describe.Ref) ([]history.Entry, error) {
			e := history.Entry{Ref: of, What: evil, UID: "1", To: evil, Change: evil, By: evil, Outcome: evil, Message: evil, Units: []history.Part{{Ref: of, Outcome: evil}}, Notes: []history.Event{{About: of, Reason: evil, Text: evil}}}
			before := e
			before.UID, before.By = "2", ""
			return []history.Entry{e, before}, nil
		}
		s.Forecast = func(context.Context, string, string, []forecast.Supposition) (forecast.Answer, error) {
			course := forecast.Course{Namespace: evil, Object: evil, Ends: &when, Decides: evil, Steps: []forecast.Coming{{Step: record.Step{Unit: evil, Does: evil}, When: when}}}
			waits := forecast.Course{Namespace: evil, Object: evil, Waits: &record.Wait{Sentence: evil}}
			return forecast.Answer{Outlook: forecast.Outlook{Rollouts: []forecast.Course{course}}, If: &forecast.Alternative{Rollouts: []forecast.Course{waits}}}, nil
		}
	}, waits, moves, other)
	return address
}

// What users write is text, wherever it stands; and no page has a script or a style of its own.
func TestHostileTexts(t *testing.T) {
	address := serveEvil(t)
	name, query := url.PathEscape(evil), "?namespace="+url.QueryEscape(evil)+"&to="+url.QueryEscape(evil)+"&cluster="+url.QueryEscape(evil)+"&reason="+url.QueryEscape(evil)
	pages := map[string]string{}
	for _, path := range []string{
		"/", "/?all", "/why/rolloutgroup/" + name + query, "/past", "/past/rolloutgroup/" + name + query, "/past/rolloutgroup/" + name + query + "&compare=1&compare=2",
		"/act/pause/rolloutgroup/" + name + query, "/act/resume/rolloutgroup/" + name + query, "/act/pin/rolloutgroup/" + name + query, "/act/rollback/rolloutgroup/" + name + query,
		"/next?if=pause%3D" + url.QueryEscape(evil) + "&object=" + url.QueryEscape(evil) + "&namespace=" + url.QueryEscape(evil), "/" + name,
	} {
		_, _, pages[path] = ask(t, address+path)
	}
	account := httptest.NewRecorder()
	WriteAccount(account, http.StatusOK, &Account{User: evil, Groups: []string{evil}, Namespace: evil, Visible: []string{evil}, Problem: evil, Token: evil})
	pages["/account"] = account.Body.String()
	for path, text := range pages {
		if strings.Contains(text, "ZgotmplZ") { // what html/template writes instead of what it refuses
			t.Errorf("%s leaves something out: %s", path, text)
		}
		page, err := html.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		said := 0
		for n := range page.Descendants() {
			said += harmless(t, path, n)
		}
		if said == 0 {
			t.Errorf("%s does not say what was written: %s", path, text)
		}
	}
}

// harmless fails if a node of a page is what a user has made, and counts how often it says what the
// user has written, to the letter.
func harmless(t *testing.T, path string, n *html.Node) (said int) {
	t.Helper()
	if n.Type == html.TextNode && strings.Contains(n.Data, evil) {
		return 1
	}
	if n.Type == html.ElementNode && (n.Data == "img" || n.Data == "style" || n.Data == "script" && n.FirstChild != nil) {
		t.Errorf("%s has an element %s", path, n.Data)
	}
	for _, a := range n.Attr {
		if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
			t.Errorf("%s: <%s> has an attribute %s", path, n.Data, a.Key)
		}
		value := a.Val
		if a.Key == "href" || a.Key == "src" || a.Key == "action" {
			to, err := url.Parse(value)
			if err != nil || to.Scheme != "" || to.Host != "" || !strings.HasPrefix(value, "/") && value != "#main" {
				t.Fatalf("%s: <%s> leads to %s: %v", path, n.Data, value, err)
			}
			value = ""
			for _, part := range append(slices.Concat(slices.Collect(maps.Values(to.Query()))...), to.Path) {
				if value += part; strings.Contains(part, "alert") && !strings.Contains(part, evil) {
					t.Errorf("%s: <%s> leads elsewhere: %s", path, n.Data, a.Val)
				}
			}
		}
		if strings.Contains(value, evil) {
			said++
		}
	}
	return said
}

// Each page is what the command prints, for who asks for that.
func TestJSON(t *testing.T) {
	_, address := serve(t, group(rollout.PhaseComplete))
	for path, want := range map[string]string{
		"/":                                  `"units": [`,
		"/why/deployment/web?namespace=shop": `"links": [`,
		"/next":                              `"rollouts": [`,
		"/past/deployment/web?namespace=a":   `"change": "Secret db: password"`,
		"/past/deployment/web?namespace=a&compare=revision+1&compare=config": `"about": "change",
      "b": "Secret db: password",
      "differs": true`,
		"/past/deployment/web?namespace=a&compare=config&compare=x": `"error": "\"x\": no such rollout; there are \"config\", \"revision 1\""`,
		"/past/deployment/none?namespace=a":                         `"error": "history of deployment/none: deployment/none not found in namespace a"`,
		"/why/widget/x?namespace=a":                                 `"error"`,
		"/next?if=nonsense":                                         `"error": "\"nonsense\" cannot be read`,
	} {
		_, header, text := ask(t, address+path, asJSON)
		if !strings.Contains(text, want) || !json.Valid([]byte(text)) || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s %s", path, header.Get("Content-Type"), text)
		}
	}
}

// Viewers share one look, and none is taken while nothing changes.
func TestViewersCostNothing(t *testing.T) {
	c, address := serve(t, group(rollout.PhaseComplete))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { ask(t, address+"/") })
	}
	all.Wait()
	if c.looks != 1 {
		t.Errorf("%d looks for 50 viewers", c.looks)
	}
}

// Who follows receives each change, also one that was missed, and that what is shown
// is old.
func TestLive(t *testing.T) {
	c, address := serve(t, group(rollout.PhaseProgressing))
	_, _, text := ask(t, address+"/")
	if !strings.Contains(text, `data-version="1"`) || !strings.Contains(text, "What moves") {
		t.Fatal(text)
	}
	events, leave := follow(t, address+"/live?version=1")
	c.shows(nil, group(rollout.PhaseWaiting))
	if got := <-events; got != "id: 2" {
		t.Fatalf("event %q", got)
	}
	leave()
	missed, leave := follow(t, address+"/live?version=1")
	defer leave()
	if got := <-missed; got != "id: 2" {
		t.Fatalf("event %q", got)
	}
	c.shows(errors.New("connection refused"))
	if got := <-missed; got != "id: 3" {
		t.Fatalf("event %q", got)
	}
	_, _, text = ask(t, address+"/")
	if !strings.Contains(text, "What you see is from 2026-05-04 12:01:00 UTC") || !strings.Contains(text, "connection refused") || !strings.Contains(text, "What waits") {
		t.Fatal(text)
	}
}

// follow returns the identifiers of events.
func follow(t *testing.T, address string) (ids <-chan string, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r) //nolint:bodyclose // the goroutine closes it
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 10)
	go func() {
		defer answer.Body.Close()
		for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
			if strings.HasPrefix(scanner.Text(), "id: ") {
				lines <- scanner.Text()
			}
		}
	}()
	return lines, cancel
}

// What waits stands beneath what it waits for, the worst first.
func TestCauses(t *testing.T) {
	early, late := noon.Add(-time.Hour), noon.Add(-time.Minute)
	workload := func(name string, phase rollout.Phase, since *time.Time, on *describe.Ref) describe.Unit {
		return describe.Unit{Ref: describe.Ref{Kind: "Deployment", Namespace: "shop", Name: name}, Ring: describe.Config, Phase: phase, Since: since, WaitsFor: on, Sentence: name}
	}
	first := describe.Ref{Kind: "Deployment", Namespace: "shop", Name: "first"}
	turn := zone("zone-b", rollout.PhaseWaiting, 0)
	turn.Reason, turn.WaitsFor = rollout.ReasonOrder, &describe.Ref{Kind: "Zone", Name: "zone-a"}
	pod := describe.Unit{Ref: describe.Ref{Kind: "Pod", Name: "ingester-zone-a-0"}, Phase: rollout.PhaseFailed, Sentence: "the Pod crashes"}
	found := causes([]describe.Unit{
		workload("second", rollout.PhaseWaiting, &late, &first), workload("third", rollout.PhaseWaiting, &late, &first),
		workload("first", rollout.PhaseWaiting, &early, nil), workload("fine", rollout.PhaseComplete, nil, nil), workload("moves", rollout.PhaseProgressing, nil, nil),
		group(rollout.PhaseWaiting, turn, zone("zone-a", rollout.PhaseFailed, 1, pod)),
		workload("paused", rollout.PhasePaused, &early, nil),
	})
	var got []string
	for i := range found {
		got = append(got, fmt.Sprintf("%s of %s holds %d", found[i].Root.String(), found[i].Of, len(found[i].Held)))
	}
	want := "pod/ingester-zone-a-0 of rolloutgroup/ingester holds 1, deployment/first of deployment/first holds 3, deployment/paused of deployment/paused holds 1"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// Many that wait for the same that is no unit are one cause.
func TestACauseThatIsNoUnit(t *testing.T) {
	units := make([]describe.Unit, 399)
	for i := range units {
		units[i] = describe.Unit{
			Ref: describe.Ref{Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("svc-%03d", i)}, Ring: describe.Config, Phase: rollout.PhaseWaiting,
			Why: rollout.Cause{Subject: "Secret db", Does: "is paused"}, Sentence: "Secret db is paused",
		}
	}
	if found := causes(units); len(found) != 1 || len(found[0].Held) != 399 || found[0].Of.Name != "svc-000" {
		t.Errorf("%d causes", len(found))
	}
}

// What waits for itself in a circle has a cause all the same.
func TestCausesOfACircle(t *testing.T) {
	ref := func(name string) describe.Ref { return describe.Ref{Kind: "Instance", Namespace: "a", Name: name} }
	var units []describe.Unit
	for _, pair := range [][2]string{{"a", "b"}, {"b", "c"}, {"c", "a"}} {
		on := ref(pair[1])
		units = append(units, describe.Unit{Ref: ref(pair[0]), Phase: rollout.PhaseWaiting, WaitsFor: &on})
	}
	held := 0
	for _, c := range causes(units) {
		held += len(c.Held)
	}
	if held != 3 {
		t.Errorf("%d of 3 have a cause", held)
	}
}

// Every page has one heading, and says what it is for people who do not see it.
func TestPages(t *testing.T) {
	_, address := serve(t, group(rollout.PhaseWaiting, zone("zone-a", rollout.PhaseProgressing, 1), zone("zone-b", rollout.PhaseWaiting, 0)))
	for path, wants := range map[string][]string{
		"/": {"<h1>Now</h1>", "What waits", `href="/why/rolloutgroup/ingester?namespace=mimir"`},
		"/why/rolloutgroup/ingester?namespace=mimir":  {"it waits for &lt;b&gt;Secret&lt;/b&gt; db", "kubectl create secret generic db -n shop", "<svg", "rolloutgroup/ingester; zone-a: 1/3 Pods Progressing; zone-b: 0/3 Pods Waiting", "Secret db"},
		"/next?if=pause%3Dzone-a":                     {"It ends in 2m0s (1m0s to 4m0s)", "If pause=zone-a: It waits: zone-a is paused", "spillway forecast --if pause=zone-a"},
		"/past":                                       {`href="/past/rolloutgroup/ingester?namespace=mimir"`},
		"/past/rolloutgroup/ingester?namespace=mimir": {"Secret db: password", "1m0s so far", "by kubectl", `<option value="config" selected="selected">config</option>`},
		"/past/rolloutgroup/ingester?namespace=mimir&compare=revision+1&compare=config": {`<td><strong>anna</strong></td><td><strong>kubectl</strong></td>`, `<option value="revision 1" selected="selected">`},
		"/nothing": {"<h1>Not Found</h1>"},
	} {
		_, _, text := ask(t, address+path)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", path, want, text)
			}
		}
		if n := strings.Count(text, "<h1>"); n != 1 {
			t.Errorf("%s has %d headings", path, n)
		}
	}
}

// Rollouts that are called the same can be compared.
func TestRolloutsOfTheSameName(t *testing.T) {
	_, address := serveAs(t, func(s *Source) {
		s.History = func(_ context.Context, ref describe.Ref) ([]history.Entry, error) {
			return []history.Entry{{Ref: ref, What: "plan deploy", UID: "b"}, {Ref: ref, What: "plan deploy", UID: "a"}}, nil
		}
	})
	_, _, text := ask(t, address+"/past/instance/zookeeper?namespace=data")
	for _, want := range []string{`<option value="plan deploy" selected="selected">plan deploy</option>`, `<option value="a" selected="selected">plan deploy (a)</option>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// TestPausedIsShown: what is complete and paused is listed with who has paused it.
// Several rollouts have one time line, with an axis, and one end.
func TestAllOfThisEnds(t *testing.T) {
	course := func(name string, minutes int) forecast.Course {
		first := time.Duration(minutes) * time.Minute
		ends := describe.Range{Earliest: noon.Add(first), Expected: noon.Add(2 * first), Latest: noon.Add(4 * first)}
		return forecast.Course{Ring: "zones", Namespace: "mimir", Object: "rolloutgroup/" + name, Ends: &ends}
	}
	waits := forecast.Course{Object: "rolloutgroup/store", Waits: &record.Wait{Sentence: "zone-a is paused"}}
	for name, c := range map[string]struct {
		rollouts []forecast.Course
		has, not string
	}{
		"one":             {[]forecast.Course{course("a", 1)}, "It ends in 2m0s", "of this ends"},
		"two":             {[]forecast.Course{course("a", 1), course("b", 5)}, "All of this ends in 10m0s (5m0s to 20m0s).", "Not all"},
		"the axis":        {[]forecast.Course{course("a", 1), course("b", 5)}, `>in 15m0s</text>`, "Not all"},
		"one of it waits": {[]forecast.Course{course("a", 1), course("b", 5), waits}, "Not all of this ends automatically.", "All of this"},
	} {
		t.Run(name, func(t *testing.T) {
			_, address := serveAs(t, func(s *Source) {
				s.Forecast = func(context.Context, string, string, []forecast.Supposition) (forecast.Answer, error) {
					return forecast.Answer{Outlook: forecast.Outlook{At: noon, Rollouts: c.rollouts}}, nil
				}
			})
			if _, _, text := ask(t, address+"/next"); !strings.Contains(text, c.has) || strings.Contains(text, c.not) {
				t.Error(text)
			}
		})
	}
}

// The pages of what is under way say first that nothing of it is carried out.
func TestNoManagerIsSaid(t *testing.T) {
	c, address := serve(t, describe.Unit{Ref: describe.Ref{Kind: "Deployment", Namespace: "shop", Name: "web"}, Ring: "config", Phase: rollout.PhaseComplete})
	for _, why := range []string{"", "Lease spillway-manager has no holder"} {
		c.mu.Lock()
		c.none = why
		c.mu.Unlock()
		c.shows(nil, c.units...)
		for _, path := range []string{"/", "/next"} {
			_, _, text := ask(t, address+path)
			if want := "No manager is at work: " + why + "; what waits or moves goes on once one is."; strings.Contains(text, want) != (why != "") {
				t.Errorf("%s with %q: %s", path, why, text)
			}
		}
	}
}

func TestPausedIsShown(t *testing.T) {
	db := describe.Unit{
		Ref: describe.Ref{Kind: "Secret", Namespace: "shop", Name: "db"}, Ring: describe.Config, Phase: rollout.PhaseComplete, Paused: true, Cause: true,
		Sentence: "paused by ann: incident 42",
	}
	_, address := serve(t, db)
	_, _, text := ask(t, address+"/")
	for _, want := range []string{"What is paused", `href="/why/secret/db?namespace=shop"`, "paused by ann: incident 42"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// Much that waits is counted, and listed if that is asked for.
func TestMuchWaits(t *testing.T) {
	var units []describe.Unit
	for i := range listed + 50 {
		units = append(units, describe.Unit{Ref: describe.Ref{Kind: "Deployment", Namespace: "shop", Name: fmt.Sprint("web", i)}, Phase: rollout.PhaseWaiting})
	}
	_, address := serve(t, units...)
	if _, _, text := ask(t, address+"/"); strings.Count(text, "<li>") != listed || !strings.Contains(text, "and 50 more. ") {
		t.Errorf("%d are listed", strings.Count(text, "<li>"))
	}
	if _, _, text := ask(t, address+"/?all"); strings.Count(text, "<li>") != listed+50 {
		t.Errorf("%d are listed", strings.Count(text, "<li>"))
	}
}

// The first paint of many workloads, and of a fleet.
func BenchmarkPages(b *testing.B) {
	var units []describe.Unit
	for i := range 5000 {
		units = append(units, describe.Unit{Ref: describe.Ref{Kind: "Deployment", Namespace: "shop", Name: fmt.Sprint("web", i)}, Ring: describe.Config, Phase: rollout.PhaseWaiting, Sentence: "Deployment is waiting for its turn"})
	}
	module := describe.Unit{Ref: describe.Ref{Kind: "Module", Namespace: "fleet", Name: "shop"}, Ring: describe.Fleet, Phase: rollout.PhaseProgressing}
	for stage := range 10 {
		s := describe.Unit{Ref: describe.Ref{Kind: "Stage", Name: fmt.Sprint("stage", stage)}, Total: 1000, Counted: "clusters"}
		for i := range 1000 {
			s.Units = append(s.Units, describe.Unit{Ref: describe.Ref{Kind: "Cluster", Name: fmt.Sprint("c", i)}, Phase: rollout.PhaseProgressing, Sentence: "it is being updated"})
		}
		module.Units = append(module.Units, s)
	}
	b.Run("5,000 workloads wait", func(b *testing.B) {
		for b.Loop() {
			v := nowView{sorted: &sorted{Waiting: causes(units)}, ListsAll: true}
			write(httptest.NewRecorder(), http.StatusOK, &view{file: "now", Title: "Now", Now: noon, Of: &v})
		}
	})
	b.Run("5,000 workloads roll", func(b *testing.B) {
		since := noon.Add(-time.Minute)
		moving := slices.Clone(units)
		for i := range moving {
			moving[i].Phase, moving[i].Done, moving[i].Total, moving[i].Counted, moving[i].Since = rollout.PhaseProgressing, 1, 3, "Pods", &since
		}
		for b.Loop() {
			v := nowView{sorted: &sorted{Moving: moving}, ListsAll: true}
			write(httptest.NewRecorder(), http.StatusOK, &view{file: "now", Title: "Now", Now: noon, Of: &v})
		}
	})
	b.Run("a module on 10,000 clusters", func(b *testing.B) {
		for b.Loop() {
			v := whyView{Ref: module.Ref, Chain: explain.Chain{Links: []explain.Link{{Ref: module.Ref}}}, Drawing: draw(&module)}
			write(httptest.NewRecorder(), http.StatusOK, &view{file: "why", Title: "Why", Now: noon, Of: &v})
		}
	})
}
