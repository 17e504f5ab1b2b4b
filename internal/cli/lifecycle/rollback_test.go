package lifecycle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
)

// What an earlier version of the manager ran, and what was too long, is named and not skipped:
// what comes before it is not the state before.
func TestAnExecutionWithoutItsParametersIsNamed(t *testing.T) {
	spec := func(size string) *v1beta1.InstanceSpec {
		return &v1beta1.InstanceSpec{Parameters: map[string]string{"SIZE": size}}
	}
	past := func(uid string, cause v1beta1.Cause, spec *v1beta1.InstanceSpec) v1beta1.PastExecution {
		return v1beta1.PastExecution{UID: types.UID(uid), Plan: "deploy", Cause: cause, Result: v1beta1.ResultComplete, Advances: spec != nil, Spec: spec}
	}
	failed := past("failed", v1beta1.CauseParameters, spec("9"))
	failed.Result = v1beta1.ResultFailed
	for name, test := range map[string]struct {
		history []v1beta1.PastExecution
		to      string
		says    string
	}{
		"never ran":              {nil, "", "has no earlier execution that applied something else; there is no other one to choose"},
		"an earlier version":     {[]v1beta1.PastExecution{past("b", v1beta1.CauseParameters, nil), past("a", v1beta1.CauseCreate, spec("1"))}, "", "cannot be rolled back to execution b (plan deploy of 0001-01-01 00:00:00, complete), the one before: its parameters are not kept, because it applied no change, an earlier version of the manager ran it, or they are too long; choose from a, which spillway history instance/web -n shop describes, or set them with: spillway package update instance/web -p NAME=VALUE -n shop"},
		"a requested plan":       {[]v1beta1.PastExecution{past("b", v1beta1.CauseRequest, nil)}, "", "has no earlier execution"},
		"what failed":            {[]v1beta1.PastExecution{failed}, "", "has no earlier execution"},
		"named without":          {[]v1beta1.PastExecution{past("b1", v1beta1.CauseParameters, nil)}, "b1", "--to: instance/web cannot be rolled back to execution b1"},
		"named by its beginning": {[]v1beta1.PastExecution{past("b1", v1beta1.CauseParameters, spec("1")), past("b2", v1beta1.CauseParameters, spec("1"))}, "b", "--to: several executions of instance/web begin with \"b\"; choose from b1, b2"},
		"the present one":        {[]v1beta1.PastExecution{past("b", v1beta1.CauseParameters, spec("2"))}, "b", "instance/web already has the OperatorVersion and the parameters of execution b"},
	} {
		t.Run(name, func(t *testing.T) {
			i := &v1beta1.Instance{Spec: *spec("2"), Status: v1beta1.InstanceStatus{History: test.history, LastAppliedInstanceSpec: spec("2")}}
			i.Name, i.Namespace = "web", "shop"
			b := &back{to: test.to, operation: operation{namespace: "shop"}}
			to, err := b.target(t.Context(), i, nil)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%+v, %v", to, err)
			}
		})
	}
}
