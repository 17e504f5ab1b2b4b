package act

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/cli/command"
)

// Person is who changes something by a command: where, why, and what is printed of it.
type Person struct {
	Env            command.Environment
	Cluster        command.Cluster
	DryRun         command.DryRun
	Reason, Output string

	// Client and Namespace are set by [Person.Connect], and Who by [Person.Identify].
	Client    client.WithWatch
	Namespace string
	Who       change.Author
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
	p.Who = change.Author{By: change.Whoami(ctx, p.Client), Reason: p.Reason, At: metav1.NewTime(p.Env.Now().Truncate(time.Second))}
}

// Do does what the person wants, tells of it, and records it.
func (p *Person) Do(ctx context.Context, out io.Writer, r Request) error {
	w, err := Do(ctx, p.Client, r, p.Who)
	if err != nil {
		return err
	}
	if err := change.Show(out, p.Output, p.Client, w.Said+p.DryRun.Note(), w.Object); err != nil || p.DryRun.On() {
		return err
	}
	return w.Record(ctx, p.Client, p.Who, p.Env.Now())
}
