package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// state is what is recorded of a workload: a cause in the record of an object, its place there, and all objects in
// whose records it is.
type state struct {
	object  content.Object
	rollout *v1alpha1.RolloutRecord
	cause   *v1alpha1.RolloutCause
	at      int
	objects []content.Object
	changed []string
}

// statesOf are the states that are recorded. Of a workload in several records, that of the first object.
func statesOf(o *decision.Observed) map[workload.Name]*state {
	states := map[workload.Name]*state{}
	for _, object := range slices.SortedFunc(maps.Keys(o.Records), content.Object.Compare) {
		r := o.Records[object]
		if r.Rollout == nil {
			continue
		}
		for i := range r.Rollout.Causes {
			c := &r.Rollout.Causes[i]
			for k, unit := range c.Units {
				kind, name, _ := strings.Cut(unit, " ")
				of := workload.Name{Kind: kind, Namespace: r.Namespace, Name: name}
				if states[of] == nil {
					states[of] = &state{object: object, rollout: r.Rollout, cause: c, at: k}
				}
				states[of].add(object, r.Rollout)
			}
		}
	}
	return states
}

// unnamed is the state of a workload that no record names, though it lacks what has changed of some objects: a record
// names only so many units. It is the only cause that counts more than it names in a record of what is now, nil if there
// is none or several.
func unnamed(records map[content.Object]*v1alpha1.ConfigRollout, lacks []content.Object, isNow func(*state) bool) *state {
	var found *state
	for _, object := range lacks {
		r := records[object]
		if r == nil || r.Rollout == nil || !isNow(&state{object: object, rollout: r.Rollout}) {
			continue
		}
		for i := range r.Rollout.Causes {
			c := &r.Rollout.Causes[i]
			switch {
			case int(c.Count) <= len(c.Units):
			case found != nil:
				return nil
			default:
				found = &state{object: object, rollout: r.Rollout, cause: c, at: len(c.Units)}
				found.add(object, r.Rollout)
			}
		}
	}
	return found
}

// add adds a record in which the workload is.
func (s *state) add(object content.Object, r *v1alpha1.RolloutRecord) {
	if object.Kind != "" {
		s.objects, s.changed = append(s.objects, object), append(s.changed, r.Changed...)
	}
}

// digests are those of the present contents of objects, as far as the caller may read them.
type digests map[content.Object]string

// agree is true of what is recorded of a workload as it is. It is not if the object has another content than was
// decided about, or if the workload does not use it any more, as far as the caller may read the object.
func (d digests) agree(w *decision.Workload, s *state) bool {
	if s == nil {
		return false
	}
	if s.object.Kind == "" || s.rollout.Target == "" {
		return true
	}
	if isUnseen := len(w.Denied) > 0 && !w.Config.Exists(s.object); isUnseen {
		return true
	}
	if _, uses := w.Config[s.object]; !uses {
		return false
	}
	if d[s.object] == "" { // it takes a while to compute, and is the same for all
		d[s.object], _ = w.Config.DigestOf(s.object)
	}
	return d[s.object] == s.rollout.Target
}

// record sets the state to what is recorded.
func (e *Explanation) record(w *decision.Workload, s *state) {
	is := ring.WaitingIn(s.cause, e.Kind+" "+e.Name, s.at)
	is.About, is.On = refOf(s.cause.About, w.Namespace), refOf(s.cause.On, w.Namespace)
	e.apply(is)
	e.DecidedAt, e.DecidedBy = &s.rollout.DecidedAt.Time, s.rollout.DecidedBy
	if e.Behind, e.Changed = s.objects, s.changed; e.Policy != "" && s.object.Kind != "" {
		e.Held = &s.object
	}
}

// withhold leaves out what the caller cannot know, who may not read all of the config.
func (e *Explanation) withhold(w *decision.Workload) {
	e.Unseen, e.Lacking = strings.Join(w.Denied, "; "), nil
	for i := range e.Uses {
		if u := &e.Uses[i]; !u.Exists {
			u.Exists, u.Unseen = true, true
		}
	}
}

// refOf is a reference of a record in a namespace.
func refOf(r *v1alpha1.RolloutReference, namespace string) rollout.Ref {
	if r == nil {
		return rollout.Ref{}
	}
	ref := rollout.Ref{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	if ref.Namespace == "" && r.Kind != policy.ClusterKind {
		ref.Namespace = namespace
	}
	return ref
}
