package describe

import (
	"context"
	"fmt"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// describeZones is how the groups of StatefulSets stand, as the manager has recorded them: their zones, and
// beneath those the Pods that move or wait.
func describeZones(ctx context.Context, o *Options, s *snapshot.Snapshot) (d described, err error) {
	explanations, err := zones.Status(ctx, s, zones.Options{Namespaces: o.Config.Namespaces}, o.Namespace)
	for i := range explanations {
		d.units = append(d.units, Group(&explanations[i]))
	}
	return d, err
}

// Group is a group with its zones, and beneath those the Pods that are replaced or wait.
func Group(e *decision.Explanation) Unit {
	u := Unit{
		Ref:  Ref{Kind: "RolloutGroup", Namespace: e.Namespace, Name: e.Name},
		Ring: Zones, Phase: rollout.Phase(e.Phase), Reason: e.Reason, Sentence: e.Sentence, Since: e.Since, Until: e.Until, Deadline: e.Deadline, Counted: "Pods",
	}
	u.recorded(e.Rollout, KindZone, KindPod)
	u.pausedBy(ring.PauseOf(e.Pause))
	u.endsBy((*estimate.Forecast)(e.Forecast))
	return u
}

// GroupFacts are what else there is to know of a group; replicas is what its replicas
// wait for.
func GroupFacts(e *decision.Explanation, replicas []string) []Fact {
	f := facts{}
	f.phase(e.Phase, string(e.Reason))
	if e.Missing {
		f.add("object", "not created by the manager yet; does one run with --rings=zones?")
	}
	if e.Updated != "" {
		f.add("updated", e.Updated+" Pods")
	}
	if l := e.Lock; l != nil {
		f.add("lock", fmt.Sprintf("%s%s, since %s", l.Purpose, inZone(l.Zone), Moment(l.Since.Time)))
	}
	if p := e.Pause; p != nil {
		f.add("paused", byWhom(p.By, p.Reason))
	}
	if r := e.Retry; r != nil {
		f.add("retried", Moment(r.At.Time)+", "+byWhom(r.By, r.Reason))
	}
	f.each("problem", e.Problems)
	for i := range e.Zones {
		z := &e.Zones[i]
		f.add("zone", z.Name, ZoneCounts(z), withMessage(z.State, z.Message))
	}
	f.each("replicas", replicas)
	f.forecast((*estimate.Forecast)(e.Forecast))
	for i := range min(len(e.History), shownRollouts) {
		r := &e.History[i]
		f.add("rollout", fmt.Sprintf("number %d", r.Number), "began "+Moment(r.StartedAt.Time), outcomeOf(r))
	}
	f.each("note", e.Notes)
	return append(f, DecidedFacts(e.Rollout)...)
}

func inZone(zone string) string {
	if zone == "" {
		return ""
	}
	return " in " + zone
}

// outcomeOf is how a rollout ended, and after how long.
func outcomeOf(r *v1alpha1.Rollout) string {
	outcome := r.Outcome
	if r.Duration != "" {
		outcome += " after " + r.Duration
	}
	return ended(outcome, r.Message, r.UndoneBy)
}

// ZoneCounts counts the Pods of a zone.
func ZoneCounts(z *v1alpha1.Zone) string {
	return fmt.Sprintf("%d/%d updated, %d ready", z.Updated, z.Total, z.Ready)
}
