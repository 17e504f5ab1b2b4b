package describe

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/ring"
)

// keptFor bounds how long a ring is not described again, whatever is known of when it must be.
const keptFor = time.Minute

// Memory is what was described of what is watched, so that a ring is described again only if that may
// differ: if an object of a kind that it has read has changed, if the API server itself was asked, or
// if time has come to what a decision depends on. It then reads and compares again only the objects
// that have changed, and decides about all of them.
//
// What is described with a memory is what would be described without one: a test compares them.
// A memory is for one caller at a time, with the same options. What is beneath the units of one
// description is shared with the next one, and must not be changed.
type Memory struct {
	config *config.Memory

	mu    sync.Mutex
	rings map[string]*remembered
}

// described is a ring as it is.
type described struct {
	units []Unit
	// until is when time alone changes it, zero for never.
	until time.Time
}

// remembered is a ring as it was described from what was read at a time.
type remembered struct {
	described

	reading *snapshot.Reading
	from    time.Time
}

// NewMemory remembers nothing.
func NewMemory() *Memory {
	return &Memory{config: config.NewMemory(), rings: map[string]*remembered{}}
}

// recall is how a ring was described, nil if that may be another way now.
func (m *Memory) recall(name string, now time.Time) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.rings[name]
	if d == nil || now.Before(d.from) || !now.Before(d.until) || !d.reading.Holds() {
		delete(m.rings, name)
		return nil
	}
	return d
}

// keep remembers how a ring was described.
func (m *Memory) keep(name string, d *remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rings[name] = d
}

// look is one description of all rings.
type look struct {
	*Options

	now    time.Time
	client client.Client
	// shared is what the rings read, unless each reads what is watched.
	shared  *snapshot.Snapshot
	watched *snapshot.Watched

	mu    sync.Mutex
	wake  time.Time
	asked bool
}

// ring describes a ring, unless it is known.
func (l *look) ring(ctx context.Context, name string) ([]Unit, error) {
	if l.watched == nil {
		d, err := l.describe(ctx, name, l.shared)
		l.learn(d.until, true)
		return d.units, err
	}
	if d := l.Memory.recall(name, l.now); d != nil {
		l.learn(d.until, false)
		return d.units, nil
	}
	reading := l.watched.Reading()
	d, err := l.describe(ctx, name, snapshot.New(reading, l.client.Scheme(), l.Namespace))
	if d.until = ring.Earlier(d.until, l.now.Add(keptFor)); err == nil {
		l.Memory.keep(name, &remembered{d, reading, l.now})
	}
	l.learn(d.until, reading.Asked())
	return d.units, err
}

// describe describes a ring from what is read.
func (l *look) describe(ctx context.Context, name string, from *snapshot.Snapshot) (described, error) {
	d, err := rings[name](ctx, l.Options, from)
	d.units = undated(d.units, l.now)
	return d, err
}

// learn notes until when a ring is as it was described, and whether the API server was asked.
func (l *look) learn(wake time.Time, asked bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wake, l.asked = ring.Earlier(l.wake, wake), l.asked || asked
}

// undated takes the moment of a look from units that have no other: no manager has written since
// when they are as they are.
func undated(units []Unit, now time.Time) []Unit {
	for i := range units {
		u := &units[i]
		if u.Since != nil && u.Since.Truncate(time.Microsecond).Equal(now.Truncate(time.Microsecond)) {
			u.Since = nil
		}
		undated(u.Units, now)
	}
	return units
}
