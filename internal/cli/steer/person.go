package steer

import (
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/cli/command"
)

// person is who gives a command that changes something: where, when, and why.
type person struct {
	cluster        command.Cluster
	dryRun         command.DryRun
	now            func() time.Time
	reason, output string
}

func (p *person) addFlags(cmd *cobra.Command) {
	p.cluster.AddFlags(cmd.Flags())
	p.cluster.AddNamespaceFlag(cmd.Flags())
	command.OutputFlag(cmd, &p.output, command.OutputName)
	p.dryRun.AddFlag(cmd.Flags())
	cmd.Flags().StringVar(&p.reason, "reason", "", "the reason to record; status, explain and Events show it")
}

// connect returns a client, the namespace that is meant, and what is recorded of the person.
func (p *person) connect(cmd *cobra.Command) (c client.WithWatch, namespace string, who change.Author, err error) {
	if namespace, err = p.cluster.ResolveNamespace(); err != nil {
		return nil, "", who, err
	}
	if c, err = p.cluster.Client(); err != nil {
		return nil, "", who, err
	}
	who = change.Author{By: change.Whoami(cmd.Context(), c), Reason: p.reason, At: metav1.NewTime(p.now().Truncate(time.Second))}
	return p.dryRun.Client(c), namespace, who, nil
}

// do does what a person wants, tells of it, and records it.
func (p *person) do(cmd *cobra.Command, r act.Request) error {
	c, namespace, who, err := p.connect(cmd)
	if err != nil {
		return err
	}
	r.Namespace = namespace
	w, err := act.Do(cmd.Context(), c, r, who)
	if err != nil {
		return err
	}
	if err := change.Show(cmd.OutOrStdout(), p.output, c, w.Said+p.dryRun.Note(), w.Object); err != nil || p.dryRun.On() {
		return err
	}
	return w.Record(cmd.Context(), c, who, p.now())
}
