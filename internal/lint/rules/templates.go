package rules

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/json"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/packages/modern"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

func templateRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW411", Level: report.Error, Title: "A template refers to a parameter or a Pipe that does not exist",
			Why:    "The plan fails when it gets to that part of the template, and is not retried.",
			Action: "Fix the name, add the parameter or the Pipe, or look it up by the function index if it may be missing.",
		}, unknownReferences},
		{report.Rule{
			Code: "SPW412", Level: report.Error, Title: "A template with an API version that is no longer served",
			Why:    "The plan fails when it gets there, and is not retried.",
			Action: "Use the version that is named, and adapt the fields that differ.",
		}, retiredVersions},
		{report.Rule{
			Code: "SPW413", Level: report.Warning, Title: "A template with a field that its kind does not have",
			Why:    "The field is dropped, and an Event says so.",
			Action: "Fix the name or the place of the field, or remove it.",
		}, unknownTemplateFields},
		{report.Rule{
			Code: "SPW415", Level: report.Warning, Title: "A parameter that nothing uses",
			Why:    "No template refers to it, no Toggle is switched by it, and it triggers no plan of its own: to set it has no effect.",
			Action: "Use it in a template, or remove it.",
		}, unusedParameters},
		{report.Rule{
			Code: "SPW416", Level: report.Error, Title: "A template that does not render with the defaults",
			Why:    "The plan fails when it gets there, unless parameters are set, and is not retried.",
			Action: "Correct the template, or the defaults of the parameters that it refers to.",
		}, unrenderable},
		{report.Rule{
			Code: "SPW417", Level: report.Warning, Title: "A template that asks for a replacement without the permission that it needs",
			Why:    "What holds data is not replaced by on-immutable: recreate alone, because its data would be lost; the plan fails if an immutable field would change. To permit the loss has no effect without it.",
			Action: "Remove the annotation, or set both spillway.dev/on-immutable: recreate and spillway.dev/lose-data-on-recreate: \"true\".",
		}, halfPermissions},
	}
}

// retiredVersions finds what can be found in the text of templates, by line, also where it
// is not rendered with the defaults, and then what only rendering shows.
func retiredVersions(m *manifest.Manifests, r *reporter) {
	minor := cmp.Or(m.Minor, object.Latest)
	found := map[string]bool{}
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		for _, name := range manifest.SortedKeys(v.Spec.Templates) {
			_, changes := modern.Template(v.Spec.Templates[name], minor)
			for _, c := range changes {
				found[name+c.Object] = true
				r.findf(o, append(template(name), strconv.Itoa(c.Line)), "template %s: %s: %s", name, c.Object, c.What)
				if !c.Manual {
					r.actionf("Let spillway package modernize change it, or change it by hand.")
				}
			}
		}
	})
	rendered(m, func(o *manifest.Object, _ *v1beta1.OperatorVersion, name string, u *unstructured.Unstructured) {
		advice := object.RetiredAdvice(u.GroupVersionKind())
		if advice != "" && !object.IsServedIn(u.GroupVersionKind(), minor) && !found[name+u.GetKind()] {
			r.findf(o, template(name), "template %s: %s: %s", name, object.RefOf(u), advice)
		}
	})
}

// unknownTemplateFields compares the objects of Kubernetes' own kinds with their types.
func unknownTemplateFields(m *manifest.Manifests, r *reporter) {
	rendered(m, func(o *manifest.Object, v *v1beta1.OperatorVersion, name string, u *unstructured.Unstructured) {
		typed, err := kube.Served().New(u.GroupVersionKind())
		if err != nil {
			return // a kind of others
		}
		raw, err := u.MarshalJSON()
		if err != nil {
			return
		}
		strict, err := json.UnmarshalStrict(raw, typed)
		if err != nil {
			return // another rule or the API server says what is wrong with it
		}
		for _, mistake := range strict {
			r.findf(o, lineOfField(v, name, mistake), "template %s: %s: %s", name, object.RefOf(u), mistake)
		}
	})
}

// fieldNamed is the last part of the path of a field that an error names.
var fieldNamed = regexp.MustCompile(`"(?:.*\.)?([^."\[]+)(?:\[\d+\])?"$`)

// lineOfField is the line of a template with the field that an error names. If the template
// has several of that name, any of them may be meant, and no line is named.
func lineOfField(v *v1beta1.OperatorVersion, name string, err error) []string {
	named := fieldNamed.FindStringSubmatch(err.Error())
	if named == nil {
		return template(name)
	}
	text := v.Spec.Templates[name]
	places := regexp.MustCompile(`(?:^|[\s{,])`+regexp.QuoteMeta(named[1])+`[ \t]*:`).FindAllStringIndex(text, -1)
	if len(places) != 1 {
		return template(name)
	}
	return append(template(name), strconv.Itoa(1+strings.Count(text[:places[0][1]], "\n")))
}

func unknownReferences(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		params, pipes := declared(v)
		for _, name := range manifest.SortedKeys(v.Spec.Templates) {
			used, err := render.ReferencesOf(name, v.Spec.Templates[name])
			if err != nil {
				continue // which has a rule of its own
			}
			for _, param := range without(used.Params, params) {
				r.findf(o, lineWith(v, name, ".Params."+param), "template %s: parameter %s not found", name, param)
			}
			absent := without(used.Pipes, pipes)
			for _, pipe := range absent {
				r.findf(o, lineWith(v, name, ".Pipes."+pipe), "template %s: Pipe %s not found", name, pipe)
			}
			unfilledPipes(o, v, name, without(used.Pipes, absent), r)
		}
	})
}

// unusedParameters finds what no template can refer to. A template that cannot be parsed may
// refer to any.
func unusedParameters(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		var used []*render.References
		for _, name := range manifest.SortedKeys(v.Spec.Templates) {
			references, err := render.ReferencesOf(name, v.Spec.Templates[name])
			if err != nil {
				return
			}
			used = append(used, references)
		}
		for i := range v.Spec.Parameters {
			p := &v.Spec.Parameters[i]
			inTemplate := slices.ContainsFunc(used, func(of *render.References) bool { return of.Uses(p.Name) })
			if !inTemplate && !isSwitch(v, p.Name) && !runsPlan(p) {
				r.findf(o, manifest.Item("spec.parameters", i), "parameter %s is used by no template and no task", p.Name)
			}
		}
	})
}

// halfPermissions finds one of the two permissions to replace what holds data.
func halfPermissions(m *manifest.Manifests, r *reporter) {
	rendered(m, func(o *manifest.Object, v *v1beta1.OperatorVersion, name string, u *unstructured.Unstructured) {
		recreates := vocabulary.OnImmutable.Get(u.GetAnnotations()) == "recreate"
		switch permits := vocabulary.LoseDataOnRecreate.Get(u.GetAnnotations()) == "true"; {
		case recreates && !permits && task.HoldsData(u):
			r.findf(o, lineWith(v, name, "on-immutable"), "template %s: %s holds data, and is not replaced without %s=true", name, object.RefOf(u), vocabulary.LoseDataOnRecreate.Native)
		case permits && !recreates:
			r.findf(o, lineWith(v, name, "lose-data-on-recreate"), "template %s: %s is not replaced without %s=recreate", name, object.RefOf(u), vocabulary.OnImmutable.Native)
		}
	})
}

// unrenderable finds templates of tasks that fail with the defaults. One that refers to a
// parameter without a value is not judged: it must be set, or is set for that plan.
func unrenderable(m *manifest.Manifests, r *reporter) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		seen := map[string]bool{}
		for _, plan := range manifest.SortedKeys(v.Spec.Plans) {
			for _, t := range tasksOf(v, plan) {
				for _, name := range judged(v, plan, t, seen) {
					seen[name] = true
					err := renderedBy(t, name, v.Spec.Templates, contextOf(v, plan))
					if err != nil && !errors.Is(err, render.ErrUnavailable) {
						r.findf(o, lineNamed(name, err), "with the defaults of all parameters: %s", oneLine(err))
					}
				}
			}
		}
	})
}

// judged are the templates of a task that can be judged, and were not seen.
func judged(v *v1beta1.OperatorVersion, plan string, t *v1beta1.Task, seen map[string]bool) []string {
	return slices.DeleteFunc(templatesOf(t), func(name string) bool {
		_, ok := v.Spec.Templates[name]
		return !ok || seen[name] || !isJudged(v, plan, name)
	})
}

// isJudged is true of a template that has no mistake of another rule, and whose parameters
// have values. When an Instance is created, one that need not be set may be empty.
func isJudged(v *v1beta1.OperatorVersion, plan, name string) bool {
	used, err := render.ReferencesOf(name, v.Spec.Templates[name])
	params, pipes := declared(v)
	if err != nil || render.Verify(name, v.Spec.Templates[name]) != nil || len(without(used.Params, params))+len(without(used.Pipes, pipes)) > 0 {
		return false
	}
	for i := range v.Spec.Parameters {
		p := &v.Spec.Parameters[i]
		isSet := p.Default != nil && *p.Default != "" || plan == v1beta1.DeployPlan && !p.IsRequired()
		if used.Uses(p.Name) && !isSet {
			return false
		}
	}
	return true
}

// renderedBy renders a template as a task does.
func renderedBy(t *v1beta1.Task, name string, templates map[string]string, c render.Context) error {
	var err error
	switch text := templates[name]; name {
	case t.Spec.Chart: // with its values
	case t.Spec.Values:
		_, err = (&render.Chart{Name: t.Spec.Chart, Archive: templates[t.Spec.Chart], ValuesName: name, Values: text}).Objects(c)
	case t.Spec.ParameterFile:
		_, err = render.Values(name, text, c)
	case t.Spec.Pod:
		_, err = render.Objects(name, text, c, "name")
	default:
		_, err = render.Objects(name, text, c, "")
	}
	return err
}

// isSwitch is true of the parameter of a Toggle.
func isSwitch(v *v1beta1.OperatorVersion, name string) bool {
	return slices.ContainsFunc(v.Spec.Tasks, func(t v1beta1.Task) bool { return t.Spec.Parameter == name })
}

// runsPlan is true of a parameter that may exist to run a plan, which any change of it does:
// one that is not run by changes of others too.
func runsPlan(p *v1beta1.Parameter) bool {
	return !slices.Contains([]string{"", v1beta1.DeployPlan, v1beta1.UpdatePlan, v1beta1.UpgradePlan}, p.Trigger)
}

// unfilledPipes finds what only Pipes of other plans keep: a plan sees its own.
func unfilledPipes(o *manifest.Object, v *v1beta1.OperatorVersion, name string, used []string, r *reporter) {
	for _, plan := range manifest.SortedKeys(v.Spec.Plans) {
		tasks := tasksOf(v, plan)
		if !slices.ContainsFunc(tasks, func(t *v1beta1.Task) bool { return slices.Contains(templatesOf(t), name) }) {
			continue
		}
		var kept []string
		for _, t := range tasks {
			if t.Kind == v1beta1.PipeTask {
				kept = append(kept, piped(t)...)
			}
		}
		for _, pipe := range without(used, kept) {
			c := contextOf(v, plan)
			delete(c.Pipes, pipe)
			_, err := render.Render(name, v.Spec.Templates[name], c)
			if err != nil && strings.Contains(err.Error(), ".Pipes."+pipe+">: map has no entry") { // else that plan does not get there
				r.findf(o, lineWith(v, name, ".Pipes."+pipe), "template %s: no Pipe task of plan %s, which uses the template, keeps %s", name, plan, pipe)
			}
		}
	}
}

// tasksOf are the tasks of a plan.
func tasksOf(v *v1beta1.OperatorVersion, plan string) []*v1beta1.Task {
	var tasks []*v1beta1.Task
	for _, phase := range v.Spec.Plans[plan].Phases {
		for _, step := range phase.Steps {
			for i := range v.Spec.Tasks {
				if slices.Contains(step.Tasks, v.Spec.Tasks[i].Name) {
					tasks = append(tasks, &v.Spec.Tasks[i])
				}
			}
		}
	}
	return tasks
}

// contextOf is what templates see in a plan, with the default of each parameter and every
// Pipe.
func contextOf(v *v1beta1.OperatorVersion, plan string) render.Context {
	values, _ := choice.Values(&v.Spec, nil, nil)
	c := render.Context{
		Name: "name", Namespace: "namespace", OperatorName: v.Spec.Operator.Name, OperatorVersion: v.Spec.Version, AppVersion: v.Spec.AppVersion,
		PlanName: plan, PhaseName: "phase", StepName: "step", Params: values, Pipes: map[string]string{},
	}
	_, pipes := declared(v)
	for _, pipe := range pipes {
		c.Pipes[pipe] = "name"
	}
	return c
}

// rendered visits the objects of the templates that tasks apply, rendered with the default
// of each parameter. What cannot be rendered so is left out.
func rendered(m *manifest.Manifests, visit func(o *manifest.Object, v *v1beta1.OperatorVersion, name string, u *unstructured.Unstructured)) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		c := contextOf(v, v1beta1.DeployPlan)
		applied := map[string]bool{}
		for i := range v.Spec.Tasks {
			for _, name := range append(v.Spec.Tasks[i].Spec.Resources, v.Spec.Tasks[i].Spec.Pod) {
				applied[name] = true
			}
		}
		for _, name := range manifest.SortedKeys(applied) {
			objects, err := render.Objects(name, v.Spec.Templates[name], c, "name")
			if err != nil {
				continue
			}
			for _, u := range objects {
				visit(o, v, name, u)
			}
		}
	})
}
