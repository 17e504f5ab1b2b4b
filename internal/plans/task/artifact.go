package task

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// pipesOf are the names of all objects that the Pipes of a plan keep, by key.
func pipesOf(instance, plan string, version *v1beta1.OperatorVersionSpec) map[string]string {
	pipes := map[string]string{}
	for _, t := range version.Tasks {
		if t.Kind != v1beta1.PipeTask {
			continue
		}
		for _, phase := range version.Plans[plan].Phases {
			for _, step := range phase.Steps {
				if slices.Contains(step.Tasks, t.Name) {
					keepPipes(pipes, &t, instance, plan, phase.Name, step.Name)
				}
			}
		}
	}
	return pipes
}

// keepPipes adds the names of the objects that a task keeps in one step of a plan.
func keepPipes(pipes map[string]string, t *v1beta1.Task, instance, plan, phase, step string) {
	for _, file := range t.Spec.Pipe {
		pipes[file.Key] = artifact(instance, plan, phase, step, t.Name, file.Key)
	}
}

// artifacts are the objects that keep the files of a Pipe, empty except for their names.
func (w *work) artifacts() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, file := range w.spec.Pipe {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: file.Kind})
		u.SetName(w.artifact(file.Key))
		all = append(all, u)
	}
	return all
}

// podName is the name of the Pod of a Pipe.
func (w *work) podName() string { return w.artifact("pipepod") }

// artifact returns the name of the object that keeps a file.
func (w *work) artifact(key string) string {
	return artifact(w.o.Instance.Name, w.Execution.Plan, w.phase, w.step, w.name, key)
}

// artifact is the name that KUDO gives: of each part only its letters and digits.
func artifact(parts ...string) string {
	for i := range parts {
		parts[i] = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, strings.ToLower(parts[i]))
	}
	return strings.Join(parts, ".")
}
