package history

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/rollout"
)

// release is a release of a policy that is under way.
type release struct {
	v1alpha1.ConfigRelease

	policy types.UID
}

// underway are the releases of the namespace that are under way and whose beginning is
// recorded. Policies remember no others.
func (h *historian) underway(ctx context.Context) ([]release, error) {
	own, all := &v1alpha1.ConfigPolicyList{}, &v1alpha1.ClusterConfigPolicyList{}
	if err := h.inNamespace(ctx, own); err != nil {
		return nil, err
	}
	if err := h.inNamespace(ctx, all); err != nil {
		return nil, err
	}
	var found []release
	add := func(policy types.UID, rows []v1alpha1.ConfigRelease) {
		for i := range rows {
			if rows[i].Namespace == h.ref.Namespace && rows[i].StartedAt != nil {
				found = append(found, release{rows[i], policy})
			}
		}
	}
	for i := range own.Items {
		add(own.Items[i].UID, own.Items[i].Status.Releases)
	}
	for i := range all.Items {
		add(all.Items[i].UID, all.Items[i].Status.Releases)
	}
	return found, nil
}

// traceOfRoll is the trace of the release for which a workload was rolled ("Secret db: key"),
// empty if it is not under way.
func (h *historian) traceOfRoll(ctx context.Context, changed []string, at time.Time) (string, error) {
	found, err := h.underway(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(found, func(r release) bool {
		isFor := func(text string) bool { return strings.HasPrefix(text, r.name()+": ") }
		return !at.Before(r.StartedAt.Add(-sameMoment)) && slices.ContainsFunc(changed, isFor)
	})
	if i < 0 {
		return "", nil
	}
	return identity.Release(found[i].policy, &found[i].ConfigRelease), nil
}

// name is the object, without its content: "Secret db".
func (r *release) name() string {
	name, _ := content.CutRelease(r.Object)
	return name
}

// ofReleases are the releases of the object that are under way.
func (h *historian) ofReleases(ctx context.Context) ([]Entry, error) {
	found, err := h.underway(ctx)
	if err != nil {
		return nil, err
	}
	entries := []Entry{}
	for i := range found {
		r := &found[i]
		name, digest := content.CutRelease(r.Object)
		if name != h.ref.Kind+" "+h.ref.Name {
			continue
		}
		e := h.episode(describe.Config, "release "+digest)
		e.Started, e.Outcome, e.Message, e.Trace = &r.StartedAt.Time, string(rollout.OutcomeRunning), r.WaitingFor, identity.Release(r.policy, &r.ConfigRelease)
		if r.Phase == string(rollout.PhaseFailed) {
			e.Outcome = r.Phase
		}
		for k := range r.Stages {
			s := &r.Stages[k]
			e.Units = append(e.Units, Part{
				Ref: describe.Ref{Kind: "Stage", Name: s.Name}, Started: describe.TimeOf(s.StartedAt), Ended: describe.TimeOf(s.FinishedAt), Outcome: s.Phase,
			})
		}
		entries = append(entries, e)
	}
	return entries, nil
}
