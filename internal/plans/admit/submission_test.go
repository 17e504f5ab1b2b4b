package admit

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// package1 is a version with all that a submission can meet; package2 is the next one.
const package1 = `
parameters:
- {name: NODES, default: "3", value-type: integer}
- {name: COLOR, trigger: paint}
- {name: SIZE, trigger: resize}
- {name: LOST, trigger: missing}
- {name: FIXED, default: f, immutable: true}
- {name: OLD, default: o}
plans: {deploy: {}, update: {}, upgrade: {}, paint: {}, resize: {}, cleanup: {}}
`

const package2 = `
parameters:
- {name: NODES, default: "3", value-type: integer}
- {name: FIXED, default: f2, immutable: true}
plans: {deploy: {}, update: {}, upgrade: {}, cleanup: {}}
`

func versionSpec(t *testing.T, text string) *v1beta1.OperatorVersionSpec {
	t.Helper()
	spec := &v1beta1.OperatorVersionSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// specOf reads "app-1 NODES=4 COLOR=red".
func specOf(text string) *v1beta1.InstanceSpec {
	words := strings.Fields(text)
	spec := &v1beta1.InstanceSpec{Parameters: map[string]string{}}
	spec.OperatorVersion.Name = words[0]
	for _, pair := range words[1:] {
		name, value, _ := strings.Cut(pair, "=")
		spec.Parameters[name] = value
	}
	return spec
}

// submitted returns the update of an Instance from spec before to spec now. Without
// before the Instance is new; before was applied, unless the status says otherwise.
func submitted(t *testing.T, before, now string, change ...func(*v1beta1.Instance)) submission {
	t.Helper()
	s := submission{versions: map[types.NamespacedName]*choice.Version{}}
	for name, text := range map[string]string{"app-1": package1, "app-2": package2} {
		ov := &v1beta1.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: *versionSpec(t, text)}
		s.versions[types.NamespacedName{Namespace: "shop", Name: name}] = choice.NewVersion(ov)
	}
	instance := func(text string) *v1beta1.Instance {
		i := &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: *specOf(text)}
		if before == "" {
			return i
		}
		i.Status.LastAppliedInstanceSpec = specOf(before)
		i.Status.ImmutableParameters = choice.Immutables(s.versions[types.NamespacedName{Namespace: "shop", Name: "app-1"}].Spec, i.Status.LastAppliedInstanceSpec.Parameters, nil)
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
	const unknown = "spec.parameters.NODE: is not a parameter of OperatorVersion app-1; remove it"
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
		"two mistakes":                               {"app-1", "app-1 NODE=4 FIXED=x", nil, unknown + "; spec.parameters.FIXED: is immutable; revert the change"},
		"a mistake of before":                        {"app-1 NODE=4", "app-1 NODE=4 NODES=4", applied("app-1"), ""},
		"a mistake of before, and another":           {"app-1 NODE=4", "app-1 NODE=4 FIXED=x", applied("app-1"), "spec.parameters.FIXED: is immutable; revert the change"},
		"one of two mistakes is fixed":               {"app-1 NODE=4 LODE=4", "app-1 NODE=4", applied("app-1"), ""},
		"a mistake is fixed":                         {"app-1 NODE=4", "app-1", applied("app-1"), ""},
		"to an OperatorVersion that does not exist":  {"app-1", "app-9", nil, ""},
		"from one that no longer exists":             {"app-9 OLD=o", "app-1 OLD=o", nil, ""},
		"to one that has no plan for it":             {"app-1", "app-1 LOST=x", nil, "spec.parameters.LOST: triggers plan missing, which OperatorVersion app-1 does not have; revert the change"},
		"what KUDO has applied":                      {"app-1", "app-1 FIXED=x", ran, "spec.parameters.FIXED: is immutable; revert the change"},
		"what a plan that is superseded has touched": {"app-1 COLOR=red", "app-1 SIZE=9", func(i *v1beta1.Instance) { applied("app-1")(i); running("app-1 COLOR=red")(i) }, "spec.parameters.SIZE: triggers plan resize, but COLOR has changed too and triggers plan paint; revert one of them until the plan for the other has run"},
	} {
		t.Run(name, func(t *testing.T) {
			change := []func(*v1beta1.Instance){}
			if test.status != nil {
				change = append(change, test.status)
			}
			s := submitted(t, test.before, test.now, change...)
			if got := choice.Sentences(s.problems()); got != test.want {
				t.Errorf("it says %q, not %q", got, test.want)
			}
		})
	}
}

// TestSubmittedWishes checks that a requested plan must exist, and that a request of
// before is no longer validated.
func TestSubmittedWishes(t *testing.T) {
	for name, test := range map[string]struct{ before, now, want string }{
		"one that exists":       {"", "paint", ""},
		"one that does not":     {"", "pant", "spec.planExecution.planName: OperatorVersion app-1 has no plan pant; name a plan that it has"},
		"cleanup":               {"", "cleanup", "spec.planExecution.planName: plan cleanup runs when the Instance is deleted; name another plan"},
		"the same as before":    {"pant", "pant", ""},
		"none any more":         {"pant", "", ""},
		"another than it was":   {"paint", "pant", "spec.planExecution.planName: OperatorVersion app-1 has no plan pant; name a plan that it has"},
		"one instead of a typo": {"pant", "paint", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := submitted(t, "app-1", "app-1")
			s.before.Spec.PlanExecution.PlanName, s.now.Spec.PlanExecution.PlanName = test.before, test.now
			if got := choice.Sentences(s.problems()); got != test.want {
				t.Errorf("it says %q, not %q", got, test.want)
			}
		})
	}
}

// TestAnAnnotationOfKUDOCounts checks that the spec in the annotation of KUDO counts as
// applied.
func TestAnAnnotationOfKUDOCounts(t *testing.T) {
	s := submitted(t, "app-1", "app-1 FIXED=x", func(i *v1beta1.Instance) {
		i.Status = v1beta1.InstanceStatus{}
		i.Annotations = map[string]string{vocabulary.LastAppliedInstanceState.Native: `{"operatorVersion":{"name":"app-1"}}`}
	})
	if got := choice.Sentences(s.problems()); got != "spec.parameters.FIXED: is immutable; revert the change" {
		t.Error(got)
	}
}
