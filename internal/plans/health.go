package plans

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// verdict is how an object does: healthy if nothing is said.
type verdict struct {
	// lacks is what it waits for, as what may follow "it is".
	lacks string
	// fatal is why it will never be healthy.
	fatal string
}

// judge says how an object does that was applied: by kstatus, and by rules for
// what kstatus takes another view of, or does not know.
func (w *work) judge(ref Ref, live *unstructured.Unstructured, needs *Needs) verdict {
	switch ref.GroupKind() {
	case jobKind:
		return judgeJob(ref, live)
	case instanceKind:
		return judgeInstance(ref, live)
	case serviceKind:
		return judgeService(ref, live)
	case statefulSetKind:
		if v := judgeStatus(ref, live); v != (verdict{}) {
			return v
		}
		return w.judgeGroup(ref, live, needs)
	default:
		return judgeStatus(ref, live)
	}
}

// Judge says of an object, by the same rules, what it waits for, empty if it is well,
// and whether it waits in vain. Of the group that it may be a zone of it knows nothing.
func Judge(live *unstructured.Unstructured) (lacks string, fatal bool) {
	w := &work{o: &Observed{Kinds: map[schema.GroupKind]Scope{groupKind.GroupKind(): NoSuchKind}}}
	v := w.judge(refOf(live), live, &Needs{})
	if v.fatal != "" {
		return v.fatal, true
	}
	return v.lacks, false
}

// judgeStatus goes by kstatus. What has failed there may still recover, as a
// Deployment does that was late.
func judgeStatus(ref Ref, live *unstructured.Unstructured) verdict {
	report := health.Of(live, ref.GroupVersionKind)
	if report.Health == rollout.Healthy {
		return verdict{}
	}
	return verdict{lacks: fmt.Sprintf("waiting for %s: %s", ref, report.Reason)}
}

// judgeJob: a Job is healthy when it is complete; one that has failed is not
// repaired by waiting.
func judgeJob(ref Ref, live *unstructured.Unstructured) verdict {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if !ok || condition["status"] != "True" {
			continue
		}
		switch condition["type"] {
		case "Complete":
			return verdict{}
		case "Failed":
			return verdict{fatal: fmt.Sprintf("%s has failed: %v", ref, condition["message"])}
		}
	}
	return verdict{lacks: fmt.Sprintf("waiting for %s to be complete", ref)}
}

// judgeService: external addresses that a user has given count as well.
func judgeService(ref Ref, live *unstructured.Unstructured) verdict {
	if external, _, _ := unstructured.NestedSlice(live.Object, "spec", "externalIPs"); len(external) > 0 {
		return verdict{}
	}
	return judgeStatus(ref, live)
}

// judgeInstance: a child is healthy when what it was last told is applied and no
// plan runs; if that has failed for good, so has the parent's step.
func judgeInstance(ref Ref, live *unstructured.Unstructured) verdict {
	child := &v1beta1.Instance{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, child); err != nil {
		return verdict{lacks: fmt.Sprintf("waiting for %s, which cannot be read", ref)}
	}
	s := &child.Status
	applied := s.LastAppliedInstanceSpec != nil && sameTarget(child.Namespace, s.LastAppliedInstanceSpec, &child.Spec)
	switch {
	case s.ObservedGeneration != child.Generation:
		return verdict{lacks: fmt.Sprintf("waiting for %s to be looked at", ref)}
	case s.AggregatedStatus.Status == v1beta1.FatalError:
		return verdict{fatal: fmt.Sprintf("plan %s of %s has failed: %s", executionPlan(s), ref, s.WaitingFor)}
	case s.AggregatedStatus.ActivePlan == "" && applied:
		return verdict{}
	default:
		return verdict{lacks: fmt.Sprintf("waiting for plan %s of %s: %s", executionPlan(s), ref, s.WaitingFor)}
	}
}

func executionPlan(s *v1beta1.InstanceStatus) string {
	if s.Execution == nil {
		return v1beta1.DeployPlan
	}
	return s.Execution.Plan
}

// groupKind is the kind of the group that a zone belongs to.
var groupKind = schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "RolloutGroup"}

// judgeGroup: a StatefulSet that is a zone of a group is healthy when the group
// has brought it to its revision. Without the zones ring there are no groups.
func (w *work) judgeGroup(ref Ref, live *unstructured.Unstructured, needs *Needs) verdict {
	name := vocabulary.GroupOf(live.GetLabels(), live.GetAnnotations())
	scope, asked := w.o.Kinds[groupKind.GroupKind()]
	switch {
	case name == "":
		return verdict{}
	case !asked:
		needs.kind(groupKind)
		return verdict{}
	case scope == NoSuchKind:
		return verdict{}
	}
	group := Ref{GroupVersionKind: groupKind, Namespace: ref.Namespace, Name: name}
	u, seen := w.o.Objects[group]
	why, unseen := w.o.Unseen[group]
	switch {
	case unseen:
		return verdict{lacks: why}
	case !seen:
		needs.object(group)
		return verdict{}
	case u == nil:
		return verdict{lacks: fmt.Sprintf("waiting for RolloutGroup %s to be there", name)}
	default:
		return judgeZone(ref, live, u)
	}
}

func judgeZone(ref Ref, live, u *unstructured.Unstructured) verdict {
	group := &v1alpha1.RolloutGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, group); err != nil {
		return verdict{lacks: fmt.Sprintf("waiting for RolloutGroup %s, which cannot be read", u.GetName())}
	}
	revision, _, _ := unstructured.NestedString(live.Object, "status", "updateRevision")
	for _, zone := range group.Status.Zones {
		if zone.Name == ref.Name && zone.Target == revision && zone.Revision == revision && zone.State == "Complete" {
			return verdict{}
		}
	}
	waits := group.Status.WaitingFor
	if waits == "" {
		waits = "it has not rolled " + ref.Name + " yet"
	}
	return verdict{lacks: fmt.Sprintf("waiting for RolloutGroup %s: %s", group.Name, waits)}
}
