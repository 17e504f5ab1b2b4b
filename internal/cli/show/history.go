package show

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/history"
)

// History is what the commands that tell of the past have in common.
type History struct {
	Env     command.Environment
	cluster command.Cluster
	output  string
	limit   int
	compare []string
}

// NewHistory returns the command history.
func NewHistory(env command.Environment) *cobra.Command {
	p := &History{Env: env}
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show what was rolled when, by which change, by whom, and how long it took",
		Long: "Show the rollouts of an object, the newest first: when, by which change, by whom,\n" +
			"how long each of its parts took, and the Events of that time.\n" +
			"\n" +
			"Only what objects and Events record is shown. The author is the last field manager\n" +
			"that managedFields name for the changed fields. How long the parts took is known for\n" +
			"the zones of a group, the last run of each plan, and the newest rollout of a module.\n" +
			"A workload records only its last roll; how that went is known until its Pod template\n" +
			"changes. The API server keeps Events for an hour, unless --event-ttl says otherwise.\n" +
			"\n" +
			"For a workload that keeps its config, the revisions follow with the snapshots to which they\n" +
			"are pinned. For a ConfigMap or Secret, the contents that have a\n" +
			"snapshot are shown, and what refers to each.\n" +
			"\n" +
			"With --compare two of the rollouts stand side by side: by whom, what changed, how long\n" +
			"they and their parts took, and how they ended. Name each as it is shown, or by its last\n" +
			"word, its revision or its uid.\n" +
			"\n" +
			"The exit code is 1 if the object or a rollout is not found, and 0 if nothing was rolled.",
		Example: "  spillway history rolloutgroup/ingester -n mimir\n" +
			"  spillway history instance/zookeeper -n shop\n" +
			"  spillway history rolloutgroup/ingester -n mimir --compare 3,2\n" +
			"  spillway history module/shop -n clusters -o json\n" +
			"  spillway history secret/db -n shop",
		Args: command.Exactly(1, "name one as KIND/NAME, such as rolloutgroup/ingester"),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace, err := p.cluster.ResolveNamespace()
			if err != nil {
				return err
			}
			ref, ok := command.NamedAs(args[0], describe.KindConfigMap, describe.KindSecret)
			if ref.Namespace = namespace; !ok {
				if ref, err = command.ObjectNamed(namespace, args[0]); err != nil {
					return err
				}
			}
			return p.run(cmd, ref)
		},
	}
	p.AddFlags(cmd)
	p.cluster.AddNamespacedFlags(cmd.Flags())
	return cmd
}

// AddFlags adds the flags of commands that show a history.
func (p *History) AddFlags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", display.ShownEpisodes, "how many rollouts to show, 0 for all that are known")
	cmd.Flags().StringSliceVar(&p.compare, "compare", nil, "two rollouts to show side by side, as A,B")
	command.OutputFlag(cmd, &p.output)
}

func (p *History) run(cmd *cobra.Command, ref describe.Ref) error {
	reader, err := p.cluster.Client()
	if err != nil {
		return err
	}
	return p.Print(cmd, reader, ref)
}

// Print prints the history of an object.
func (p *History) Print(cmd *cobra.Command, reader client.Reader, ref describe.Ref) error {
	switch {
	case p.limit < 0:
		return fmt.Errorf("--limit: %d is negative; use 0 for all", p.limit)
	case len(p.compare) != 0 && len(p.compare) != 2:
		return fmt.Errorf("--compare: %q are %d rollouts; name two, as A,B", p.compare, len(p.compare))
	}
	episodes, err := history.History(cmd.Context(), reader, ref)
	if err != nil {
		return better(cmd.Context(), reader, ref, err)
	}
	if p.compare != nil {
		compared, err := history.Compare(episodes, p.compare[0], p.compare[1])
		if err != nil {
			return fmt.Errorf("--compare: %w", err)
		}
		return command.Show(cmd.OutOrStdout(), p.output, compared, func(w io.Writer) { display.Comparison(w, &compared) })
	}
	if p.limit > 0 && len(episodes) > p.limit {
		episodes = episodes[:p.limit]
	}
	return command.Show(cmd.OutOrStdout(), p.output, slices.Concat([]history.Entry{}, episodes), func(w io.Writer) {
		display.History(w, display.StyleOf(w, p.Env.Lookup), ref, episodes, p.Env.Now())
	})
}
