package subject

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/metrics"
	"github.com/spillway-dev/spillway/internal/notify/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// Releases are the releases of a policy in a namespace that are under way, and the last ones: a
// ConfigMap or Secret with one content, which may come again.
func (read Reader) Releases(kind string, p client.Object, s *v1alpha1.ConfigPolicyStatus, namespace string) []decision.Subject {
	var subjects []decision.Subject
	add := func(release string, is decision.Rollout) {
		key := KeyOf(kind, p) + "/" + release
		i := slices.IndexFunc(subjects, func(s decision.Subject) bool { return s.Key == key })
		if i < 0 {
			object, _ := content.CutRelease(release)
			kind, name, _ := strings.Cut(object, " ")
			subjects, i = append(subjects, decision.Subject{Key: key, Ring: metrics.RingConfig, Kind: kind, Name: name}), len(subjects)
		}
		_, is.ID = content.CutRelease(release)
		subjects[i].Rollouts = append(subjects[i].Rollouts, is)
	}
	for i := range slices.Backward(s.History) { // the newest is the first
		if r := &s.History[i]; r.Namespace == namespace {
			add(r.Object, past(r, read.trace(p, r.Namespace+"/"+r.Object, r.StartedAt)))
		}
	}
	for i := range s.Releases {
		if r := &s.Releases[i]; r.Namespace == namespace {
			is := release(r)
			if r.StartedAt != nil { // an earlier version has not recorded it
				is.StartedAt, is.Trace = r.StartedAt.Time, read.trace(p, r.Namespace+"/"+r.Object, *r.StartedAt)
			}
			add(r.Object, is)
		}
	}
	return subjects
}

func past(r *v1alpha1.PastConfigRelease, trace string) decision.Rollout {
	is := decision.Rollout{StartedAt: r.StartedAt.Time, EndedAt: r.FinishedAt.Time, State: decision.Ended, Reason: r.Outcome, Trace: trace}
	if r.Outcome == string(rollout.OutcomeRolledBack) {
		is.State = decision.Returned
	}
	return is
}

func release(r *v1alpha1.ConfigRelease) decision.Rollout {
	is := decision.Rollout{Sentence: r.WaitingFor}
	switch {
	case r.RolledBack > 0:
		is.State, is.Reason = decision.Returned, string(rollout.OutcomeRolledBack)
	case r.Phase == string(rollout.PhaseFailed):
		is.State, is.Reason = decision.Stopped, string(rollout.OutcomeFailed)
	}
	return is
}

// EndedRelease is what became of a release that a policy has no longer under way: another
// content of the object came, or it is complete. Nil if the status does not list all.
func EndedRelease(key string, s *v1alpha1.ConfigPolicyStatus, namespace string) *decision.Gone {
	if int(s.Underway) > len(s.Releases) {
		return nil
	}
	gone := Deleted(key)
	gone.Outcome = decision.OutcomeComplete
	mine, _ := content.CutRelease(releaseOf(key))
	if slices.ContainsFunc(s.Releases, func(r v1alpha1.ConfigRelease) bool {
		object, _ := content.CutRelease(r.Object)
		return r.Namespace == namespace && object == mine
	}) {
		gone.Outcome = decision.OutcomeSuperseded
	}
	return gone
}

// PolicyKey is the key of the policy of a release, empty if the key is of something else.
func PolicyKey(key string) string {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "/" + parts[1]
}

func releaseOf(key string) string {
	parts := strings.SplitN(key, "/", 3)
	return parts[len(parts)-1]
}

// Deleted is what became of an object that does not exist any more.
func Deleted(key string) *decision.Gone {
	gone := &decision.Gone{Kind: KindOf(key), Outcome: decision.OutcomeDeleted}
	switch gone.Kind {
	case KindGroup:
		gone.Ring = metrics.RingZones
	case KindInstance:
		gone.Ring = metrics.RingPlans
	case KindPolicy, KindClusterPolicy:
		gone.Ring = metrics.RingConfig
		gone.Kind, _, _ = strings.Cut(releaseOf(key), " ")
	default:
		gone.Ring = metrics.RingFleet
	}
	return gone
}
