package fleet

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// fleeter is what the commands that steer modules have in common.
type fleeter struct {
	act.Person

	out    io.Writer
	module act.Module
}

// gives lets a command that changes something say why, and what it prints.
func (f *fleeter) gives(cmd *cobra.Command) *cobra.Command {
	f.AddFlags(cmd, act.ReasonUsage)
	return cmd
}

// get returns the module as it is now.
func (f *fleeter) get(ctx context.Context) (client.Object, error) {
	module := f.named()
	return module, act.Get(ctx, f.Client, module)
}

// named is the module without its content.
func (f *fleeter) named() client.Object {
	module := model.New(f.module.Kind)
	module.SetNamespace(f.module.Namespace)
	module.SetName(f.module.Name)
	return module
}

// New returns the command fleet with the commands beneath it.
func New(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{Use: "fleet", Short: "Show and steer the rollout of modules to clusters"}
	cmd.AddCommand(newFleetStatus(env))
	for _, add := range []func(*fleeter) *cobra.Command{
		newFleetApprove, newFleetPin, newFleetUnpin, newFleetRollback, newFleetHistory,
	} {
		cmd.AddCommand(add(&fleeter{Person: act.Person{Env: env}}))
	}
	cmd.AddCommand(newImport(&importer{}))
	for _, add := range []func(*registrar) *cobra.Command{newFleetClusters, newRegister, newRotate, newUnregister} {
		cmd.AddCommand(add(&registrar{lookup: env.Lookup}))
	}
	return cmd
}

// do does what is wanted with the module, and tells of it.
func (f *fleeter) do(ctx context.Context, r act.Request) error {
	r.Ref = f.module.Ref
	return f.Do(ctx, f.out, r)
}

// done tells what was done with an object for a module, here and in an Event about the
// module.
func (f *fleeter) done(ctx context.Context, module, changed client.Object, word rollout.Reason, said string) error {
	if err := act.Show(f.out, f.Output, f.Client, said+f.DryRun.Note(), changed); err != nil || f.DryRun.On() {
		return err
	}
	return act.RecordEvent(ctx, f.Client, act.About(fleetv1.GroupVersion.WithKind(f.module.Kind), module), word, f.Who, f.Env.Now())
}

// command is one that is about a module; run has a client and the module's name.
func (f *fleeter) command(verb, usage, short, example string, run func(ctx context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: strings.TrimSpace(verb + " MODULE " + usage), Short: short, Example: "  spillway fleet " + verb + " " + example,
		Args: command.Exactly(1, "name one module, such as shop, module/shop or bootstrapmodule/flux; spillway fleet status lists them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.connect(cmd, args[0]); err != nil {
				return err
			}
			return run(cmd.Context())
		},
	}
	f.Cluster.AddNamespacedFlags(cmd.Flags())
	return cmd
}

func (f *fleeter) connect(cmd *cobra.Command, arg string) (err error) {
	if f.module, err = Named(arg); err != nil {
		return err
	}
	if err := f.Connect(); err != nil {
		return err
	}
	f.Identify(cmd.Context())
	f.module.Namespace, f.out = f.Namespace, cmd.OutOrStdout()
	return nil
}

// Named takes a name with or without the kind.
func Named(arg string) (act.Module, error) {
	if ref, ok := command.NamedAs(arg, model.KindModule, model.KindBootstrap); ok {
		return act.Module{Ref: ref}, nil
	}
	if arg == "" || strings.Contains(arg, "/") {
		return act.Module{}, fmt.Errorf("%q is not a module; name it as NAME, module/NAME or bootstrapmodule/NAME", arg)
	}
	return act.Module{Ref: describe.Ref{Kind: model.KindModule, Name: arg}}, nil
}
