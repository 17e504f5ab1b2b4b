package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/window"
	"github.com/spillway-dev/spillway/rollout"
)

// The kinds.
const (
	Kind        = "ConfigPolicy"
	ClusterKind = "ClusterConfigPolicy"
)

// Policy is a policy as it was read.
type Policy struct {
	// Kind, Namespace and Name identify it; the Namespace of a ClusterConfigPolicy is empty.
	Kind, Namespace, Name string
	// Stages are those of the spec, and a last one for workloads that are in none of them.
	Stages []Stage
	// NamespaceStages are the same of namespaces, none if each of them is for itself.
	NamespaceStages []NamespaceStage
	// OnFailure is what happens once too many workloads of a stage have failed.
	OnFailure rollout.OnFailure
	// RollsBack is true if workloads that have failed get their previous config back.
	RollsBack bool
	// Pins is true if each revision of the workloads is to keep its config.
	Pins bool
	// Tracks is true if its workloads are rolled when their config changes.
	Tracks bool
	// Pause is the wish of a user that nothing is rolled, nil if there is none.
	Pause *rollout.Pause
	// Problem is why the policy is not valid, empty if it is; Field is what is wrong:
	// "spec.selector".
	Problem, Field string

	object     client.Object
	priority   int32
	namespaces []string
	selector   labels.Selector
	objects    []v1alpha1.ConfigReference
	windows    []window.Window
	// tolerant is true if a failure may not be the end of a release.
	tolerant bool
}

// Stage is a stage of a policy.
type Stage struct {
	Name string
	// Size is how many workloads belong to it, whatever their labels; not set if that
	// depends on these.
	Size rollout.Limit
	// MaxUnavailable and MaxFailures are as in package rollout.
	MaxUnavailable, MaxFailures rollout.Limit
	Soak                        time.Duration
	Gates                       []v1alpha1.StageGate

	selector labels.Selector
}

// Called names the policy in sentences about what it is for.
func (p *Policy) Called() string { return p.Kind + " " + p.Name }

// String names the policy wherever it is talked about.
func (p *Policy) String() string { return NameOf(p.Ref()) }

// Ref refers to the policy.
func (p *Policy) Ref() rollout.Ref {
	return rollout.Ref{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
}

// NameOf is a policy as [Policy.String] has it.
func NameOf(p rollout.Ref) string {
	if p.Namespace == "" {
		return p.Kind + " " + p.Name
	}
	return p.Kind + " " + p.Namespace + "/" + p.Name
}

// Block keeps everything that the policy is for as it is, nil if it does not.
func (p *Policy) Block(now time.Time) *rollout.Block {
	switch {
	case p.Problem != "":
		return &rollout.Block{Reason: ReasonInvalid, Message: p.Problem}
	case len(p.windows) == 0:
		return nil
	}
	open, opens := window.Opening(p.windows, now)
	if open {
		return nil
	}
	return &rollout.Block{Reason: ReasonWindow, Message: "the next maintenance window opens on " + rollout.Clock(opens), Until: opens}
}

// Tolerates is true if what has failed for one workload may be rolled for others.
func (p *Policy) Tolerates() bool { return p != nil && p.tolerant && p.Problem == "" }

// Soaks is true if workloads of some stage must stay ready for some time.
func (p *Policy) Soaks() bool {
	return slices.ContainsFunc(p.Stages, func(s Stage) bool { return s.Soak > 0 }) || p.SoaksNamespaces()
}

// Covers is true if the policy is for a workload and an object.
func (p *Policy) Covers(namespace string, of labels.Set, o content.Object) bool {
	if p.Namespace != "" && p.Namespace != namespace || len(p.namespaces) > 0 && !slices.Contains(p.namespaces, namespace) {
		return false
	}
	named := len(p.objects) == 0 || slices.ContainsFunc(p.objects, func(r v1alpha1.ConfigReference) bool {
		return (r.Kind == "" || r.Kind == string(o.Kind)) && (r.Name == "" || r.Name == o.Name)
	})
	return named && p.selector.Matches(of)
}

// Selected is the place of the stage of a workload that has no place in one of the first. It is
// that of the last stage if none selects it.
func (p *Policy) Selected(of labels.Set) int { return p.stageOf(of) }

// Set are all policies, in the order in which they count.
type Set []*Policy

// For is the policy for a workload of a namespace and an object, nil if there is none.
func (s Set) For(namespace string, of labels.Set, o content.Object) *Policy {
	for _, p := range s {
		if p.Covers(namespace, of, o) {
			return p
		}
	}
	return nil
}

// Pinning is the first policy by which a workload of a namespace that uses some objects keeps
// its config, nil if there is none.
func (s Set) Pinning(namespace string, of labels.Set, uses []content.Reference) *Policy {
	if !slices.ContainsFunc(s, func(p *Policy) bool { return p.Pins }) {
		return nil
	}
	for i := range uses {
		if uses[i].Extra { // it is not pinned
			continue
		}
		if p := s.For(namespace, of, uses[i].Object); p != nil && p.Pins {
			return p
		}
	}
	return nil
}

// Tracking is the first policy that tracks a workload, nil if there is none. One that is not valid tracks none.
func (s Set) Tracking(obj client.Object) *Policy {
	for _, p := range s {
		if p.tracksIn(obj.GetNamespace()) && p.selector.Matches(labels.Set(obj.GetLabels())) {
			return p
		}
	}
	return nil
}

// Tracks is true if some policy tracks workloads.
func (s Set) Tracks() bool { return slices.ContainsFunc(s, func(p *Policy) bool { return p.Tracks }) }

// TracksSince is when it was written that the policy tracks workloads, or when the policy was created
// if that is not known.
func (p *Policy) TracksSince() time.Time { return kube.WrittenAt(p.object, "track") }

func (p *Policy) tracksIn(namespace string) bool {
	named := p.Namespace == namespace || slices.Contains(p.namespaces, namespace)
	all := p.Namespace == "" && len(p.namespaces) == 0 && !strings.HasPrefix(namespace, "kube-")
	return p.Tracks && p.Problem == "" && (named || all)
}

// Compare is the order in which policies count.
func Compare(a, b *Policy) int {
	return cmp.Or(ring.FalseFirst(a.Kind == ClusterKind, b.Kind == ClusterKind), cmp.Compare(b.priority, a.priority),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Read reads a policy. What is wrong with it is its Problem.
func Read(obj client.Object) *Policy {
	p := &Policy{Name: obj.GetName(), Namespace: obj.GetNamespace(), object: obj}
	var spec *v1alpha1.ConfigPolicySpec
	var stages []v1alpha1.ConfigNamespaceStage
	switch o := obj.(type) {
	case *v1alpha1.ConfigPolicy:
		p.Kind, spec = Kind, &o.Spec
	case *v1alpha1.ClusterConfigPolicy:
		p.Kind, p.Namespace, p.namespaces, spec = ClusterKind, "", o.Spec.Namespaces, &o.Spec.ConfigPolicySpec
		stages = o.Spec.NamespaceStages
	default:
		return nil
	}
	p.priority, p.objects, p.OnFailure = spec.Priority, spec.Objects, rollout.Stop
	if spec.OnFailure == v1alpha1.ContinueConfig {
		p.OnFailure = rollout.Continue
	}
	p.RollsBack, p.Pins = spec.OnFailure == v1alpha1.RollbackConfig, spec.PinConfig
	p.Tracks = spec.Track
	p.Pause = ring.PauseOf(spec.Pause)
	p.selector = p.parse("spec.selector", spec.Selector)
	p.verify(spec)
	p.readStages(spec)
	p.readNamespaceStages(spec, stages)
	p.readWindows(spec)
	return p
}

func (p *Policy) readStages(spec *v1alpha1.ConfigPolicySpec) {
	for i := range spec.Stages {
		s := &spec.Stages[i]
		p.addStage(spec, s, fmt.Sprintf("spec.stages[%d].selector", i))
	}
	rest := v1alpha1.ConfigStage{Name: "all"}
	if len(spec.Stages) > 0 {
		rest.Name = nameOfRest(len(spec.Stages), func(i int) string { return spec.Stages[i].Name })
	}
	if n := len(spec.Stages); n == 0 || spec.Stages[n-1].Selector != nil || spec.Stages[n-1].Workloads != nil {
		p.addStage(spec, &rest, "")
	}
	p.tolerant = p.OnFailure == rollout.Continue || slices.ContainsFunc(p.Stages, func(s Stage) bool { return s.MaxFailures.Value > 0 })
}

// nameOfRest is the name of a last stage after n others.
func nameOfRest(n int, nameOf func(i int) string) string {
	rest, names := "others", make([]string, n)
	for i := range names {
		names[i] = nameOf(i)
	}
	for slices.Contains(names, rest) {
		rest += "-too"
	}
	return rest
}

func (p *Policy) addStage(spec *v1alpha1.ConfigPolicySpec, s *v1alpha1.ConfigStage, field string) {
	stage := Stage{
		Name: s.Name, Size: ring.LimitOf(s.Workloads), MaxUnavailable: ring.LimitOf(cmp.Or(s.MaxUnavailable, spec.MaxUnavailable)),
		MaxFailures: ring.LimitOf(cmp.Or(s.MaxFailures, spec.MaxFailures)), selector: p.parse(field, s.Selector),
	}
	if soak := cmp.Or(s.Soak, spec.Soak); soak != nil {
		stage.Soak = soak.Duration
	}
	if p.Kind == Kind {
		stage.Gates = s.Gates
	}
	p.Stages = append(p.Stages, stage)
}

// parse reads a selector; one that is not set selects all, and so does an invalid one, so that
// what it was meant for is kept as it is.
func (p *Policy) parse(field string, s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		p.invalid(field, err)
		return labels.Everything()
	}
	return selector
}

func (p *Policy) readWindows(spec *v1alpha1.ConfigPolicySpec) {
	for i := range spec.MaintenanceWindows {
		w := &spec.MaintenanceWindows[i]
		parsed, err := window.Parse(w.Schedule, time.Duration(w.DurationSeconds)*time.Second, w.TimeZone)
		if err != nil {
			p.invalid(fmt.Sprintf("spec.maintenanceWindows[%d]", i), err)
			continue
		}
		p.windows = append(p.windows, parsed)
	}
}

// invalid notes the first problem.
func (p *Policy) invalid(field string, err error) {
	if p.Problem == "" {
		p.Field = field
		p.Problem = fmt.Sprintf("its spec is not valid: %s: %v", strings.TrimPrefix(field, "spec."), err)
	}
}
