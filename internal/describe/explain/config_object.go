package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/internal/config/content"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
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
