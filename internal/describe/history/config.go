package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/verdict"
	workloads "github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/tracing/identity"
	"github.com/spillway-dev/spillway/rollout"
)

// ofWorkload is the last roll of a workload: the workload itself remembers no other.
func (h *historian) ofWorkload(ctx context.Context) ([]Entry, error) {
	obj := map[string]client.Object{
		workloads.Deployment: &appsv1.Deployment{}, workloads.StatefulSet: &appsv1.StatefulSet{}, workloads.DaemonSet: &appsv1.DaemonSet{},
	}[h.ref.Kind]
	if err := h.get(ctx, obj); err != nil {
		return nil, err
	}
	roll := workloads.LastRoll(obj)
	if roll.At.IsZero() && roll.Admitted.IsZero() {
		return []Entry{}, nil
	}
	e := h.episode(describe.Config, "config")
	e.Started = &roll.At
	if roll.Admitted.After(roll.At) {
		e.Started, e.Change, e.By = &roll.Admitted, "the workload itself", writerOf(obj, []string{"spec"}).by
	} else {
		e.Change, e.By = h.configChange(ctx, &roll)
		var err error
		if e.Trace, err = h.traceOfRoll(ctx, roll.Changed, roll.At); err != nil {
			return nil, err
		}
	}
	if workloads.IsAsRolled(obj) {
		e.follow(obj, health.Of(obj, appsv1.SchemeGroupVersion.WithKind(h.ref.Kind)))
	}
	return []Entry{e}, nil
}

// follow says how a roll goes, or went, of a workload that is unchanged since: how
// its Pods do is about this roll as long as they follow it.
func (e *Entry) follow(obj client.Object, report health.Report) {
	d, isDeployment := obj.(*appsv1.Deployment)
	switch {
	case report.Health == rollout.Healthy, !workloads.IsRolling(obj):
		e.Outcome = string(rollout.OutcomeComplete)
	case report.Health == rollout.Failed:
		e.Outcome, e.Message = string(rollout.OutcomeFailed), report.Reason
	default:
		e.Outcome, e.Message = string(rollout.OutcomeRunning), report.Reason
	}
	if isDeployment && e.Outcome == string(rollout.OutcomeComplete) {
		e.end(d)
	}
}

// end is when all Pods of a Deployment were new and available: the last thing that its
// controller says of a rollout.
func (e *Entry) end(d *appsv1.Deployment) {
	for i := range d.Status.Conditions {
		c := &d.Status.Conditions[i]
		done := c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable"
		if done && c.LastUpdateTime.After(*e.Started) {
			e.Ended = &c.LastUpdateTime.Time
		}
	}
}

// templateChange is what had changed of a workload's template, and who changed it. What
// Spillway itself has written there last is the hash of a config that changed.
func (h *historian) templateChange(ctx context.Context, obj client.Object) (change, by string) {
	writer := writerOf(obj, []string{"spec", "template"})
	roll := workloads.LastRoll(obj)
	if writer.by == ReporterManager && len(roll.Changed) > 0 {
		return h.configChange(ctx, &roll)
	}
	return "the template of " + obj.GetName(), writer.by
}

// configChange is what had changed of the config, and who wrote it. Of Secrets only the
// metadata is read.
func (h *historian) configChange(ctx context.Context, roll *workloads.Roll) (change, by string) {
	var names []string
	for _, text := range roll.Changed {
		names = append(names, h.writerOfConfig(ctx, text))
	}
	return strings.Join(roll.Changed, ", "), people(names)
}

// writerOfConfig is the field manager that wrote "ConfigMap app: LOG_LEVEL", empty if
// it is not known: the key may be gone, or may not be looked at.
func (h *historian) writerOfConfig(ctx context.Context, text string) string {
	of, key := content.KeyNamed(text, h.ref.Namespace)
	if of.Kind == "" {
		return ""
	}
	obj := kube.Metadata(corev1.SchemeGroupVersion.WithKind(string(of.Kind)))
	if err := h.reader.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, obj); err != nil {
		return ""
	}
	return writerOf(obj, []string{"data", key}, []string{"binaryData", key}).by
}

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

// ofReleases are what was rolled out of the object, as the manager has recorded it, with the stages of the policies that
// released it; and what only policies remember.
func (h *historian) ofReleases(ctx context.Context) ([]Entry, error) {
	found, err := h.releases(ctx)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(r release) bool { return *describe.RefOf(r.of.Object) != h.ref })
	entries, err := h.ofRecord(ctx)
	if err != nil {
		return nil, err
	}
	for i := range found {
		r := &found[i]
		at := slices.IndexFunc(entries, func(e Entry) bool {
			return e.What == releaseName(r.of.Digest) && (e.Ended == nil || !e.Ended.Before(r.started)) && (r.ended == nil || !r.ended.Before(*e.Started))
		})
		if at >= 0 {
			entries[at].Trace, entries[at].Units = r.trace, r.stages
			continue
		}
		e := h.episode(describe.Config, releaseName(r.of.Digest))
		e.Started, e.Ended, e.Outcome, e.Message, e.Trace, e.Units = &r.started, r.ended, r.outcome, r.message, r.trace, r.stages
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return b.Started.Compare(*a.Started) })
	return entries, nil
}

// releaseName is how a content is called that was rolled out: by as much of its digest as [content.Release.From] shows.
func releaseName(digest string) string {
	_, shown := content.CutRelease(content.Release{Digest: digest}.From(""))
	return "release " + shown
}

// ofRecord are the contents that were rolled out, the newest first, as the manager has recorded them. There are none for
// a caller who may not read the record.
func (h *historian) ofRecord(ctx context.Context) ([]Entry, error) {
	record, entries := &v1alpha1.ConfigRollout{}, []Entry{}
	err := h.reader.Get(ctx, client.ObjectKey{Namespace: h.ref.Namespace, Name: verdict.Name(h.ref.Content())}, record)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) && !apimeta.IsNoMatchError(err) {
		return nil, fmt.Errorf("get the record of %s: %w", h.ref, err)
	}
	if r := record.Rollout; r != nil {
		e := h.episode(describe.Config, releaseName(r.Target))
		e.Started, e.Ended, e.Outcome, e.Message = &r.StartedAt.Time, describe.TimeOf(r.FinishedAt), string(rollout.OutcomeRunning), r.WaitingFor
		switch {
		case r.FinishedAt != nil:
			e.Outcome = string(rollout.OutcomeComplete)
		case r.Phase == string(rollout.PhaseFailed):
			e.Outcome = r.Phase
		}
		e.Change, e.By = strings.Join(r.Changed, ", "), r.ChangedBy
		entries = append(entries, e)
	}
	for i := range record.History {
		p := &record.History[i]
		e := h.episode(describe.Config, releaseName(p.Target))
		e.Started, e.Ended, e.Outcome, e.Message = &p.StartedAt.Time, &p.FinishedAt.Time, p.Outcome, p.Message
		e.Change, e.By, e.UndoneBy = strings.Join(p.Changed, ", "), p.ChangedBy, p.UndoneBy
		entries = append(entries, e)
	}
	return entries, nil
}
