package task

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/render"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// operatorTask applies a child Instance of another operator, and is done when the
// child has applied its spec and no plan of it is running.
type operatorTask struct{}

func (operatorTask) assess(w *work) Finding {
	if why := w.childProblem(); why != "" {
		return fatal("task %s: %s", w.name, why)
	}
	f := Finding{}
	name := versionName(w.spec)
	cycle, missing := w.dependencies(&f, []string{w.Execution.Spec.OperatorVersion.Name}, name)
	switch {
	case !f.Needs.IsEmpty():
		return f
	case len(cycle) > 0:
		return fatal("task %s: dependency cycle: %s", w.name, strings.Join(cycle, " needs "))
	case missing != "":
		return Finding{Deadline: installDeadline, Failed: fmt.Sprintf("OperatorVersion %s not found in namespace %s; install it", missing, w.o.Instance.Namespace)}
	}
	child, err := w.child(name)
	if err != nil {
		return unrenderable(fmt.Errorf("task %s: %w", w.name, err))
	}
	return w.apply([]*unstructured.Unstructured{child})
}

// childProblem is what is wrong with the names of the child and of its OperatorVersion, empty if
// nothing is.
func (w *work) childProblem() string {
	for _, field := range []struct{ name, value string }{
		{"package", w.spec.Package}, {"appVersion", w.spec.AppVersion}, {"operatorVersion", w.spec.OperatorVersion}, {"instanceName", w.spec.InstanceName},
	} {
		if why := object.NameProblem(field.value); field.value != "" && why != "" {
			return "spec." + field.name + ": " + why
		}
	}
	return ""
}

// child is the Instance to apply.
func (w *work) child(version string) (*unstructured.Unstructured, error) {
	name := w.spec.InstanceName
	if name == "" {
		name = w.o.Instance.Name + "-" + w.spec.Package
	}
	parameters, err := w.childParameters()
	if err != nil {
		return nil, err
	}
	spec := map[string]any{"operatorVersion": map[string]any{"name": version}}
	if len(parameters) > 0 {
		spec["parameters"] = parameters
	}
	if account := w.o.Instance.Spec.ServiceAccountName; account != "" {
		spec["serviceAccountName"] = account // or its plans would have other rights than those of the parent
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance"))
	u.SetName(name)
	return u, nil
}

// retryChild has a child retry its plan, which failed before this execution began. A child that is
// applied without a change would fail the parent again, without trying.
func (w *work) retryChild(u, live *unstructured.Unstructured) {
	child := &v1beta1.Instance{}
	if object.RefOf(u).GroupKind() != object.InstanceKind || runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, child) != nil {
		return
	}
	e := child.Status.Execution
	if e == nil || child.Status.AggregatedStatus.Status != v1beta1.FatalError || e.FinishedAt == nil || !e.FinishedAt.Before(&w.Execution.StartedAt) {
		return
	}
	annotations := u.GetAnnotations()
	annotations[vocabulary.RetryPlan.Native] = string(e.UID)
	u.SetAnnotations(annotations)
}

// isRetried reports whether a child is about to retry its plan.
func isRetried(child *v1beta1.Instance) bool {
	e := child.Status.Execution
	return e != nil && e.UID != "" && strings.Contains(vocabulary.RetryPlan.Get(child.Annotations), string(e.UID))
}

// public is the context without what stands in Secrets: the spec of a child shows its parameters.
func (w *work) public() render.Context {
	c := w.context()
	c.Params = maps.Clone(c.Params)
	for _, from := range w.Execution.Spec.ParametersFrom {
		delete(c.Params, from.Name)
	}
	return c
}

// childParameters are those of the parameter file.
func (w *work) childParameters() (map[string]any, error) {
	if w.spec.ParameterFile == "" {
		return nil, nil //nolint:nilnil // no parameters are a valid answer
	}
	text, err := w.template(w.spec.ParameterFile)
	if err != nil {
		return nil, err
	}
	values, err := render.Values(w.spec.ParameterFile, text, w.public())
	if err != nil {
		return nil, err
	}
	parameters := make(map[string]any, len(values))
	for name, value := range values {
		parameters[name] = value
	}
	return parameters, nil
}

// Cycle is the path by which an OperatorVersion depends on itself, through the
// operators that its tasks install; nil if it does not, or if not all are known.
func Cycle(version *v1beta1.OperatorVersion, all []*v1beta1.OperatorVersion) []string {
	o := &Snapshot{Instance: &v1beta1.Instance{}, Objects: map[object.Ref]*unstructured.Unstructured{}}
	o.Instance.Namespace = version.Namespace
	for _, v := range all {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
		if err != nil {
			continue
		}
		ref := object.Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("OperatorVersion"), Namespace: v.Namespace, Name: v.Name}
		o.Objects[ref] = &unstructured.Unstructured{Object: content}
	}
	w := &work{o: o}
	for _, t := range version.Spec.Tasks {
		if t.Kind != v1beta1.KudoOperatorTask {
			continue
		}
		if cycle, _ := w.dependencies(&Finding{}, []string{version.Name}, versionName(t.Spec)); len(cycle) > 0 {
			return cycle
		}
	}
	return nil
}

// dependencies follows the operators that an operator needs. It returns the path of a
// cycle, or the first OperatorVersion that does not exist.
func (w *work) dependencies(f *Finding, path []string, name string) (cycle []string, missing string) {
	if slices.Contains(path, name) {
		return append(slices.Clone(path), name), ""
	}
	ref := object.Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("OperatorVersion"), Namespace: w.o.Instance.Namespace, Name: name}
	u, read := w.live(f, ref)
	if !read {
		return nil, ""
	}
	version := &v1beta1.OperatorVersion{}
	if u == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, version) != nil {
		return nil, name
	}
	for _, t := range version.Spec.Tasks {
		if t.Kind != v1beta1.KudoOperatorTask {
			continue
		}
		cycle, deeper := w.dependencies(f, append(slices.Clone(path), name), versionName(t.Spec))
		if len(cycle) > 0 {
			return cycle, ""
		}
		if missing == "" {
			missing = deeper
		}
	}
	return nil, missing
}

// versionName is the name of an OperatorVersion: OPERATOR-[APPVERSION-]VERSION.
func versionName(spec v1beta1.TaskSpec) string {
	parts := []string{spec.Package, spec.AppVersion, spec.OperatorVersion}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "-")
}
