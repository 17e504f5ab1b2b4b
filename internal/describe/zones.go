package describe

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/estimate"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/zones"
	"github.com/spillway-dev/spillway/internal/zones/decision"
	"github.com/spillway-dev/spillway/rollout"
)

// describeZones is how the groups of StatefulSets stand: their zones, and beneath those
// the Pods that move or wait.
func describeZones(ctx context.Context, o *Options, s *snapshot.Snapshot) (d described, err error) {
	explanations, err := zones.Status(ctx, s, zones.Options{Namespaces: o.Config.Namespaces, Now: o.Config.Now}, o.Namespace)
	for i := range explanations {
		d.units, d.until = append(d.units, Group(&explanations[i])), ring.Earlier(d.until, explanations[i].Wake)
	}
	return d, err
}

// Group is a group with its zones, and beneath those the Pods that are replaced or wait.
func Group(e *decision.Explanation) Unit {
	u := Unit{
		Ref:  Ref{Kind: "RolloutGroup", Namespace: e.Namespace, Name: e.Name},
		Ring: Zones, Phase: rollout.Phase(e.Phase), Reason: e.Reason, Sentence: e.Sentence, Since: e.Since, Until: e.Until, Deadline: e.Deadline, Counted: "Pods",
	}
	u.Done, u.Total = counted(e.Updated)
	for i := range e.Zones {
		u.Units = append(u.Units, zone(e, &e.Zones[i]))
	}
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
	return f
}

func inZone(zone string) string {
	if zone == "" {
		return ""
	}
	return " in " + zone
}

// outcomeOf is how a rollout ended, and after how long.
func outcomeOf(r *v1alpha1.Rollout) string {
	if r.Duration == "" {
		return r.Outcome
	}
	return r.Outcome + " after " + r.Duration
}

// ZoneCounts counts the Pods of a zone.
func ZoneCounts(z *v1alpha1.Zone) string {
	return fmt.Sprintf("%d/%d updated, %d ready", z.Updated, z.Total, z.Ready)
}

func zone(e *decision.Explanation, z *v1alpha1.Zone) Unit {
	u := Unit{
		Ref: Ref{Kind: "Zone", Name: z.Name}, Ring: Zones,
		Done: int(z.Updated), Total: int(z.Total), Counted: "Pods", Sentence: z.Message,
	}
	u.Phase, u.Reason = stateOf(z.State, decision.StateComplete, rollout.Plan{Steps: e.Steps, Holds: e.Holds}.At(z.Name).Hold)
	if z.Since != nil {
		u.Since = &z.Since.Time
	}
	u.WaitsFor = waitsFor(e.Holds, z.Name)
	for i := range e.Steps {
		if path := e.Steps[i].Path; len(path) == 2 && path[0] == z.Name {
			u.Units = append(u.Units, Unit{Ref: pod(path), Ring: Zones, Phase: rollout.PhaseProgressing, Sentence: e.Steps[i].Message()})
		}
	}
	for i := range e.Holds {
		if h := &e.Holds[i]; len(h.Path) == 2 && h.Path[0] == z.Name {
			u.Units = append(u.Units, held(pod(h.Path), Zones, h))
		}
	}
	slices.SortStableFunc(u.Units, func(a, b Unit) int { return strings.Compare(a.Name, b.Name) })
	return u
}

// waitsFor is what the zone of this name waits for.
func waitsFor(holds []rollout.Hold, name string) *Ref {
	for i := range holds {
		if h := &holds[i]; len(h.Path) > 0 && h.Path[0] == name && len(h.On) > 0 && h.On[0] != name {
			return &Ref{Kind: "Zone", Name: h.On[0]}
		}
	}
	return nil
}

func pod(path rollout.Path) Ref { return Ref{Kind: "Pod", Name: path[len(path)-1]} }

// held is a unit that waits.
func held(ref Ref, of string, h *rollout.Hold) Unit {
	return Unit{
		Ref: ref, Ring: of, Phase: ring.PhaseOf(h.Reason), Reason: h.Reason, Sentence: h.Message,
		Since: TimeOrNil(h.Since), Until: TimeOrNil(h.Until),
	}
}

// stateOf is the phase of a zone or a stage, and its reason, by the word that its ring
// has for it and what the engine says of it.
func stateOf(word, complete string, hold *rollout.Hold) (rollout.Phase, rollout.Reason) {
	switch {
	case word == complete:
		return rollout.PhaseComplete, ""
	case hold == nil:
		return rollout.PhaseProgressing, ""
	default:
		return ring.PhaseOf(hold.Reason), hold.Reason
	}
}

// counted are the numbers in "3/9"; zero if there are none.
func counted(text string) (done, total int) {
	part, whole, _ := strings.Cut(text, "/")
	done, _ = strconv.Atoi(part)
	total, _ = strconv.Atoi(whole)
	return done, total
}
