package decision

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// objectRollout is how far the content of an object has come.
type objectRollout struct {
	of content.Object
	// units are the workloads that are not up to date with it, uses how many there are in all.
	units []ring.Waiting
	uses  int
	// changed are the keys that have changed, lasting is true if something of it lasts for longer than
	// this pass.
	changed []string
	lasting bool
	paused  *content.Pause
}

// rollouts are those of all objects with which some workload is not up to date, that have a record, or that
// are paused. The one without an object is that of the namespace.
func (o *Observed) rollouts(p *Plan) map[content.Object]*objectRollout {
	all := map[content.Object]*objectRollout{}
	of := func(object content.Object) *objectRollout {
		if all[object] == nil {
			all[object] = &objectRollout{of: object}
		}
		return all[object]
	}
	for object, r := range o.Records {
		if r.Rollout != nil || r.Paused != nil {
			of(object)
		}
	}
	laggards := p.laggards(o)
	slices.SortStableFunc(laggards, func(a, b Laggard) int { return a.Position - b.Position }) // in the order of the queue
	for _, l := range laggards {
		for _, object := range l.places() {
			r := of(object)
			r.units, r.lasting = append(r.units, l.Waiting), r.lasting || l.State != string(StateNext)
		}
	}
	for i := range o.Workloads {
		w := &o.Workloads[i]
		if w.Settings.Tracked {
			o.count(w, all)
		}
	}
	return all
}

// count counts a workload for the objects that it uses, and notes what of them has changed.
func (o *Observed) count(w *Workload, all map[content.Object]*objectRollout) {
	if r := all[content.Object{Namespace: w.Namespace}]; r != nil {
		r.uses++
	}
	seen := make([]content.Object, 0, len(w.Uses))
	for i := range w.Uses {
		u := &w.Uses[i]
		by := w.Config.PausedBy(u.Object)
		if u.Ignored || u.Object.Namespace != w.Namespace || slices.Contains(seen, u.Object) || by == nil && all[u.Object] == nil {
			continue
		}
		seen = append(seen, u.Object)
		r := all[u.Object]
		if r == nil {
			r = &objectRollout{of: u.Object}
			all[u.Object] = r
		}
		r.uses, r.paused = r.uses+1, by
		for _, key := range slices.Concat(w.Change.Keys, w.Records.Roll.Changed) {
			if u.IsAmong(w.Namespace, []string{key}) && !slices.Contains(r.changed, key) && len(r.changed) < maxRecorded {
				r.changed = append(r.changed, key)
			}
		}
	}
}

// phase sums the units up: it progresses if one of them does, has failed if one of them has, and else has the phase
// of the first.
func (r *objectRollout) phase() rollout.Phase {
	phase := rollout.PhaseComplete
	for i := range r.units {
		switch p := outlook(r.units[i].State, r.units[i].Reason); {
		case p == rollout.PhaseProgressing:
			return p
		case p == rollout.PhaseFailed, phase == rollout.PhaseComplete:
			phase = p
		}
	}
	return phase
}

// outlook is the phase of a workload in a state, Failed also if it is given up.
func outlook(state string, reason rollout.Reason) rollout.Phase {
	if IsGivenUp(reason) {
		return rollout.PhaseFailed
	}
	return State(state).Phase(reason)
}

// IsGivenUp is true of a workload that does not get its content before a user corrects it.
func IsGivenUp(r rollout.Reason) bool {
	return r == ReasonConfigFailed || r == ReasonConfigRolledBack
}

// record is what there is to say of it, before it is compared with what was recorded.
func (r *objectRollout) record(digest string, now time.Time) *v1alpha1.RolloutRecord {
	phase := r.phase()
	record := &v1alpha1.RolloutRecord{Target: digest, Changed: r.changed, Phase: string(phase), Causes: ring.Causes(r.units, r.of.Namespace)}
	slices.Sort(record.Changed)
	slices.SortStableFunc(record.Causes, func(a, b v1alpha1.RolloutCause) int { return State(a.State).Urgency() - State(b.State).Urgency() })
	if slices.ContainsFunc(r.units, func(u ring.Waiting) bool { return State(u.State) != StateWaiting }) { // they have it, or get it in this pass
		record.MovedAt = new(metav1.NewMicroTime(now.UTC().Truncate(time.Microsecond)))
	}
	c := &record.Units
	c.Total = int32(min(max(r.uses, len(r.units)), 1<<30))
	for i := range r.units {
		switch State(r.units[i].State).Phase(r.units[i].Reason) {
		case rollout.PhaseProgressing:
			c.Moving++
		case rollout.PhaseFailed:
			c.Failed++
		default:
			c.Waiting++
		}
	}
	c.Complete = c.Total - c.Moving - c.Failed - c.Waiting
	for i := range record.Causes {
		if cause := &record.Causes[i]; outlook(cause.State, rollout.Reason(cause.Reason)) == phase {
			record.WaitingFor = message.Sentence(ring.Sentence(cause, cause.Units[0], int(cause.Position)))
			break
		}
	}
	return record
}

// addRollout adds to the record of an object how far its content has come; what was recorded, if that is not known.
func (o *Observed) addRollout(after, before *v1alpha1.ConfigRollout, r *objectRollout, known bool, digest, writer string) {
	if before == nil {
		before = &v1alpha1.ConfigRollout{}
	}
	if !known {
		after.Rollout, after.Paused, after.History = before.Rollout, before.Paused, before.History
	}
	if r == nil {
		return
	}
	if r.paused != nil {
		after.Paused = &v1alpha1.Pause{Reason: r.paused.Reason, By: r.paused.By}
		if !r.paused.At.IsZero() {
			after.Paused.Since = new(metav1.NewTime(r.paused.At.Truncate(time.Second)))
		}
	}
	isOfNamespace := r.of.Kind == ""
	if len(r.units) == 0 && (before.Rollout == nil || isOfNamespace || r.uses == 0) || before.Rollout == nil && !r.lasting && after.Before == nil {
		return
	}
	decided := r.record(digest, o.Now)
	decided.DecidedBy, decided.ChangedBy = o.By, writer
	after.Rollout, after.History = ring.Record(before.Rollout, before.History, decided, undoneBy(before.Rollout, writer), o.Now)
	if isOfNamespace {
		after.History = nil
	}
}

// undoneBy is who undoes a rollout that is not complete when another content comes: the manager, if it has returned a
// workload, else the field manager that wrote the content.
func undoneBy(r *v1alpha1.RolloutRecord, writer string) string {
	if r != nil && slices.ContainsFunc(r.Causes, func(c v1alpha1.RolloutCause) bool { return rollout.Reason(c.Reason) == ReasonConfigRolledBack }) {
		return kube.FieldOwner
	}
	return writer
}
