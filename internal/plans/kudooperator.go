package plans

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// operatorTask applies a child Instance of another operator, and is done when
// that has done what it was told.
type operatorTask struct{}

func (operatorTask) look(w *work) finding {
	f := finding{}
	name := versionName(w.spec)
	cycle, missing := w.follow(&f, []string{w.run.execution.Spec.OperatorVersion.Name}, name)
	switch {
	case !f.needs.IsEmpty():
		return f
	case len(cycle) > 0:
		return fatal("task %s: operators depend on each other in a circle: %s", w.name, strings.Join(cycle, " needs "))
	case missing != "":
		return finding{failed: fmt.Sprintf("OperatorVersion %s is not in namespace %s; install it", missing, w.o.Instance.Namespace)}
	}
	child, err := w.child(name)
	if err != nil {
		return fatal("task %s: %s", w.name, err)
	}
	return w.apply([]*unstructured.Unstructured{child})
}

// versionName is the name of an OperatorVersion: OPERATOR-[APPVERSION-]VERSION.
func versionName(spec v1beta1.TaskSpec) string {
	parts := []string{spec.Package, spec.AppVersion, spec.OperatorVersion}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "-")
}

// follow goes along all operators that one needs. It returns the way that leads
// in a circle, or the first OperatorVersion that is missing.
func (w *work) follow(f *finding, way []string, name string) (cycle []string, missing string) {
	if slices.Contains(way, name) {
		return append(slices.Clone(way), name), ""
	}
	ref := Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("OperatorVersion"), Namespace: w.o.Instance.Namespace, Name: name}
	u, seen := w.live(f, ref)
	if !seen {
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
		cycle, deeper := w.follow(f, append(slices.Clone(way), name), versionName(t.Spec))
		if len(cycle) > 0 {
			return cycle, ""
		}
		if missing == "" {
			missing = deeper
		}
	}
	return nil, missing
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
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance"))
	u.SetName(name)
	return u, nil
}

// childParameters are those of the parameter file: values that are no text are
// written as YAML, as they stand in an Instance.
func (w *work) childParameters() (map[string]any, error) {
	if w.spec.ParameterFile == "" {
		return nil, nil //nolint:nilnil // no parameters are no mistake
	}
	text, err := w.text(w.spec.ParameterFile)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		return nil, fmt.Errorf("template %s has to be a map of parameters: %w", w.spec.ParameterFile, err)
	}
	for name, value := range values {
		if _, ok := value.(string); ok {
			continue
		}
		raw, err := yaml.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("template %s: parameter %s: %w", w.spec.ParameterFile, name, err)
		}
		values[name] = strings.TrimSuffix(string(raw), "\n")
	}
	return values, nil
}
