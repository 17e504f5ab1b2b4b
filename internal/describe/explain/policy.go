package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/policy"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// policy is a ConfigPolicy or a ClusterConfigPolicy: how its releases do, by its status. The
// answer goes on to the workload that its main release waits for.
func (a *asker) policy(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	status, err := a.policyStatus(ctx, &ref)
	if err != nil {
		return answer{}, err
	}
	found := answer{Details: status}
	for i := range status.Releases {
		found.Facts = append(found.Facts, describe.FactOf("release", releaseText(&status.Releases[i])))
	}
	stalled := apimeta.FindStatusCondition(status.Conditions, "Stalled")
	complete := apimeta.FindStatusCondition(status.Conditions, policy.ConditionComplete)
	link := a.link(ref, reasons.Complete, "%s %s: no release is under way", ref.Kind, ref.Name)
	link.Ring, link.Phase = manager.RingConfig, rollout.PhaseComplete
	switch {
	case complete == nil:
		link = a.link(ref, ReasonNotObserved, "%s %s is not observed yet: the manager of the config ring writes its status", ref.Kind, ref.Name)
		link.Ring, link.Phase, found.Then = manager.RingConfig, rollout.PhaseWaiting, a.aboutManager(ref.Namespace)
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		link.Reason, link.Phase, link.Sentence = rollout.Reason(stalled.Reason), rollout.PhaseWaiting, a.place()+strings.TrimSuffix(stalled.Message, ".")
		link.Next = a.kubectl("edit", ref)
	case status.Underway > 0:
		link.Reason, link.Phase = rollout.Reason(complete.Reason), rollout.Phase(status.Phase)
		link.Sentence = a.place() + fmt.Sprintf("%s %s: %s under way: %s", ref.Kind, ref.Name, releases(status.Underway), strings.TrimSuffix(status.WaitingFor, "."))
		if link.Reason == rollout.ReasonPaused {
			link.Next = a.spillway("resume", ref)
			break
		}
		if link.Reason.IsGate() {
			gates, err := a.atGate(ctx, ref)
			found.Links = append([]Link{link}, gates...)
			return found, err
		}
		found.Then = a.mainOf(ctx, status)
	}
	found.Links = []Link{link}
	return found, nil
}

// policyStatus reads the status of a policy.
func (a *asker) policyStatus(ctx context.Context, ref *describe.Ref) (*v1alpha1.ConfigPolicyStatus, error) {
	if ref.Kind == describe.KindClusterPolicy {
		ref.Namespace = ""
		p := &v1alpha1.ClusterConfigPolicy{}
		err := a.get(ctx, *ref, p)
		return &p.Status, err
	}
	p := &v1alpha1.ConfigPolicy{}
	err := a.get(ctx, *ref, p)
	return &p.Status, err
}

// releaseText is a release in a line: "Secret db@9676b5e in shop: Waiting 1/5 (first Complete 1/1, others Waiting 0/4)".
func releaseText(r *v1alpha1.ConfigRelease) string {
	stages := make([]string, len(r.Stages))
	for i, s := range r.Stages {
		stages[i] = s.Name + " " + s.Phase + " " + s.Updated
	}
	return fmt.Sprintf("%s in %s: %s %s (%s)", r.Object, r.Namespace, r.Phase, r.Updated, strings.Join(stages, ", "))
}

// mainOf asks about the workload that the release which says most waits for, nil if no such
// workload may be seen.
func (a *asker) mainOf(ctx context.Context, status *v1alpha1.ConfigPolicyStatus) *question {
	i := slices.IndexFunc(status.Releases, func(r v1alpha1.ConfigRelease) bool { return r.Phase == status.Phase })
	if i < 0 {
		return nil
	}
	r := &status.Releases[i]
	all, err := a.survey(ctx, r.Namespace)
	if err != nil {
		return nil
	}
	users := trackedUsers(all.Workloads, content.ReleaseNamed(r.Object, r.Namespace).Object)
	if len(users) == 0 || users[0].State == config.StateUpToDate {
		return nil
	}
	e := users[0]
	if first := foremost(users); first != nil { // what waits is held by it
		e = first
	}
	return a.about(describe.Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name})
}

func releases(n int32) string {
	if n == 1 {
		return "1 release is"
	}
	return fmt.Sprintf("%d releases are", n)
}
