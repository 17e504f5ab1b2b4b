package decision

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// The kinds of the units of a group.
const (
	KindZone = "Zone"
	KindPod  = "Pod"
)

// record is the record of the rollout after this decision; rows are its zones, history the rollouts.
func (d *decision) record(rows []v1alpha1.Zone, history []v1alpha1.Rollout) *record.Rollout {
	r := ring.Decided{
		By:        d.o.By,
		Namespace: d.o.Group.Namespace, Target: target(rows), Phase: d.phase(), Notes: d.o.notes(),
		Units: ring.WaitingOf(&d.plan, d.unitOf, referTo),
	}
	r.Reason, r.Sentence = d.verdict()
	if hold := d.plan.At().Hold; hold != nil {
		r.Telling = hold.Cause
	}
	if len(history) > 0 && d.goesOn(&history[0]) {
		r.ChangedBy = history[0].ChangedBy
	}
	patience := d.o.deadline()
	for i := range r.Units {
		if u := &r.Units[i]; u.Reason == rollout.ReasonProgressing && !u.Since.IsZero() {
			u.Deadline = u.Since.Add(patience)
		}
	}
	for i := range rows {
		s := ring.StageOf(&d.plan, rows[i].Name, int(rows[i].Total), int(rows[i].Updated), rows[i].Name)
		s.WaitsFor = d.waitsFor(s.Name)
		r.Total += int(rows[i].Total)
		r.Stages = append(r.Stages, s)
	}
	return r.Record(d.o.Group.Status.Rollout, d.o.Now)
}

// unitOf names a Pod as ZONE/POD, and a zone as a whole by its name; the group itself if all of it waits.
func (d *decision) unitOf(path rollout.Path) (unit string, whole bool) {
	if len(path) == 0 {
		return d.o.Group.Name, true
	}
	return path.String(), len(path) == 1
}

// referTo refers to the Pod or zone that others wait for.
func referTo(on rollout.Path) rollout.Ref {
	if len(on) > 1 {
		return rollout.Ref{Kind: KindPod, Name: on[1]}
	}
	return rollout.Ref{Kind: KindZone, Name: on[0]}
}

// waitsFor is the first zone that another one waits for.
func (d *decision) waitsFor(zone string) string {
	for i := range d.plan.Holds {
		if h := &d.plan.Holds[i]; len(h.Path) > 0 && h.Path[0] == zone && len(h.On) > 0 && h.On[0] != zone {
			return h.On[0]
		}
	}
	return ""
}

// target are the revisions that the zones are to get to; a digest of them if they are too many to be named.
func target(rows []v1alpha1.Zone) string {
	revisions := make([]string, len(rows))
	for i := range rows {
		revisions[i] = rows[i].Target
	}
	all := strings.Join(revisions, ", ")
	if len(all) <= targetLength {
		return all
	}
	return fmt.Sprintf("%d revisions %x", len(revisions), sha256.Sum256([]byte(all)))
}

// targetLength bounds the target of a record.
const targetLength = 253
