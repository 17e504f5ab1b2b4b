package choice

import (
	"fmt"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
)

// Problem is a mistake of a user, and how to fix it. Values of parameters may be
// secrets, so it never contains one.
type Problem struct {
	// Field is a field or an annotation of the Instance.
	Field string
	// Action is what is wrong with it, and what to do.
	Action string
}

// Sentences joins problems into one line.
func Sentences(problems []Problem) string {
	return message.Join(problems, "; ", Problem.String)
}

// String is the problem as a sentence.
func (p Problem) String() string { return p.Field + ": " + p.Action }

func parameterProblem(name, format string, args ...any) Problem {
	return Problem{Field: "spec.parameters." + name, Action: fmt.Sprintf(format, args...)}
}

// RequestProblem says why a user cannot request a plan, nil if they can.
func RequestProblem(v *Version, plan string) *Problem {
	const field = "spec.planExecution.planName"
	if _, ok := v.Spec.Plans[plan]; !ok {
		return &Problem{Field: field, Action: "OperatorVersion " + v.Name + " has no plan " + plan + "; name a plan that it has"}
	}
	if plan == v1beta1.CleanupPlan {
		return &Problem{Field: field, Action: "plan cleanup runs when the Instance is deleted; name another plan"}
	}
	return nil
}
