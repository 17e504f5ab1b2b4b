package plans

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// ProblemsOf are why an Instance that is created from a manifest would not be
// deployed with an OperatorVersion: what admission would say of it.
func ProblemsOf(instance *v1beta1.Instance, version *v1beta1.OperatorVersion) []Problem {
	now := instance.DeepCopy()
	now.Status = v1beta1.InstanceStatus{}
	v := newVersion(version)
	s := submission{now: now, versions: map[types.NamespacedName]*Version{versionKey(now.Namespace, &now.Spec): v}}
	problems := s.problems()
	if plan := now.Spec.PlanExecution.PlanName; plan != "" {
		if problem := unaskable(v, plan); problem != nil {
			problems = append(problems, *problem)
		}
	}
	return problems
}

// VersionOf is the OperatorVersion that an Instance asks for.
func VersionOf(instance *v1beta1.Instance) types.NamespacedName {
	return versionKey(instance.Namespace, &instance.Spec)
}

// PinOf is the ControllerRevision that keeps the content with which the last plan of an
// Instance began; false if it had none yet.
func PinOf(instance *v1beta1.Instance) (types.NamespacedName, bool) {
	e := instance.Status.Execution
	if e == nil || e.ContentHash == "" {
		return types.NamespacedName{}, false
	}
	return pinKey(instance.Namespace, e), true
}

// CircleOf is the way by which an OperatorVersion needs itself, through the
// operators that its tasks install; nil if it does not, or if not all are known.
func CircleOf(version *v1beta1.OperatorVersion, all []*v1beta1.OperatorVersion) []string {
	o := &Observed{Instance: &v1beta1.Instance{}, Objects: map[Ref]*unstructured.Unstructured{}}
	o.Instance.Namespace = version.Namespace
	for _, v := range all {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v)
		if err != nil {
			continue
		}
		ref := Ref{GroupVersionKind: v1beta1.GroupVersion.WithKind("OperatorVersion"), Namespace: v.Namespace, Name: v.Name}
		o.Objects[ref] = &unstructured.Unstructured{Object: content}
	}
	w := &work{o: o}
	for _, t := range version.Spec.Tasks {
		if t.Kind != v1beta1.KudoOperatorTask {
			continue
		}
		if circle, _ := w.follow(&finding{}, []string{version.Name}, versionName(t.Spec)); len(circle) > 0 {
			return circle
		}
	}
	return nil
}
