package policy

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// Member is a workload that uses the object of a release, as stages see it.
type Member struct {
	Labels labels.Set
	// Claim is on a place in the first stages.
	Claim Claim
	// Last is true of one that cannot be rolled now, or of which it cannot be known whether it
	// works. Disrupted is true of one that is not ready because it was rolled.
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
// The order of two members that are rolled next follows from themselves and the policy,
// whatever other members there are; and that of their stages follows it.
func (p *Policy) Divide(members []Member) [][]int {
	own := make([]int, len(members))
	order := make([]int, len(members))
	for i := range members {
		own[i], order[i] = p.stageOf(members[i].Labels), i
	}
	slices.SortFunc(order, func(i, k int) int {
		a, b := &members[i], &members[k]
		return cmp.Or(cmp.Compare(a.Claim, b.Claim), a.Since.Compare(b.Since), cmp.Compare(own[i], own[k]), falseFirst(a.Last, b.Last),
			falseFirst(!a.Disrupted, !b.Disrupted), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	stages, next := make([][]int, len(p.Stages)), order
	for i := range p.Stages {
		if size := p.Stages[i].Size; size.Set {
			n := min(len(next), size.Of(len(members)))
			stages[i], next = next[:n:n], next[n:]
		}
	}
	for _, i := range next {
		stages[own[i]] = append(stages[own[i]], i)
	}
	return stages
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
