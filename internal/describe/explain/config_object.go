package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/rollout"
)

// ofConfig is a ConfigMap or a Secret: which workloads use it, and which wait for
// it.
func (a *asker) ofConfig(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	keys, exists, err := a.keys(ctx, ref)
	if err != nil {
		return answer{}, err
	}
	var facts []describe.Fact
	link := a.lacking(lack{Ref: ref})
	if exists {
		link = a.link(ref, "", "%s %s exists and has all keys that are used", ref.Kind, ref.Name)
		facts = append(facts, describe.FactOf("keys", strings.Join(slices.Sorted(maps.Keys(keys)), ", ")))
	}
	users, waits, err := a.users(ctx, ref, keys, exists)
	switch {
	case err != nil:
		if exists {
			link.Sentence = a.place() + fmt.Sprintf("%s %s exists", ref.Kind, ref.Name)
		}
	case waits != nil:
		link = a.lacking(waits.lack)
		link.Sentence += "; " + waits.user + " is waiting for it"
	case !exists && len(users) == 0:
		return answer{}, fmt.Errorf("%s %s in namespace %s not found, and nothing uses it", ref.Kind, ref.Name, ref.Namespace)
	case len(users) == 0:
		link.Sentence = a.place() + fmt.Sprintf("%s %s exists; no workload in its namespace uses it", ref.Kind, ref.Name)
	case !exists:
		link = a.link(ref, "", "%s %s not found; it is optional for all that use it", ref.Kind, ref.Name)
	}
	for _, user := range users[:min(len(users), shownUsers)] {
		facts = append(facts, describe.FactOf("used by", user))
	}
	if more := len(users) - shownUsers; more > 0 {
		facts = append(facts, describe.FactOf("used by", fmt.Sprintf("and %d more", more)))
	}
	return answer{Links: []Link{link}, Facts: facts}, err
}

// shownUsers is how many users of an object are named.
const shownUsers = 10

// waiter is a workload that waits for something that is missing.
type waiter struct {
	lack

	user string
}

// users are the workloads of the namespace that use an object, and the first that
// lacks something of it.
func (a *asker) users(ctx context.Context, ref describe.Ref, keys map[string]bool, exists bool) (users []string, waits *waiter, err error) {
	all, err := a.templatesWith(ctx, ref.Namespace, nil)
	if err != nil {
		return nil, nil, err
	}
	for i := range all {
		w := &all[i]
		uses := content.References(ref.Namespace, &w.template.Spec, nil, false)
		if !slices.ContainsFunc(uses, func(r content.Reference) bool { return *describe.RefOf(r.Object) == ref }) {
			continue
		}
		users = append(users, w.Ref().String())
		if lacks := w.lacks(ref, keys, exists); lacks != nil && waits == nil {
			waits = &waiter{*lacks, w.Name()}
		}
	}
	return users, waits, nil
}

// lacks is what the Pods need of an object and do not get, nil if they get all.
func (w *Workload) lacks(ref describe.Ref, keys map[string]bool, exists bool) *lack {
	for _, n := range needsOf(ref.Namespace, &w.template.Spec) {
		if missing := n.unmet(keys, exists); n.Ref == ref && missing != nil {
			return missing
		}
	}
	return nil
}

// templatesWith are the workloads of a namespace whose Pods have some labels.
func (a *asker) templatesWith(ctx context.Context, namespace string, with map[string]string) ([]Workload, error) {
	var found []Workload
	for _, kind := range []string{workloads.Deployment, workloads.StatefulSet, workloads.DaemonSet, describe.KindJob} {
		all, err := a.workloads(ctx, kind, namespace)
		if err != nil {
			return nil, err
		}
		for _, w := range all {
			if labels.SelectorFromSet(with).Matches(labels.Set(w.template.Labels)) {
				found = append(found, w)
			}
		}
	}
	return found, nil
}

// configObject is a ConfigMap or a Secret. If it exists, and nothing of it is missing, the
// answer goes on to the tracked workload that is furthest from having its content.
func (a *asker) configObject(ctx context.Context, ref describe.Ref, first bool) (answer, error) {
	found, err := a.ofConfig(ctx, ref, first)
	if err != nil || !first || found.Links[0].Next != "" {
		return found, err
	}
	survey, err := a.survey(ctx, ref.Namespace)
	all, object := survey.Workloads, ref.Content()
	if err != nil { // who uses it is known all the same
		found.Facts = append(found.Facts, describe.FactOf("note", "it is unknown how its workloads are rolled: "+lastOf(err)))
		return found, nil
	}
	users := trackedUsers(all, object)
	if len(users) == 0 {
		return found, nil
	}
	for _, same := range alike(users) {
		found.Facts = append(found.Facts, usersFact(same))
	}
	found.Facts = append(found.Facts, releaseFacts(survey.Policies, &ref)...)
	found.Facts = append(found.Facts, describe.PastFacts(survey.Records[object])...)
	done, total := survey.Count(object)
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
