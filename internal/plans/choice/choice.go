package choice

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/message"
)

// Choice is a plan, and why it must run. Without a plan, there is nothing to do.
type Choice struct {
	Plan  string
	Cause v1beta1.Cause
	// Changed says what changed, by name.
	Changed string
}

// Choose says which plan a change asks for. It is the whole of that decision:
//
//	never deployed             deploy
//	another OperatorVersion    the first that exists of upgrade, update, deploy
//	values of parameters       their trigger; without one update, else deploy
//	no difference              no plan
//
// An invalid change is a problem, and then no plan is chosen: a plan that does not
// exist, two triggers in one change, an upgrade together with parameters that need
// another plan than deploy, and a parameter that is unknown, of a wrong type,
// missing or immutable.
func Choose(c Change) (Choice, []Problem) {
	c.Want = wanted(c.Want)
	choice, problems := c.choose()
	problems = append(problems, c.twice()...)
	if choice.Plan != "" && len(problems) == 0 {
		_, problems = Values(c.New, c.Want.Parameters, c.Immutable)
	}
	if len(problems) > 0 {
		return Choice{}, problems
	}
	return choice, nil
}

func (c *Change) choose() (Choice, []Problem) {
	switch {
	case c.Applied == nil:
		return c.create()
	case c.IsUpgrade(c.Applied) || c.IsUpgrade(c.Attempted):
		return c.upgrade()
	default:
		return c.update()
	}
}

func (c *Change) create() (Choice, []Problem) {
	problems := c.unknown(nil)
	if c.Attempted != nil && !c.IsUpgrade(c.Attempted) {
		problems = append(problems, c.immutableProblems(c.Attempted)...)
	}
	plan, missing := c.first(v1beta1.DeployPlan)
	return Choice{Plan: plan, Cause: v1beta1.CauseCreate}, append(problems, missing...)
}

func (c *Change) upgrade() (Choice, []Problem) {
	plan, problems := c.first(v1beta1.UpgradePlan, v1beta1.UpdatePlan, v1beta1.DeployPlan)
	problems = append(problems, c.unknown(c.Applied)...)
	problems = append(problems, c.newlyImmutable()...)
	if base, _ := c.base(); c.IsUpgrade(base) {
		problems = append(problems, c.mixed()...)
	}
	changed := c.Want.OperatorVersion.Name
	if c.IsUpgrade(c.Applied) {
		changed = c.Applied.OperatorVersion.Name + " to " + changed
	}
	return Choice{Plan: plan, Cause: v1beta1.CauseUpgrade, Changed: changed}, problems
}

func (c *Change) update() (Choice, []Problem) {
	problems := append(c.unknown(c.Applied), c.immutableProblems(c.Applied)...)
	names := c.known(c.changed())
	if len(names) == 0 {
		return Choice{}, problems
	}
	plan, more := c.triggered(names)
	return Choice{Plan: plan, Cause: v1beta1.CauseParameters, Changed: message.Join(names, ", ", named)}, append(problems, more...)
}

// named is a name as it is.
func named(name string) string { return message.Cut(name, message.ValueLength) }

// unknown are parameters that the OperatorVersion does not have. One that was set
// before and has not changed is left over from an older version, and is ignored.
func (c *Change) unknown(before *v1beta1.InstanceSpec) []Problem {
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(c.Want.Parameters)) {
		if parameter(c.New, name) != nil || before != nil && hasSame(before.Parameters, c.Want.Parameters, name) {
			continue
		}
		problems = append(problems, parameterProblem(name, "is not a parameter of OperatorVersion %s; remove it", c.Want.OperatorVersion.Name))
	}
	return problems
}

func hasSame(a, b map[string]string, key string) bool {
	v, ok := a[key]
	w, is := b[key]
	return ok && is && isSame(v, w)
}

// mixed finds parameters that must not change together with the OperatorVersion:
// those that trigger another plan than deploy. Parameters that are new in it do not
// count, nor do those that become immutable with it and so must be set, nor those that
// keep their value, or have the one that they would have if they were left alone.
func (c *Change) mixed() []Problem {
	base, with := c.base()
	names := slices.DeleteFunc(c.known(differing(base.Parameters, c.Want.Parameters)), func(name string) bool {
		return parameter(c.Old, name) == nil || parameter(c.New, name).IsImmutable() && !c.wasImmutable(name) ||
			c.hasSameValue(name, base, with) || c.hasSameValue(name, base, c.New)
	})
	slices.Sort(names)
	if len(names) == 0 {
		return nil
	}
	plan, problems := c.triggered(names)
	if len(problems) > 0 || plan == v1beta1.DeployPlan {
		return problems
	}
	return []Problem{parameterProblem(names[0], "triggers plan %s and has changed together with the OperatorVersion; revert the change until the upgrade is complete", plan)}
}

// base is the spec that the user saw when making the change, and the content that it
// was, or was to be, applied with.
func (c *Change) base() (*v1beta1.InstanceSpec, *v1beta1.OperatorVersionSpec) {
	if c.Attempted != nil {
		return c.Attempted, c.AttemptedWith
	}
	return c.Applied, c.AppliedWith
}

// changed are the parameters whose values differ from what was applied, or may be, sorted.
// One that is set to its default, or back to it, has not changed.
func (c *Change) changed() []string {
	names := append(c.changedFrom(c.Applied, c.AppliedWith), c.changedFrom(c.Attempted, c.AttemptedWith)...)
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *Change) changedFrom(spec *v1beta1.InstanceSpec, with *v1beta1.OperatorVersionSpec) []string {
	if spec == nil {
		return nil
	}
	return slices.DeleteFunc(differing(spec.Parameters, c.Want.Parameters), func(name string) bool { return c.hasSameValue(name, spec, with) })
}

// hasSameValue is true of a parameter that has the same value in a spec with a content as
// it is wanted to have. Without the content, the default of that time is unknown.
func (c *Change) hasSameValue(name string, spec *v1beta1.InstanceSpec, with *v1beta1.OperatorVersionSpec) bool {
	was, is := parameter(with, name), parameter(c.New, name)
	if was == nil || is == nil {
		return false
	}
	before, now := effective(was, spec.Parameters, c.Immutable), effective(is, c.Want.Parameters, c.Immutable)
	return before != nil && now != nil && isSame(*before, *now)
}

// differing are the keys that are only in one of the maps, or differ.
func differing(a, b map[string]string) []string {
	var keys []string
	for k, v := range a {
		if w, ok := b[k]; !ok || !isSame(v, w) {
			keys = append(keys, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	return keys
}

// known are those of the names that are parameters of the OperatorVersion.
func (c *Change) known(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return parameter(c.New, name) == nil })
}

// triggered is the plan that changes of these parameters need.
func (c *Change) triggered(names []string) (string, []Problem) {
	triggers := map[string]string{}
	for _, name := range names {
		if trigger := parameter(c.New, name).Trigger; trigger != "" {
			if _, ok := triggers[trigger]; !ok {
				triggers[trigger] = name
			}
		}
	}
	switch plans := slices.Sorted(maps.Keys(triggers)); len(plans) {
	case 0:
		return c.first(v1beta1.UpdatePlan, v1beta1.DeployPlan)
	case 1:
		return c.triggeredBy(triggers[plans[0]], plans[0])
	default:
		one, other := triggers[plans[0]], triggers[plans[1]]
		return "", []Problem{parameterProblem(other, "triggers plan %s, but %s has changed too and triggers plan %s; revert one of them until the plan for the other has run",
			plans[1], one, plans[0])}
	}
}

func (c *Change) triggeredBy(name, plan string) (string, []Problem) {
	if _, ok := c.New.Plans[plan]; ok {
		return plan, nil
	}
	return "", []Problem{parameterProblem(name, "triggers plan %s, which OperatorVersion %s does not have; revert the change", plan, c.Want.OperatorVersion.Name)}
}

// first is the first of the plans that exists.
func (c *Change) first(plans ...string) (string, []Problem) {
	for _, plan := range plans {
		if _, ok := c.New.Plans[plan]; ok {
			return plan, nil
		}
	}
	return "", []Problem{{Field: "spec.operatorVersion", Action: fmt.Sprintf("OperatorVersion %s has no plan %s; use one that has it",
		c.Want.OperatorVersion.Name, strings.Join(plans, ", nor "))}}
}

// immutableProblems are immutable parameters that changed.
func (c *Change) immutableProblems(before *v1beta1.InstanceSpec) []Problem {
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(c.Immutable)) {
		p := parameter(c.New, name)
		if p == nil || !p.IsImmutable() {
			continue
		}
		if value := c.wanted(p, before); value == nil || *value != c.Immutable[name] {
			problems = append(problems, parameterProblem(name, "is immutable; revert the change"))
		}
	}
	return problems
}

// wanted is the value that the spec wants an immutable parameter to have: one that
// was set and has been removed is wanted to have its default.
func (c *Change) wanted(p *v1beta1.Parameter, before *v1beta1.InstanceSpec) *string {
	if _, was := before.Parameters[p.Name]; was {
		return effective(p, c.Want.Parameters, nil)
	}
	return effective(p, c.Want.Parameters, c.Immutable)
}

// newlyImmutable are parameters that become immutable and are not set.
func (c *Change) newlyImmutable() []Problem {
	var problems []Problem
	for i := range c.New.Parameters {
		p := &c.New.Parameters[i]
		if !p.IsImmutable() || c.wasImmutable(p.Name) {
			continue
		}
		if _, ok := c.Want.Parameters[p.Name]; !ok {
			problems = append(problems, parameterProblem(p.Name, "becomes immutable with OperatorVersion %s; set it", c.Want.OperatorVersion.Name))
		}
	}
	return problems
}

func (c *Change) wasImmutable(name string) bool {
	if _, kept := c.Immutable[name]; kept {
		return true
	}
	p := parameter(c.Old, name)
	return p != nil && p.IsImmutable()
}
