package plans

import (
	"time"

	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/ring"
)

// memory is what is remembered of an Instance from pass to pass. A manager that begins
// without it decides the same, and makes a write that was refused once more.
type memory struct {
	ring.Said

	conflicts ring.Streak
	// refusals are the answers to writes, until a write to the same object succeeds. The
	// next decision counts each of them in the status, with the time of the next try.
	refusals map[object.Ref]task.Refusal
	// state is the one that the Instance has in the metrics, empty if it has none.
	state string
}

// learn remembers what became of a pass, and returns when to observe again; zero if time
// alone changes nothing.
func (m *memory) learn(now time.Time, done *results) time.Time {
	for i := range done.Writes {
		switch w := &done.Writes[i]; {
		case w.Write.refusal != nil:
			m.refusals[w.Write.Ref] = *w.Write.refusal
		case w.Err == nil:
			delete(m.refusals, w.Write.Ref)
		}
	}
	return m.conflicts.Again(now, done.Conflict())
}
