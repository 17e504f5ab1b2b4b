package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/dashboard/drawing"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/explain/chain"
	"github.com/spillway-dev/spillway/internal/describe/history"
	"github.com/spillway-dev/spillway/internal/simulate/forecast"
	"github.com/spillway-dev/spillway/internal/simulate/record"
)

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
	case errors.Is(err, history.ErrNotFound), chain.IsNotFound(err):
		status = http.StatusNotFound
	case apierrors.IsForbidden(err):
		status = http.StatusForbidden
	default:
		status = http.StatusBadGateway
	}
	return status, err.Error()
}

// nowView is what moves and what waits.
type nowView struct {
	seen
	*sorted

	// ListsAll is true if everything was asked for, however much it is.
	ListsAll bool
}

// all is what was seen, for a page that lists all of it: a program gets it once that is whole, a
// person also before.
func (p *viewer) all(r *http.Request) seen {
	if p.showsParts(r) {
		return p.live.soon()
	}
	return p.live.current()
}

// now is the page of all rollouts.
func (p *viewer) now(r *http.Request) (*view, error) {
	s := p.all(r)
	if s.At.IsZero() && s.Err != nil { // there is nothing to show yet
		return nil, s.Err
	}
	v := nowView{seen: s, sorted: p.sorted(&s), ListsAll: r.URL.Query().Has("all")}
	shared := "first"
	if v.ListsAll {
		shared = "all"
	}
	return &view{title: "Now", version: s.Version, value: s.Description, shared: shared, body: v.show}, nil
}

// sorted is what was seen, by whether it moves.
type sorted struct {
	// version is that of what was seen.
	version int

	Waiting []cause
	Moving  []describe.Unit
	// Complete is how many are complete, by ring; All are they.
	Complete []count
	All      []describe.Unit
	// Paused are complete, and their next change waits until they are resumed.
	Paused []describe.Unit
	// Unread are those that are known to exist, and whose state is not known yet.
	Unread []describe.Unit
}

// sorted sorts what was seen: once for all windows.
func (p *viewer) sorted(s *seen) *sorted {
	p.sorting.Lock()
	defer p.sorting.Unlock()
	if p.last == nil || p.last.version != s.Version {
		p.last = sortOut(s)
	}
	return p.last
}

func sortOut(s *seen) *sorted {
	of := &sorted{version: s.Version, Waiting: causes(s.Description.Units)}
	for _, u := range describe.Rolled(s.Description.Units) {
		switch {
		case u.Phase == describe.PhaseReading:
			of.Unread = append(of.Unread, u)
		case u.IsComplete():
			of.Complete, of.All = counted(of.Complete, u.Ring), append(of.All, u)
		case !u.IsWaiting():
			of.Moving = append(of.Moving, u)
		}
	}
	for _, u := range s.Description.Units {
		if u.Paused {
			of.Paused = append(of.Paused, u)
		}
	}
	return of
}

// object is the one that a page is about.
func (p *viewer) object(r *http.Request) (describe.Ref, error) {
	namespace := r.URL.Query().Get("namespace")
	if namespace == "" {
		namespace = p.Namespace
	}
	ref, err := p.Named(namespace, r.PathValue("kind")+"/"+r.PathValue("name"))
	if err != nil {
		return ref, requestError{err}
	}
	return ref, nil
}

// whyView is why an object waits.
type whyView struct {
	Ref   describe.Ref
	Chain chain.Chain
	// Unit is the object as the ring describes it, nil if none does.
	Unit    *describe.Unit
	Drawing *drawing.Drawing
	// Verbs are what the viewer can do to it, Said is what she has just done.
	Verbs []string
	Said  string
}

// why is the page of one object.
func (p *viewer) why(r *http.Request) (*view, error) {
	ref, err := p.object(r)
	if err != nil {
		return nil, err
	}
	found, err := p.Explain(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	s := p.live.current() //nolint:contextcheck // a look is everybody's
	v := whyView{Ref: ref, Chain: found, Unit: describe.Find(s.Description.Units, ref)}
	if p.Steering != nil {
		v.Verbs, v.Said = p.Verbs(ref.Kind), p.said(r)
	}
	drawn := v.Unit
	if p.Of != nil && (ref.Kind == describe.KindConfigMap || ref.Kind == describe.KindSecret) {
		if drawn, err = p.Of(r.Context(), ref); err != nil {
			return nil, err
		}
	}
	if drawn != nil {
		v.Drawing = drawing.Of(drawn)
	}
	return &view{title: "Why " + ref.String(), version: s.Version, value: found, body: v.show}, nil
}

// nextView is what comes next.
type nextView struct {
	forecast.Answer

	Object, Namespace string
	Ifs               []string
	Suppositions      []string
}

// next is the page of the forecast.
func (p *viewer) next(r *http.Request) (*view, error) {
	query := r.URL.Query()
	v := nextView{Object: query.Get("object"), Namespace: query.Get("namespace"), Suppositions: forecast.Suppositions()}
	namespace, object := v.Namespace, ""
	if namespace == "" {
		namespace = p.Namespace
	}
	if v.Object != "" {
		ref, err := p.Named(namespace, v.Object)
		if err != nil {
			return nil, requestError{err}
		}
		object = record.Reference(ref.Kind, ref.Name)
	}
	var ifs []forecast.Supposition
	for _, text := range query["if"] {
		if text == "" { // a field that was left empty
			continue
		}
		s, err := forecast.ParseSupposition(text)
		if err != nil {
			return nil, requestError{err}
		}
		ifs, v.Ifs = append(ifs, s), append(v.Ifs, text)
	}
	select {
	case p.foreseeing <- struct{}{}:
		defer func() { <-p.foreseeing }()
	default:
		return nil, errBusy
	}
	answer, err := p.Forecast(r.Context(), namespace, object, ifs)
	if err != nil {
		return nil, err
	}
	v.Answer = answer
	return &view{title: "Next", value: answer, body: v.show}, nil
}

// rolledView is all that has a past.
type rolledView struct {
	seen

	Units []describe.Unit
}

// rolled is the page of all that has a past. It is read again only until all is read.
func (p *viewer) rolled(r *http.Request) (*view, error) {
	s := p.all(r)
	if s.At.IsZero() && s.Err != nil {
		return nil, s.Err
	}
	v := rolledView{seen: s}
	v.Units = slices.DeleteFunc(slices.Clone(describe.Rolled(s.Description.Units)), func(u describe.Unit) bool { return u.IsPolicy() })
	version := 0
	if v.isPart() {
		version = s.Version
	}
	return &view{title: "Past", version: version, value: v.Units, body: v.show}, nil
}

// pastView is what was rolled of an object.
type pastView struct {
	Ref     describe.Ref
	Entries []history.Entry
	// Comparison is of two of them, nil if none was asked for.
	Comparison *history.Comparison
}

// past is the page of what was rolled of an object.
func (p *viewer) past(r *http.Request) (*view, error) {
	ref, err := p.object(r)
	if err != nil {
		return nil, err
	}
	entries, err := p.History(r.Context(), ref)
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", ref, err)
	}
	entries = append([]history.Entry{}, entries...)
	v := pastView{Ref: ref, Entries: entries}
	names := r.URL.Query()["compare"]
	if len(names) != 2 {
		return &view{title: "Past of " + ref.String(), value: entries, body: v.show}, nil
	}
	compared, err := history.Compare(entries, names[0], names[1])
	if err != nil {
		return nil, err
	}
	v.Comparison = &compared
	return &view{title: "Two rollouts of " + ref.String(), value: compared, body: v.show}, nil
}
