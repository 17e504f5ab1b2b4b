package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/decision"
	"github.com/spillway-dev/spillway/internal/config/policy"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// workload is one whose config may be tracked: first the config ring's word, then, if
// it has none, that of its group, and then how its Pods do.
func (a *asker) workload(ctx context.Context, ref describe.Ref, first bool) (answer, error) {
	w, err := a.read(ctx, ref)
	if apierrors.IsNotFound(err) {
		return answer{}, fmt.Errorf("%s %s in namespace %s: %w", ref.Kind, ref.Name, ref.Namespace, config.ErrNotFound)
	}
	if err != nil {
		return answer{}, err
	}
	if !first && !isTracked(&w) {
		return a.zoneOrPods(ctx, &w, a.link(ref, "", "%s is ready", w.Name()))
	}
	e, err := a.config(ctx, workloads.Name{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
	if apierrors.IsForbidden(err) {
		return a.untold(ctx, &w, err)
	}
	if err != nil {
		return answer{}, err
	}
	found, err := a.tracked(ctx, &w, &e)
	found.Facts, found.Details = append(describe.WorkloadFacts(&e), found.Facts...), e
	return found, err
}

// untold is a workload of which the caller may not read all that the config ring
// decides from: how its Pods do can be told all the same.
func (a *asker) untold(ctx context.Context, w *Workload, err error) (answer, error) {
	found, failed := a.zoneOrPods(ctx, w, a.link(w.Ref(), "", "%s is ready", w.Name()))
	found.Facts = append(found.Facts, describe.FactOf("note", "config cannot be checked: "+lastOf(err)))
	return found, failed
}

func isTracked(w *Workload) bool {
	annotations := w.GetAnnotations()
	return vocabulary.ConfigTracked.Get(annotations) == "true" || vocabulary.ConfigChange.Get(annotations) != "" || vocabulary.Suspended.Get(annotations) != ""
}

// tracked goes on from what the config ring says.
func (a *asker) tracked(ctx context.Context, w *Workload, e *config.Explanation) (answer, error) {
	described := describe.Workload(e)
	only := answer{Links: []Link{a.linkTo(&described)}}
	if len(e.Problems) > 0 {
		only.Links[0].Next = a.kubectl("edit", w.Ref())
	}
	switch {
	case e.Policy != "":
		return a.staged(ctx, e, only), nil
	case e.State == config.StateNotObserved && e.Unseen != "":
		return a.unread(ctx, e, only), nil
	case e.State == config.StateNext, e.State == config.StateNotObserved && len(e.Lacking) == 0:
		only.Then = a.aboutManager(w.GetNamespace())
	case len(e.Lacking) > 0:
		only.Links = append(only.Links, a.lacking(lackOf(e.Lacking[0], w)))
	case e.Reason == rollout.ReasonPaused:
		only.Links[0].Next = a.spillway("resume", w.Ref())
		if e.PausedFor != nil {
			o := e.PausedFor
			only.Links[0].Next = a.spillway("resume", describe.Ref{Kind: string(o.Kind), Namespace: o.Namespace, Name: o.Name})
		} else {
			only.Links[0].Owner = annotator(w.Object, vocabulary.Paused.Native)
		}
	case e.Reason == decision.ReasonPodsKept:
		return a.podsKept(ctx, w, only)
	case e.Reason == decision.ReasonNotHeld:
		only.Then = a.about(a.groupRef(w))
	case e.FailedOn != nil:
		return a.stopped(ctx, e, only), nil
	case e.Reason == rollout.ReasonBudget:
		return a.queued(ctx, w, only)
	case e.State == config.StateRolling, e.State == config.StateLate, e.State == config.StateFailed, e.Reason == "":
		return a.zoneOrPods(ctx, w, only.Links[0])
	}
	return only, nil
}

// stopped goes on to the workload that has failed with the config, unless that is up to date with
// its previous one. Then only a correction of the object helps.
func (a *asker) stopped(ctx context.Context, e *config.Explanation, so answer) answer {
	with := describe.Ref{Kind: string(e.FailedWith.Kind), Namespace: e.FailedWith.Namespace, Name: e.FailedWith.Name}
	so.Links[0].Next = a.kubectl("edit", with)
	if *e.FailedOn == (workloads.Name{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}) {
		return so
	}
	on, err := a.config(ctx, *e.FailedOn)
	if errors.Is(err, config.ErrNotFound) { // what failed there still counts
		return so
	}
	if err != nil || on.State != config.StateUpToDate {
		so.Then = a.about(describe.Ref{Kind: e.FailedOn.Kind, Namespace: e.FailedOn.Namespace, Name: e.FailedOn.Name})
	}
	return so
}

// staged goes on from a policy that keeps a workload from being rolled: to the workload for which
// the release waits, or to the command by which a user lets it go on.
func (a *asker) staged(ctx context.Context, e *config.Explanation, so answer) answer {
	ref, link := policyRef(e.Policy), &so.Links[0]
	switch e.Reason {
	case rollout.ReasonPaused:
		link.Next = a.spillway("resume", ref)
		return so
	case policy.ReasonInvalid:
		link.Next = a.kubectl("edit", ref)
		return so
	case policy.ReasonWindow, rollout.ReasonSoak: // these end automatically
	default:
		all, err := a.survey(ctx, e.Namespace)
		if err != nil || e.Held == nil {
			break
		}
		if first := foremost(trackedUsers(all.Workloads, *e.Held)); first != nil {
			so.Then = a.about(describe.Ref{Kind: first.Kind, Namespace: first.Namespace, Name: first.Name})
			return so
		}
	}
	link.Next = a.kubectl("describe", ref)
	return so
}

// foremost is the workload for which the others of a release wait: one that has failed, and else
// one that rolls; nil if there is none.
func foremost(users []*config.Explanation) *config.Explanation {
	for _, state := range []config.State{config.StateFailed, config.StateLate, config.StateRolling, config.StateNext} {
		if i := slices.IndexFunc(users, func(u *config.Explanation) bool { return u.State == state }); i >= 0 {
			return users[i]
		}
	}
	return nil
}

// policyRef is a policy by its name in sentences.
func policyRef(name string) describe.Ref {
	kind, name, _ := strings.Cut(name, " ")
	ref := describe.Ref{Kind: kind, Name: name}
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		ref.Namespace, ref.Name = namespace, rest
	}
	return ref
}

// unread says where the view of the caller ends, who may not read all of the config.
func (a *asker) unread(ctx context.Context, e *config.Explanation, so answer) answer {
	for i := range e.Uses {
		ref := *describe.RefOf(e.Uses[i].Of)
		if !e.Uses[i].Unseen {
			continue
		}
		if _, _, err := a.keys(ctx, ref); apierrors.IsForbidden(err) {
			so.Links = append(so.Links, a.unseen(ref, err))
			return so
		}
	}
	return so
}

// queued goes to the first workload that takes up the budget: one of its namespace, or one of any other that the
// caller may see.
func (a *asker) queued(ctx context.Context, w *Workload, so answer) (answer, error) {
	for _, namespace := range []string{w.GetNamespace(), ""} {
		all, err := a.survey(ctx, namespace)
		if apierrors.IsForbidden(err) {
			break
		}
		if err != nil {
			return so, fmt.Errorf("list what uses the budget: %w", err)
		}
		i := slices.IndexFunc(all.Workloads, func(e config.Explanation) bool { return e.State == config.StateRolling })
		if i >= 0 {
			e := &all.Workloads[i]
			so.Then = a.about(describe.Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name})
			break
		}
	}
	return so, nil
}

// zoneOrPods goes to the group of a zone that is not complete, and otherwise to what
// is wrong with the workload itself.
func (a *asker) zoneOrPods(ctx context.Context, w *Workload, link Link) (answer, error) {
	group := a.groupRef(w)
	if w.Kind != workloads.StatefulSet || group.Name == "" {
		return a.unready(ctx, w, link)
	}
	if complete, err := a.isComplete(ctx, group); complete || err != nil { // its Pods can be told of all the same
		return a.unready(ctx, w, link)
	}
	if link.Reason == "" {
		link.Reason = rollout.ReasonProgressing
		link.Sentence = a.place() + fmt.Sprintf("%s is a zone of group %s, which is not complete", w.Name(), group.Name)
	}
	return answer{Links: []Link{link}, Then: a.about(group)}, nil
}

// groupRef is the group that a StatefulSet is a zone of.
func (a *asker) groupRef(w *Workload) describe.Ref {
	return describe.Ref{Kind: describe.KindGroup, Namespace: w.GetNamespace(), Name: vocabulary.GroupOf(w.GetLabels(), w.GetAnnotations())}
}

// survey is the state of the workloads of a namespace, of all if it is empty, and of the policies.
func (a *asker) survey(ctx context.Context, namespace string) (config.Overview, error) {
	return config.Survey(ctx, a.listing(), a.Options, namespace)
}

// config is what is recorded of a workload.
func (a *asker) config(ctx context.Context, name workloads.Name) (config.Explanation, error) {
	return config.Explain(ctx, a.listing(), a.Options, name)
}

func (a *asker) listing() *snapshot.Snapshot {
	if a.listed == nil {
		a.listed = snapshot.New(a.Client, a.Client.Scheme(), "each")
	}
	return a.listed
}
