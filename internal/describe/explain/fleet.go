package explain

import (
	"context"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/api/record"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/rollout"
)

// moduleAnswer is the answer about a module, as it comes together.
type moduleAnswer struct {
	answering

	e *decision.Explanation
}

func (m *moduleAnswer) goOn(ctx context.Context) error {
	cause := ring.TellingOf(m.e.Rollout)
	switch {
	case m.e.Phase == string(decision.PhaseDeleting):
		return m.deleting(ctx)
	case m.e.Phase == string(decision.PhaseUnseen):
		m.own().Reason = ReasonNotObserved
		m.found.Then = m.aboutManager(m.ref.Namespace)
	case len(m.e.Problems) > 0:
		m.own().Next = m.kubectl("edit", m.ref)
	case m.e.Phase == string(decision.PhaseRolledBack):
		m.own().Next = m.spillway("retry", m.ref)
		return m.failing()
	case m.e.Phase == string(rollout.PhaseComplete):
	case m.e.Reason == decision.ReasonNoClusters: // the action of the reason comes next
		m.found = m.found.And(m.managerGone(ctx, m.ref.Namespace))
	case cause == nil:
		m.found.Then = m.aboutManager(m.ref.Namespace)
	default:
		return m.waits(ctx, cause)
	}
	return nil
}

// waits goes on from the cause that says most of the whole.
func (m *moduleAnswer) waits(ctx context.Context, cause *record.Cause) error {
	switch reason := rollout.Reason(cause.Reason); {
	case reason == decision.ReasonRevision:
		m.found.Then = m.aboutManager(m.ref.Namespace)
	case reason == rollout.ReasonPaused:
		m.paused()
	case reason == decision.ReasonWindow:
	case reason == rollout.ReasonRemovalApproval && m.e.Removal != nil:
		m.own().Next = m.fleet("approve", "--remove="+strconv.Itoa(int(m.e.Removal.Clusters)))
	case reason.IsGate():
		stage, _ := m.unitOf(cause)
		return m.gated(ctx, stage)
	default:
		return m.held(cause)
	}
	return nil
}

// deleting continues with the first cluster that a deleted module is still assigned to,
// or to the manager that would take it away; and where there is none, to who else keeps
// the module.
func (m *moduleAnswer) deleting(ctx context.Context) error {
	if gone := m.managerGone(ctx, m.ref.Namespace); gone != nil {
		m.found = m.found.And(gone)
		return nil
	}
	all, err := m.assemblages(ctx, m.ref.Namespace, m.ref.Kind)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Assignment(m.ref.Name) != nil {
			m.found.Then = m.assigned(m.ref, all[i].Cluster)
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

func (m *moduleAnswer) paused() {
	m.own().Next = m.spillway("resume", m.ref)
	if s := m.e.Steered; s != nil {
		m.own().Owner = s.By
	}
}

// held goes to the stage, and from there to the cluster.
func (m *moduleAnswer) held(cause *record.Cause) error {
	reason := rollout.Reason(cause.Reason)
	stage, name := m.unitOf(cause)
	if stage != "" {
		link := m.stage(stage, reason)
		if reason == rollout.ReasonSoak || reason == rollout.ReasonBudget {
			link.Since, link.Until = describe.TimeOf(cause.Since), describe.TimeOf(cause.Until)
			link.Sentence = m.place() + m.e.Sentence
		}
		m.add(link)
	}
	switch {
	case reason == rollout.ReasonBudget:
		return m.budget(stage)
	case name == "" && reason == rollout.ReasonNoEvidence && m.skipped(stage) != "":
		m.found.Then = m.aboutCluster(m.ref, m.skipped(stage))
		return nil
	case name == "":
		return m.failing()
	default:
		m.found.Then = m.aboutCluster(m.ref, name)
		return nil
	}
}

// skipped is the first cluster of a stage that is skipped, as it can tell nothing: empty if there is none.
func (m *moduleAnswer) skipped(stage string) string {
	for i := range m.e.Clusters {
		if c := &m.e.Clusters[i]; c.Stage == stage && (c.Reason == outcome.ReasonUnreachable || c.Reason == outcome.ReasonSuspended) {
			return c.Name
		}
	}
	return ""
}

// unitOf is the stage and the cluster that a cause is about: what is waited for, or else
// what waits.
func (m *moduleAnswer) unitOf(cause *record.Cause) (stage, name string) {
	stage, name = ring.UnitOf(cause.Units[0])
	switch on := cause.On; {
	case on != nil && on.Kind == decision.KindStage:
		return on.Name, ""
	case on != nil:
		name = on.Name
		if c := m.e.Cluster(name); c != nil {
			stage = c.Stage
		}
	case stage == "" && name == m.ref.Name: // all of the module waits
		return "", ""
	case stage == "" && slices.ContainsFunc(m.e.Stages, func(s fleetv1.StageStatus) bool { return s.Name == name }):
		return name, ""
	}
	return stage, name
}

// budget goes to a cluster of the stage that is down, and otherwise says that none may be.
func (m *moduleAnswer) budget(stage string) error {
	for i := range m.e.Clusters {
		c := &m.e.Clusters[i]
		if c.Stage == stage && !c.IsNext && c.Reason != rollout.ReasonBudget && c.OnCluster == "" && c.OnStage == "" {
			m.found.Then = m.aboutCluster(m.ref, c.Name)
			return nil
		}
	}
	last := &m.found.Links[len(m.found.Links)-1]
	last.Next = m.kubectl("edit", m.ref)
	return nil
}

// stage is a row of the module as a link.
func (m *moduleAnswer) stage(name string, reason rollout.Reason) Link {
	ref := describe.Ref{Kind: describe.KindStage, Namespace: m.ref.Namespace, Name: name}
	i := slices.IndexFunc(m.e.Stages, func(s fleetv1.StageStatus) bool { return s.Name == name })
	if i < 0 {
		return m.link(ref, "", "stage %s not found", name)
	}
	s := &m.e.Stages[i]
	link := m.link(ref, reason, "stage %s: %s", name, describe.StageCounts(s))
	link.Ring, link.Phase = manager.RingFleet, rollout.PhaseWaiting
	return link
}

// failing goes to the first cluster that has failed, if one has.
func (m *moduleAnswer) failing() error {
	if failing := m.e.Failing; len(failing) > 0 {
		m.found.Then = m.aboutCluster(m.ref, failing[0].Name)
		return nil
	}
	if m.e.Current != "" && m.e.Current != m.e.Target && m.e.Phase == string(rollout.PhaseFailed) {
		m.own().Next = m.fleet("rollback")
	}
	return nil
}

func (m *moduleAnswer) fleet(verb string, args ...string) string {
	return m.spillway("fleet "+verb, m.ref, args...)
}

// module is a module: its rollout, the stage that it is at, and the cluster there that
// it waits for.
func (a *asker) module(ctx context.Context, ref describe.Ref, _ bool) (answer, error) {
	e, err := hub.Explain(ctx, a.Client, a.fleetOptions(), ref.Kind, keyOf(ref))
	if err != nil {
		return answer{}, err
	}
	described := describe.Module(&e)
	m := moduleAnswer{answering{a, ref, answer{Links: []Link{a.linkTo(&described)}, Facts: describe.ModuleFacts(&e), Details: e}}, &e}
	err = m.goOn(ctx)
	return m.found, err
}

func (a *asker) fleetOptions() hub.Options {
	return hub.Options{Namespaces: a.Options.Namespaces}
}

func keyOf(ref describe.Ref) types.NamespacedName {
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}
