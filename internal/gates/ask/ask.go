package ask

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/rollout"
)

// Target is an object that rolls out.
type Target struct {
	v1alpha1.TargetReference

	UID types.UID
}

// Question is a gate of a unit of a rollout.
type Question struct {
	Target Target
	// Stage is the unit, Revision what is rolled out there.
	Stage, Revision string
	// Gate is the gate as it is named, and what its refusal does.
	Gate v1alpha1.GateReference
	// When is where it stands.
	When rollout.When
}

// Lengths of names.
const (
	hashLength = 10
	nameLength = 200
)

// Name is that of the RolloutGate.
func (q *Question) Name() string {
	parts := []string{q.Target.Kind, string(q.Target.UID), q.Stage, q.Revision, q.Gate.Name, q.when()}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	name := q.Target.Name + "-" + strings.Map(valid, strings.ToLower(q.Gate.Name))
	return strings.TrimRight(name[:min(len(name), nameLength)], "-.") + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// valid is a character that the name of an object may have.
func valid(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
		return r
	}
	return '-'
}

func (q *Question) when() string {
	switch q.When {
	case rollout.Before:
		return string(v1alpha1.GateBefore)
	case rollout.During:
		return during
	default:
		return string(v1alpha1.GateAfter)
	}
}

const during = string(v1alpha1.GateDuring)

// WhenOf is where a gate stands: after its unit if nothing is said.
func WhenOf(t v1alpha1.GateTime) rollout.When {
	switch t {
	case v1alpha1.GateBefore:
		return rollout.Before
	case v1alpha1.GateDuring:
		return rollout.During
	default:
		return rollout.After
	}
}

// IsReached is true if nothing but gates keeps the unit, where this one stands; of one during
// the unit, if that rolls.
func IsReached(when rollout.When, at rollout.Group) bool {
	switch when {
	case rollout.Before:
		return at.AtGateBefore
	case rollout.During:
		return at.AtGateDuring
	default:
		return at.AtGateAfter
	}
}

// IsOver is true if nothing but gates keeps the unit from being complete, if anything does. One
// that is not in the plan is over.
func IsOver(at rollout.Group) bool {
	return at.Phase == "" || at.Complete || at.AtGateAfter
}

// Object is the RolloutGate to create, of a rollout that reached the gate at a moment.
func (q *Question) Object(namespace string, reached time.Time) *v1alpha1.RolloutGate {
	yes, at := true, metav1.NewMicroTime(reached.Truncate(time.Microsecond))
	return &v1alpha1.RolloutGate{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: q.Name(),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: q.Target.APIVersion, Kind: q.Target.Kind, Name: q.Target.Name, UID: q.Target.UID, Controller: &yes,
			}},
		},
		Spec: v1alpha1.RolloutGateSpec{
			TargetRef: q.Target.TargetReference, Revision: q.Revision, Stage: q.Stage, Gate: q.Gate.Name, When: q.when(), ReachedAt: &at,
		},
	}
}

// Gate is what matters of a RolloutGate.
type Gate struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Stage, Revision string
	Verdict         rollout.Verdict
	Message         string
	Since           time.Time
	Deleting        bool
	// Rolls is true of a gate during its unit that is not decided, and of which it was not said
	// that the unit is over.
	Rolls bool
}

// Gates are the RolloutGates of an object.
type Gates []Gate

// Of are those of some RolloutGates that an object controls.
func Of(list []v1alpha1.RolloutGate, target types.UID) Gates {
	var gates Gates
	for i := range list {
		if owner := metav1.GetControllerOf(&list[i]); owner != nil && owner.UID == target {
			gates = append(gates, seen(&list[i]))
		}
	}
	return gates
}

func seen(g *v1alpha1.RolloutGate) Gate {
	gate := Gate{
		Name: g.Name, UID: g.UID, ResourceVersion: g.ResourceVersion, Stage: g.Spec.Stage, Revision: g.Spec.Revision,
		Deleting: g.DeletionTimestamp != nil,
	}
	gate.Verdict, gate.Message, gate.Since = Verdict(g)
	gate.Rolls = Rolls(g)
	return gate
}

// Rolls tells whether it is to be said of a gate when its unit is over. Until then a dry run
// records, though it lets through.
func Rolls(g *v1alpha1.RolloutGate) bool {
	m := g.Status.Measurement
	verdict, _, _ := Verdict(g)
	open := verdict == rollout.Pending || m != nil && m.DryRun && m.Verdict == ""
	return open && g.Spec.When == during && g.Spec.EndedAt == nil && g.DeletionTimestamp == nil
}

// Verdict is what a RolloutGate says, and since when.
func Verdict(g *v1alpha1.RolloutGate) (v rollout.Verdict, said string, since time.Time) {
	c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.GatePassed)
	switch {
	case c == nil:
		return rollout.Pending, "", g.CreationTimestamp.Time
	case c.Status == metav1.ConditionTrue:
		return rollout.Passed, c.Message, c.LastTransitionTime.Time
	case c.Status == metav1.ConditionFalse:
		return rollout.Refused, c.Message, c.LastTransitionTime.Time
	default:
		return rollout.Pending, c.Message, g.CreationTimestamp.Time
	}
}

// Find returns the RolloutGate of a question, nil if it was not observed.
func (g Gates) Find(q *Question) *Gate {
	name := q.Name()
	for i := range g {
		if g[i].Name == name {
			return &g[i]
		}
	}
	return nil
}

// saidLength bounds what is quoted of a gate, in bytes.
const saidLength = 300

// Engine is a question as the engine sees it. A refusal that does not stop the rollout lets
// it through.
func (g Gates) Engine(q *Question) rollout.Gate {
	gate := rollout.Gate{Name: q.Gate.Name, When: q.When}
	found := g.Find(q)
	if found == nil || found.Deleting {
		return gate
	}
	gate.Verdict, gate.Message, gate.Since = found.Verdict, message.Cut(found.Message, saidLength), found.Since
	if q.Gate.OnRefusal == v1alpha1.RefusalContinue {
		gate.OnRefusal = rollout.Continue
	}
	return gate
}

// Missing are the questions of which no RolloutGate was observed.
func (g Gates) Missing(questions []Question) []Question {
	var missing []Question
	for i := range questions {
		if g.Find(&questions[i]) == nil {
			missing = append(missing, questions[i])
		}
	}
	return missing
}

// Ending are the gates of a unit and revision of which it is to be said that the unit is over.
func (g Gates) Ending(stage, revision string, at rollout.Group) Gates {
	if !IsOver(at) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(g), func(g Gate) bool { return !g.Rolls || g.Stage != stage || g.Revision != revision })
}

// Outdated are the gates that are not needed: keeps is true of a unit and the revision that is
// rolled out there, or was last.
func (g Gates) Outdated(keeps func(stage, revision string) bool) Gates {
	var outdated Gates
	for i := range g {
		if !g[i].Deleting && !keeps(g[i].Stage, g[i].Revision) {
			outdated = append(outdated, g[i])
		}
	}
	return outdated
}
