package choice

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// Limits of the annotation that names gates.
const (
	// MaxGates is how many gates an Instance may have.
	MaxGates = 50
	// maxGatesText is how long the annotation may be, in bytes.
	maxGatesText = 16 << 10
)

// Gate is a gate of an Instance's plan: of the plan as a whole, or of one of its phases or
// steps.
type Gate struct {
	v1alpha1.StageGate `json:",inline"`

	Plan  string `json:"plan"`
	Phase string `json:"phase,omitempty"`
	Step  string `json:"step,omitempty"`
}

// Gates are those that an Instance names, in its annotation, for plans of OperatorVersions;
// nil of them do not exist. KUDO's schema has no field for them.
//
// A unit that none of the versions has is a problem: a gate at a misspelled place would
// let everything through.
func Gates(i *v1beta1.Instance, versions ...*Version) ([]Gate, []Problem) {
	text, key, ok := vocabulary.PlanGates.Lookup(i.Annotations)
	if !ok || strings.TrimSpace(text) == "" {
		return nil, nil
	}
	problem := func(format string, args ...any) Problem {
		return Problem{Field: "annotation " + key, Action: fmt.Sprintf(format, args...)}
	}
	var gates []Gate
	if len(text) > maxGatesText {
		return nil, []Problem{problem("has %d bytes; it may have %d", len(text), maxGatesText)}
	}
	if err := yaml.UnmarshalStrict([]byte(text), &gates); err != nil {
		return nil, []Problem{problem("must be a list such as [{plan: deploy, phase: main, name: approve}]: %s", strings.Join(strings.Fields(err.Error()), " "))}
	}
	if len(gates) > MaxGates {
		return nil, []Problem{problem("has %d gates; it may have %d", len(gates), MaxGates)}
	}
	var problems []Problem
	for n := range gates {
		wrong := gates[n].wrong(versions)
		if wrong == "" && slices.Contains(gates[:n], gates[n]) {
			wrong = "is listed twice; remove one of them"
		}
		if wrong != "" {
			problems = append(problems, problem("gate %d: %s", n+1, wrong))
		}
	}
	return gates, problems
}

// rollback is what users may expect of a refusal, as a Module has it.
const rollback = "Rollback"

// wrong is what is wrong with a gate, empty if nothing is.
func (g *Gate) wrong(versions []*Version) string {
	said := validation.IsDNS1123Subdomain(g.Name)
	switch {
	case g.Name == "" || len(said) > 0:
		return "name: " + message.Quote(g.Name) + " must be the name of a GateTemplate, such as approve"
	case !slices.Contains([]v1alpha1.GateTime{"", v1alpha1.GateBefore, v1alpha1.GateAfter, v1alpha1.GateDuring}, g.When):
		return "when: " + message.Quote(string(g.When)) + " must be Before, After or During"
	case g.OnRefusal == rollback:
		return "onRefusal: must be Stop or Continue: a plan has no way back; only a Module returns to the previous revision"
	case !slices.Contains([]v1alpha1.OnRefusal{"", v1alpha1.RefusalStop, v1alpha1.RefusalContinue}, g.OnRefusal):
		return "onRefusal: " + message.Quote(string(g.OnRefusal)) + " must be Stop or Continue"
	case g.Plan == "":
		return "plan: must be the name of a plan"
	case g.Step != "" && g.Phase == "":
		return "phase: must be the name of the phase of step " + message.Quote(g.Step)
	default:
		return g.unknown(versions)
	}
}

// unknown says which of the names no version has, empty if one has all.
func (g *Gate) unknown(versions []*Version) string {
	unknown := ""
	for _, v := range versions {
		if v == nil {
			continue
		}
		plan, ok := v.Spec.Plans[g.Plan]
		phase := slices.IndexFunc(plan.Phases, func(p v1beta1.Phase) bool { return p.Name == g.Phase })
		switch {
		case !ok:
			unknown = "plan: OperatorVersion " + v.Name + " has no plan " + message.Quote(g.Plan)
		case g.Phase == "":
			return ""
		case phase < 0:
			unknown = "phase: plan " + g.Plan + " has no phase " + message.Quote(g.Phase)
		case g.Step == "":
			return ""
		case !slices.ContainsFunc(plan.Phases[phase].Steps, func(s v1beta1.Step) bool { return s.Name == g.Step }):
			unknown = "step: phase " + g.Phase + " of plan " + g.Plan + " has no step " + message.Quote(g.Step)
		default:
			return ""
		}
	}
	return unknown
}
