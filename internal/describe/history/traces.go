package history

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/rollout"
)

// release is a release of a policy, of which the beginning is recorded.
type release struct {
	of                      content.Release
	trace, outcome, message string
	started                 time.Time
	ended                   *time.Time
	stages                  []Part
}

// releases are those of the namespace that are under way, and the last ones.
func (h *historian) releases(ctx context.Context) ([]release, error) {
	own, all := &v1alpha1.ConfigPolicyList{}, &v1alpha1.ClusterConfigPolicyList{}
	if err := h.inNamespace(ctx, own); err != nil {
		return nil, err
	}
	if err := h.inNamespace(ctx, all); err != nil {
		return nil, err
	}
	var found []release
	add := func(policy types.UID, s *v1alpha1.ConfigPolicyStatus) {
		for i := range s.Releases {
			if r := &s.Releases[i]; r.Namespace == h.ref.Namespace && r.StartedAt != nil {
				found = append(found, underway(policy, r))
			}
		}
		for i := range s.History {
			if r := &s.History[i]; r.Namespace == h.ref.Namespace {
				found = append(found, past(policy, r))
			}
		}
	}
	for i := range own.Items {
		add(own.Items[i].UID, &own.Items[i].Status)
	}
	for i := range all.Items {
		add(all.Items[i].UID, &all.Items[i].Status)
	}
	slices.SortStableFunc(found, func(a, b release) int { return b.started.Compare(a.started) })
	return found, nil
}

func underway(policy types.UID, r *v1alpha1.ConfigRelease) release {
	found := release{of: content.ReleaseNamed(r.Object, r.Namespace), trace: identity.Release(policy, r), outcome: string(rollout.OutcomeRunning), message: r.WaitingFor, started: r.StartedAt.Time}
	if r.Phase == string(rollout.PhaseFailed) {
		found.outcome = r.Phase
	}
	for i := range r.Stages {
		s := &r.Stages[i]
		found.stages = append(found.stages, stagePart(s.Name, describe.TimeOf(s.StartedAt), describe.TimeOf(s.FinishedAt), s.Phase))
	}
	return found
}

func past(policy types.UID, r *v1alpha1.PastConfigRelease) release {
	found := release{of: content.ReleaseNamed(r.Object, r.Namespace), trace: identity.PastRelease(policy, r), outcome: r.Outcome, started: r.StartedAt.Time, ended: &r.FinishedAt.Time}
	for i := range r.Stages {
		s := &r.Stages[i]
		outcome := r.Outcome
		if s.FinishedAt != nil {
			outcome = string(rollout.OutcomeComplete)
		}
		found.stages = append(found.stages, stagePart(s.Name, &s.StartedAt.Time, describe.TimeOf(s.FinishedAt), outcome))
	}
	return found
}

func stagePart(name string, started, ended *time.Time, outcome string) Part {
	return Part{Ref: describe.Ref{Kind: "Stage", Name: name}, Started: started, Ended: ended, Outcome: outcome}
}

// traceOfRoll is the trace of the release for which a workload was rolled ("Secret db: key"),
// empty if no policy remembers it.
func (h *historian) traceOfRoll(ctx context.Context, changed []string, at time.Time) (string, error) {
	found, err := h.releases(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(found, func(r release) bool {
		isFor := func(text string) bool {
			of, _ := content.KeyNamed(text, h.ref.Namespace)
			return of == r.of.Object
		}
		return !at.Before(r.started.Add(-sameMoment)) && (r.ended == nil || !at.After(r.ended.Add(sameMoment))) && slices.ContainsFunc(changed, isFor)
	})
	if i < 0 {
		return "", nil
	}
	return found[i].trace, nil
}

// ofReleases are the releases of the object.
func (h *historian) ofReleases(ctx context.Context) ([]Entry, error) {
	found, err := h.releases(ctx)
	if err != nil {
		return nil, err
	}
	entries := []Entry{}
	for i := range found {
		r := &found[i]
		if *describe.RefOf(r.of.Object) != h.ref {
			continue
		}
		e := h.episode(describe.Config, "release "+r.of.Digest)
		e.Started, e.Ended, e.Outcome, e.Message, e.Trace, e.Units = &r.started, r.ended, r.outcome, r.message, r.trace, r.stages
		entries = append(entries, e)
	}
	return entries, nil
}
