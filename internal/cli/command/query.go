package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/config"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/describe/snapshot"
	"github.com/spillway-dev/spillway/internal/manifests"
)

// Query is what explain and status have in common.
type Query struct {
	Env     Environment
	Cluster Cluster
	Rings   RingFlags
	Output  string
	flags   *pflag.FlagSet
	// manager is what was seen of the one of the namespace, by which reader; nil until [Query.Connect]
	// or [Query.AdoptInstalled], and of a user who may not look.
	manager *describe.Manager
	reader  client.Reader
	// namespace is that which was asked about.
	namespace string
}

// NoManager is why nothing of what is under way is carried out, empty if it is or if that may not be
// seen. What is shown as next would be a lie without it. A manager that is not installed for the namespace
// may run elsewhere, and is missed only if something is under way. Until is when to ask again; zero for never.
func (a *Query) NoManager(ctx context.Context, underWay bool) (why string, until time.Time) {
	if a.manager == nil {
		return "", time.Time{}
	}
	m := *a.manager
	if !m.Watches && !underWay || m.Look(ctx, a.reader, a.Env.Now()) != nil {
		return "", m.Until
	}
	return m.Absence(a.namespace), m.Until
}

// TellNoManager tells why nothing of what is under way is carried out, and returns it as [Query.NoManager] does.
func (a *Query) TellNoManager(ctx context.Context, underWay bool) string {
	why, _ := a.NoManager(ctx, underWay)
	if why != "" {
		_, _ = fmt.Fprintf(a.Env.Err, "note: no manager is at work: %s; what waits or moves goes on once one is\n", why)
	}
	return why
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
	a.Cluster.AddNamespacedFlags(cmd.Flags())
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
	m, err := describe.ManagerOf(ctx, reader, namespace)
	if err != nil {
		return nil //nolint:nilerr // not being allowed to look is not the asker's fault
	}
	a.manager, a.reader, a.namespace = &m, reader, namespace
	if m.Deployment == nil {
		return nil
	}
	others, pins := a.flags.Changed("namespaces"), a.flags.Changed("pin-namespaces") || a.flags.Changed("pin-namespace-selector")
	for _, arg := range manifests.ArgumentsOf(m.Deployment) {
		if err := a.adopt(arg); err != nil {
			return err
		}
	}
	if others && !pins { // its pins are for the namespaces that it watches itself
		a.Rings.pinWatched()
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
