package decision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/rollout"
)

// A hub of which no revision has reached all clusters may be one that was rebuilt. It reads
// all clusters first, and takes over what they have: from then on they are at that revision, whatever
// it is, and move in their turn. What was given up before is known there, too, as a copy lies with each
// cluster. A copy says something about the one revision that it names of the one module, and it is
// believed only until a revision has reached all: the worst that a cluster can do with a false one is
// that this revision is not rolled out until a user says so.

// isFresh is true of a module of which no revision has reached all clusters, as far as this hub knows.
func (d *decision) isFresh() bool {
	return d.o.Module.Status.CurrentRevision == "" && !d.o.Module.IsExternal() && !d.o.Module.Deleting
}

// isSilent is true of a cluster of which it is not known what it has, as it does not answer.
func (m *member) isSilent() bool {
	return m.record != nil && !m.isAssigned() && m.record.Silent && m.move == nil
}

// lookFirst is why nothing is assigned to a cluster that has nothing, as far as it is known: it
// may have something. Nil if that is known, and what was found is taken over.
func (d *decision) lookFirst(m *member) *rollout.Block {
	switch {
	case !d.o.Looks || m.record == nil || m.move != nil:
		return nil
	case m.isAssigned() && m.record.Found != nil:
		// The writer of the cluster compares what it finds with what was taken over, not with what comes next.
		return &rollout.Block{Reason: ReasonUnseen, Message: "what it runs is being taken over"}
	case m.isAssigned():
		return nil
	case m.record.Silent:
		return &rollout.Block{Reason: outcome.ReasonUnreachable, Message: "skipped until it answers: it is not known what it runs"}
	case m.record.Unseen:
		return &rollout.Block{Reason: ReasonUnseen, Message: "it is not known yet what it runs"}
	default:
		return nil
	}
}

// unlooked are the clusters of a fresh module at which no manager has looked.
func (d *decision) unlooked() []*member {
	if !d.isFresh() || !d.o.Looks {
		return nil
	}
	var members []*member
	for _, m := range d.members {
		unseen := m.record == nil || !m.isAssigned() && m.record.Unseen
		if unseen && m.move == nil && m.Ready && !m.Unreachable && !d.o.Foreign[m.Name] && !d.isPutOff(m.Name) {
			members = append(members, m)
		}
	}
	return members
}

func (d *decision) whyUnlooked() string {
	members := d.unlooked()
	return fmt.Sprintf("it is not known yet what %d clusters run, %s among them", len(members), members[0].Name)
}

// takes take over what was found on clusters. That assigns nothing to them, so it also happens
// while the module is suspended.
func (d *decision) takes() []Write {
	if d.o.Module.IsExternal() || len(d.problems) > 0 {
		return nil
	}
	var writes []Write
	for _, m := range d.members {
		r := m.record
		if r == nil || r.Found == nil || r.Assigned || r.Deleting || m.move != nil || d.o.Foreign[m.Name] || d.isPutOff(m.Name) {
			continue
		}
		w := Write{Act: Take, Cluster: m.Cluster, Record: r, Revision: r.Found.Revision, Overrides: r.Found.Overrides, Unready: r.Found.Unready}
		if r.Found.AssignedAt != nil {
			w.AssignedAt = r.Found.AssignedAt.Time
		}
		writes = append(writes, w)
	}
	return writes[:min(len(writes), maxWrites)]
}

// toldGivenUp is what clusters tell that was given up before, nil if none tells that of what is
// wanted, or if it is known: of several the oldest, so that it does not depend on which is seen first.
func (d *decision) toldGivenUp() *v1alpha1.GivenUp {
	if !d.isFresh() || len(d.problems) > 0 || d.o.Module.Status.RolledBack == d.wanted || d.isRetried() {
		return nil
	}
	var told *v1alpha1.GivenUp
	for _, m := range d.members {
		if m.record == nil || m.record.Found == nil || m.record.Assigned {
			continue
		}
		given := m.record.Found.GivenUp
		if given != nil && given.Revision == d.wanted && (told == nil || given.At.Before(&told.At)) {
			told = given
		}
	}
	return told
}

// isStopped is true if what is wanted was given up, and there is nothing to go back to: the clusters
// keep what they have.
func (d *decision) isStopped() bool {
	s := &d.o.Module.Status
	return d.good == "" && s.RolledBack == d.wanted && s.GivenUp != nil
}

func (d *decision) whyStopped() string {
	return "the clusters keep what they run: " + d.wanted + " was given up " + because(d.o.Module.Status.GivenUp) + "; change the template, or " + d.howToRetry()
}

// because is when and why something was given up, as the end of a clause.
func because(g *v1alpha1.GivenUp) string {
	if g == nil {
		return "before"
	}
	text := rollout.Clock(g.At.Time)
	if why := whyGivenUp(g); why != "" {
		text += ", as " + why
	}
	return text
}

func whyGivenUp(g *v1alpha1.GivenUp) string {
	if g == nil || g.Cluster == "" {
		return messageOf(g)
	}
	return strings.TrimSuffix(g.Cluster+" failed: "+g.Message, ": ")
}

// reasonOf is why something was given up, as one more clause of a sentence.
func reasonOf(g *v1alpha1.GivenUp) string {
	if why := whyGivenUp(g); why != "" {
		return " (" + why + ")"
	}
	return ""
}

func messageOf(g *v1alpha1.GivenUp) string {
	if g == nil {
		return ""
	}
	return g.Message
}

// giveUp is why what is wanted is given up: the first cluster that has failed with it, or the gate
// that was refused.
func (d *decision) giveUp() *v1alpha1.GivenUp {
	g := &v1alpha1.GivenUp{Revision: d.wanted, At: metav1.NewMicroTime(d.o.Now)}
	failed := slices.IndexFunc(d.members, func(m *member) bool {
		return m.leaf.Current == d.wanted && m.stage >= 0 && m.hasFailed() && m.leaf.NoEvidence == ""
	})
	for i := range d.o.Gates {
		if gate := &d.o.Gates[i]; gate.Revision == d.wanted && gate.Verdict == rollout.Refused && failed < 0 {
			g.Gate, g.Message = gate.Name, model.Short("gate "+gate.Gate+" of stage "+gate.Stage+" was refused: "+cmp.Or(gate.Message, "no reason was given"), model.SaidLength)
		}
	}
	if failed >= 0 {
		f := d.members[failed].failure()
		g.Cluster, g.Gate, g.Message = f.Name, "", model.Short(f.Message, model.SaidLength)
	}
	return g
}

// lacksCopy is true of a cluster with which no copy lies of what was given up. Those that go back are
// given it with what they are assigned, and the others once these are updating.
func (d *decision) lacksCopy(m *member) bool {
	given := d.o.Module.GivenUp()
	if given == nil || m.record.Follows || m.record.Tagged || len(d.plan.Steps) > 0 || len(d.o.Module.Status.Moves) > 0 {
		return false
	}
	return !equality.Semantic.DeepEqual(given, m.record.GivenUp)
}
