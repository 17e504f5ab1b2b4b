package argo

import (
	"fmt"
	"testing"
	"time"

	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/follow"
	"github.com/spillway-dev/spillway/internal/config/workload"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 5)
	first := func(o *observed) { o.Record, o.Changed = "", nil }
	for title, test := range map[string]struct {
		given []func(*observed)
		want  string
	}{
		"nothing is recorded":               {[]func(*observed){first}, "record next"},
		"Reloader rolled it for another":    {[]func(*observed){first, func(o *observed) { o.IsMissed = true }}, "record next, restart at 101"},
		"nothing has changed":               {[]func(*observed){func(o *observed) { o.IsRecorded, o.Changed, o.IsMissed = true, nil, true }}, ""},
		"other objects count":               {[]func(*observed){func(o *observed) { o.Changed = nil }}, "record next"},
		"a change":                          {nil, "record next, restart at 101"},
		"a change that may be followed":     {[]func(*observed){func(o *observed) { o.Settled = now.Add(time.Second) }}, "wake after 1s"},
		"config is missing":                 {[]func(*observed){func(o *observed) { o.Missing = make([]content.Missing, 1) }}, ""},
		"the Rollout is paused":             {[]func(*observed){func(o *observed) { o.rollout.Spec.Paused = true }}, ""},
		"a user has paused it":              {[]func(*observed){func(o *observed) { o.IsPaused = true }}, ""},
		"a policy keeps it as it is":        {[]func(*observed){func(o *observed) { o.isHeld = true }}, ""},
		"a window that opens":               {[]func(*observed){func(o *observed) { o.isHeld, o.opens = true, now.Add(time.Hour) }}, "wake after 1h0m0s"},
		"a policy, and nothing is recorded": {[]func(*observed){first, func(o *observed) { o.isHeld = true }}, "record next"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			o := &observed{Config: &follow.Config{Now: now, Settled: now, Record: "record", Next: "next", Changed: make([]content.Object, 1)}, rollout: &workload.Rollout{}}
			for _, change := range test.given {
				change(o)
			}
			p, got := decide(o), ""
			if p.record != "" {
				got = "record " + p.record
			}
			if !p.restartAt.IsZero() {
				got += fmt.Sprint(", restart at ", p.restartAt.Unix())
			}
			if !p.wake.IsZero() {
				got += fmt.Sprint("wake after ", p.wake.Sub(now))
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
