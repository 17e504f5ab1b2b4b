package ring_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/spillway-dev/spillway/internal/ring"
)

// script is a ring of which every pass is written down before.
type script struct {
	passes []pass
	log    []string
}

type pass struct {
	needsLive bool
	reads     int
	next      ring.Next
	observe   error
	learn     error
}

func (s *script) run(most int, pause time.Duration) (reconcile.Result, error) {
	say := func(what string) { s.log = append(s.log, what) }
	loop := ring.Loop[pass, pass, string]{
		Most: most, Pause: pause, Now: func() time.Time { return noon },
		Observe: func(_ context.Context, live bool) (pass, error) {
			p := s.passes[0]
			s.passes = s.passes[1:]
			say(map[bool]string{false: "observe", true: "observe live"}[live])
			return p, p.observe
		},
		Forget: func() { say("forget") },
		Plan:   func(p *pass) pass { return *p },
		Read: func(_ context.Context, s, _ *pass) (bool, error) {
			if s.reads == 0 {
				return false, nil
			}
			s.reads--
			say("read")
			return true, nil
		},
		NeedsLive: func(p *pass) bool { return p.needsLive },
		Act:       func(context.Context, *pass, *pass) string { say("act"); return "" },
		Report:    func(context.Context, *pass, *pass, *string) { say("report") },
		Learn: func(_ context.Context, _, p *pass, _ *string) (ring.Next, error) {
			say("learn")
			return p.next, p.learn
		},
	}
	return loop.Run(context.Background())
}

func TestLoop(t *testing.T) {
	t.Parallel()
	again, done := ring.Next{Again: true}, ring.Next{Wake: noon.Add(time.Minute)}
	for name, c := range map[string]struct {
		passes []pass
		pause  time.Duration
		want   string
		after  time.Duration
		fails  bool
	}{
		"one pass":                      {passes: []pass{{next: done}}, want: "observe act report learn", after: time.Minute},
		"one more":                      {passes: []pass{{next: again}, {}}, want: "observe act report learn observe act report learn"},
		"nothing is done from a cache":  {passes: []pass{{needsLive: true}, {}}, want: "observe observe live act report learn"},
		"it stays live":                 {passes: []pass{{needsLive: true}, {next: again}, {}}, want: "observe observe live act report learn observe live act report learn"},
		"at most three":                 {passes: []pass{{next: again}, {next: again}, {next: again}, {}}, want: strings.Repeat("observe act report learn ", 3)},
		"and a pause":                   {passes: []pass{{next: again}, {next: again}, {next: again}}, pause: time.Second, want: strings.Repeat("observe act report learn ", 3), after: time.Second},
		"it is gone":                    {passes: []pass{{observe: fmt.Errorf("get: %w", ring.ErrGone)}}, want: "observe forget"},
		"a plan needs more":             {passes: []pass{{reads: 2}}, want: "observe read read act report learn"},
		"a plan always needs more":      {passes: []pass{{reads: 1000}}, want: "observe " + strings.Repeat("read ", 100), fails: true},
		"and the time of the last":      {passes: []pass{{next: again}, {next: again}, {next: ring.Next{Again: true, Wake: noon.Add(time.Minute)}}}, want: strings.Repeat("observe act report learn ", 3), after: time.Minute},
		"and the shortest pause":        {passes: []pass{{next: again}, {next: again}, {next: again}}, pause: 1, want: strings.Repeat("observe act report learn ", 3), after: 1},
		"observe fails":                 {passes: []pass{{observe: errDenied}}, want: "observe", fails: true},
		"the write of the object fails": {passes: []pass{{learn: errDenied}}, want: "observe act report learn", fails: true},
		"it is time already":            {passes: []pass{{next: ring.Next{Wake: noon}}}, want: "observe act report learn", after: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script{passes: c.passes}
			result, err := s.run(3, c.pause)
			if got := strings.Join(s.log, " "); got != strings.TrimSpace(c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
			if (err != nil) != c.fails || result.RequeueAfter != c.after {
				t.Errorf("after %s, %v", result.RequeueAfter, err)
			}
		})
	}
}
