package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
)

// NamespaceStage is a stage of namespaces of a policy.
type NamespaceStage struct {
	Name string
	Soak time.Duration
	// MinEvidence is how many workloads must show that a content is good before the next stage
	// begins.
	MinEvidence int

	selector labels.Selector
}

// StagesNamespaces is true if namespaces get a content one stage after the other.
func (p *Policy) StagesNamespaces() bool { return len(p.NamespaceStages) > 0 }

// StagesNamespaces is true if some policy has stages of namespaces.
func (s Set) StagesNamespaces() bool { return slices.ContainsFunc(s, (*Policy).StagesNamespaces) }

// Spreading is the policy whose stages of namespaces a workload and an object are in, nil if there is none. It is the
// one that would count if the namespace had no policies of its own: its users do not decide when others get what.
func (s Set) Spreading(namespace string, of labels.Set, o content.Object) *Policy {
	if !s.StagesNamespaces() {
		return nil
	}
	i := slices.IndexFunc(s, func(p *Policy) bool { return p.Kind == ClusterKind && p.Covers(namespace, of, o) })
	if i < 0 || !s[i].StagesNamespaces() {
		return nil
	}
	return s[i]
}

// Alone are the policies without stages of namespaces: each namespace is for itself.
func (s Set) Alone() Set {
	alone := make(Set, len(s))
	for i, p := range s {
		of := *p
		of.NamespaceStages = nil
		alone[i] = &of
	}
	return alone
}

// SoaksNamespaces is true if workloads of some stage of namespaces must stay ready for some time.
func (p *Policy) SoaksNamespaces() bool {
	return slices.ContainsFunc(p.NamespaceStages, func(s NamespaceStage) bool { return s.Soak > 0 })
}

// NamespaceStage is the place of the stage of a namespace with some labels.
func (p *Policy) NamespaceStage(of labels.Set) int {
	i := slices.IndexFunc(p.NamespaceStages, func(s NamespaceStage) bool { return s.selector.Matches(of) })
	if i < 0 {
		i = len(p.NamespaceStages) - 1
	}
	return i
}

var (
	errNoObjects = errors.New("namespaceStages are for objects that have the same content in several namespaces: name them in objects")
	errNoLabel   = errors.New("it must select by some label; only the last stage may be without namespaceSelector: it has the namespaces that are in no other stage")
)

// readNamespaceStages reads the stages of namespaces, and adds a last one for those that are in none. No
// stage waits for what the last one shows.
func (p *Policy) readNamespaceStages(spec *v1alpha1.ConfigPolicySpec, stages []v1alpha1.ConfigNamespaceStage) {
	if len(stages) == 0 {
		return
	}
	if len(spec.Objects) == 0 {
		p.invalid("spec.objects", errNoObjects)
	}
	last := len(stages) - 1
	for i := range stages {
		s := &stages[i]
		stage := NamespaceStage{Name: s.Name, MinEvidence: 1}
		field := fmt.Sprintf("spec.namespaceStages[%d].namespaceSelector", i)
		if stage.selector = p.parse(field, s.NamespaceSelector); stage.selector.Empty() && (i < last || s.NamespaceSelector != nil) {
			p.invalid(field, errNoLabel)
		}
		if soak := cmp.Or(s.Soak, spec.Soak); soak != nil {
			stage.Soak = soak.Duration
		}
		switch {
		case s.AllowEmpty:
			stage.MinEvidence = 0
		case s.MinEvidence != nil:
			stage.MinEvidence = int(*s.MinEvidence)
		}
		p.NamespaceStages = append(p.NamespaceStages, stage)
	}
	if !p.NamespaceStages[last].selector.Empty() {
		name := nameOfRest(len(stages), func(i int) string { return stages[i].Name })
		p.NamespaceStages = append(p.NamespaceStages, NamespaceStage{Name: name, selector: labels.Everything()})
		last++
	}
	p.NamespaceStages[last].MinEvidence, p.NamespaceStages[last].Soak = 0, 0
}
