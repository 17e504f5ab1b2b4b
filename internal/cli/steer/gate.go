package steer

import (
	"github.com/spf13/cobra"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
)

// verdict is a command by which a person decides a gate, of a rollout of any ring.
type verdict struct {
	person

	verb act.Verb
}

// NewApprove returns the command approve.
func NewApprove(env command.Environment) *cobra.Command {
	return newVerdict(env, "Approve a gate: the rollout that waits for it continues", &verdict{verb: act.Approve})
}

// NewRefuse returns the command refuse.
func NewRefuse(env command.Environment) *cobra.Command {
	return newVerdict(env, "Refuse a gate: the rollout that waits for it stops", &verdict{verb: act.Refuse})
}

func newVerdict(env command.Environment, short string, v *verdict) *cobra.Command {
	v.now = env.Now
	cmd := &cobra.Command{
		Use: string(v.verb) + " KIND/NAME", Short: short,
		Long: short + ".\n" +
			"KIND is a RolloutGate, or what waits for one: a RolloutGroup, an Instance, a ConfigPolicy or a Module.\n" +
			"A gate that is being measured is decided, too, and measured no more.",
		Example: "  spillway " + string(v.verb) + ` rolloutgroup/ingester -n mimir --reason "errors are fine"` + "\n" +
			"  spillway " + string(v.verb) + " gate/ingester-approve-0a1b2c3d4e -n mimir",
		Args: command.Exactly(1, "name a gate as gate/NAME, or what waits for one as KIND/NAME; kubectl get gates lists them"),
		RunE: func(cmd *cobra.Command, args []string) error { return v.run(cmd, args[0]) },
	}
	v.addFlags(cmd)
	return cmd
}

func (v *verdict) run(cmd *cobra.Command, arg string) error {
	ref, err := command.Wanted(string(v.verb), arg, act.GatedKinds, "")
	if err != nil {
		return err
	}
	return v.do(cmd, act.Request{Verb: v.verb, Ref: ref})
}
