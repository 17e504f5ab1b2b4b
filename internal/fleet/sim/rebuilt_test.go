package sim

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/ring"
)

// loseHub loses the hub with all that it knows. The same module is applied to a new one, and
// clusters have what they have.
func (w *world) loseHub() {
	w.count("hubs lost")
	w.notef("the hub is lost, and rebuilt")
	w.lost++
	w.oracle.begins()

	for i := range w.clusters {
		c := &w.clusters[i]
		c.blinked = c.hidden || !c.Ready || c.Unreachable
		a, there := w.assemblages[c.Name]
		delete(w.assemblages, c.Name)

		switch {
		case there && a.assigned:
			c.former = &a
		case there && a.looked && !a.silent && a.found == nil: // it has answered, and has nothing
			c.former = nil
		}
	}
	w.revisions, w.gates, w.flights = nil, nil, nil
	w.module = module{version: w.next(), generation: 1, spec: w.module.spec}
	w.recordsAt, w.othersAt = w.next(), w.next()
}

// begins is a manager on the new hub.
func (m *manager) begins() {
	m.lost, m.requests, m.looked, m.asleep, m.frozen = m.world.lost, nil, false, time.Time{}, [4]time.Time{}
	m.refusals, m.own = map[string]ring.Refusal{}, map[string]time.Time{}
	m.refresh(0)
}

// lookAt is that a hub looks what a cluster has before anything is assigned to it.
func (w *world) lookAt(c *cluster) {
	down := c.hidden || !c.Ready || c.Unreachable
	c.blinked = c.blinked || down
	a, there := w.assemblages[c.Name]

	if !w.mortal || !there || a.assigned || a.looked && !a.silent || down && a.silent {
		return
	}
	a.looked, a.silent = true, down

	if c.former != nil && !down {
		a.found = &v1alpha1.FoundSync{Name: moduleName, Revision: c.former.revision, AssignedAt: momentOrNil(c.former.at), Unready: c.former.unready, GivenUp: c.former.givenUp}
	}
	w.changed(c.Name, a, false)
}

// takenOver is what a cluster is assigned once the hub has taken over what it has, which goes on.
func (w *world) takenOver(c *cluster, a assemblage, write *decision.Write) assemblage {
	f := c.former
	if f == nil {
		w.oracle.complainf("%s is taken over, and nothing was found there", c.Name)

		return a
	}
	c.former = nil
	w.count("taken over")

	if f.givenUp != nil && f.givenUp.Revision == w.asked() && w.module.status.CurrentRevision == "" {
		w.oracle.told[f.givenUp.Revision] = true
	}
	a.unready = write.Unready
	a.found, a.kept, a.assigned, a.revision, a.at = nil, true, true, f.revision, write.AssignedAt
	a.policy, a.exact, a.drifted, a.resolved, a.givenUp = f.policy, f.exact, f.drifted, f.resolved, f.givenUp
	a.reported, a.reportOf, a.state, a.since, a.seen = f.reported, f.reportOf, f.state, f.since, a.generation+1

	if a.state == v1alpha1.StateSucceeded && f.reported == f.revision && f.reportOf.Equal(f.at) {
		a.succeeded, a.proven = f.revision, f.at
	}

	return a
}

func momentOrNil(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewMicroTime(t)

	return &at
}

// copyOf is the copy that a manager writes to a cluster.
func (m *manager) copyOf() *v1alpha1.GivenUp {
	of := model.Module{Kind: model.KindModule, Status: m.view.module.status}

	return of.GivenUp()
}

// ails makes a cluster one that can tell nothing.
func (w *world) ails(c *cluster) {
	switch w.rnd.IntN(4) {
	case 0:
		c.suspended = true
	case 1:
		c.sick = true
	case 2:
		c.Unreachable = true
	default:
		c.Ready = false
	}
	w.count("ailing")
}

// turn has a cluster be suspended, or resumed, or recover.
func (w *world) turn() {
	if len(w.clusters) == 0 {
		return
	}
	c := &w.clusters[w.rnd.IntN(len(w.clusters))]
	w.oracle.breaks(c.Name)

	switch {
	case c.sick:
		c.sick = false
		if a := w.assemblages[c.Name]; a.assigned && a.state == v1alpha1.StateFailed {
			a.state, a.since, c.begun, c.takes = v1alpha1.StateUpdating, w.now, w.now, w.seconds(0, 20)
			w.changed(c.Name, a, false)
		}
	default:
		c.suspended = !c.suspended
	}
	w.notef("%s is suspended: %v, sick: %v", c.Name, c.suspended, c.sick)
}
