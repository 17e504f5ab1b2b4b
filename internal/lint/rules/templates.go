package rules

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/json"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/packages/modern"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
)

func templateRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW411", Level: report.Error, Title: "A template refers to a parameter or a Pipe that does not exist",
			Why:    "The plan fails when it gets to that part of the template, and is not retried.",
			Action: "Fix the name, add the parameter, or look it up by the function index if it may be missing.",
		}, unknownParameters},
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
	rendered(m, func(o *manifest.Object, name string, u *unstructured.Unstructured) {
		advice := object.RetiredAdvice(u.GroupVersionKind())
		if advice != "" && !object.IsServedIn(u.GroupVersionKind(), minor) && !found[name+u.GetKind()] {
			r.findf(o, template(name), "template %s: %s: %s", name, object.RefOf(u), advice)
		}
	})
}

// unknownTemplateFields compares the objects of Kubernetes' own kinds with their types.
func unknownTemplateFields(m *manifest.Manifests, r *reporter) {
	rendered(m, func(o *manifest.Object, name string, u *unstructured.Unstructured) {
		typed, err := scheme.Scheme.New(u.GroupVersionKind())
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
		if all := errors.Join(strict...); all != nil {
			r.findf(o, template(name), "template %s: %s: %s", name, object.RefOf(u), strings.ReplaceAll(all.Error(), "\n", ", "))
		}
	})
}

// rendered visits the objects of the templates that tasks apply, rendered with the default
// of each parameter. What cannot be rendered so is left out.
func rendered(m *manifest.Manifests, visit func(o *manifest.Object, name string, u *unstructured.Unstructured)) {
	versions(m, func(o *manifest.Object, v *v1beta1.OperatorVersion) {
		values, _ := choice.Values(&v.Spec, nil, nil)
		_, pipes := declared(v)
		c := render.Context{
			Name: "name", Namespace: "namespace", OperatorName: v.Spec.Operator.Name, OperatorVersion: v.Spec.Version, AppVersion: v.Spec.AppVersion,
			PlanName: v1beta1.DeployPlan, PhaseName: "phase", StepName: "step", Params: values, Pipes: map[string]string{},
		}
		for _, pipe := range pipes {
			c.Pipes[pipe] = "name"
		}
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
				visit(o, name, u)
			}
		}
	})
}
