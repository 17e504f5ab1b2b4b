package task

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/health"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// verdict is the health of an object: healthy if it is empty.
type verdict struct {
	// lacks is what it waits for; see [Finding.Lacks].
	lacks string
	// fatal is why it will never be healthy.
	fatal string
}

// Judge says, by the same rules, what an object waits for, empty if it is healthy, and
// whether it has failed for good. It ignores the group that it may be a zone of.
func Judge(live *unstructured.Unstructured) (lacks string, fatal bool) {
	s := &Snapshot{Kinds: map[schema.GroupVersionKind]object.Scope{GroupKind: object.NoSuchKind}}
	v := s.judge(object.RefOf(live), live, &Needs{})
	if v.fatal != "" {
		return v.fatal, true
	}
	return v.lacks, false
}

// IsStateless is true of an object that is healthy if it exists, because nothing works on it.
func IsStateless(u *unstructured.Unstructured) bool {
	gk := u.GroupVersionKind().GroupKind()
	if gk == object.ServiceKind {
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "type")
		return kind != string(corev1.ServiceTypeLoadBalancer)
	}
	return gk.Group == "rbac.authorization.k8s.io" || slices.Contains([]schema.GroupKind{object.AccountKind, object.SecretKind, object.ConfigMapKind}, gk)
}

// Unready is the first workload of the inventory that is not ready although no plan is
// running, empty if all are. What the package has a rule for is one, too.
func (s *Snapshot) Unready() (unready string, needs Needs) {
	for _, entry := range s.Instance.Status.Inventory {
		ref := object.EntryRef(entry)
		if !object.IsWorkload(ref.GroupKind()) && s.Rules.of(ref.GroupKind()) == nil {
			continue
		}
		live, read := s.Objects[ref]
		why, forbidden := s.Forbidden[ref]
		switch {
		case forbidden:
			unready = why
		case !read:
			needs.object(ref)
		case live == nil && unready == "":
			unready = ref.String() + " not found"
		case live != nil && unready == "":
			v := s.judge(ref, live, &needs)
			unready = cmp.Or(v.lacks, v.fatal)
		}
	}
	return unready, needs
}

// judge is the health of an object that was applied: by kstatus, and by rules of
// their own for kinds that kstatus does not know or judges differently.
func (s *Snapshot) judge(ref object.Ref, live *unstructured.Unstructured, needs *Needs) verdict {
	if live.GetDeletionTimestamp() != nil {
		return judgeStatus(ref, live) // whatever its status says
	}
	switch ref.GroupKind() {
	case object.JobKind:
		return judgeJob(ref, live)
	case object.InstanceKind:
		return judgeInstance(ref, live)
	case object.CRDKind:
		return judgeDefinition(ref, live)
	case object.ServiceKind:
		return judgeService(ref, live)
	case object.ClaimKind:
		return s.judgeClaim(ref, live, needs)
	case object.StatefulSetKind:
		if v := judgeStatus(ref, live); v != (verdict{}) {
			return v
		}
		return s.judgeGroup(ref, live, needs)
	default:
		if rule := s.Rules.of(ref.GroupKind()); rule != nil {
			return s.judgeRule(ref, live, rule)
		}
		return judgeStatus(ref, live)
	}
}

// judgeJob says that a Job is healthy when it is complete. A Job that failed never
// recovers.
func judgeJob(ref object.Ref, live *unstructured.Unstructured) verdict {
	switch end, message := jobEnd(live); end {
	case jobComplete:
		return verdict{}
	case jobFailed:
		return verdict{fatal: fmt.Sprintf("%s failed: %v", ref, message)}
	default:
		return verdict{lacks: fmt.Sprintf("waiting for %s to be complete", ref)}
	}
}

// How a Job ends, by its conditions.
const jobComplete, jobFailed = "Complete", "Failed"

// jobEnd is how a Job has ended, and what it says; empty of one that has not, and of other kinds.
func jobEnd(live *unstructured.Unstructured) (end string, message any) {
	if object.RefOf(live).GroupKind() != object.JobKind {
		return "", nil
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if kind, _ := condition["type"].(string); ok && condition["status"] == "True" && (kind == jobComplete || kind == jobFailed) {
			return kind, condition["message"]
		}
	}
	return "", nil
}

// judgeDefinition says that a kind whose names another one has never is served.
func judgeDefinition(ref object.Ref, live *unstructured.Unstructured) verdict {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "NamesAccepted" && condition["status"] == "False" {
			return verdict{fatal: fmt.Sprintf("%s defines names that another CustomResourceDefinition has: %v; delete one of the two", ref, condition["message"])}
		}
	}
	return judgeStatus(ref, live)
}

// classKind is the kind that says when claims are bound.
var classKind = schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}

// Public is what an account may learn of an object that it must not read, nil if that is nothing:
// of a StorageClass that it exists and when claims of it are bound, which the events of a claim say
// as well.
func Public(ref object.Ref) func(u *unstructured.Unstructured) *unstructured.Unstructured {
	if ref.GroupVersionKind != classKind {
		return nil
	}
	return func(u *unstructured.Unstructured) *unstructured.Unstructured {
		only := &unstructured.Unstructured{Object: map[string]any{"volumeBindingMode": u.Object["volumeBindingMode"]}}
		only.SetGroupVersionKind(ref.GroupVersionKind)
		only.SetName(ref.Name)
		return only
	}
}

// judgeClaim says that a claim which is bound only once a Pod uses it is healthy before:
// the Pod may be of a later step.
func (s *Snapshot) judgeClaim(ref object.Ref, live *unstructured.Unstructured, needs *Needs) verdict {
	v := judgeStatus(ref, live)
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	class, _, _ := unstructured.NestedString(live.Object, "spec", "storageClassName")
	if v.lacks == "" || phase != "Pending" || class == "" {
		return v
	}
	of := object.Ref{GroupVersionKind: classKind, Name: class}
	u, read := s.Objects[of]
	why, forbidden := s.Forbidden[of]
	switch {
	case forbidden:
		return verdict{lacks: v.lacks + "; " + why}
	case !read:
		needs.object(of)
		return v
	case u == nil:
		return verdict{lacks: fmt.Sprintf("waiting for %s: StorageClass %s not found", ref, class)}
	case u.Object["volumeBindingMode"] == "WaitForFirstConsumer":
		return verdict{}
	default:
		return v
	}
}

// judgeService accepts externalIPs in place of a load balancer.
func judgeService(ref object.Ref, live *unstructured.Unstructured) verdict {
	if external, _, _ := unstructured.NestedSlice(live.Object, "spec", "externalIPs"); len(external) > 0 {
		return verdict{}
	}
	return judgeStatus(ref, live)
}

// judgeStatus asks kstatus. What has failed there may still recover, as a Deployment
// does after its progress deadline.
func judgeStatus(ref object.Ref, live *unstructured.Unstructured) verdict {
	report := health.Of(live, ref.GroupVersionKind)
	if report.Health == rollout.Healthy {
		return verdict{}
	}
	return verdict{lacks: fmt.Sprintf("waiting for %s: %s", ref, report.Reason)}
}

// judgeInstance says that a child is healthy when its spec is applied and no plan is
// running. If its plan failed for good, so has the parent's step.
func judgeInstance(ref object.Ref, live *unstructured.Unstructured) verdict {
	child := &v1beta1.Instance{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, child); err != nil {
		return verdict{lacks: fmt.Sprintf("waiting for %s: it cannot be decoded", ref)}
	}
	status := &child.Status
	applied := status.LastAppliedInstanceSpec != nil && choice.SameTarget(child.Namespace, status.LastAppliedInstanceSpec, &child.Spec)
	switch {
	case status.ObservedGeneration != child.Generation:
		return verdict{lacks: fmt.Sprintf("waiting for %s to be observed", ref)}
	case status.AggregatedStatus.Status == v1beta1.FatalError && isRetried(child):
		return verdict{lacks: fmt.Sprintf("waiting for %s to retry plan %s", ref, executionPlan(status))}
	case status.AggregatedStatus.Status == v1beta1.FatalError:
		return verdict{fatal: fmt.Sprintf("plan %s of %s failed: %s", executionPlan(status), ref, status.WaitingFor)}
	case status.AggregatedStatus.ActivePlan == "" && applied:
		return verdict{}
	default:
		return verdict{lacks: fmt.Sprintf("waiting for plan %s of %s: %s", executionPlan(status), ref, status.WaitingFor)}
	}
}

func executionPlan(s *v1beta1.InstanceStatus) string {
	if s.Execution == nil {
		return v1beta1.DeployPlan
	}
	return s.Execution.Plan
}

// GroupKind is the kind of the group that a zone belongs to.
var GroupKind = schema.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "RolloutGroup"}

// judgeGroup says that a StatefulSet which is a zone of a group is healthy when the
// group has rolled it to its revision. Without the zones ring there are no groups.
func (s *Snapshot) judgeGroup(ref object.Ref, live *unstructured.Unstructured, needs *Needs) verdict {
	name := vocabulary.GroupOf(live.GetLabels(), live.GetAnnotations())
	scope, asked := s.Kinds[GroupKind]
	switch {
	case name == "":
		return verdict{}
	case !asked:
		needs.kind(GroupKind)
		return verdict{}
	case scope == object.NoSuchKind:
		return verdict{}
	}
	group := object.Ref{GroupVersionKind: GroupKind, Namespace: ref.Namespace, Name: name}
	u, read := s.Objects[group]
	why, forbidden := s.Forbidden[group]
	switch {
	case forbidden:
		return verdict{lacks: why}
	case !read:
		needs.object(group)
		return verdict{}
	case u == nil:
		return verdict{lacks: fmt.Sprintf("waiting for RolloutGroup %s: not found", name)}
	default:
		return judgeZone(ref, live, u)
	}
}

func judgeZone(ref object.Ref, live, u *unstructured.Unstructured) verdict {
	group := &v1alpha1.RolloutGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, group); err != nil {
		return verdict{lacks: fmt.Sprintf("waiting for RolloutGroup %s: it cannot be decoded", u.GetName())}
	}
	revision, _, _ := unstructured.NestedString(live.Object, "status", "updateRevision")
	for _, zone := range group.Status.Zones {
		if zone.Name == ref.Name && zone.Target == revision && zone.Revision == revision && zone.State == "Complete" {
			return verdict{}
		}
	}
	why := group.Status.WaitingFor
	if why == "" {
		why = ref.Name + " not rolled yet"
	}
	return verdict{lacks: fmt.Sprintf("waiting for RolloutGroup %s: %s", group.Name, why)}
}
