package decision

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
)

// stage are clusters that go together.
type stage struct {
	name    string
	spec    v1alpha1.Stage
	members []*member
}

type stageSpec struct {
	v1alpha1.Stage
	selector labels.Selector
}

// assign gives each member its stage: the first that selects it and is not full.
func (d *decision) assign() error {
	specs, err := d.stageSpecs()
	if err != nil {
		return err
	}
	for _, m := range d.members {
		m.stage = unmatched
		if m.isHeld() {
			m.stage = pinned
		}
	}
	for i := range specs {
		d.stages = append(d.stages, stage{name: specs[i].Name, spec: specs[i].Stage})
		d.fill(i, &specs[i])
	}
	d.addOthers()
	d.divide()
	d.findUnknown()
	d.findRemovals(specs)
	d.approve()
	return nil
}

// stageSpecs are the stages of the spec, or the one that all clusters are.
func (d *decision) stageSpecs() ([]stageSpec, error) {
	stages := d.o.Module.Rollout().Stages
	if len(stages) == 0 || !d.o.Module.IsStaged() {
		return []stageSpec{{v1alpha1.Stage{Name: "all"}, labels.Everything()}}, nil
	}
	specs := make([]stageSpec, len(stages))
	for i, s := range stages {
		specs[i] = stageSpec{s, labels.Everything()}
		if s.Selector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(s.Selector)
		if err != nil {
			return nil, fmt.Errorf("spec.rollout.stages[%d].selector: %w", i, err)
		}
		specs[i].selector = selector
	}
	return specs, nil
}

// fill gives a stage its members. Where it takes but some, those go first that are
// where they should be already, in the order in which they got there, so that it does
// not begin again when a cluster joins or follows, and those last that can tell nothing of the
// revision, or have never run the module.
func (d *decision) fill(i int, s *stageSpec) {
	candidates := make([]*member, 0, len(d.members))
	all := s.selector.Empty()
	for _, m := range d.members {
		if m.stage == unmatched && (all || s.selector.Matches(labels.Set(m.Labels))) {
			candidates = append(candidates, m)
		}
	}
	if s.Clusters != nil {
		candidates = d.byClaim(candidates)
		candidates = candidates[:min(len(candidates), ring.LimitOf(s.Clusters).Of(len(d.members)))]
	}
	for _, m := range candidates {
		m.stage = i
	}
}

// byClaim puts those with the better claim first: of those that are where they should be
// the ones that got there first, as others may have followed them since. Otherwise it
// keeps the order.
func (d *decision) byClaim(candidates []*member) []*member {
	ordered := slices.Clone(candidates)
	slices.SortStableFunc(ordered, func(a, b *member) int {
		claim := d.claim(a)
		if other := d.claim(b); claim != other || claim != 0 {
			return claim - other
		}
		return a.since().Compare(b.since())
	})
	return ordered
}

func (d *decision) claim(m *member) int {
	switch {
	case m.isNew:
		return 3
	case m.untouched:
		return 2
	case m.leaf.Current == d.target:
		return 0
	case m.leaf.NoEvidence != "":
		return 2
	default:
		return 1
	}
}

// since is when a member was assigned what it has, or is about to have.
func (m *member) since() time.Time {
	if m.move != nil {
		return assignedAt(m.move)
	}
	return m.started
}

// addOthers makes those a stage of their own, after the others, that belong to none.
func (d *decision) addOthers() {
	answer := d.o.Module.Rollout().UnmatchedClusters
	if answer != v1alpha1.UnmatchedLast && answer != "" {
		return
	}
	others := stage{name: "others"}
	for slices.ContainsFunc(d.stages, func(s stage) bool { return s.name == others.name }) {
		others.name += "-too"
	}
	found := false
	for _, m := range d.members {
		if m.stage == unmatched {
			m.stage, found = len(d.stages), true
		}
	}
	if found {
		d.stages = append(d.stages, others)
	}
}

// divide puts the members into their stages, or aside.
func (d *decision) divide() {
	sizes := make([]int, len(d.stages))
	for _, m := range d.members {
		if m.stage >= 0 {
			sizes[m.stage]++
		}
	}
	for i, size := range sizes {
		d.stages[i].members = make([]*member, 0, size)
	}
	for _, m := range d.members {
		if m.stage >= 0 {
			d.stages[m.stage].members = append(d.stages[m.stage].members, m)
		} else {
			d.aside = append(d.aside, m)
		}
	}
}
