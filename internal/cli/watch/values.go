package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

// valueWriter writes each rollout whenever it has changed, for programs. It writes no Events,
// which spillway events writes in the same forms.
type valueWriter struct {
	out    io.Writer
	output string
	// one is true if one object is watched, with all that is beneath it.
	one bool
	// said is what was last written of each rollout.
	said map[describe.Ref]string
}

// misses implements [onlooker].
func (*valueWriter) misses(error, time.Time) {}

// hears implements [onlooker].
func (*valueWriter) hears(*history.Event) {}

// sees implements [onlooker].
func (v *valueWriter) sees(units []describe.Unit, _ time.Time) {
	if !v.one {
		units = describe.Rolled(units)
	}
	for _, u := range units {
		raw, err := json.Marshal(timeless(u))
		if err != nil || v.said[u.Ref] == string(raw) {
			continue
		}
		v.said[u.Ref] = string(raw)
		v.write(&u)
	}
}

// timeless is a unit without when it ends, which moves with the time alone.
func timeless(u describe.Unit) *describe.Unit {
	u.Ends = nil
	return &u
}

func (v *valueWriter) write(u *describe.Unit) {
	if v.output == command.OutputName {
		_, _ = fmt.Fprintln(v.out, u)
		return
	}
	_ = command.ShowNext(v.out, v.output, u, nil) // nothing can be added to a broken pipe
}
