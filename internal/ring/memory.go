package ring

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// unseenLimit is how long a cache may not show an object that was created.
const unseenLimit = 10 * time.Second

// Memories are what a ring remembers, by the key of its object. The zero value is ready
// to use. M belongs to one pass at a time.
type Memories[M any] struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*M
}

// Of returns the memory of an object, a new one if there is none.
func (m *Memories[M]) Of(key types.NamespacedName, create func() *M) *M {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[types.NamespacedName]*M{}
	}
	if m.all[key] == nil {
		m.all[key] = create()
	}
	return m.all[key]
}

// Forget drops the memory of an object that is gone.
func (m *Memories[M]) Forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}

// Memory is what every ring remembers of its object from pass to pass. All of it is
// about caches that lag and writes that fail: a manager that begins without it decides
// the same. The zero value is ready to use. O is a pointer type or [client.Object].
type Memory[O Object] struct {
	Expectations
	Said
	Gauges
	Waits

	// written is what the API server answered to the last write of the object, until the
	// cache is as new. created is when the object was made, until the cache shows it.
	written   O
	created   time.Time
	conflicts Streak
	// differs is since when the status that is written is not the present one.
	differs time.Time
	// refused is how often in a row the API server did not accept the status for what it
	// says, and putOff until when it is not written.
	refused int
	putOff  time.Time
}

// Newest returns the newer of what the cache shows of the object and what the API server
// has answered, the zero value if there is none.
func (m *Memory[O]) Newest(cached O, now time.Time) O {
	var none O
	switch {
	case m.written == none:
		return cached
	case cached == none && !m.created.IsZero() && now.Sub(m.created) < unseenLimit:
		return m.written
	case cached == none, cached.GetUID() != m.written.GetUID(), !Older(cached.GetResourceVersion(), m.written.GetResourceVersion()):
		m.written, m.created = none, time.Time{}
		return cached
	default:
		m.created = time.Time{}
		return m.written
	}
}

// Status is what a plan says of the status to write.
type Status struct {
	// Differs is true if it is not the one that was read.
	Differs bool
	// Permits is true if it is to be written before anything else is done, Urgent if it
	// must be known immediately. The rest is progress, which the next write reports.
	Permits, Urgent bool
}

// StatusDue is true if the status is to be written in this pass; otherwise wake is when
// it is, zero for never. A status that differs waits for delay, because it may become
// part of another write. One that the API server did not accept waits longer each time,
// whatever a watch shows meanwhile.
func (m *Memory[O]) StatusDue(now time.Time, delay time.Duration, s Status) (due bool, wake time.Time) {
	switch {
	case now.Before(m.putOff):
		return false, m.putOff
	case s.Permits, s.Differs && (s.Urgent || delay < 0):
		return true, time.Time{}
	case !s.Differs:
		return false, time.Time{}
	case m.differs.IsZero():
		return false, now.Add(delay)
	default:
		wake = m.differs.Add(delay)
		return !now.Before(wake), wake
	}
}

// Results are what became of the writes of a pass. W is the ring's own write, with what
// it has to remember of the answer.
type Results[O Object, W any] struct {
	// Object is the ring's object as the API server has answered, the zero value if it
	// was not written. Created is true if it was made in this pass.
	Object  O
	Created bool
	// Err is the error of the write of the object.
	Err error
	// Writes are the others.
	Writes []Result[W]
}

// Result is what became of a write.
type Result[W any] struct {
	Change Change
	Write  W
	// Err is nil if the write was made.
	Err error
}

// Add records a write.
func (r *Results[O, W]) Add(c Change, w W, err error) {
	r.Writes = append(r.Writes, Result[W]{Change: c, Write: w, Err: err})
}

// Written is true if the object was written.
func (r *Results[O, W]) Written() bool {
	var none O
	return r.Object != none
}

// Failure is the error that the queue of the controller has to know of: that of the
// object, unless it is decided again, is put off or the namespace is being deleted.
func (r *Results[O, W]) Failure() error {
	if IsConflict(r.Err) || IsUnacceptable(r.Err) || IsTerminating(r.Err) {
		return nil
	}
	return r.Err
}

// Learn records what became of a pass, whose status differs or not from the one that is
// written. It returns when to observe again, zero for never.
func Learn[O Object, W any](m *Memory[O], now time.Time, r *Results[O, W], differs bool) time.Time {
	for i := range r.Writes {
		m.Learn(now, r.Writes[i].Change, r.Writes[i].Err)
	}
	m.learnObject(now, r.Object, r.Created, differs)
	if IsConflict(r.Err) {
		var none O
		m.written = none
	}
	wake := m.learnRefusal(now, r.Err)
	return Earlier(Earlier(wake, m.Refusals(now).Wake(now)), m.conflicts.Again(now, r.Conflict()))
}

// learnRefusal puts off the next write of the object if this one was not accepted. It
// returns until when, zero if it was.
func (m *Memory[O]) learnRefusal(now time.Time, err error) time.Time {
	if !IsUnacceptable(err) {
		return time.Time{}
	}
	m.putOff = now.Add(Refused().After(m.refused))
	m.refused++
	return m.putOff
}

// Conflict is true if some write lost a conflict.
func (r *Results[O, W]) Conflict() bool {
	for i := range r.Writes {
		if IsConflict(r.Writes[i].Err) {
			return true
		}
	}
	return IsConflict(r.Err)
}

func (m *Memory[O]) learnObject(now time.Time, written O, created, differs bool) {
	var none O
	switch {
	case written != none:
		m.written, m.differs = written, time.Time{}
		m.refused, m.putOff = 0, time.Time{}
		if created {
			m.created = now
		}
	case !differs:
		m.differs = time.Time{}
	case m.differs.IsZero():
		m.differs = now
	}
}
