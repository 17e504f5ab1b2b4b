package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/plans/admit"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/render"
	"github.com/spillway-dev/spillway/internal/plans/task"
)

func planRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW401", Level: report.Error, Title: "A step names a task that does not exist",
			Why:    "The plan fails when it gets there, and is not retried.",
			Action: "Fix the name, or add the task.",
		}, missingTasks},
		{report.Rule{
			Code: "SPW402", Level: report.Error, Title: "A task names a template that does not exist",
			Why:    "The plan fails when it gets there, and is not retried.",
			Action: "Fix the name, or add the template.",
		}, missingTemplates},
		{report.Rule{
			Code: "SPW403", Level: report.Error, Title: "A template that cannot be rendered",
			Why:    "It cannot be parsed, or calls a function that is refused. The plan fails when it gets there, and is not retried.",
			Action: "Correct the template.",
		}, badTemplates},
		{report.Rule{
			Code: "SPW404", Level: report.Error, Title: "A parameter that contradicts its OperatorVersion",
			Why:    "Instances are refused for a trigger without its plan, and for an invalid default.",
			Action: "Correct the parameter.",
		}, badParameters},
		{report.Rule{
			Code: "SPW405", Level: report.Error, Title: "An Instance that its OperatorVersion refuses",
			Why:    "Admission refuses it, and no plan runs for it.",
			Action: "Correct the field that is named.",
		}, refusedInstances},
		{report.Rule{
			Code: "SPW406", Level: report.Note, Title: "The OperatorVersion of an Instance is not among the manifests",
			Why:    "It may exist in the cluster already. Until it exists, no plan runs.",
			Action: "Add it, or make sure that it exists.",
		}, absentVersion},
		{report.Rule{
			Code: "SPW407", Level: report.Error, Title: "Operators that depend on each other in a circle",
			Why:    "None of them is ever deployed.",
			Action: "Remove one of the KudoOperator tasks.",
		}, circles},
		{report.Rule{
			Code: "SPW408", Level: report.Note, Title: "A task or a template that nothing uses",
			Why:    "No step names the task, or no task the template.",
			Action: "Use it, or remove it.",
		}, unusedParts},
		{report.Rule{
			Code: "SPW409", Level: report.Error, Title: "An OperatorVersion without a plan deploy",
			Why:    "No Instance of it can be created.",
			Action: "Add a plan named deploy.",
		}, noDeploy},
		{report.Rule{
			Code: "SPW410", Level: report.Error, Title: "A task that can never complete",
			Why:    "The plan fails when it gets there, and is not retried.",
			Action: "Name a parameter that the OperatorVersion has, set done of the Dummy, or give a task that deletes a step of its own: one object, one task.",
		}, endlessTasks},
		{report.Rule{
			Code: "SPW414", Level: report.Error, Title: "Two tasks, parameters, phases or steps with the same name",
			Why:    "The API server refuses the OperatorVersion.",
			Action: "Rename one of them, or remove it.",
		}, sameNames},
	}
}

func healthRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW418", Level: report.Error, Title: "A health rule that cannot be evaluated",
			Why:    "A plan that applies an object of the kind fails when it gets there, and is not retried.",
			Action: "Correct the expression: it is CEL over object, and true or false.",
		}, brokenHealth},
	}
}

func brokenHealth(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		for i := range v.Spec.Health {
			rule := &v.Spec.Health[i]
			for _, field := range []struct{ name, condition string }{{"ready", rule.Ready}, {"failed", rule.Failed}} {
				if field.condition == "" && field.name == "failed" {
					continue
				}
				if err := task.RuleProblem(field.condition); err != nil {
					r.findf(o, manifest.Item("spec.health", i, field.name), "health of kind %s: %s: %s", rule.Kind, field.name, oneLine(err))
				}
			}
		}
	})
}

func missingTasks(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		steps(v, func(path []string, _, _ string, step *v1beta1.Step) {
			for i, name := range step.Tasks {
				if !hasTask(v, name) {
					r.findf(o, append(path, manifest.Item("tasks", i)...), "step %s: task %s not found", step.Name, name)
				}
			}
		})
	})
}

func hasTask(v *v1beta1.OperatorVersion, name string) bool {
	return slices.ContainsFunc(v.Spec.Tasks, func(t v1beta1.Task) bool { return t.Name == name })
}

func missingTemplates(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		for i := range v.Spec.Tasks {
			for _, name := range templatesOf(&v.Spec.Tasks[i]) {
				if _, ok := v.Spec.Templates[name]; !ok {
					r.findf(o, manifest.Item("spec.tasks", i, "spec"), "task %s: template %s not found", v.Spec.Tasks[i].Name, name)
				}
			}
		}
	})
}

func badTemplates(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		for _, name := range manifest.SortedKeys(v.Spec.Templates) {
			if err := render.Verify(name, v.Spec.Templates[name]); err != nil {
				r.findf(o, lineNamed(name, err), "%s", oneLine(err))
			}
		}
	})
}

// oneLine is an error as a clause.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// badParameters judges the default of each parameter as the value of an Instance.
func badParameters(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		for i, p := range v.Spec.Parameters {
			if _, ok := v.Spec.Plans[p.Trigger]; p.Trigger != "" && !ok {
				r.findf(o, manifest.Item("spec.parameters", i, "trigger"), "parameter %s: plan %s, its trigger, not found", p.Name, p.Trigger)
			}
			if p.Default == nil {
				continue
			}
			_, problems := choice.Values(&v1beta1.OperatorVersionSpec{Parameters: []v1beta1.Parameter{p}}, nil, nil)
			for _, problem := range problems {
				r.findf(o, manifest.Item("spec.parameters", i, "default"), "default of parameter %s: %s", p.Name, problem.Action)
			}
		}
	})
}

func refusedInstances(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, i *v1beta1.Instance) {
		v := versionOf(m, i)
		if v == nil {
			return
		}
		for _, p := range admit.ProblemsOf(i, v) {
			r.findf(o, o.RingField(p.Field), "%s", p)
		}
	})
}

func absentVersion(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, i *v1beta1.Instance) {
		if name := i.Spec.OperatorVersion.Name; name != "" && versionOf(m, i) == nil {
			r.findf(o, manifest.Fields("spec.operatorVersion"), "OperatorVersion %s is not among the manifests", name)
		}
	})
}

// versionOf is the OperatorVersion of an Instance, nil if it is not among the manifests.
func versionOf(m *manifest.Manifests, i *v1beta1.Instance) *v1beta1.OperatorVersion {
	key := choice.VersionKey(i.Namespace, &i.Spec)
	_, v := manifest.Find[*v1beta1.OperatorVersion](m, key.Namespace, key.Name)
	return v
}

func circles(m *manifest.Manifests, r *reporter) {
	var known []*v1beta1.OperatorVersion
	versions(m, func(_ *manifest.Object, v *v1beta1.OperatorVersion) { known = append(known, v) })
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		if circle := task.Cycle(v, known); len(circle) > 0 && circle[0] == circle[len(circle)-1] {
			r.findf(o, manifest.Fields("spec.tasks"), "%s", strings.Join(circle, " depends on "))
		}
	})
}

func unusedParts(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		var tasks, templates []string
		steps(v, func(_ []string, _, _ string, step *v1beta1.Step) { tasks = append(tasks, step.Tasks...) })
		for i := range v.Spec.Tasks {
			t := &v.Spec.Tasks[i]
			templates = append(templates, templatesOf(t)...)
			if !slices.Contains(tasks, t.Name) {
				r.findf(o, manifest.Item("spec.tasks", i), "task %s is used by no step", t.Name)
			}
		}
		for _, name := range manifest.SortedKeys(v.Spec.Templates) {
			if !slices.Contains(templates, name) {
				r.findf(o, template(name), "template %s is used by no task", name)
			}
		}
	})
}

func sameNames(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		again(v.Spec.Tasks, func(t *v1beta1.Task) string { return t.Name }, func(i int, name string) {
			r.findf(o, manifest.Item("spec.tasks", i), "another task is named %s", name)
		})
		again(v.Spec.Parameters, func(p *v1beta1.Parameter) string { return p.Name }, func(i int, name string) {
			r.findf(o, manifest.Item("spec.parameters", i), "another parameter is named %s", name)
		})
		for _, plan := range manifest.SortedKeys(v.Spec.Plans) {
			path, phases := append(manifest.Fields("spec.plans"), plan), v.Spec.Plans[plan].Phases
			again(phases, func(p *v1beta1.Phase) string { return p.Name }, func(i int, name string) {
				r.findf(o, append(slices.Clone(path), manifest.Item("phases", i)...), "plan %s: another phase is named %s", plan, name)
			})
			for k := range phases {
				again(phases[k].Steps, func(s *v1beta1.Step) string { return s.Name }, func(i int, name string) {
					at := manifest.Item("phases", k, manifest.Item("steps", i)...)
					r.findf(o, append(slices.Clone(path), at...), "plan %s: another step of phase %s is named %s", plan, phases[k].Name, name)
				})
			}
		}
	})
}

// again visits the items of a list that have the name of an earlier one.
func again[T any](items []T, nameOf func(*T) string, visit func(i int, name string)) {
	seen := map[string]bool{}
	for i := range items {
		name := nameOf(&items[i])
		if seen[name] {
			visit(i, name)
		}
		seen[name] = true
	}
}

// steps visits the steps of all plans, with the path of each.
func steps(v *v1beta1.OperatorVersion, visit func(path []string, plan, phase string, step *v1beta1.Step)) {
	for _, name := range manifest.SortedKeys(v.Spec.Plans) {
		for i, phase := range v.Spec.Plans[name].Phases {
			for j := range phase.Steps {
				path := append(manifest.Fields("spec.plans"), append([]string{name}, manifest.Item("phases", i)...)...)
				visit(append(path, manifest.Item("steps", j)...), name, phase.Name, &phase.Steps[j])
			}
		}
	}
}

// templatesOf are the templates that a task names.
func templatesOf(t *v1beta1.Task) []string {
	named := append(slices.Clone(t.Spec.Resources), t.Spec.Chart, t.Spec.Values, t.Spec.Pod, t.Spec.ParameterFile)
	return slices.DeleteFunc(named, func(s string) bool { return s == "" })
}

func noDeploy(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		if _, ok := v.Spec.Plans[v1beta1.DeployPlan]; !ok {
			r.findf(o, manifest.Fields("spec.plans"), "plan deploy not found")
		}
	})
}

func endlessTasks(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		for i := range v.Spec.Tasks {
			if why := endless(v, &v.Spec.Tasks[i]); why != "" {
				r.findf(o, manifest.Item("spec.tasks", i), "task %s: %s", v.Spec.Tasks[i].Name, why)
			}
		}
		steps(v, func(path []string, plan, phase string, step *v1beta1.Step) {
			if c := contradictionIn(v, plan, phase, step); c != nil {
				r.findf(o, append(path, manifest.Item("tasks", slices.Index(step.Tasks, c.Deletes))...), "step %s: %s", step.Name, c)
			}
		})
	})
}

// contradictionIn is that of a step with the defaults of all parameters, or with one of its Toggles
// switched.
func contradictionIn(v *v1beta1.OperatorVersion, plan, phase string, step *v1beta1.Step) *task.Contradiction {
	values, _ := choice.Values(&v.Spec, nil, nil)
	all := []map[string]any{values}
	for i := range v.Spec.Tasks {
		if t := &v.Spec.Tasks[i]; t.Kind == v1beta1.ToggleTask && slices.Contains(step.Tasks, t.Name) {
			for _, value := range []string{"true", "false"} {
				switched := maps.Clone(values)
				switched[t.Spec.Parameter] = value
				all = append(all, switched)
			}
		}
	}
	for _, values := range all {
		run := task.Run{
			Snapshot: &task.Snapshot{Instance: &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "namespace", Name: "name"}}},
			Version:  &choice.Version{Spec: &v.Spec}, Execution: &v1beta1.Execution{Plan: plan}, Values: values,
		}
		if c := run.Contradiction(phase, step.Name); c != nil {
			return c
		}
	}
	return nil
}

func endless(v *v1beta1.OperatorVersion, t *v1beta1.Task) string {
	named := func(p v1beta1.Parameter) bool { return p.Name == t.Spec.Parameter }
	switch {
	case t.Kind == v1beta1.ToggleTask && t.Spec.Parameter != "" && !slices.ContainsFunc(v.Spec.Parameters, named):
		return fmt.Sprintf("parameter %s not found", t.Spec.Parameter)
	case t.Kind == v1beta1.DummyTask && !t.Spec.Done && !t.Spec.WantErr && !onlyRefuses(v, t.Name):
		return "a Dummy that is not done"
	default:
		return ""
	}
}

// meantPlans are those with a meaning.
var meantPlans = []string{v1beta1.DeployPlan, v1beta1.UpdatePlan, v1beta1.UpgradePlan, v1beta1.CleanupPlan}

// onlyRefuses is true of a task that is all that the plans do that run it: such a plan, as the
// trigger of a parameter, is how packages for KUDO forbid that the parameter is changed.
func onlyRefuses(v *v1beta1.OperatorVersion, name string) bool {
	for plan := range v.Spec.Plans {
		tasks := tasksOf(v, plan)
		is := func(t *v1beta1.Task) bool { return t.Name == name }
		another := func(t *v1beta1.Task) bool { return t.Name != name }
		if slices.ContainsFunc(tasks, is) && (slices.Contains(meantPlans, plan) || slices.ContainsFunc(tasks, another)) {
			return false
		}
	}
	return true
}

// versions visits the OperatorVersions.
func versions(m *manifest.Manifests, visit func(*manifest.Object, *v1beta1.OperatorVersion)) {
	manifest.Each(m, visit)
}

// template is where a template stands. Its name may have dots.
func template(name string) []string { return append(manifest.Fields("spec.templates"), name) }

// lineWith is the first line of a template that has a text.
func lineWith(v *v1beta1.OperatorVersion, name, text string) []string {
	before, _, ok := strings.Cut(v.Spec.Templates[name], text)
	if !ok {
		return template(name)
	}
	return append(template(name), strconv.Itoa(1+strings.Count(before, "\n")))
}

// lineNamed is the line of a template that an error of its parser names.
func lineNamed(name string, err error) []string {
	_, rest, _ := strings.Cut(err.Error(), name+":")
	line, _, _ := strings.Cut(rest, ":")
	if _, err := strconv.Atoi(line); err != nil {
		return template(name)
	}
	return append(template(name), line)
}

// declared are the names of the parameters and of what Pipes keep.
func declared(v *v1beta1.OperatorVersion) (params, pipes []string) {
	for i := range v.Spec.Parameters {
		params = append(params, v.Spec.Parameters[i].Name)
	}
	for _, t := range v.Spec.Tasks {
		if t.Kind == v1beta1.PipeTask {
			pipes = append(pipes, piped(&t)...)
		}
	}
	return params, pipes
}

// piped are the names of what a Pipe keeps.
func piped(t *v1beta1.Task) []string {
	var keys []string
	for _, file := range t.Spec.Pipe {
		keys = append(keys, file.Key)
	}
	return keys
}

// without are the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
