package dashboard

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"
	"k8s.io/utils/clock"
)

const (
	// writeTimeout is how long a client may take to read a page.
	writeTimeout = 30 * time.Second
	// aliveEvery is how often a client that follows is written to, so that a client that
	// is gone is noticed.
	aliveEvery = 15 * time.Second
	// followers is how many clients may follow at a time.
	followers = 200
)

// types are those of the files beside the pages; a machine may know them by other names.
var types = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

//go:embed assets
var assets embed.FS

// viewer has the pages of one person, who may see them in several windows. What was seen is of
// her look alone: others may see something else.
type viewer struct {
	*Source
	*Shared

	live *live
	// last is what was seen, sorted; sorting is held meanwhile.
	sorting  sync.Mutex
	last     *sorted
	rendered rendered
	// user is who she is, empty of the only one.
	user string
}

// Shared is what the looks of all people have in common: nothing that was seen.
type Shared struct {
	// foreseeing has as many places as forecasts may run at a time, following as many as
	// clients may follow.
	foreseeing, following chan struct{}
	// key is what [viewer.seal] seals with.
	key []byte
}

// NewShared returns it. Servers that have the same key accept the forms of each other.
func NewShared(key []byte) *Shared {
	return &Shared{foreseeing: make(chan struct{}, 1), following: make(chan struct{}, followers), key: key}
}

// New returns the pages, for who knows the token, on a port of the loopback interface. It
// looks on until the context ends.
func New(ctx context.Context, s Source, token string, port int) http.Handler {
	return &guard{token: token, cookie: "spillway-" + strconv.Itoa(port), next: Pages(ctx, &s, NewShared([]byte(rand.Text())), "")}
}

// Pages returns the pages of one person, without a guard: who calls it has to know that it is
// she who asks. It looks on until the context ends. The name of the only user is empty.
func Pages(ctx context.Context, s *Source, shared *Shared, user string) http.Handler {
	p := &viewer{Source: s, Shared: shared, live: newLive(s), user: user}
	go p.live.run(ctx)
	return p.routes()
}

// routes are the pages.
func (p *viewer) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.page(p.now))
	mux.HandleFunc("GET /why/{kind}/{name}", p.page(p.why))
	mux.HandleFunc("GET /next", p.page(p.next))
	mux.HandleFunc("GET /past", p.page(p.rolled))
	mux.HandleFunc("GET /past/{kind}/{name}", p.page(p.past))
	mux.HandleFunc("GET /act/{verb}/{kind}/{name}", p.page(p.ask))
	mux.HandleFunc("POST /act/{verb}/{kind}/{name}", p.act)
	mux.HandleFunc("GET /live", p.follow)
	mux.HandleFunc("GET /assets/{file}", Asset)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Fail(w, r, http.StatusNotFound, "there is no page "+r.URL.Path+"; the pages are /, /why/KIND/NAME, /next and /past")
	})
	return mux
}

// WantsJSON is true of a program.
func WantsJSON(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// page answers with what view makes: the value of the command as JSON, or a page of it.
func (p *viewer) page(of func(*http.Request) (*view, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		mustBeReadIn(writeTimeout, http.NewResponseController(w))
		v, err := of(r)
		switch {
		case err != nil:
			refuse(w, r, err)
		case WantsJSON(r):
			writeJSON(w, http.StatusOK, v.value)
		case v.shared != "":
			v.account = p.user
			page, err := p.rendered.page(p.Place, p.Now(), v)
			send(w, http.StatusOK, page, err)
		default:
			v.account = p.user
			write(w, http.StatusOK, p.Place, p.Now(), v)
		}
	}
}

// act answers to a form.
func (p *viewer) act(w http.ResponseWriter, r *http.Request) {
	mustBeReadIn(writeTimeout, http.NewResponseController(w))
	if err := p.do(w, r); err != nil {
		refuse(w, r, err)
	}
}

// refuse answers with an error of a page.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, text := explained(err)
	Fail(w, r, status, text)
}

// Fail answers with an error, in the form that was asked for.
func Fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	if WantsJSON(r) {
		writeJSON(w, status, map[string]string{"error": text})
		return
	}
	note(w, status, http.StatusText(status), text)
}

// Note answers with a page that says something.
func Note(w http.ResponseWriter, title, text string) { note(w, http.StatusOK, title, text) }

func note(w http.ResponseWriter, status int, title, text string) {
	write(w, status, "", time.Time{}, &view{title: title, body: func(time.Time) []*html.Node {
		return []*html.Node{el("h1", title), el("p", text)}
	}})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(value) //nolint:errchkjson // what commands print; else the client is gone
}

// Asset answers with one of the files beside the pages, which is the {file} of the pattern.
func Asset(w http.ResponseWriter, r *http.Request) {
	file := r.PathValue("file")
	content, err := assets.ReadFile("assets/" + file)
	if err != nil {
		Fail(w, r, http.StatusNotFound, "there is no file "+file)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(file)])
	_, _ = w.Write(content) //nolint:gosec // one of our own files, or the client is gone
}

// follow tells a client whenever something has changed, as server-sent events: the page is
// to be read again. One that was away is sent what it has missed.
func (p *viewer) follow(w http.ResponseWriter, r *http.Request) {
	select {
	case p.following <- struct{}{}:
		defer func() { <-p.following }()
	default:
		Fail(w, r, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already; close one", followers))
		return
	}
	changed, leave := p.live.follow()
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	known, err := strconv.Atoi(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("version")))
	if err != nil {
		known = p.live.version()
	}
	for out := http.NewResponseController(w); ; {
		if err := tell(w, out, &known, p.live.version()); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-clock.RealClock{}.After(aliveEvery):
		}
	}
}

// mustBeReadIn ends the connection of a client that takes longer to read the answer.
func mustBeReadIn(d time.Duration, out *http.ResponseController) {
	_ = out.SetWriteDeadline(clock.RealClock{}.Now().Add(d)) // where there is no connection, there is no deadline
}

// tell writes that there is another version, or that the server is alive.
func tell(w http.ResponseWriter, out *http.ResponseController, known *int, version int) error {
	text := ": alive\n\n"
	if version != *known {
		text = fmt.Sprintf("event: changed\nid: %d\ndata: %d\n\n", version, version)
	}
	*known = version
	mustBeReadIn(writeTimeout, out)
	if _, err := w.Write([]byte(text)); err != nil {
		return err //nolint:wrapcheck // it ends the answer
	}
	return out.Flush() //nolint:wrapcheck // it ends the answer
}
