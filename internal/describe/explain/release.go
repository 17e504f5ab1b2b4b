package explain

import (
	"context"
	"fmt"
	"slices"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/rollout"
)

// configObject is a ConfigMap or a Secret. If it exists, and nothing of it is missing, the
// answer goes on to the tracked workload that is furthest from having its content.
func (a *asker) configObject(ctx context.Context, ref describe.Ref, first bool) (answer, error) {
	found, err := a.ofConfig(ctx, ref, first)
	if err != nil || !first || found.Links[0].Next != "" {
		return found, err
	}
	survey, err := a.survey(ctx, ref.Namespace)
	all := survey.Workloads
	if err != nil { // who uses it is known all the same
		found.Facts = append(found.Facts, describe.FactOf("note", "it is unknown how its workloads are rolled: "+lastOf(err)))
		return found, nil
	}
	users := trackedUsers(all, content.Object{Kind: content.Kind(ref.Kind), Namespace: ref.Namespace, Name: ref.Name})
	if len(users) == 0 {
		return found, nil
	}
	for _, same := range alike(users) {
		found.Facts = append(found.Facts, usersFact(same))
	}
	found.Facts = append(found.Facts, releaseFacts(survey.Policies, &ref)...)
	done, total := survey.Count(content.Object{Kind: content.Kind(ref.Kind), Namespace: ref.Namespace, Name: ref.Name})
	link := &found.Links[0]
	link.Sentence = a.place() + fmt.Sprintf("%s %s: %d of %d tracked workloads are up to date", ref.Kind, ref.Name, done, total)
	if by := describe.PauseOf(users[0], ref); by != nil {
		link.Sentence += "; " + by.Clause()
		link.Next = a.spillway("resume", ref)
	}
	if e := users[0]; e.State != config.StateUpToDate {
		found.Then = a.about(describe.Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name})
	}
	return found, nil
}

// alike are workloads by their states and what they wait for, in their order.
func alike(users []*config.Explanation) (groups [][]*config.Explanation) {
	type likeness struct {
		state config.State
		cause rollout.Cause
	}
	places := map[likeness]int{}
	for _, e := range users {
		is := likeness{e.State, e.Cause}
		at, ok := places[is]
		if !ok {
			at = len(groups)
			places[is], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], e)
	}
	return groups
}

// usersFact is what there is to say of workloads that are alike: of one its sentence, of several once for all.
func usersFact(same []*config.Explanation) describe.Fact {
	first := same[0]
	if len(same) == 1 {
		return describe.FactOf("rolled for it", first.Sentence)
	}
	sentence := "each is up to date"
	if first.State != config.StateUpToDate {
		sentence = first.Cause.Sentence("each", first.Position)
	}
	names := message.Join(same, ", ", func(e *config.Explanation) string { return e.Kind + " " + e.Name })
	return describe.FactOf("rolled for it", names+": "+sentence)
}

// releaseFacts say which policies release an object, in which stage, and which stages come next.
func releaseFacts(policies []policy.Explanation, of *describe.Ref) []describe.Fact {
	var facts []describe.Fact
	for i := range policies {
		p := &policies[i]
		for j := range p.Releases {
			r := &p.Releases[j]
			if string(r.Object.Kind) != of.Kind || r.Object.Name != of.Name || r.Object.Namespace != of.Namespace {
				continue
			}
			facts = append(facts, describe.FactOf("policy", p.Kind+" "+p.Name, "in "+r.Namespace, r.Text()))
			for _, s := range r.Stages {
				facts = append(facts, describe.FactOf("stage", s.Name, string(s.Phase), fmt.Sprintf("%d/%d workloads", s.Updated, s.Of)))
			}
		}
	}
	return facts
}

// trackedUsers are the workloads that are rolled for an object, what needs a user first.
func trackedUsers(all []config.Explanation, o content.Object) []*config.Explanation {
	var users []*config.Explanation
	for i := range all {
		if all[i].IsFor(o) && all[i].State.Urgency() >= 0 {
			users = append(users, &all[i])
		}
	}
	slices.SortStableFunc(users, func(a, b *config.Explanation) int {
		return a.State.Urgency() - b.State.Urgency()
	})
	return users
}
