package dashboard

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/spillway-dev/spillway/internal/describe/explain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
)

const (
	// writeTimeout is how long a client may take to read a page.
	writeTimeout = 30 * time.Second
	// aliveEvery is how often a client that follows is written to, so that a client that
	// is gone is noticed.
	aliveEvery = 15 * time.Second
	// followers is how many clients may follow at a time.
	followers = 200
	// livePath is what a page that is open follows.
	livePath = "/live"
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
	return &guard{token: token, cookie: "spillway-" + strconv.Itoa(port), next: NewPages(ctx, &s, NewShared([]byte(rand.Text())), "")}
}

// Pages are those of one person, without a guard: who serves them has to know that it is she who
// asks.
type Pages struct {
	http.Handler
	of *viewer
}

// NewPages returns the pages of a person. They look on until the context ends. The name of the
// only user is empty.
func NewPages(ctx context.Context, s *Source, shared *Shared, user string) *Pages {
	p := &viewer{Source: s, Shared: shared, live: newLive(ctx, s), user: user}
	go p.live.run() //nolint:contextcheck // it has the context
	return &Pages{p.routes(), p}
}

// Ready waits until the first look has shown what the answer to a request needs, and says why it
// has shown nothing: then the person may see nothing, or the cluster is not reached. What lists
// all rollouts, and who follows such a page, needs no more than is known after a moment.
func (p *Pages) Ready(r *http.Request) error {
	live := p.of.live
	if s := live.last(); !s.At.IsZero() {
		return nil
	}
	if of := live.begin(); of != nil { //nolint:contextcheck // a look is everybody's
		needed := of.ended
		if p.of.showsParts(r) {
			needed = of.soon
		}
		select {
		case <-needed:
		case <-r.Context().Done():
			return fmt.Errorf("wait for the first look: %w", r.Context().Err())
		}
	}
	if s := live.last(); s.At.IsZero() {
		return s.Err
	}
	return nil
}

// showsParts is true of a request that is answered with what is known so far: of a person who
// opens a page that lists all rollouts, and of such a page that follows. A program gets the whole,
// and so does a page that was made before the first look.
func (p *viewer) showsParts(r *http.Request) bool {
	switch r.URL.Path {
	case "/", "/past":
		return !WantsJSON(r)
	case livePath:
		version, err := known(r)
		return err == nil && version > p.First
	default:
		return false
	}
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
	mux.HandleFunc("GET "+livePath, p.follow)
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
		default:
			p.show(w, http.StatusOK, v)
		}
	}
}

// show writes a page for the viewer.
func (p *viewer) show(w http.ResponseWriter, status int, v *view) {
	v.Account, v.Place, v.Now = p.user, p.Place, p.Now()
	if v.shared == "" {
		write(w, status, v)
		return
	}
	page, err := p.rendered.page(v)
	send(w, status, page, err)
}

// act answers to a form.
func (p *viewer) act(w http.ResponseWriter, r *http.Request) {
	mustBeReadIn(writeTimeout, http.NewResponseController(w))
	if err := p.do(w, r); err != nil {
		refuse(w, r, err)
	}
}

// errBusy is that another forecast runs.
var errBusy = errors.New("another forecast is being made; ask again when it is done")

// requestError is an error of who asks.
type requestError struct{ error }

// Unwrap gives the error that it is.
func (e requestError) Unwrap() error { return e.error }

// explained is an error as an answer.
func explained(err error) (status int, text string) {
	bad := requestError{}
	switch {
	case errors.Is(err, ErrOrigin):
		status = http.StatusForbidden
	case errors.As(err, &bad), errors.Is(err, forecast.ErrNotSupposed), errors.Is(err, history.ErrNoHistory), errors.Is(err, history.ErrNoSuchRollout):
		status = http.StatusBadRequest
	case errors.Is(err, errBusy):
		status = http.StatusTooManyRequests
	case errors.Is(err, history.ErrNotFound), explain.IsNotFound(err):
		status = http.StatusNotFound
	case apierrors.IsForbidden(err):
		status = http.StatusForbidden
	default:
		status = http.StatusBadGateway
	}
	return status, err.Error()
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
	write(w, status, &view{file: "note", Title: title, Of: text})
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
	version, err := known(r)
	if err != nil {
		version = p.live.last().Version
	}
	for out := http.NewResponseController(w); ; {
		if err := tell(w, out, &version, p.live.last().Version); err != nil {
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

// known is the version that a client that follows has.
func known(r *http.Request) (int, error) {
	return strconv.Atoi(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("version"))) //nolint:wrapcheck // it has none
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
