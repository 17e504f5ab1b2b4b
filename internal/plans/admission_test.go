package plans

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// submitted is an Instance whose spec was before and is to be now. Without before
// it is new; what is there before was applied, unless the status says otherwise.
func submitted(t *testing.T, before, now string, change ...func(*v1beta1.Instance)) submission {
	t.Helper()
	s := submission{versions: map[types.NamespacedName]*Version{}}
	for name, text := range map[string]string{"app-1": package1, "app-2": package2} {
		ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: *versionSpec(t, text)}
		s.versions[types.NamespacedName{Namespace: "shop", Name: name}] = newVersion(ov)
	}
	instance := func(text string) *v1beta1.Instance {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: *specOf(text)}
		if before == "" {
			return i
		}
		i.Status.LastAppliedInstanceSpec = specOf(before)
		i.Status.ImmutableParameters = immutables(s.versions[types.NamespacedName{Namespace: "shop", Name: "app-1"}].Spec, i.Status.LastAppliedInstanceSpec.Parameters, nil)
		for _, c := range change {
			c(i)
		}
		return i
	}
	s.now = instance(now)
	if before != "" {
		s.before = instance(before)
	}
	return s
}

// TestSubmissions has what is said of a change besides what [TestChoose] has:
// whom it is said to, and what is left to the controller.
func TestSubmissions(t *testing.T) {
	const unknown = "spec.parameters.NODE: is no parameter of OperatorVersion app-1; remove it"
	applied := func(text string) func(*v1beta1.Instance) {
		return func(i *v1beta1.Instance) { i.Status.LastAppliedInstanceSpec = specOf(text) }
	}
	ran := func(i *v1beta1.Instance) {
		i.Status = v1beta1.InstanceStatus{PlanStatus: map[string]v1beta1.PlanStatus{"deploy": {Status: v1beta1.Complete}}}
	}
	running := func(text string) func(*v1beta1.Instance) {
		return func(i *v1beta1.Instance) {
			i.Status.Execution = &v1beta1.Execution{UID: "u", Plan: "deploy", Spec: *specOf(text), Advances: true, Touched: true}
		}
	}
	for name, test := range map[string]struct {
		before, now string
		status      func(*v1beta1.Instance)
		want        string
	}{
		"created":                                    {"", "app-1 NODES=4", nil, ""},
		"created with a mistake":                     {"", "app-1 NODE=4", nil, unknown},
		"created before its OperatorVersion":         {"", "app-9 NODE=4", nil, ""},
		"changed":                                    {"app-1", "app-1 NODES=4", nil, ""},
		"changed by mistake":                         {"app-1", "app-1 NODE=4", nil, unknown},
		"two mistakes":                               {"app-1", "app-1 NODE=4 FIXED=x", nil, unknown + "; spec.parameters.FIXED: is immutable; set it back to what it was"},
		"a mistake that was there":                   {"app-1 NODE=4", "app-1 NODE=4 NODES=4", applied("app-1"), ""},
		"a mistake that was there, and another":      {"app-1 NODE=4", "app-1 NODE=4 FIXED=x", applied("app-1"), "spec.parameters.FIXED: is immutable; set it back to what it was"},
		"one of two mistakes is fixed":               {"app-1 NODE=4 LODE=4", "app-1 NODE=4", applied("app-1"), ""},
		"a mistake is fixed":                         {"app-1 NODE=4", "app-1", applied("app-1"), ""},
		"to an OperatorVersion that is not there":    {"app-1", "app-9", nil, ""},
		"from one that is not there any more":        {"app-9 OLD=o", "app-1 OLD=o", nil, ""},
		"to one that has no plan for it":             {"app-1", "app-1 LOST=x", nil, "spec.parameters.LOST: triggers plan missing, which OperatorVersion app-1 does not have; set it back"},
		"what the predecessor has applied":           {"app-1", "app-1 FIXED=x", ran, "spec.parameters.FIXED: is immutable; set it back to what it was"},
		"what a plan that is superseded has touched": {"app-1 COLOR=red", "app-1 SIZE=9", func(i *v1beta1.Instance) { applied("app-1")(i); running("app-1 COLOR=red")(i) }, "spec.parameters.SIZE: triggers plan resize, and COLOR, which has changed as well, plan paint; set one of them back until the plan for the other has run"},
	} {
		t.Run(name, func(t *testing.T) {
			change := []func(*v1beta1.Instance){}
			if test.status != nil {
				change = append(change, test.status)
			}
			s := submitted(t, test.before, test.now, change...)
			if got := sentences(s.problems()); got != test.want {
				t.Errorf("it says %q, not %q", got, test.want)
			}
		})
	}
}

// TestSubmittedWishes: a plan that is asked for has to be there; what was asked for
// before is no longer judged.
func TestSubmittedWishes(t *testing.T) {
	for name, test := range map[string]struct{ before, now, want string }{
		"one that is there":     {"", "paint", ""},
		"one that is not":       {"", "pant", "spec.planExecution.planName: OperatorVersion app-1 has no plan pant; name one that it has"},
		"cleanup":               {"", "cleanup", "spec.planExecution.planName: plan cleanup runs when the Instance is deleted; name another one"},
		"the same as before":    {"pant", "pant", ""},
		"none any more":         {"pant", "", ""},
		"another than it was":   {"paint", "pant", "spec.planExecution.planName: OperatorVersion app-1 has no plan pant; name one that it has"},
		"one instead of a typo": {"pant", "paint", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := submitted(t, "app-1", "app-1")
			s.before.Spec.PlanExecution.PlanName, s.now.Spec.PlanExecution.PlanName = test.before, test.now
			if got := sentences(s.problems()); got != test.want {
				t.Errorf("it says %q, not %q", got, test.want)
			}
		})
	}
}

// TestAnAnnotationOfThePredecessorCounts: what old versions noted was applied.
func TestAnAnnotationOfThePredecessorCounts(t *testing.T) {
	s := submitted(t, "app-1", "app-1 FIXED=x", func(i *v1beta1.Instance) {
		i.Status = v1beta1.InstanceStatus{}
		i.Annotations = map[string]string{vocabulary.LastAppliedInstanceState.Native: `{"operatorVersion":{"name":"app-1"}}`}
	})
	if got := sentences(s.problems()); got != "spec.parameters.FIXED: is immutable; set it back to what it was" {
		t.Error(got)
	}
}
