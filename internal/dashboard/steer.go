package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/internal/simulate/record"
)

const (
	// formBytes is how long the form of an act may be, reasonLength the reason in it.
	formBytes, reasonLength = 16 << 10, 500
)

// Wish is what a person wants to do to an object.
type Wish struct {
	Ref describe.Ref
	// Verb is what to do, as the command line calls it.
	Verb string
	// To is the revision of a rollback, Cluster the one to pin or unpin.
	To, Cluster string
	// Reason is what is recorded.
	Reason string
}

// Prospect is what an act would do, as things are.
type Prospect struct {
	// Said is what has been done then, Next what holds from then on.
	Said, Next string
	// Version is the resourceVersion of what would be written.
	Version string
	// Denied is the permission that lacks, empty if it may be done.
	Denied string
	// Command does the same.
	Command string
	// Supposed is the act as a forecast supposes it, About the object of the forecast; empty
	// if it supposes no such thing.
	Supposed string
	About    describe.Ref
}

// Steering is what a person can do on the pages, with their own permissions.
type Steering interface {
	// Verbs are what can be done to objects of a kind.
	Verbs(kind string) []string
	// Prepare says what an act would do. It writes nothing.
	Prepare(ctx context.Context, w Wish) (Prospect, error)
	// Do does it, if what is written still has the version; [ErrChanged] says that it has not.
	Do(ctx context.Context, w Wish, version string) (said string, err error)
}

// ErrChanged is that an object is not any more as the person saw it.
var ErrChanged = errors.New("it has changed since you saw it, so nothing was done; check what is said now, and decide again")

var (
	// ErrOrigin is that a form was sent by another page.
	ErrOrigin   = errors.New("the form was not sent by these pages")
	errReadOnly = requestError{errors.New("the pages are read-only; use the commands that they show")}
	errForm     = requestError{errors.New("the form cannot be read; open the page of the act again")}
	errReason   = requestError{fmt.Errorf("name a reason, of at most %d characters; status, explain and Events show it", reasonLength)}
)

// actView is the page that asks before something is done.
type actView struct {
	Wish
	Prospect

	// Problem is why it cannot be done, or was not.
	Problem string
	// Foreseen is what comes next as things are, and if it is done.
	Foreseen string
	// Token says that the form is from here.
	Token string
}

// titles are what the acts are called on the pages.
var titles = map[string]string{
	"pause": "Pause", "resume": "Resume", "retry": "Retry", "approve": "Approve", "refuse": "Refuse",
	"rollback": "Roll back", "pin": "Pin a cluster of", "unpin": "Unpin a cluster of",
}

func titleOf(w Wish) string { return titles[w.Verb] + " " + w.Ref.String() }

// actPath is the page that asks before something is done.
func actPath(verb string, ref describe.Ref) string {
	return strings.Replace(pathOf("act", ref), "/act/", "/act/"+verb+"/", 1)
}

// Path is the address of the page.
func (a *actView) Path() string { return actPath(a.Verb, a.Ref) }

// Button is the word on the button that does it.
func (a *actView) Button() string { return button(a.Verb) }

// button is the title of an act without an object.
func button(verb string) string { return strings.TrimSuffix(titles[verb], " of") }

// Asks reports whether more than a reason is to be known.
func (a *actView) Asks() bool { return slices.Contains([]string{"rollback", "pin", "unpin"}, a.Verb) }

// ReasonLength is how long the reason may be.
func (a *actView) ReasonLength() int { return reasonLength }

// wish is what a request asks to do.
func (p *viewer) wish(r *http.Request) (Wish, error) {
	if p.Steering == nil {
		return Wish{}, errReadOnly
	}
	ref, err := p.object(r)
	if err != nil {
		return Wish{}, err
	}
	w := Wish{Ref: ref, Verb: r.PathValue("verb"), To: r.FormValue("to"), Cluster: r.FormValue("cluster"), Reason: strings.TrimSpace(r.FormValue("reason"))}
	if !slices.Contains(p.Verbs(ref.Kind), w.Verb) {
		return w, requestError{fmt.Errorf("%q is nothing that can be done to %s", w.Verb, ref)}
	}
	return w, nil
}

// ask is the page that says what an act would do, and asks for the reason.
func (p *viewer) ask(r *http.Request) (*view, error) {
	w, err := p.wish(r)
	if err != nil {
		return nil, err
	}
	return p.asking(r.Context(), w, ""), nil
}

// asking is that page, with why it was not done before.
func (p *viewer) asking(ctx context.Context, w Wish, problem string) *view {
	a := actView{Wish: w, Problem: problem, Token: p.formToken()}
	var err error
	if a.Prospect, err = p.Prepare(ctx, w); err != nil && problem == "" {
		a.Problem = err.Error()
	}
	if err == nil {
		a.Foreseen = p.foresee(ctx, w.Verb, &a.Prospect)
	}
	return &view{file: "act", Title: titleOf(w), value: a.Prospect, Of: &a}
}

// foresee says what comes next as things are, and if the act is done; empty if that cannot be
// said.
func (p *viewer) foresee(ctx context.Context, verb string, of *Prospect) string {
	supposed, err := forecast.ParseSupposition(of.Supposed)
	if err != nil {
		return ""
	}
	select {
	case p.foreseeing <- struct{}{}:
		defer func() { <-p.foreseeing }()
	default:
		return ""
	}
	answer, err := p.Forecast(ctx, of.About.Namespace, record.Reference(of.About.Kind, of.About.Name), []forecast.Supposition{supposed})
	if err != nil {
		return ""
	}
	return foreseen(p.Now(), verb, &answer)
}

// foreseen says what a forecast says of an act, beside what it says without.
func foreseen(now time.Time, verb string, a *forecast.Answer) string {
	if len(a.Rollouts) == 0 || a.If == nil || len(a.If.Rollouts) == 0 {
		return ""
	}
	course := func(c *forecast.Course) string {
		text := strings.TrimSuffix(ends(now, c), ".")
		return strings.ToLower(text[:1]) + text[1:] + "."
	}
	return "As it is, " + course(&a.Rollouts[0]) + " With " + verb + ", " + course(&a.If.Rollouts[0])
}

// do does what a form asks for, and shows the object then.
func (p *viewer) do(w http.ResponseWriter, r *http.Request) error {
	if p.Steering == nil {
		w.Header().Set("Allow", "GET, HEAD")
		return errReadOnly
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return errForm
	}
	r.Body = http.MaxBytesReader(w, r.Body, formBytes)
	if err := r.ParseForm(); err != nil || !r.PostForm.Has("version") {
		return errForm
	}
	if !hmac.Equal([]byte(r.PostForm.Get("token")), []byte(p.formToken())) {
		return ErrOrigin
	}
	wish, err := p.wish(r)
	if err != nil {
		return err
	}
	if n := utf8.RuneCountInString(wish.Reason); n == 0 || n > reasonLength {
		return errReason
	}
	said, err := p.Do(r.Context(), wish, r.PostForm.Get("version"))
	if errors.Is(err, ErrChanged) {
		p.show(w, http.StatusConflict, p.asking(r.Context(), wish, ErrChanged.Error()))
		return nil
	}
	if err != nil {
		return ofWish(err)
	}
	to := url.Values{"said": {said}, "seal": {p.seal(said)}, "namespace": {wish.Ref.Namespace}}
	path, _, _ := strings.Cut(pathOf("why", wish.Ref), "?")
	http.Redirect(w, r, path+"?"+to.Encode(), http.StatusSeeOther)
	return nil
}

// ofWish is an error of what was wished for, unless the API server or the way to it failed.
func ofWish(err error) error {
	var (
		answer  apierrors.APIStatus
		network *url.Error
	)
	if errors.As(err, &answer) || errors.As(err, &network) {
		return err
	}
	return requestError{err}
}

// said is what was done just before, of a request that was led here by [viewer.do].
func (p *viewer) said(r *http.Request) string {
	text := r.URL.Query().Get("said")
	if text == "" || !hmac.Equal([]byte(r.URL.Query().Get("seal")), []byte(p.seal(text))) {
		return ""
	}
	return text
}

// formToken is what forms of a viewer have, so that no other page can send them.
func (p *viewer) formToken() string { return p.seal("form\x00" + p.user) }

// seal says that a text is from this server.
func (p *viewer) seal(text string) string {
	mac := hmac.New(sha256.New, p.key)
	_, _ = mac.Write([]byte(text)) // it never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
