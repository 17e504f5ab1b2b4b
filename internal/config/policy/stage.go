package policy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/ring"
)

// Member is a workload that uses the object of a release, as stages see it.
type Member struct {
	Labels labels.Set
	// Claim is on a place in the first stages.
	Claim Claim
	// Mute is true of one that cannot show whether it works: nothing waits for it.
	Mute bool
	// Last is true of one that cannot be rolled now. Disrupted is true of one that is not ready
	// because it was rolled.
	Last, Disrupted bool
	Priority        int
	// Since is when it got the content, if it has it.
	Since time.Time
	Name  string
}

// Claim is on a place in a stage that takes a number of workloads.
type Claim int

// The claims, the best first.
const (
	// ClaimHas is that of a workload that has the content, and says whether it works.
	ClaimHas Claim = iota
	// ClaimNext is that of one that would get it.
	ClaimNext
	// ClaimNone is that of one that has it, and says nothing: it was not ready before.
	ClaimNone
)

// Divide puts the members of a release into the stages, by their places among the members,
// in the order in which they are to be rolled. Of those that have the content already the
// earlier ones come first, as others may have followed them since.
//
// Those that are mute are in the last stage, for which none waits. A stage of which no member
// can show anything takes the next one that can, so that each stage has shown something.
//
// The order of two members that are rolled next follows from themselves and the policy,
// whatever other members there are; and that of their stages follows it.
func (p *Policy) Divide(members []Member) [][]int {
	own, mutes := make([]int, len(members)), make([]bool, len(p.Stages))
	var order, mute []int
	for i := range members {
		own[i] = p.stageOf(members[i].Labels)
		if members[i].Mute {
			mute, mutes[own[i]] = append(mute, i), true
			continue
		}
		order = append(order, i)
	}
	slices.SortFunc(order, func(i, k int) int {
		a, b := &members[i], &members[k]
		return cmp.Or(cmp.Compare(a.Claim, b.Claim), a.Since.Compare(b.Since), cmp.Compare(own[i], own[k]), ring.FalseFirst(a.Last, b.Last),
			ring.FalseFirst(!a.Disrupted, !b.Disrupted), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	stages, next := make([][]int, len(p.Stages)), order
	for i := range p.Stages {
		if size := p.Stages[i].Size; size.Set {
			n := min(len(next), size.Of(len(members)))
			stages[i], next = next[:n:n], next[n:]
			continue
		}
		stages[i], next = split(next, func(k int) bool { return own[k] == i })
		tells := func(k int) bool { return members[k].Claim != ClaimNone }
		if (mutes[i] || len(stages[i]) > 0) && !slices.ContainsFunc(stages[i], tells) && len(next) > 0 && tells(next[0]) {
			stages[i], next = append(stages[i], next[0]), next[1:]
		}
	}
	last := &stages[len(stages)-1]
	*last = append(*last, mute...)
	return stages
}

// split takes those out of a list for which is is true.
func split(list []int, is func(int) bool) (taken, left []int) {
	for _, i := range list {
		if is(i) {
			taken = append(taken, i)
		} else {
			left = append(left, i)
		}
	}
	return taken, left
}

// stageOf is the stage of a workload that has no place in one of the first.
func (p *Policy) stageOf(of labels.Set) int {
	for i := range p.Stages {
		if s := &p.Stages[i]; !s.Size.Set && s.selector.Matches(of) {
			return i
		}
	}
	return len(p.Stages) - 1
}
