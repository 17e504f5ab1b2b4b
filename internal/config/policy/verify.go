package policy

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/ring"
)

var (
	errLimit = errors.New(`must be a number of at least 1 such as "2", or a percentage from 1% to 100% such as "25%"`)
	errBoth  = errors.New("a stage has either a selector or a number of workloads")
	errOrder = errors.New("stages with workloads must come before the others")
)

// verify finds what the API server refuses: a manifest may not have been there yet.
func (p *Policy) verify(spec *v1alpha1.ConfigPolicySpec) {
	p.limit("spec.maxUnavailable", spec.MaxUnavailable)
	others := false
	for i := range spec.Stages {
		s, field := &spec.Stages[i], fmt.Sprintf("spec.stages[%d]", i)
		p.limit(field+".maxUnavailable", s.MaxUnavailable)
		p.limit(field+".workloads", s.Workloads)
		switch {
		case s.Workloads == nil:
			others = true
		case s.Selector != nil:
			p.invalid(field, errBoth)
		case others:
			p.invalid(field, errOrder)
		}
	}
}

func (p *Policy) limit(field string, v *intstr.IntOrString) {
	if l := ring.LimitOf(v); l.Set && (l.Value < 1 || l.Percent && l.Value > 100) {
		p.invalid(field, errLimit)
	}
}
