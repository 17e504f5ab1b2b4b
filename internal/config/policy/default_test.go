package policy_test

import (
	"testing"

	"github.com/spillway-dev/spillway/internal/config/policy"
)

// TestDefaultWith: what an installation says about the default policy is over what it has.
func TestDefaultWith(t *testing.T) {
	for spec, stages := range map[string]int{"": 2, `{"onFailure":"Rollback"}`: 2, "{stages: [{name: all}], soak: 5m}": 1} {
		p, err := policy.DefaultWith(spec)
		if err != nil || p.Name != policy.DefaultName || p.Spec.Priority != policy.Default().Spec.Priority || len(p.Spec.Stages) != stages {
			t.Errorf("%s: %+v, %v", spec, p, err)
		}
	}
	p, err := policy.DefaultWith(`{"priority": 5, "onFailure": "Rollback"}`)
	if err != nil || p.Spec.Priority != 5 || p.Spec.OnFailure != "Rollback" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, wrong := range []string{"{stage: []}", "stages", "{stages: none}"} {
		if _, err := policy.DefaultWith(wrong); err == nil {
			t.Errorf("%s is no mistake", wrong)
		}
	}
}
