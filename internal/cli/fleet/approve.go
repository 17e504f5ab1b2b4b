package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillwayv1 "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

type approval struct {
	*fleeter

	stage, gate string
	refuse      bool
	remove      int
}

func newFleetApprove(f *fleeter) *cobra.Command {
	a := &approval{fleeter: f}
	cmd := f.AddFlags(f.command("approve", "[--gate GATE | --remove NUMBER]", "Approve a gate of a rollout, or refuse it; or approve removals",
		`shop -n clusters --reason "errors are fine"`, a.run), act.ReasonUsage)
	cmd.Example += "\n  spillway fleet approve shop -n clusters --remove=12"
	cmd.Flags().StringVar(&a.stage, "stage", "", "the stage of the gate (default: the one that waits)")
	cmd.Flags().StringVar(&a.gate, "gate", "", "the name of the gate (default: the only one)")
	cmd.Flags().BoolVar(&a.refuse, "refuse", false, "refuse: the rollout stops at the gate")
	cmd.Flags().IntVar(&a.remove, "remove", 0, "approve that this number of clusters lose the module; status.removal.clusters says how many would")
	for _, ofGate := range []string{"stage", "gate", "refuse"} {
		cmd.MarkFlagsMutuallyExclusive("remove", ofGate)
	}
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("remove") && a.remove < 1 {
			return fmt.Errorf("--remove: %d must be at least 1", a.remove)
		}
		return nil
	}
	return cmd
}

func (a *approval) run(ctx context.Context) error {
	if a.remove != 0 {
		return a.approveRemovals(ctx)
	}
	module, err := a.get(ctx)
	if err != nil {
		return err
	}
	_, status := model.Parts(module)
	var gate *spillwayv1.RolloutGate
	err = act.OnConflict("gate of "+a.module.String(), func() error {
		gates, err := a.gates(ctx, status)
		if err != nil {
			return err
		}
		if gate, err = a.choose(gates, status); err != nil {
			return err
		}
		return act.Decide(ctx, a.Client, gate, a.wanted(), a.Who)
	})
	if err != nil {
		return err
	}
	word, said := reasons.Approved, "gate %s of stage %s passed for %s"
	if a.refuse {
		word, said = reasons.Refused, "gate %s of stage %s refused for %s; to let it through after all, approve it"
	}
	return a.done(ctx, module, gate, word, fmt.Sprintf(said, gate.Spec.Gate, gate.Spec.Stage, gate.Spec.Revision))
}

// choose is the one that is meant: by its names, and otherwise the one that the
// rollout waits for.
func (a *approval) choose(gates []spillwayv1.RolloutGate, status *fleetv1.ModuleStatus) (*spillwayv1.RolloutGate, error) {
	meant := slices.DeleteFunc(slices.Clone(gates), func(g spillwayv1.RolloutGate) bool {
		return a.stage != "" && g.Spec.Stage != a.stage || a.gate != "" && g.Spec.Gate != a.gate
	})
	if len(meant) == 0 {
		return nil, fmt.Errorf("%s has no such gate for %s; choose from %s", a.module, status.TargetRevision, gatesText(gates))
	}
	if waiting := a.waiting(meant, status); len(meant) > 1 && len(waiting) > 0 {
		meant = waiting
	}
	if len(meant) > 1 {
		return nil, fmt.Errorf("%s has several such gates for %s; choose one from %s", a.module, status.TargetRevision, gatesText(meant))
	}
	if act.Decided(&meant[0]) == a.wanted() {
		return nil, fmt.Errorf("%s is %s already", gatesText(meant), a.past())
	}
	return &meant[0], nil
}

// waiting are those of stages that wait for a gate, and that are not decided so yet.
func (a *approval) waiting(gates []spillwayv1.RolloutGate, status *fleetv1.ModuleStatus) []spillwayv1.RolloutGate {
	return slices.DeleteFunc(slices.Clone(gates), func(g spillwayv1.RolloutGate) bool {
		waits := slices.ContainsFunc(status.Stages, func(s fleetv1.StageStatus) bool { return s.Name == g.Spec.Stage && describe.IsAtGate(s.State) })
		return !waits || act.Decided(&g) == a.wanted()
	})
}

func (a *approval) past() string {
	if a.refuse {
		return "refused"
	}
	return "approved"
}

func gatesText(gates []spillwayv1.RolloutGate) string {
	texts := make([]string, len(gates))
	for i := range gates {
		texts[i] = fmt.Sprintf("--stage %s --gate %s", gates[i].Spec.Stage, gates[i].Spec.Gate)
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

func (a *approval) gates(ctx context.Context, status *fleetv1.ModuleStatus) ([]spillwayv1.RolloutGate, error) {
	list := &spillwayv1.RolloutGateList{}
	if err := a.Client.List(ctx, list, client.InNamespace(a.module.Namespace)); err != nil {
		return nil, fmt.Errorf("list RolloutGates: %w", err)
	}
	gates := slices.DeleteFunc(list.Items, func(g spillwayv1.RolloutGate) bool {
		return g.Spec.TargetRef.Kind != a.module.Kind || g.Spec.TargetRef.Name != a.module.Name || g.Spec.Revision != status.TargetRevision
	})
	if len(gates) == 0 {
		return nil, fmt.Errorf("%s has no gates for %s; a stage has one where spec.rollout.stages[].gates names it, and none is needed to go back",
			a.module, cmp.Or(status.TargetRevision, "a revision that the manager has not seen yet"))
	}
	return gates, nil
}

func (a *approval) wanted() metav1.ConditionStatus {
	if a.refuse {
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

// shownClusters is how many clusters a command names.
const shownClusters = 20

// approveRemovals lets clusters lose the module, if they are as many as the user says.
// The annotation names the clusters that the module was decided with, and is written only
// if the module is still as it was read before that.
func (a *approval) approveRemovals(ctx context.Context) error {
	module := a.named()
	var said string
	err := act.Apply(ctx, a.Client, module, func() error {
		e, err := hub.Explain(ctx, a.Client, hub.Options{Namespaces: []string{a.module.Namespace}, Now: a.Env.Now}, a.module.Kind, a.module.Key())
		if err != nil {
			return err
		}
		if said, err = a.checkRemovals(&e); err != nil {
			return err
		}
		act.Annotate(module, vocabulary.ApproveRemoval.Native, e.Removal.Approval)
		return nil
	})
	if err != nil {
		return err
	}
	return a.done(ctx, module, module, decision.ReasonRemovalApproved, said)
}

func (a *approval) checkRemovals(e *decision.Explanation) (string, error) {
	switch {
	case e.Removal == nil:
		return "", fmt.Errorf("%s is not to be removed from any cluster", a.module)
	case e.Removal.Approval == "" && e.Removal.Approved != "":
		return "", fmt.Errorf("%s: the removal from %d clusters is approved already", a.module, e.Removal.Clusters)
	case e.Removal.Approval == "":
		return "", fmt.Errorf("%s: the removal from %d clusters needs no approval", a.module, e.Removal.Clusters)
	case int(e.Removal.Clusters) != a.remove:
		return "", fmt.Errorf("%s is to be removed from %d clusters, not %d: %s; if that is intended: %s%d",
			a.module, e.Removal.Clusters, a.remove, losing(e), model.ApproveRemovals(a.module.Kind, a.module.Namespace, a.module.Name), e.Removal.Clusters)
	default:
		return fmt.Sprintf("%s: the removal from %d clusters is approved: %s", a.module, a.remove, losing(e)), nil
	}
}

// losing names the clusters that are to lose the module, as far as the caller may see them.
func losing(e *decision.Explanation) string {
	var names []string
	for i := range e.Clusters {
		if c := &e.Clusters[i]; c.Removed {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return "the record of the module does not name them"
	}
	if more := len(names) - shownClusters; more > 0 {
		names = append(names[:shownClusters], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
