package estimate

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// ran is a run that began at noon: "a 0 10" is a part that began immediately and ended
// after ten seconds.
func ran(parts string) Run {
	r := Run{Began: noon, Parts: map[string]Stretch{}}
	for part := range strings.SplitSeq(parts, ", ") {
		var name string
		var began, ended int
		_, _ = fmt.Sscan(part, &name, &began, &ended)
		r.Parts[name] = Stretch{noon.Add(time.Duration(began) * time.Second), noon.Add(time.Duration(ended) * time.Second)}
	}
	return r
}

// TestEnds asks a minute past noon, by runs that were each the same twice, so that what is
// expected is also the earliest and the latest.
func TestEnds(t *testing.T) {
	t.Parallel()
	series := func(parts ...Part) *Part { return &Part{Parts: parts} }
	parallel := func(name string, parts ...Part) Part { return Part{Name: name, Parts: parts, Parallel: true} }
	a, b, c := Part{Name: "a"}, Part{Name: "b"}, Part{Name: "c"}
	begun := func(p Part, ago int) Part { p.Began = noon.Add(time.Duration(60-ago) * time.Second); return p }
	done := func(p Part) Part { p.Done = true; return p }
	for name, test := range map[string]struct {
		whole *Part
		past  string
		want  string
	}{
		"one after the other":                             {series(a, b), "a 0 10, b 10 30", "b in 30s"},
		"with what the second waits for":                  {series(a, b), "a 0 10, b 100 120", "b in 2m0s"},
		"without it once it has begun":                    {series(done(a), begun(b, 5)), "a 0 10, b 100 120", "b in 15s"},
		"what takes longer than before ends now":          {series(begun(a, 50)), "a 0 10", "a in 0s"},
		"and what follows begins now":                     {series(begun(a, 50), b), "a 0 10, b 10 30", "b in 20s"},
		"nothing is known of one":                         {series(a, c), "a 0 10, b 10 30", "unknown"},
		"nor needs to be, of what is done":                {series(done(c), a, b), "a 0 10, b 10 30", "b in 30s"},
		"what is gone took its time":                      {series(a, b), "a 0 10, gone 10 40, b 40 60", "b in 30s"},
		"all is done":                                     {series(done(a), done(b)), "a 0 10, b 10 30", "unknown"},
		"another order than today":                        {series(a, b), "b 0 20, a 20 30", "b in 30s"},
		"in parallel, the longest decides":                {series(parallel("p", a, b), c), "a 0 10, b 0 30, c 30 35", "c in 35s"},
		"also where it comes first":                       {series(c, parallel("p", a, b)), "c 0 5, a 5 35, b 5 15", "a in 35s"},
		"a part in parallel waits since the others began": {series(parallel("p", a, b)), "a 0 50, b 60 70", "b in 1m10s"},
		"one that is in no run":                           {series(), "a 0 10", "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := "unknown"
			if f := Ends(noon.Add(time.Minute+300*time.Millisecond), test.whole, []Run{ran(test.past), ran(test.past)}); f != nil {
				got = fmt.Sprint(f.Decides, " in ", f.Expected.Sub(f.At.Time))
				if f.Earliest != f.Expected || f.Latest != f.Expected || f.At.Nanosecond() != 0 {
					t.Errorf("%+v", f)
				}
			}
			if got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
