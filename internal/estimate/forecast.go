package estimate

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Part is a zone, a stage or a step, or parts that follow one another.
type Part struct {
	Name string
	// Began is when it began, zero if it has not. Done is true of what takes no more time.
	Began time.Time
	Done  bool
	// Parts are those that it consists of, one after the other or all in parallel.
	Parts    []Part
	Parallel bool
}

// Run is when parts began and ended in a former rollout, by name, and when that began.
type Run struct {
	Began time.Time
	Parts map[string]Stretch
}

// Stretch is when something began and ended.
type Stretch struct{ Began, Ended time.Time }

// Forecast is when a rollout ends, with the fields that it has in a status.
type Forecast struct {
	At, Earliest, Expected, Latest metav1.Time

	Decides string
}

// Ends is when the whole ends, by how long its parts took in former runs: with what they waited
// for before they began (a soak, a gate, a window), or without it once they have begun. It is
// nil if a part that is not done was in none of them, or if all are done.
func Ends(now time.Time, whole *Part, past []Run) *Forecast {
	seen := times{map[string][]time.Duration{}, map[string][]time.Duration{}}
	for i := range past {
		seen.note(whole.withGone(past[i].Parts), past[i].Began, past[i].Parts)
	}
	end, known := seen.end(whole, moment{now, now, now, ""})
	if !known || end.decides == "" {
		return nil
	}
	return &Forecast{At: second(now), Earliest: second(end.earliest), Expected: second(end.expected), Latest: second(end.latest), Decides: end.decides}
}

// withGone is a whole with the parts of a run that it no longer has, so that the others have not
// waited for what those took.
func (p *Part) withGone(run map[string]Stretch) *Part {
	then := *p
	then.Parts = slices.Clone(p.Parts)
	for name := range run {
		if !p.has(name) {
			then.Parts = append(then.Parts, Part{Name: name})
		}
	}
	return &then
}

func (p *Part) has(name string) bool {
	return len(p.Parts) == 0 && p.Name == name || slices.ContainsFunc(p.Parts, func(part Part) bool { return part.has(name) })
}

// second is a time with the precision that the API keeps.
func second(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// times are how long each part took, alone and with what it waited for before it began.
type times struct{ alone, withWait map[string][]time.Duration }

// note adds the times of a run in which a part could begin from a moment on. It returns when
// the part ended.
func (t *times) note(p *Part, from time.Time, run map[string]Stretch) time.Time {
	if len(p.Parts) == 0 {
		s, ran := run[p.Name]
		if !ran {
			return from
		}
		t.alone[p.Name] = append(t.alone[p.Name], s.Ended.Sub(s.Began))
		t.withWait[p.Name] = append(t.withWait[p.Name], max(0, s.Ended.Sub(from)))
		return latest(from, s.Ended)
	}
	end := from
	for _, part := range p.asIn(run) {
		end = latest(end, t.note(part, from, run))
		if !p.Parallel {
			from = end
		}
	}
	return end
}

// asIn are the parts in the order in which they began in a run, which may be another one than
// today.
func (p *Part) asIn(run map[string]Stretch) []*Part {
	parts := make([]*Part, len(p.Parts))
	for i := range p.Parts {
		parts[i] = &p.Parts[i]
	}
	slices.SortStableFunc(parts, func(a, b *Part) int { return cmp.Compare(a.began(run), b.began(run)) })
	return parts
}

// began is when a part began in a run, 0 if it is not in it.
func (p *Part) began(run map[string]Stretch) (first int64) {
	if s, ran := run[p.Name]; ran && len(p.Parts) == 0 {
		return s.Began.UnixNano()
	}
	for i := range p.Parts {
		if at := p.Parts[i].began(run); first == 0 || at != 0 && at < first {
			first = at
		}
	}
	return first
}

// moment is when something is over, and the part that is the last to be.
type moment struct {
	earliest, expected, latest time.Time
	decides                    string
}

// end is when a part ends that can begin from a moment on; false if that is not known.
func (t *times) end(p *Part, from moment) (moment, bool) {
	switch {
	case p.Done:
		return from, true
	case len(p.Parts) == 0:
		return t.endOfLeaf(p, from)
	}
	end := from
	for i := range p.Parts {
		after, known := t.end(&p.Parts[i], from)
		switch {
		case !known:
			return moment{}, false
		case p.Parallel:
			end = end.orLater(after)
		default:
			from, end = after, after
		}
	}
	return end, true
}

func (t *times) endOfLeaf(p *Part, from moment) (moment, bool) {
	seen := t.alone[p.Name]
	if p.Began.IsZero() {
		seen = t.withWait[p.Name]
	}
	if len(seen) == 0 {
		return moment{}, false
	}
	e := Of(seen)
	if p.Began.IsZero() {
		return moment{from.earliest.Add(e.Shortest), from.expected.Add(e.Expected), from.latest.Add(e.Longest), p.Name}, true
	}
	return moment{
		latest(from.earliest, p.Began.Add(e.Shortest)), latest(from.expected, p.Began.Add(e.Expected)), latest(from.latest, p.Began.Add(e.Longest)), p.Name,
	}, true
}

// orLater is when both are over.
func (m moment) orLater(other moment) moment {
	both := moment{latest(m.earliest, other.earliest), latest(m.expected, other.expected), latest(m.latest, other.latest), m.decides}
	if m.decides == "" || other.expected.After(m.expected) {
		both.decides = other.decides
	}
	return both
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
