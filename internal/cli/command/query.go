package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/manager"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// Query is what explain and status have in common.
type Query struct {
	Env     Environment
	Cluster Cluster
	Rings   RingFlags
	Output  string
	flags   *pflag.FlagSet
	// lease is the Lease of the manager, empty if none was found.
	lease   client.ObjectKey
	absence absence
}

// absence is why no manager was seen to run, if it is known that none does.
type absence struct {
	// watches is true if one is installed that watches the namespace.
	watches bool
	why     string
}

// NoManager returns why nothing of what is under way is carried out, empty if it is or if that may not be
// seen. One that is not installed for the namespace may run elsewhere, and is missed only if something is
// under way.
func (a *Query) NoManager(underWay bool) string {
	if !a.absence.watches && !underWay {
		return ""
	}
	return a.absence.why
}

// TellNoManager tells that first: what a command shows as next would be a lie without it.
func (a *Query) TellNoManager(underWay bool) {
	if why := a.NoManager(underWay); why != "" {
		_, _ = fmt.Fprintf(a.Env.Err, "note: no manager is at work: %s; what waits or moves goes on once one is\n", why)
	}
}

// NewQuery adds the flags of a query to a command, whose output has some more forms.
func NewQuery(env Environment, cmd *cobra.Command, forms ...string) *Query {
	a := NewUnprinted(env, cmd)
	OutputFlag(cmd, &a.Output, forms...)
	return a
}

// NewUnprinted is [NewQuery] of a command that prints no answer.
func NewUnprinted(env Environment, cmd *cobra.Command) *Query {
	a := &Query{Env: env, flags: cmd.Flags()}
	a.Cluster.AddFlags(cmd.Flags())
	a.Cluster.AddNamespaceFlag(cmd.Flags())
	a.Rings.Add(cmd.Flags())
	return a
}

// Connect returns a reader, and the options by which the manager decides: those
// of the manager that is installed, unless they are given here.
func (a *Query) Connect(ctx context.Context, namespace string) (client.Client, config.Options, error) {
	reader, err := a.Cluster.Client()
	if err != nil {
		return nil, config.Options{}, err
	}
	if err := a.AdoptInstalled(ctx, reader, namespace); err != nil {
		return nil, config.Options{}, err
	}
	options, err := a.Rings.Options(a.Env.Now)
	options.LeaseNamespace, options.LeaseName = a.lease.Namespace, a.lease.Name
	return reader, options, err
}

// Mirror keeps up with a namespace, with all if it is empty, until the context ends. What the
// config ring reads is begun immediately, if it will be.
func (a *Query) Mirror(ctx context.Context, live client.Client, namespace string, readsConfig bool) (*snapshot.Watched, error) {
	config, err := a.Cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	mirror, err := snapshot.Watch(ctx, config, live, namespace)
	if err == nil && readsConfig {
		mirror.Begin(ctx, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &corev1.ConfigMap{})
	}
	return mirror, err
}

// AdoptInstalled takes over the flags of the manager's Deployment, of the one
// that watches the namespace if there are several. Where none can be seen, the
// defaults have to do.
func (a *Query) AdoptInstalled(ctx context.Context, reader client.Client, namespace string) error {
	m, err := describe.ManagerOf(ctx, reader, namespace, a.Env.Now())
	a.absence = absence{m.Watches, m.Absence(namespace)}
	if err != nil {
		a.absence = absence{} // not being allowed to look is not the asker's fault
	}
	if m.Deployment == nil {
		return nil
	}
	args := manifests.ArgumentsOf(m.Deployment)
	a.lease = client.ObjectKey{Namespace: m.Deployment.Namespace, Name: args.Value("leader-elect-id", manager.LeaseName)}
	for _, arg := range args {
		if err := a.adopt(arg); err != nil {
			return err
		}
	}
	return nil
}

func (a *Query) adopt(arg string) error {
	name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	f := a.flags.Lookup(name)
	if !ok || f == nil || f.Changed || name == "kubeconfig" || name == "rings" { // which of them are shown is not the manager's to say
		return nil
	}
	if err := a.flags.Set(name, value); err != nil {
		return fmt.Errorf("the installed manager runs with %s: %s", arg, valueError(f, value, err))
	}
	return nil
}
