package sim

import (
	"strings"

	"github.com/spillway-dev/spillway/rollout"
)

// keepWhole has the groups start again that start as a whole. What a leaf of one gets that
// is moved before is the revision that the group has started with last.
func (w *world) keepWhole() {
	for i := range w.root.Children {
		if group := &w.root.Children[i]; w.wholes[group.Name] && group.Whole == nil {
			group.Whole = &rollout.Whole{Revision: w.target, Reason: "Whole", Message: "held"}
		}
	}
}

// start starts the group of a leaf, as a whole or leaf by leaf.
func (w *world) start(path string, start rollout.Start) {
	if start == rollout.StartNone {
		return
	}

	name, _, _ := strings.Cut(path, "/")
	for i := range w.root.Children {
		if group := &w.root.Children[i]; group.Name == name && group.Whole != nil {
			w.notef("%s has started", name)
			group.Whole = nil
			w.remember()
		}
	}
}

// checkWhole: in a group that has not started only what is down is moved, and not to its
// target, unless the step starts the group; leaf by leaf only what is down.
func (o *oracle) checkWhole(group rollout.Unit, s rollout.Step, leaf rollout.Leaf) {
	healthy := leaf.Health == rollout.Healthy

	switch {
	case group.Whole == nil && s.Start != rollout.StartNone:
		o.complainf("%s starts a group that has started", s.Path)
	case group.Whole == nil || s.Start == rollout.StartWhole:
	case healthy:
		o.complainf("%s is taken down in a group that has not started", s.Path)
	case s.Start == rollout.StartNone && (s.To != group.Whole.Revision || leaf.Current == group.Whole.Revision):
		o.complainf("%s moves from %s to %s in a group that has not started", s.Path, leaf.Current, s.To)
	}
}
