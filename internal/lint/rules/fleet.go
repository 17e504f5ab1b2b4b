package rules

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/agent"
	"github.com/spillway-dev/spillway/internal/fleet/binding"
	"github.com/spillway-dev/spillway/internal/fleet/fluxspec"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/lint/manifest"
	"github.com/spillway-dev/spillway/internal/lint/report"
	"github.com/spillway-dev/spillway/internal/source"
)

func fleetRules() []rule {
	return []rule{
		{report.Rule{
			Code: "SPW501", Level: report.Error, Title: "A module or a ClusterBudget has an invalid setting",
			Why:    "The module, or each that shares the budget, stalls: nothing is assigned to clusters or removed from them.",
			Action: "Correct the field that is named.",
		}, moduleSpecs},
		{report.Rule{
			Code: "SPW502", Level: report.Warning, Title: "A stage that selects no cluster",
			Why:    "The stage is skipped immediately, with its soak, so that a canary without clusters protects no other stage.",
			Action: "Fix the selector of the stage, or the labels of the clusters.",
		}, emptyStages},
		{report.Rule{
			Code: "SPW503", Level: report.Error, Title: "Stages that leave no cluster for later ones",
			Why:    "Once stages include all clusters, a later one has none.",
			Action: "Give earlier stages fewer clusters or a selector, or remove the later ones.",
		}, greedyStages},
		{report.Rule{
			Code: "SPW504", Level: report.Warning, Title: "Settings of a rollout that its strategy ignores",
			Why:    "With the strategy Replace, which is the default, all clusters get a revision at the same time: there are no stages, gates or budgets.",
			Action: "Set spec.strategy to Incremental, or remove them.",
		}, idleRollout},
		{report.Rule{
			Code: "SPW505", Level: report.Warning, Title: "A RolloutGate that no rollout waits for",
			Why:    "The manager creates gates, one for each revision. A gate that no rollout names is ignored.",
			Action: "Delete it, and name the gate where the rollout names its gates.",
		}, idleGates},
		{report.Rule{
			Code: "SPW506", Level: report.Note, Title: "Gates that no Role among the manifests permits to pass",
			Why:    "Passing a gate requires the permission to update or patch rolloutgates/status.",
			Action: "Grant it to the users who decide, or make sure that a user has it.",
		}, impassableGates},
		{report.Rule{
			Code: "SPW507", Level: report.Error, Title: "A binding that cannot be evaluated",
			Why:    "Clusters wait for the value of each binding before they are assigned a revision.",
			Action: "Correct the binding.",
		}, badBindings},
		{report.Rule{
			Code: "SPW508", Level: report.Error, Title: "A window of a module that is invalid, or never opens",
			Why:    "Outside of its windows no cluster is assigned a new revision.",
			Action: "Correct the schedule or the time zone.",
		}, moduleWindows},
		{report.Rule{
			Code: "SPW509", Level: report.Warning, Title: "A module for no cluster",
			Why:    "Without a selector a module is for no cluster, and not ready; an empty selector, {}, is for all.",
			Action: "Set spec.selector, or fix the labels of the clusters; if the module may be for no cluster, set spec.allowEmpty.",
		}, homeless},
		{report.Rule{
			Code: "SPW510", Level: report.Error, Title: "A budget of a module that allows no update",
			Why:    "With no cluster allowed to be unready, or none in a stage, nothing could be assigned. The API server refuses it.",
			Action: "Set it to 1 or more, or to a percentage.",
		}, zeroBudgets},
		{report.Rule{
			Code: "SPW514", Level: report.Warning, Title: "A ClusterBudget that no module shares",
			Why:    "It is a budget of the modules of its own namespace that spec.modules selects and that the hub rolls out. Without one it has no effect.",
			Action: "Fix spec.modules, or the labels or the namespace of the modules.",
		}, idleBudgets},
	}
}

const moduleWindow = "spec.rollout.windows"

func moduleSpecs(m *manifest.Manifests, r *reporter) {
	moduleProblems(m, r, func(field string) bool { return !strings.HasPrefix(field, moduleWindow) })
	manifest.Each(m, func(o *manifest.Object, b *spillway.ClusterBudget) {
		for _, problem := range decision.BudgetProblems(&b.Spec) {
			field, _, _ := strings.Cut(problem, ":")
			r.findf(o, manifest.Fields(field), "%s", problem)
		}
	})
}

func moduleWindows(m *manifest.Manifests, r *reporter) {
	moduleProblems(m, r, func(field string) bool { return strings.HasPrefix(field, moduleWindow) })
}

func moduleProblems(m *manifest.Manifests, r *reporter, wanted func(string) bool) {
	modules(m, func(o *manifest.Object, _ *v1alpha1.ModuleSpec) {
		for _, problem := range decision.Problems(o.Typed, m.Now) {
			field, _, _ := strings.Cut(problem, ":")
			if wanted(field) {
				r.findf(o, manifest.Fields(field), "%s", problem)
			}
		}
	})
}

// ofFlux says of a field that a sync does not have, and a kind of Flux does, where it goes.
func ofFlux(o *manifest.Object, e *source.Error) *source.Error {
	spec, field, isInSync := strings.Cut(e.Field, "sync.")
	place := fluxspec.Place(field[strings.LastIndexByte(field, '.')+1:])
	if !isInSync || place == "" || o.Object.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
		return e
	}
	better := *e
	better.Action = "it is a field of Flux: say it in " + spec + "sync." + place
	return &better
}

// emptyStages asks the ring which clusters a stage has, where there are any to be
// seen; where there are none, it finds stages that no cluster could be in.
func emptyStages(m *manifest.Manifests, r *reporter) {
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		if !isStaged(spec) {
			return
		}
		clusters := clustersIn(m, o.Namespace())
		stages, _ := decision.StagesOf(o.Typed, clusters)
		total := 0
		for i := range stages {
			total += len(stages[i].Clusters)
		}
		for i := range spec.Rollout.Stages {
			stage := &spec.Rollout.Stages[i]
			switch key := contradiction(spec.Selector, stage.Selector); {
			case key != "":
				r.findf(o, manifest.Item("spec.rollout.stages", i, "selector"), "stage %s and the module require different values of the label %s", stage.Name, key)
			case total > 0 && i < len(stages) && len(stages[i].Clusters) == 0:
				r.findf(o, manifest.Item("spec.rollout.stages", i), "stage %s has none of the clusters of the module that the manifests show", stage.Name)
			}
		}
	})
}

// contradiction is a label that nothing can have in the way in which both ask for it.
func contradiction(a, b *metav1.LabelSelector) string {
	if a == nil || b == nil {
		return ""
	}
	one, other := allowed(a), allowed(b)
	for _, key := range slices.Sorted(maps.Keys(one)) {
		values, both := other[key]
		if both && !slices.ContainsFunc(values, func(v string) bool { return slices.Contains(one[key], v) }) {
			return key
		}
	}
	return ""
}

// allowed are the values that labels have to have one of.
func allowed(s *metav1.LabelSelector) map[string][]string {
	found := map[string][]string{}
	for key, value := range s.MatchLabels {
		found[key] = []string{value}
	}
	for _, e := range s.MatchExpressions {
		if e.Operator == metav1.LabelSelectorOpIn {
			found[e.Key] = e.Values
		}
	}
	return found
}

// greedyStages adds up the percentages of stages that take from all clusters.
func greedyStages(m *manifest.Manifests, r *reporter) {
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		if !isStaged(spec) {
			return
		}
		taken, by := 0, ""
		for i := range spec.Rollout.Stages {
			stage := &spec.Rollout.Stages[i]
			if by != "" {
				r.findf(o, manifest.Item("spec.rollout.stages", i), "stage %s has no cluster left: stage %s and those before it include all", stage.Name, by)
				continue
			}
			share := shareOf(stage)
			if taken += share; taken > 100 && share < 100 {
				r.findf(o, manifest.Item("spec.rollout.stages", i, "clusters"), "the stages up to %s include %d%% of the clusters", stage.Name, taken)
			}
			if taken >= 100 {
				by = stage.Name
			}
		}
	})
}

// shareOf is the percentage of all clusters that a stage takes, as far as that is
// known: all, if nothing bounds it.
func shareOf(s *v1alpha1.Stage) int {
	everybody := s.Selector == nil || len(s.Selector.MatchLabels)+len(s.Selector.MatchExpressions) == 0
	switch {
	case !everybody:
		return 0
	case s.Clusters == nil:
		return 100
	case s.Clusters.Type == intstr.String:
		n, _ := strconv.Atoi(strings.TrimSuffix(s.Clusters.StrVal, "%"))
		return n
	default:
		return 0
	}
}

// idleRollout finds what only strategies with stages look at.
func idleRollout(m *manifest.Manifests, r *reporter) {
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		if spec.Rollout == nil || isStaged(spec) {
			return
		}
		for _, field := range []string{"stages", "maxUnreadyClusters", "orderBy", "unmatchedClusters"} {
			if manifest.Step(manifest.Step(manifest.Step(o.Object.Object, "spec"), "rollout"), field) != nil {
				r.findf(o, append(manifest.Fields("spec.rollout"), field), "rollout.%s has no effect with the strategy Replace", field)
			}
		}
	})
}

// idleGates finds gates of modules among the manifests that do not name them.
func idleGates(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, gate *spillway.RolloutGate) {
		found := false
		modules(m, func(module *manifest.Object, spec *v1alpha1.ModuleSpec) {
			ref := gate.Spec.TargetRef
			if module.Kind() != ref.Kind || module.Name() != ref.Name || module.Namespace() != gate.Namespace {
				return
			}
			found = true
			if !isStaged(spec) || !hasGate(spec.Rollout, &gate.Spec) {
				r.findf(o, manifest.Fields("spec"), "%s %s has no gate %s of stage %s", ref.Kind, ref.Name, gate.Spec.Gate, gate.Spec.Stage)
			}
		})
		if kind := gate.Spec.TargetRef.Kind; !found && kind != "" && !slices.Contains(gated, kind) { // a kind is required, which another rule says
			r.findf(o, manifest.Fields("spec.targetRef.kind"), "a %s never waits for a gate", kind)
		}
	})
}

// idleBudgets finds budgets that none of the modules among the manifests shares, where there are any.
func idleBudgets(m *manifest.Manifests, r *reporter) {
	manifest.Each(m, func(o *manifest.Object, b *spillway.ClusterBudget) {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Modules)
		if err != nil {
			return
		}
		some, shared := false, b.Spec.Modules == nil
		modules(m, func(module *manifest.Object, spec *v1alpha1.ModuleSpec) {
			isHere := module.Namespace() == b.Namespace && spec.Strategy != v1alpha1.External
			some, shared = some || module.Namespace() == b.Namespace, shared || isHere && selector.Matches(labels.Set(module.Object.GetLabels()))
		})
		if some && !shared {
			r.findf(o, manifest.Fields("spec.modules"), "no module among the manifests has the labels that it selects")
		}
	})
}

// gated are the kinds whose rollouts have gates.
var gated = []string{model.KindModule, model.KindBootstrap, describe.KindGroup, describe.KindPolicy, describe.KindClusterPolicy, describe.KindInstance}

func hasGate(rollout *v1alpha1.Rollout, gate *spillway.RolloutGateSpec) bool {
	return slices.ContainsFunc(rollout.Stages, func(s v1alpha1.Stage) bool {
		return s.Name == gate.Stage && slices.ContainsFunc(s.Gates, func(g v1alpha1.Gate) bool { return g.Name == gate.Gate })
	})
}

// impassableGates checks permissions only where the manifests have some: else they
// are somewhere else.
func impassableGates(m *manifest.Manifests, r *reporter) {
	rules := permissionsIn(m)
	if len(rules) == 0 || slices.ContainsFunc(rules, passesGates) {
		return
	}
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		if !isStaged(spec) {
			return
		}
		for i := range spec.Rollout.Stages {
			if len(spec.Rollout.Stages[i].Gates) > 0 {
				r.findf(o, manifest.Item("spec.rollout.stages", i, "gates"), "no Role among the manifests permits to pass the gates of stage %s", spec.Rollout.Stages[i].Name)
			}
		}
	})
}

// isStaged is true of a module that rolls out in stages.
func isStaged(spec *v1alpha1.ModuleSpec) bool {
	return spec.Rollout != nil && (spec.Strategy == v1alpha1.Incremental || spec.Strategy == v1alpha1.External)
}

func permissionsIn(m *manifest.Manifests) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	manifest.Each(m, func(_ *manifest.Object, role *rbacv1.Role) { rules = append(rules, role.Rules...) })
	manifest.Each(m, func(_ *manifest.Object, role *rbacv1.ClusterRole) { rules = append(rules, role.Rules...) })
	return rules
}

func passesGates(rule rbacv1.PolicyRule) bool {
	return manifest.HasAny(rule.APIGroups, "*", spillway.GroupVersion.Group) && manifest.HasAny(rule.Resources, "*", "rolloutgates/status", "*/status") &&
		manifest.HasAny(rule.Verbs, "*", "update", "patch")
}

func badBindings(m *manifest.Manifests, r *reporter) {
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		bindings, path := spec.ControlPlaneBindings, "spec.controlPlaneBindings"
		if spec.Template != nil {
			bindings, path = spec.Template.Spec.ControlPlaneBindings, "spec.template.spec.controlPlaneBindings"
		}
		result := binding.Evaluate(agent.Bindings(bindings), binding.Values{binding.ClusterName: "cluster"}, nil)
		for _, e := range bindingErrors(result.Err) {
			i := slices.IndexFunc(bindings, func(b v1alpha1.Binding) bool { return b.Name == e.Binding })
			r.findf(o, manifest.Item(path, i), "%s", e)
		}
	})
}

func bindingErrors(err error) []*binding.Error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var found []*binding.Error
	for _, err := range joined.Unwrap() {
		if e, ok := errors.AsType[*binding.Error](err); ok {
			found = append(found, e)
		}
	}
	return found
}

func homeless(m *manifest.Manifests, r *reporter) {
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		clusters := clustersIn(m, o.Namespace())
		stages, unmatched := decision.StagesOf(o.Typed, clusters)
		members := len(unmatched)
		for i := range stages {
			members += len(stages[i].Clusters)
		}
		switch {
		case spec.AllowEmpty:
		case spec.Selector == nil:
			r.findf(o, manifest.Fields("spec"), "no selector is set, so no cluster is selected")
		case len(clusters) > 0 && members == 0:
			r.findf(o, manifest.Fields("spec.selector"), "selects none of the clusters that the manifests show")
		}
	})
}

// clustersIn are those of the fleet in a namespace that the manifests show.
func clustersIn(m *manifest.Manifests, namespace string) []model.Cluster {
	var found []model.Cluster
	for _, o := range m.Objects {
		if manifest.IsFleetCluster(o) && o.Namespace() == namespace {
			found = append(found, model.Cluster{Name: o.Name(), UID: types.UID(o.Name()), Labels: o.Object.GetLabels()})
		}
	}
	return found
}

// zeroBudgets are rules that the schema of the kind has in CEL.
func zeroBudgets(m *manifest.Manifests, r *reporter) {
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		if spec.Rollout == nil {
			return
		}
		check := func(v *intstr.IntOrString, path []string) {
			if v != nil && v.Type == intstr.Int && v.IntVal < 1 {
				r.findf(o, path, "%s is %d", path[len(path)-1], v.IntVal)
			}
		}
		check(spec.Rollout.MaxUnreadyClusters, manifest.Fields("spec.rollout.maxUnreadyClusters"))
		for i := range spec.Rollout.Stages {
			check(spec.Rollout.Stages[i].MaxUnreadyClusters, manifest.Item("spec.rollout.stages", i, "maxUnreadyClusters"))
			check(spec.Rollout.Stages[i].Clusters, manifest.Item("spec.rollout.stages", i, "clusters"))
		}
	})
}

// toleratedFailures says how many clusters of a stage may be unready where some may fail.
func toleratedFailures(m *manifest.Manifests, r *reporter) {
	modules(m, func(o *manifest.Object, spec *v1alpha1.ModuleSpec) {
		for _, t := range decision.Tolerances(o.Typed) {
			path := manifest.Fields("spec.rollout.maxFailures")
			i := slices.IndexFunc(spec.Rollout.Stages, func(s v1alpha1.Stage) bool { return s.Name == t.Stage && s.MaxFailures != nil })
			if i >= 0 {
				path = manifest.Item("spec.rollout.stages", i, "maxFailures")
			}
			r.findf(o, path, "%s", t.Sentence)
		}
	})
}

// modules visits the modules of both kinds.
func modules(m *manifest.Manifests, visit func(*manifest.Object, *v1alpha1.ModuleSpec)) {
	for _, o := range m.Objects {
		switch o.Typed.(type) {
		case *v1alpha1.Module, *v1alpha1.BootstrapModule:
			spec, _ := model.Parts(o.Typed)
			visit(o, spec)
		}
	}
}
