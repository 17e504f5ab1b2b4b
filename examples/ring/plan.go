package ring

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/rollout"
)

// plan is what a pass does: permit, or act.
type plan struct {
	rollout.Plan

	// needsLive is true if the cache does not suffice: observe again, live.
	needsLive bool
	// permits is true if record is to be written before anything else is done.
	permits bool
	record  record
	// fences are the intents to withdraw, before anything else is permitted, and writes those
	// to act upon.
	fences, writes []intent
}

// decide is pure, but for what the memory knows of own writes.
func decide(s *snapshot, m *memory) plan {
	if s.object == nil {
		return plan{}
	}
	intents := s.intents()
	p := plan{Plan: rollout.Decide(s.tree(intents))}
	p.Wake = ring.Earlier(p.Wake, intents.Wake())
	if p.needsLive = !s.live && ring.IsBehind(s.asOf, s.record.Seen) || intents.Unverified(); p.needsLive {
		return p
	}
	if p.fences, _ = ring.Unmade(&m.Expectations, s.now, intents.Fences(), (*intent).fence); len(p.fences) > 0 {
		return p
	}
	p.record.Intents, p.permits = intents.Permit(s.wanted(p.Steps))
	if p.permits {
		p.record.Seen = ring.Newer(s.record.Seen, s.asOf)
		return p
	}
	p.writes, _ = ring.Unmade(&m.Expectations, s.now, intents.Due(), (*intent).change)
	return p
}

// change identifies the write that an intent permits.
func (i *intent) change() ring.Change {
	return ring.Change{Act: "Roll", Object: i.Name, Version: string(i.UID) + "/" + i.Version}
}

// fence identifies the write that withdraws an intent.
func (i *intent) fence() ring.Change {
	return ring.Change{Act: "Fence", Object: i.Name, Version: string(i.UID) + "/" + i.Version}
}

// intents tells package ring what it has to know of an intent.
func (s *snapshot) intents() *ring.Intents[intent] {
	return &ring.Intents[intent]{
		Now: s.now, Live: s.live, Written: s.record.Intents,
		At:     func(i *intent) *metav1.MicroTime { return &i.At },
		Same:   func(a, b *intent) bool { return a.Name == b.Name },
		PutOff: func(i *intent) bool { return s.refusals.PutOff(i.Name, s.now) },
		State: func(i *intent) ring.State {
			switch m := s.member(i.Name); {
			case m == nil && !s.live:
				return ring.Unseen
			case m == nil || m.UID != i.UID || m.ResourceVersion != i.Version:
				return ring.Ended // the write would fail: it was made, or the member has changed
			case i.Revision == s.target() && m.Annotations[revisionAnnotation] != i.Revision:
				return ring.Wanted
			default:
				return ring.Unwanted
			}
		},
	}
}

// tree is what package rollout decides upon: the members, one at a time.
func (s *snapshot) tree(intents *ring.Intents[intent]) rollout.Observed {
	root := rollout.Unit{Name: s.object.Name, Group: true, Policy: rollout.Policy{MaxUnavailable: rollout.Number(1)}}
	for i := range s.members {
		m := &s.members[i]
		leaf := rollout.Leaf{Current: m.Annotations[revisionAnnotation], Target: s.target(), Health: rollout.Healthy}
		if m.Data["state"] == "broken" {
			leaf.Health, leaf.Reason = rollout.Degraded, "broken"
		}
		for _, in := range intents.Kept() {
			if in.Name == m.Name { // what is permitted counts as done
				leaf.Current, leaf.Health, leaf.Reason = in.Revision, rollout.Progressing, "being rolled"
			}
		}
		if refusal, ok := s.refusals[m.Name]; ok {
			leaf.RetryAt, leaf.RetryReason = refusal.At, refusal.Reason
		}
		root.Children = append(root.Children, rollout.Unit{Name: m.Name, Leaf: leaf})
	}
	return rollout.Observed{Now: s.now, Self: s.object.Name, Root: root}
}

// wanted are the intents for the steps of the plan.
func (s *snapshot) wanted(steps []rollout.Step) []intent {
	var wanted []intent
	for _, step := range steps {
		m := s.member(step.Path[0])
		wanted = append(wanted, intent{
			Name: m.Name, UID: m.UID, Version: m.ResourceVersion, Revision: step.To, At: metav1.NewMicroTime(s.now),
		})
	}
	return wanted
}

func (s *snapshot) target() string { return s.object.Annotations[revisionAnnotation] }

func (s *snapshot) member(name string) *corev1.ConfigMap {
	for i := range s.members {
		if s.members[i].Name == name {
			return &s.members[i]
		}
	}
	return nil
}
