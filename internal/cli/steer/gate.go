package steer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// verdict is a command by which a person decides a gate, of a rollout of any ring.
type verdict struct {
	person

	verb, past string
	wanted     metav1.ConditionStatus
	word       rollout.Reason
}

// GatedKinds are those that the commands approve and refuse take: a gate, or what waits for
// one.
var GatedKinds = []string{describe.KindGate, "RolloutGroup", "Instance", describe.KindPolicy, describe.KindModule, describe.KindBootstrap}

// NewApprove returns the command approve.
func NewApprove(env command.Environment) *cobra.Command {
	return newVerdict(env, "Approve a gate: the rollout that waits for it continues", &verdict{
		verb: "approve", past: "approved", wanted: metav1.ConditionTrue, word: reasons.Approved,
	})
}

// NewRefuse returns the command refuse.
func NewRefuse(env command.Environment) *cobra.Command {
	return newVerdict(env, "Refuse a gate: the rollout that waits for it stops", &verdict{
		verb: "refuse", past: "refused", wanted: metav1.ConditionFalse, word: reasons.Refused,
	})
}

func newVerdict(env command.Environment, short string, v *verdict) *cobra.Command {
	v.now = env.Now
	cmd := &cobra.Command{
		Use: v.verb + " KIND/NAME", Short: short,
		Long: short + ".\n" +
			"KIND is a RolloutGate, or what waits for one: a RolloutGroup, an Instance, a ConfigPolicy or a Module.\n" +
			"A gate that is being measured is decided, too, and measured no more.",
		Example: "  spillway " + v.verb + ` rolloutgroup/ingester -n mimir --reason "errors are fine"` + "\n" +
			"  spillway " + v.verb + " gate/ingester-approve-0a1b2c3d4e -n mimir",
		Args: command.Exactly(1, "name a gate as gate/NAME, or what waits for one as KIND/NAME; kubectl get gates lists them"),
		RunE: func(cmd *cobra.Command, args []string) error { return v.run(cmd, args[0]) },
	}
	v.addFlags(cmd)
	return cmd
}

func (v *verdict) run(cmd *cobra.Command, arg string) error {
	ref, ok := command.NamedAs(arg, GatedKinds...)
	if !ok {
		return fmt.Errorf("cannot %s %q: name one of %s as KIND/NAME", v.verb, arg, strings.Join(GatedKinds, ", "))
	}
	c, namespace, who, err := v.connect(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	ref.Namespace = namespace
	var gate *v1alpha1.RolloutGate
	err = change.Retry("gate of "+ref.String(), func() error {
		if gate, err = v.find(ctx, c, ref); err != nil {
			return err
		}
		return change.Decide(ctx, c, gate, v.wanted, who)
	})
	if err != nil {
		return err
	}
	s := &gate.Spec
	said := fmt.Sprintf("gate %s of %s is %s for %s", s.Gate, describe.UnitOfGate(gate), v.past, targetOf(gate))
	if err := change.Show(cmd.OutOrStdout(), v.output, c, said+v.dryRun.Note(), gate); err != nil {
		return err
	}
	owner := metav1.GetControllerOf(gate)
	if owner == nil {
		return nil
	}
	return change.RecordEvent(ctx, c, corev1.ObjectReference{
		APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: namespace, Name: owner.Name, UID: owner.UID,
	}, v.word, who, v.now())
}

// find returns the gate that is meant: by its name, or the only one of a rollout that is not
// decided so yet.
func (v *verdict) find(ctx context.Context, c client.Client, ref describe.Ref) (*v1alpha1.RolloutGate, error) {
	if ref.Kind == describe.KindGate {
		g := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
		if err := change.Get(ctx, c, g); err != nil {
			return nil, err
		}
		if change.Decided(g) == v.wanted {
			return nil, fmt.Errorf("gate/%s is %s already", g.Name, v.past)
		}
		return g, nil
	}
	list := &v1alpha1.RolloutGateList{}
	if err := c.List(ctx, list, client.InNamespace(ref.Namespace)); err != nil {
		return nil, fmt.Errorf("list RolloutGates: %w", err)
	}
	gates := slices.DeleteFunc(list.Items, func(g v1alpha1.RolloutGate) bool {
		return g.Spec.TargetRef.Kind != ref.Kind || g.Spec.TargetRef.Name != ref.Name || change.Decided(&g) == v.wanted || g.DeletionTimestamp != nil
	})
	if len(gates) > 1 { // those that were created in advance, and those that were decided otherwise
		if waiting := slices.DeleteFunc(slices.Clone(gates), func(g v1alpha1.RolloutGate) bool {
			return g.Spec.ReachedAt == nil || change.Decided(&g) != metav1.ConditionUnknown
		}); len(waiting) > 0 {
			gates = waiting
		}
	}
	switch len(gates) {
	case 0:
		return nil, fmt.Errorf("%s has no gate to %s; spillway explain %s -n %s says what it waits for", ref, v.verb, ref, ref.Namespace)
	case 1:
		return &gates[0], nil
	default:
		return nil, fmt.Errorf("%s has several gates; choose one of %s", ref, gatesText(gates))
	}
}

// targetOf is what rolls out, as a person names it.
func targetOf(g *v1alpha1.RolloutGate) string {
	return strings.ToLower(g.Spec.TargetRef.Kind) + "/" + g.Spec.TargetRef.Name
}

// gatesText lists gates by their names, with their units.
func gatesText(gates []v1alpha1.RolloutGate) string {
	texts := make([]string, len(gates))
	for i := range gates {
		texts[i] = "gate/" + gates[i].Name + " (" + describe.UnitOfGate(&gates[i]) + ")"
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}
