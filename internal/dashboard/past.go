package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

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
	if v.IsPart() {
		version = s.Version
	}
	return &view{file: "rolled", Title: "Past", Version: version, value: v.Units, Of: &v}, nil
}

// Path is the address of the page.
func (v *rolledView) Path() string { return "/past" }

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
		return &view{file: "past", Title: "Past of " + ref.String(), value: entries, Of: &v}, nil
	}
	compared, err := history.Compare(entries, names[0], names[1])
	if err != nil {
		return nil, err
	}
	v.Comparison = &compared
	return &view{file: "past", Title: "Two rollouts of " + ref.String(), value: compared, Of: &v}, nil
}

// Path is the address of the page, without a namespace.
func (v *pastView) Path() string {
	path, _, _ := strings.Cut(pathOf("past", v.Ref), "?")
	return path
}

// choice asks for one of two rollouts that are to be compared.
type choice struct {
	Label   string
	Options []option
}

type option struct {
	Name, Text string
	IsChosen   bool
}

// Choices ask which two rollouts are to be compared, the last two first; there are none unless
// there are two.
func (v *pastView) Choices() []choice {
	if len(v.Entries) < 2 {
		return nil
	}
	a, b := 1, 0
	if c := v.Comparison; c != nil {
		a, b = v.index(&c.A), v.index(&c.B)
	}
	return []choice{{"Compare", v.options(a)}, {"with", v.options(b)}}
}

func (v *pastView) index(of *history.Entry) int {
	return slices.IndexFunc(v.Entries, func(e history.Entry) bool { return e.What == of.What && e.UID == of.UID && e.To == of.To })
}

func (v *pastView) options(chosen int) []option {
	options := make([]option, len(v.Entries))
	for i := range v.Entries {
		name, text := history.Name(v.Entries, i), v.Entries[i].What
		if name != text {
			text += " (" + name + ")"
		}
		options[i] = option{name, text, i == chosen}
	}
	return options
}

// took is how long something has taken, up to now if it goes on.
func took(now time.Time, started, ended *time.Time) string {
	switch {
	case started == nil:
		return ""
	case ended == nil:
		return max(0, now.Sub(*started)).Truncate(time.Second).String() + " so far"
	default:
		return ended.Sub(*started).Round(100 * time.Millisecond).String()
	}
}
