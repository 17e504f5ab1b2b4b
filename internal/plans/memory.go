package plans

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/account"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/ring"
)

// memory is what is remembered of an Instance from pass to pass. A manager that begins
// without it decides the same, and makes a write that was refused once more.
type memory struct {
	ring.Said
	ring.Waits

	conflicts ring.Streak
	// refusals are the answers to writes of the last execution. The next decision counts each
	// of them in the status, with the time of the next try.
	refusals write.Refusals
	// account is as whom the plans acted when they were answered.
	account account.Account
	// state is the one that the Instance has in the metrics, empty if it has none.
	state   string
	answers answers
	kept    kept
	// heads are those of the objects of the inventory, as far as they were seen.
	heads map[object.Ref]*task.Head
	// rendered is kept from pass to pass of one reconcile.
	rendered *render.Memo
}

// actsAs forgets what the API server has refused to another account: to this one it may answer
// something else.
func (m *memory) actsAs(as account.Account) {
	if m.account != as {
		m.account, m.refusals = as, write.Refusals{}
	}
}

// answers are objects as the API server has answered their applies, for the pass that follows: they are
// what a read would find, or a watch tells of what has changed since. They say nothing once the Instance is another than the one that
// permitted the applies.
type answers struct {
	permitted string
	objects   map[object.Ref]*unstructured.Unstructured
}

// after is the Instance after a pass.
func (s *snapshot) after(done *results) *v1beta1.Instance {
	if done.Written() {
		return done.Object
	}
	return s.Instance
}

// answersOf are those of a pass.
func answersOf(s *snapshot, done *results) answers {
	all := answers{s.after(done).ResourceVersion, map[object.Ref]*unstructured.Unstructured{}}
	for w := range slices.Values(done.Writes) {
		if w.Write.answer != nil {
			all.objects[w.Write.Ref] = w.Write.answer
		}
	}
	return all
}

// to are the answers that a pass over an Instance may use, once.
func (a *answers) to(i *v1beta1.Instance) answers {
	last := *a
	*a = answers{}
	if last.permitted != i.ResourceVersion {
		return answers{}
	}
	return last
}

// kept are objects without a state of their own that a plan has applied, for the passes in
// which it waits for others. Each is good while its watch shows the version that was read,
// and all of them while the Instance is the one that they were read for.
type kept struct {
	instance string
	objects  map[object.Ref]*unstructured.Unstructured
}

// keptOf are those of a pass, if its plan is running.
func keptOf(s *snapshot, done *results) kept {
	i := s.after(done)
	if i.Status.Running() == nil {
		return kept{}
	}
	all := kept{i.ResourceVersion, map[object.Ref]*unstructured.Unstructured{}}
	keep := func(ref object.Ref, u *unstructured.Unstructured) {
		if u != nil && ref.GroupKind() != object.SecretKind && isMarked(ref, u) && task.IsStateless(u) {
			all.objects[ref] = u
		}
	}
	for ref, u := range s.Objects {
		keep(ref, u)
	}
	for w := range slices.Values(done.Writes) {
		keep(w.Write.Ref, w.Write.answer)
	}
	return all
}

// of are those that are good for an Instance.
func (k *kept) of(i *v1beta1.Instance) map[object.Ref]*unstructured.Unstructured {
	if k.instance != i.ResourceVersion {
		return nil
	}
	return k.objects
}

// learn remembers what became of a pass, and returns when to observe again; zero if time
// alone changes nothing.
func (m *memory) learn(now time.Time, e *v1beta1.Execution, done *results) time.Time {
	if e != nil {
		m.refusals.Forget(e.UID)
	}
	for i := range done.Writes {
		if w := &done.Writes[i]; w.Write.refusal != nil || w.Err == nil {
			m.refusals.Learn(&w.Write.Write, w.Write.refusal)
		}
	}
	return m.conflicts.Again(now, done.Conflict())
}

// headsOf are those of the objects of the inventory, as they were seen last: compared, read whole, or answered by the
// API server. Each is good while its watch shows the same version.
func headsOf(s *snapshot, i *v1beta1.Instance, answered map[object.Ref]*unstructured.Unstructured) map[object.Ref]*task.Head {
	heads := map[object.Ref]*task.Head{}
	for _, entry := range i.Status.Inventory {
		ref := object.EntryRef(entry)
		h := s.heads[ref]
		if compared := s.Heads[ref]; compared != nil {
			h = compared
		}
		if u := cmp.Or(answered[ref], s.Objects[ref]); u != nil && (h == nil || h.UID != u.GetUID() || h.ResourceVersion != u.GetResourceVersion()) {
			h = task.HeadOf(u, i.Name)
		}
		if h != nil {
			heads[ref] = h
		}
	}
	return heads
}
