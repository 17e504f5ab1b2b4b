package dashboard

import (
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
)

// nowView is what moves and what waits.
type nowView struct {
	seen
	*sorted

	// ListsAll is true if everything was asked for, however much it is.
	ListsAll bool
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
	return &view{file: "now", Title: "Now", Version: s.Version, NoManager: s.Description.NoManager, value: s.Description, shared: shared, Of: &v}, nil
}

// all is what was seen, for a page that lists all of it: a program gets it once that is whole, a
// person also before.
func (p *viewer) all(r *http.Request) seen {
	if p.showsParts(r) {
		return p.live.soon()
	}
	return p.live.current()
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

// Path is the address of the page.
func (v *nowView) Path() string {
	if v.ListsAll {
		return "/?all"
	}
	return "/"
}

// listed is how much of a kind is listed, unless all is asked for.
const listed = 100

// First returns how many of n are listed.
func (v *nowView) First(n int) int { return n - v.More(n) }

// More returns how many of n are not listed.
func (v *nowView) More(n int) int {
	if v.ListsAll {
		return 0
	}
	return max(0, n-listed)
}

// waiting is a cause as the page shows it, with those that it keeps waiting besides itself.
type waiting struct {
	Phase     template.HTML
	Sentence  string
	Object    link
	Namespace string
	Since     template.HTML
	// ID tells it apart on the page.
	ID string
	// Held are the first of Number; More are not among them.
	Held         []link
	Number, More int
}

// heldListed is how much of what a cause keeps waiting is listed.
const heldListed = 20

func waitingOf(now time.Time, all []cause) []waiting {
	shown := make([]waiting, len(all))
	for i := range all {
		c := &all[i]
		w := waiting{Phase: badge(c.Root.Phase), Sentence: sentence(c.Root), Object: linkTo("why", c.Of), Namespace: c.Of.Namespace, Since: ago(now, c.Root.Since)}
		if len(c.Held) > 1 || c.Held[0].Ref != c.Of {
			w.ID, w.Number, w.More = c.Of.Namespace+"-"+c.Of.String()+"-"+c.Root.Name, len(c.Held), max(0, len(c.Held)-heldListed)
			for _, u := range c.Held[:w.Number-w.More] {
				w.Held = append(w.Held, linkTo("why", u.Ref))
			}
		}
		shown[i] = w
	}
	return shown
}

// sentence is what is said of a unit, of the first of its parts that waits if it says nothing.
func sentence(u *describe.Unit) string {
	if u.Sentence != "" {
		return u.Sentence
	}
	for i := range u.Units {
		if u.Units[i].IsWaiting() {
			return sentence(&u.Units[i])
		}
	}
	return u.String() + " is " + strings.ToLower(string(u.Phase))
}
