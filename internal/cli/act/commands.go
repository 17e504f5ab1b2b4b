package act

import (
	"cmp"
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
)

// steerCommand is a command by which a person changes a rollout.
type steerCommand struct {
	verb Verb
	// kinds are those that it changes.
	kinds       []string
	short, long string
	// examples are what follows the verb, and asks what to name, where it is not any object.
	examples []string
	asks     string
}

// steerCommands are the commands.
var steerCommands = []steerCommand{
	{
		verb: Pause, kinds: PausedKinds, short: "Pause a rollout until it is resumed",
		long: "Nothing more is updated, assigned or removed. What is updating already completes.\n" +
			"KIND is a workload, a RolloutGroup, an Instance or a Module; a ConfigMap or Secret: then\n" +
			"no workload is rolled for a change of it; or a ConfigPolicy or ClusterConfigPolicy: then\n" +
			"no workload is rolled for a change of the config that it is for.",
		examples: []string{`rolloutgroup/ingester -n mimir --reason "incident 42"`},
	},
	{
		verb: Resume, kinds: PausedKinds, short: "Resume a paused rollout",
		examples: []string{`module/shop -n clusters --reason "incident 42"`},
	},
	{
		verb: Retry, kinds: RetriedKinds, short: "Retry a rollout that has failed",
		long: "KIND is a RolloutGroup, whose progress deadline starts again, or a ConfigMap or Secret:\n" +
			"what has failed with it so far holds no workload any more, and workloads that were rolled\n" +
			"back from it are rolled again; or a Module or BootstrapModule: the revision that it has\n" +
			"given up is rolled out once more, once all clusters have returned from it. What has not\n" +
			"failed is not changed, and the exit code is 1.",
		examples: []string{`secret/db -n shop --reason "incident 42"`},
	},
	{
		verb: Approve, kinds: GatedKinds, short: "Approve a gate: the rollout that waits for it continues",
		long: gates, examples: gateExamples, asks: gateAsked,
	},
	{
		verb: Refuse, kinds: GatedKinds, short: "Refuse a gate: the rollout that waits for it stops",
		long: gates, examples: gateExamples, asks: gateAsked,
	},
}

const (
	gates = "KIND is a RolloutGate, or what waits for one: a RolloutGroup, an Instance, a ConfigPolicy or a Module.\n" +
		"A gate that is being measured is decided, too, and measured no more."
	gateAsked = "name a gate as gate/NAME, or what waits for one as KIND/NAME; kubectl get gates lists them"
)

var gateExamples = []string{`rolloutgroup/ingester -n mimir --reason "errors are fine"`, "gate/ingester-approve-0a1b2c3d4e -n mimir"}

// Commands returns the commands pause, resume, retry, approve and refuse.
func Commands(env command.Environment) []*cobra.Command {
	all := make([]*cobra.Command, 0, len(steerCommands))
	for i := range steerCommands {
		all = append(all, steerCommands[i].command(env))
	}
	return all
}

func (s *steerCommand) command(env command.Environment) *cobra.Command {
	p, lead := &Person{Env: env}, "  spillway "+string(s.verb)+" "
	cmd := &cobra.Command{
		Use: string(s.verb) + " KIND/NAME", Short: s.short, Long: strings.TrimSpace(s.short + ".\n" + s.long),
		Example: lead + strings.Join(s.examples, "\n"+lead),
		Args:    command.Exactly(1, cmp.Or(s.asks, "name one object as KIND/NAME")),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd, p, args[0]) },
	}
	p.Cluster.AddNamespacedFlags(cmd.Flags())
	p.AddFlags(cmd, ReasonUsage)
	return cmd
}

func (s *steerCommand) run(cmd *cobra.Command, p *Person, arg string) error {
	instead := ""
	if s.verb == Retry {
		instead = insteadOfRetry(arg)
	}
	ref, err := command.Wanted(string(s.verb), arg, s.kinds, instead)
	if err != nil {
		return err
	}
	if err := p.Connect(); err != nil {
		return err
	}
	p.Identify(cmd.Context())
	ref.Namespace = p.Namespace
	return p.Do(cmd.Context(), cmd.OutOrStdout(), Request{Verb: s.verb, Ref: ref})
}

// insteadOfRetry says what to name in the place of something that retry does not take, empty for one of
// its kinds.
func insteadOfRetry(arg string) string {
	if _, isPolicy := command.NamedAs(arg, describe.KindPolicy, describe.KindClusterPolicy); isPolicy {
		return "a release is of an object; name the ConfigMap or Secret, as spillway status shows it"
	}
	if instance, is := command.NamedAs(arg, describe.KindInstance); is {
		return "a plan is retried with spillway plan retry " + instance.Name
	}
	if ref, is := command.NamedAs(arg, workload.Deployment, workload.StatefulSet, workload.DaemonSet); is {
		return "name the ConfigMap or Secret with which it has failed, which spillway explain " + ref.String() + " names; or its RolloutGroup"
	}
	return ""
}

// Person is who changes something by a command: where, why, and what is printed of it.
type Person struct {
	Env            command.Environment
	Cluster        command.Cluster
	DryRun         command.DryRun
	Reason, Output string

	// Client and Namespace are set by [Person.Connect], and Who by [Person.Identify].
	Client    client.WithWatch
	Namespace string
	Who       Author
}

// AddFlags adds the flags of a command that changes something, but for those of the cluster. Usage is
// that of the reason.
func (p *Person) AddFlags(cmd *cobra.Command, usage string) {
	command.OutputFlag(cmd, &p.Output, command.OutputName)
	p.DryRun.AddFlag(cmd.Flags())
	cmd.Flags().StringVar(&p.Reason, "reason", "", usage)
}

// ReasonUsage is that of the reason where status shows it, too.
const ReasonUsage = "the reason to record; status, explain and Events show it"

// Connect connects to the cluster, in the namespace that is meant.
func (p *Person) Connect() error {
	c, namespace, err := p.Cluster.Connect()
	if err != nil {
		return err
	}
	p.Client, p.Namespace = p.DryRun.Client(c), namespace
	return nil
}

// Identify asks the API server who the person is, for what is recorded.
func (p *Person) Identify(ctx context.Context) {
	p.Who = Author{By: Whoami(ctx, p.Client), Reason: p.Reason, At: metav1.NewTime(p.Env.Now().Truncate(time.Second))}
}

// Do does what the person wants, tells of it, and records it.
func (p *Person) Do(ctx context.Context, out io.Writer, r Request) error {
	w, err := Do(ctx, p.Client, r, p.Who)
	if err != nil {
		return err
	}
	if err := Show(out, p.Output, p.Client, w.Said+p.DryRun.Note(), w.Object); err != nil || p.DryRun.On() {
		return err
	}
	return w.Record(ctx, p.Client, p.Who, p.Env.Now())
}
