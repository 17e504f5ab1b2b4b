package lifecycle

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

// operation is what the commands have in common.
type operation struct {
	env     command.Environment
	cluster command.Cluster
	from    command.Packages
	settings

	output string
	dryRun command.DryRun
	// kubeVersion is that of the cluster that a dry run does not ask.
	kubeVersion command.KubeVersion
	wait, yes   bool
	// tried: the API server was asked about the objects of the plan.
	tried   bool
	timeout time.Duration

	in        io.Reader
	out       io.Writer
	client    client.WithWatch
	namespace string
}

// Commands returns the commands that change Instances of packages.
func Commands(env command.Environment) []*cobra.Command {
	return []*cobra.Command{newInstall(env), newUpdate(env), newUpgrade(env), newUninstall(env), newDiff(env), newPermissions(env), newGet(env), newDiagnostics(env)}
}

// addFlags adds the flags that all of the commands have.
func (o *operation) addFlags(cmd *cobra.Command) {
	o.cluster.AddNamespacedFlags(cmd.Flags())
}

func (o *operation) addWait(cmd *cobra.Command, until string) {
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until "+until+"; the exit code is 1 if that fails")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long to wait; 0 is no limit")
}

func (o *operation) addDryRun(cmd *cobra.Command) {
	o.dryRun.AddFlagWith(cmd.Flags(), `"client" or "server": write nothing, and show what would be written and what the plan would apply; with "server" the API server checks all of it`)
	command.OutputFlag(cmd, &o.output, command.OutputName)
}

// connect checks the flags, and connects to the cluster unless none is needed.
func (o *operation) connect(cmd *cobra.Command) (err error) {
	o.in, o.out = cmd.InOrStdin(), cmd.OutOrStdout()
	if err := o.check(); err != nil {
		return err
	}
	if o.client, o.namespace, err = o.cluster.Connect(); err == nil {
		go o.learnKinds()
	}
	return err
}

// connected runs a command that has a client.
func (o *operation) connected(run func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := o.connect(cmd); err != nil {
			return err
		}
		return run(cmd.Context(), args)
	}
}

// learnKinds has the client ask which kinds the API server has, while packages are read. If
// that fails, the first request says why.
func (o *operation) learnKinds() {
	_, _ = o.client.RESTMapper().RESTMapping(v1beta1.GroupVersion.WithKind("Instance").GroupKind(), v1beta1.GroupVersion.Version)
}

func (o *operation) check() error {
	if o.wait && o.dryRun.On() {
		return errors.New("--wait: nothing happens in a dry run; leave out one of them")
	}
	return command.CheckWait(o.wait, o.timeout)
}

// instance is the Instance that an argument names, before it is read.
func (o *operation) instance(arg string) *v1beta1.Instance {
	return &v1beta1.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: command.InstanceName(arg)}}
}

// confirm asks, unless that was answered by a flag.
func (o *operation) confirm(question string) error {
	if o.yes || o.dryRun.On() {
		return nil
	}
	_, _ = fmt.Fprintf(o.env.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(o.in).ReadString('\n')
	if err != nil && answer == "" {
		return errors.New("not confirmed, nothing was changed; add --yes where no person can answer")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	default:
		return errors.New("not confirmed, nothing was changed")
	}
}

// finish shows what the plan applies, or waits until it has, if that was asked for.
func (o *operation) finish(ctx context.Context, r *results, i *v1beta1.Instance, version *choice.Version, plan string) error {
	if err := o.showPlan(ctx, r, i, version, plan); err != nil {
		return err
	}
	if o.wait {
		if err := o.waiter().Settled(ctx, client.ObjectKeyFromObject(i), i.Generation); err != nil {
			return err
		}
	}
	return r.end()
}

func (o *operation) waiter() waiter {
	return waiter{Env: o.env, Client: o.client, Out: o.out, Quiet: o.output != "", Timeout: o.timeout}
}

// trial asks the API server what would become of objects, unless the user asks for a dry
// run without it.
func (o *operation) trial() trial {
	t := trial{Now: o.env.Now}
	if !o.dryRun.IsClient() {
		t.Client = o.client
	}
	return t
}

// next is a command to type next, for the same cluster and namespace.
func (o *operation) next(words ...string) string {
	all := append([]string{"spillway"}, words...)
	all = append(all, "-n", o.namespace)
	return strings.Join(append(all, o.cluster.Words()...), " ")
}
