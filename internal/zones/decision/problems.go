package decision

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/message"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// ProblemsOf are the mistakes that would stall a group, as far as manifests show
// them. A group of which no user has written the RolloutGroup has one without a spec.
func ProblemsOf(group *v1alpha1.RolloutGroup, sets []*appsv1.StatefulSet) []Problem {
	o := Observed{Group: Group{Namespace: group.Namespace, Name: group.Name, Spec: group.Spec}}
	var problems []Problem
	for _, s := range sets {
		set := SetOf(s, nil)
		set.Strategy = cmp.Or(set.Strategy, RollingUpdate) // as the API server has it
		o.Sets = append(o.Sets, set)
		if nameless := Nameless(group.Name); nameless != "" {
			problems = append(problems, Problem{"StatefulSet " + s.Name, "annotation " + vocabulary.RolloutGroup.Native, group.Name, nameless})
		}
	}
	return append(problems, o.problems()...)
}

// Problem is a mistake of a user, and how to fix it. It stalls the group.
type Problem struct {
	// Object is what has it: "StatefulSet ingester-zone-a".
	Object string
	// Field is an annotation or a field, Value what it says.
	Field, Value, Action string
}

// Nameless says what is wrong with a group that cannot be the name of an
// object, empty if it can.
func Nameless(name string) string {
	problems := validation.IsDNS1123Subdomain(name)
	if len(problems) == 0 {
		return ""
	}
	return fmt.Sprintf("rollout-group %s cannot be the name of a RolloutGroup; choose another: %s", message.Quote(name), strings.Join(problems, "; "))
}

// problems are all mistakes in a group.
func (o *Observed) problems() []Problem {
	problems := o.orderProblems()
	group := "RolloutGroup " + o.Group.Name
	if _, err := limitOf(o.Group.Spec.MaxUnavailable); err != nil {
		problems = append(problems, Problem{group, "spec.maxUnavailable", o.Group.Spec.MaxUnavailable.String(), err.Error()})
	}
	for i := range o.Sets {
		problems = append(problems, o.Sets[i].Settings.Problems...)
	}
	problems = append(problems, o.windowProblems()...)
	return append(problems, o.strategyProblems()...)
}

// String is the problem as a sentence.
func (p Problem) String() string {
	return p.Object + ": " + p.Cause()
}

// Cause is the problem without its object.
func (p Problem) Cause() string {
	if strings.HasPrefix(p.Action, "must be ") {
		return fmt.Sprintf("%s: invalid value %s: %s", p.Field, message.Quote(p.Value), p.Action)
	}
	return fmt.Sprintf("%s: %s %s", p.Field, message.Quote(p.Value), p.Action)
}

// orderProblems: a zone that is named twice, and two zones in one place.
func (o *Observed) orderProblems() []Problem {
	var problems []Problem
	named := map[string]bool{}
	for _, name := range o.Group.Spec.ZoneOrder {
		if named[name] {
			problems = append(problems, Problem{"RolloutGroup " + o.Group.Name, "spec.zoneOrder", name, "is named twice; name it once"})
		}
		named[name] = true
	}
	places := map[int]string{}
	for _, set := range o.byName() {
		if set.Settings.Order == nil || named[set.Name] {
			continue
		}
		if other, taken := places[*set.Settings.Order]; taken {
			problems = append(problems, Problem{
				"StatefulSet " + set.Name, "annotation " + vocabulary.ZoneOrder.Native, strconv.Itoa(*set.Settings.Order),
				"is already used by StatefulSet " + other + "; give each its own",
			})
		}
		places[*set.Settings.Order] = set.Name
	}
	return problems
}

// strategyProblems: a strategy that cannot be held, and two in one group.
func (o *Observed) strategyProblems() []Problem {
	const field = "spec.updateStrategy.type"
	var problems []Problem
	var first *Set
	for _, set := range o.byName() {
		object := "StatefulSet " + set.Name
		switch {
		case set.Strategy != OnDelete && set.Strategy != RollingUpdate:
			problems = append(problems, Problem{object, field, set.Strategy, "is not supported; use OnDelete or RollingUpdate"})
		case first == nil:
			first = set
		case first.rolling() != set.rolling():
			problems = append(problems, Problem{object, field, cmp.Or(set.heldAs(), set.Strategy), fmt.Sprintf(
				"differs from %q of StatefulSet %s; use the same for all of a group", first.heldAs(), first.Name)})
		}
	}
	return problems
}

// heldAs is the strategy that the user has chosen.
func (s *Set) heldAs() string {
	if s.rolling() {
		return RollingUpdate
	}
	return s.Strategy
}
