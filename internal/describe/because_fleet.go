package describe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

func (a *asker) fleetOptions() hub.Options {
	return hub.Options{Namespaces: a.Options.Namespaces, Now: a.Options.Now}
}

func keyOf(ref Ref) types.NamespacedName {
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}

// module is a module: its rollout, the stage that it is at, and the cluster there that
// it waits for.
func (a *asker) module(ctx context.Context, ref Ref, _ bool) (answer, error) {
	e, err := hub.Explain(ctx, a.Client, a.fleetOptions(), ref.Kind, keyOf(ref))
	if err != nil {
		return answer{}, err
	}
	link := a.link(ref, e.Reason, "%s", strings.TrimSuffix(e.Sentence, "."))
	link.Ring, link.Phase = manager.RingFleet, rollout.Phase(e.Phase)
	link.Since, link.Until, link.Deadline = e.Since, e.Until, e.Deadline
	m := moduleAnswer{asker: a, ref: ref, e: &e, found: answer{links: []Link{link}, details: e}}
	err = m.goOn(ctx)
	return m.found, err
}

// moduleAnswer is the answer about a module, as it comes together.
type moduleAnswer struct {
	*asker

	ref   Ref
	e     *decision.Explanation
	found answer
}

func (m *moduleAnswer) own() *Link { return &m.found.links[0] }

func (m *moduleAnswer) goOn(ctx context.Context) error {
	hold := m.e.Telling
	switch {
	case m.e.Phase == string(decision.PhaseDeleting):
		return m.deleting(ctx)
	case len(m.e.Problems) > 0:
		m.own().Next = m.kubectl("edit", m.ref)
	case m.e.Phase == string(decision.PhaseRolledBack):
		m.own().Next = m.fleet("history")
		return m.failing(ctx)
	case m.e.Phase == string(rollout.PhaseComplete):
	case hold == nil && len(m.e.Clusters) == 0 && len(m.e.Notes) > 0:
		return m.gateFromStatus(ctx)
	case hold == nil || hold.Reason == decision.ReasonRevision:
		m.found.on = m.manager(m.ref.Namespace)
	case hold.Reason == rollout.ReasonPaused:
		m.paused()
	case hold.Reason == decision.ReasonWindow:
	case hold.Reason == rollout.ReasonGate || hold.Reason == rollout.ReasonGateRefused:
		stage, _ := unitOf(hold)
		return m.gated(ctx, stage)
	default:
		return m.held(ctx, hold)
	}
	return nil
}

// deleting goes to the first cluster that a module on its way out is still assigned to,
// or to the manager that would take it away; and where there is none, to who else keeps
// the module.
func (m *moduleAnswer) deleting(ctx context.Context) error {
	if gone := m.managerGone(ctx, m.ref.Namespace); gone != nil {
		m.found = m.found.and(gone)
		return nil
	}
	all, err := m.assemblages(ctx, Ref{Kind: assemblageKind(m.ref), Namespace: m.ref.Namespace})
	if err != nil {
		return err
	}
	for i := range all {
		if slices.Contains(all[i].syncs, m.ref.Name) {
			m.found.on = m.assigned(m.ref, all[i].cluster)
			return nil
		}
	}
	module := model.New(m.ref.Kind)
	if err := m.get(ctx, m.ref, module); err != nil {
		return err
	}
	m.found = m.kept(m.ref, module, vocabulary.ModuleFinalizer, m.found)
	return nil
}

func (m *moduleAnswer) fleet(verb string, args ...string) string {
	return m.spillway("fleet "+verb, m.ref, args...)
}

func (m *moduleAnswer) paused() {
	m.own().Next = m.fleet("resume")
	if s := m.e.Steered; s != nil {
		m.own().Owner = s.By
	}
}

// gateFromStatus goes on where the caller may not see what was decided from: by what
// the manager has written of the stages.
func (m *moduleAnswer) gateFromStatus(ctx context.Context) error {
	for i := range m.e.Stages {
		if s := m.e.Stages[i].State; s == string(rollout.ReasonGate) || s == string(rollout.ReasonGateRefused) {
			return m.gated(ctx, m.e.Stages[i].Name)
		}
	}
	return nil
}

// unitOf is the stage and the cluster that a hold is about: what it waits for, or else
// what waits.
func unitOf(hold *rollout.Hold) (stage, name string) {
	if stage, name = decision.UnitOf(hold.On); stage == "" && name == "" {
		stage, name = decision.UnitOf(hold.Path)
	}
	return stage, name
}

// stage is a row of the module as a link.
func (m *moduleAnswer) stage(name string, reason rollout.Reason) Link {
	ref := Ref{Kind: kindStage, Namespace: m.ref.Namespace, Name: name}
	i := slices.IndexFunc(m.e.Stages, func(s fleetv1.StageStatus) bool { return s.Name == name })
	if i < 0 {
		return m.link(ref, "", "stage %s is not there", name)
	}
	s := &m.e.Stages[i]
	link := m.link(ref, reason, "stage %s has %d of %d clusters updated, %d ready and %d failed", name, s.Updated, s.Total, s.Ready, s.Failed)
	link.Ring, link.Phase = manager.RingFleet, rollout.PhaseWaiting
	return link
}

// gated goes to the gate of a stage that is not passed.
func (m *moduleAnswer) gated(ctx context.Context, stage string) error {
	link := m.stage(stage, m.e.Reason)
	link.Next = m.fleet("approve", "--stage", stage)
	m.found.links = append(m.found.links, link)
	gates := &v1alpha1.RolloutGateList{}
	if err := m.Client.List(ctx, gates, client.InNamespace(m.ref.Namespace)); err != nil {
		return fmt.Errorf("list RolloutGates: %w", err)
	}
	last := &m.found.links[len(m.found.links)-1]
	for i := range gates.Items {
		g := &gates.Items[i]
		s := &g.Spec
		if s.TargetRef.Kind == m.ref.Kind && s.TargetRef.Name == m.ref.Name && s.Revision == m.e.Target && s.Stage == stage &&
			!apimeta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.GatePassed) {
			last.Next = ""
			m.found.links = append(m.found.links, m.undecided(g))
			return nil
		}
	}
	return nil
}

// undecided is a gate as the root of a chain.
func (a *asker) undecided(g *v1alpha1.RolloutGate) Link {
	s := &g.Spec
	target := Ref{Kind: s.TargetRef.Kind, Namespace: g.Namespace, Name: s.TargetRef.Name}
	link := a.link(refTo(kindGate, g), ReasonUndecided, "gate %s of stage %s has not been decided for %s", s.Gate, s.Stage, s.Revision)
	link.Ring, link.Phase, link.Since = manager.RingFleet, rollout.PhaseWaiting, momentOrNil(g.CreationTimestamp.Time)
	if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.GatePassed); c != nil && c.Status == "False" {
		link.Reason, link.Since = rollout.ReasonGateRefused, momentOrNil(c.LastTransitionTime.Time)
		link.Sentence = a.place() + fmt.Sprintf("gate %s of stage %s was refused for %s: %s", s.Gate, s.Stage, s.Revision, c.Message)
	}
	link.Next = a.spillway("fleet approve", target, "--stage", s.Stage, "--gate", s.Gate)
	return link
}

// gate is a RolloutGate that somebody asks about.
func (a *asker) gate(ctx context.Context, ref Ref, _ bool) (answer, error) {
	g := &v1alpha1.RolloutGate{}
	if err := a.get(ctx, ref, g); err != nil {
		return answer{}, err
	}
	link := a.undecided(g)
	if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.GatePassed); c != nil && c.Status == "True" {
		link = a.link(ref, "", "gate %s of stage %s has passed for %s: %s", g.Spec.Gate, g.Spec.Stage, g.Spec.Revision, c.Message)
		link.Ring, link.Phase, link.Since = manager.RingFleet, rollout.PhaseComplete, momentOrNil(c.LastTransitionTime.Time)
	}
	facts := []Fact{
		{"of", strings.ToLower(g.Spec.TargetRef.Kind) + "/" + g.Spec.TargetRef.Name}, {"stage", g.Spec.Stage}, {"revision", g.Spec.Revision}, {"when", g.Spec.When},
	}
	return answer{links: []Link{link}, facts: facts}, nil
}

// revision is a ModuleRevision: where it stands is what its module says.
func (a *asker) revision(ctx context.Context, ref Ref, _ bool) (answer, error) {
	r := &v1alpha1.ModuleRevision{}
	if err := a.get(ctx, ref, r); err != nil {
		return answer{}, err
	}
	module := Ref{Kind: r.Spec.ModuleRef.Kind, Namespace: ref.Namespace, Name: r.Spec.ModuleRef.Name}
	found := answer{
		links: []Link{a.link(ref, "", "%s is revision %d of %s", ref.Name, r.Spec.Number, module)},
		facts: []Fact{{"module", module.String()}, {"number", fmt.Sprint(r.Spec.Number)}, {"resolved", r.Status.Resolved}},
	}
	e, err := hub.Explain(ctx, a.Client, a.fleetOptions(), module.Kind, keyOf(module))
	if err != nil {
		return found, err
	}
	at := 0
	for i := range e.Clusters {
		if e.Clusters[i].Revision == ref.Name {
			at++
		}
	}
	found.links[0] = a.link(ref, "", "%s is assigned to %d of %d clusters of %s", ref.Name, at, len(e.Clusters), module)
	found.links[0].Ring, found.links[0].Phase = manager.RingFleet, rollout.PhaseComplete
	if e.Target == ref.Name && e.Phase != string(rollout.PhaseComplete) {
		found.links[0].Phase, found.on = rollout.PhaseProgressing, a.about(module)
	}
	return found, nil
}

// held goes to the stage, and from there to the cluster.
func (m *moduleAnswer) held(ctx context.Context, hold *rollout.Hold) error {
	stage, name := unitOf(hold)
	if stage != "" {
		link := m.stage(stage, hold.Reason)
		if hold.Reason == rollout.ReasonSoak || hold.Reason == rollout.ReasonBudget {
			link.Since, link.Until = momentOrNil(hold.Since), momentOrNil(hold.Until)
			link.Sentence = m.place() + hold.Message
		}
		m.found.links = append(m.found.links, link)
	}
	switch {
	case hold.Reason == rollout.ReasonBudget:
		return m.budget(stage)
	case name == "":
		return m.failing(ctx)
	default:
		m.found.on = m.aboutCluster(name)
		return nil
	}
}

// budget goes to a cluster of the stage that is down, and otherwise says that none may be.
func (m *moduleAnswer) budget(stage string) error {
	for i := range m.e.Clusters {
		c := &m.e.Clusters[i]
		if c.Stage == stage && c.Revision != "" && c.State != "" && c.State != fleetv1.StateSucceeded {
			m.found.on = m.aboutCluster(c.Name)
			return nil
		}
	}
	last := &m.found.links[len(m.found.links)-1]
	last.Next = m.kubectl("edit", m.ref)
	return nil
}

// failing goes to the first cluster that has failed, if one has.
func (m *moduleAnswer) failing(context.Context) error {
	for i := range m.e.Clusters {
		if c := &m.e.Clusters[i]; c.State == fleetv1.StateFailed {
			m.found.on = m.aboutCluster(c.Name)
			return nil
		}
	}
	if m.e.Current != "" && m.e.Current != m.e.Target && m.e.Phase == string(rollout.PhaseFailed) {
		m.own().Next = m.fleet("rollback")
	}
	return nil
}

func (m *moduleAnswer) aboutCluster(name string) *question {
	return &question{
		asker: m.asker, ref: Ref{Kind: KindCluster, Namespace: m.ref.Namespace, Name: name},
		answer: func(ctx context.Context, _ bool) (answer, error) { return m.cluster(ctx, m.ref, name) },
	}
}

// cluster is one cluster of a module.
func (a *asker) cluster(ctx context.Context, module Ref, name string) (answer, error) {
	c, err := hub.ExplainCluster(ctx, a.Client, a.fleetOptions(), module.Kind, keyOf(module), name)
	if err != nil {
		return answer{}, err
	}
	ref := Ref{Kind: KindCluster, Namespace: module.Namespace, Name: name}
	link := a.link(ref, c.Reason, "%s", clusterSentence(&c))
	link.Ring, link.Phase, link.Since, link.Until = manager.RingFleet, rollout.PhaseWaiting, c.Since, c.Until
	m := moduleAnswer{asker: a, ref: module, found: answer{links: []Link{link}, details: c}}
	switch {
	case c.Hold != nil:
		m.own().Owner, m.own().Phase, m.own().Next = c.Hold.By, rollout.PhasePaused, m.fleet("release", "--cluster", name)
	case c.OnCluster != "" && c.OnCluster != name:
		m.found.on = m.aboutCluster(c.OnCluster)
	case c.OnStage != "" || slices.Contains(ofModule, c.Reason):
		m.found.on = a.about(module)
	case c.Reason == decision.ReasonForeign:
		m.own().Next = a.pointless("kubectl get " + strings.ToLower(assemblageKind(module)) + "s -n " + module.Namespace)
	case c.IsNext:
		m.found.on = a.manager(module.Namespace)
	case c.Reason == "" && c.Revision != c.Target && c.Target != "": // nothing more is assigned at present
		m.found.on = a.about(module)
	case c.Revision == "" && c.Reason == "":
		m.own().Next = a.stranger(ctx, &c, ref)
	case c.Reason == "" && c.State == fleetv1.StateSucceeded:
		m.own().Phase = rollout.PhaseComplete
	case c.Revision != "":
		m.found.on = a.assigned(module, name)
	}
	return m.found, nil
}

// ofModule are reasons for which a cluster waits with the whole of its module, or of its
// stage.
var ofModule = []rollout.Reason{
	rollout.ReasonPaused, rollout.ReasonGate, rollout.ReasonGateRefused, decision.ReasonWindow, decision.ReasonInvalid, decision.ReasonRevision, decision.ReasonUnresolved,
}

// stranger is how to see why a cluster is none of a module's.
func (a *asker) stranger(ctx context.Context, c *decision.ClusterExplanation, ref Ref) string {
	switch {
	case c.Of.Kind == "" && a.hasClusterAPI(ctx, ref.Namespace):
		return a.pointless("kubectl get clusters." + cluster.GVK.Group + " -n " + ref.Namespace)
	case c.Of.Kind == "":
		return a.pointless("kubectl get secrets -n " + ref.Namespace + " -l " + vocabulary.Cluster.Native + "=true")
	}
	stands := Ref{Kind: c.Of.Kind, Namespace: ref.Namespace, Name: ref.Name, APIVersion: c.Of.APIVersion}
	if c.Of.Kind == kindSecret {
		stands.Name = cluster.SecretName(ref.Name)
	}
	switch {
	case c.Deleting:
		return a.kubectl("get", stands, "-o", "jsonpath='{.metadata.finalizers}'")
	case c.Selected: // and not ready
		return a.kubectl("describe", stands)
	default:
		return a.kubectl("get", stands, "--show-labels")
	}
}

// hasClusterAPI is true if Cluster API keeps clusters in a namespace.
func (a *asker) hasClusterAPI(ctx context.Context, namespace string) bool {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(cluster.GVK)
	err := a.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(1))
	return err == nil && len(list.Items) > 0
}

// clusterSentence names the cluster also where it waits with its whole stage.
func clusterSentence(c *decision.ClusterExplanation) string {
	sentence := strings.TrimSuffix(c.Sentence, ".")
	if c.Stage != "" && !strings.HasPrefix(sentence, c.Name+" ") {
		return c.Name + ": " + sentence
	}
	return sentence
}

func assemblageKind(module Ref) string {
	if module.Kind == kindBootstrap {
		return kindRemote
	}
	return kindProxy
}
