package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/fleet/hub"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/rollout"
)

// fleeter is what the commands that steer modules have in common.
type fleeter struct {
	cluster command.Cluster
	reason  string

	now    func() time.Time
	lookup func(string) (string, bool)
	out    io.Writer
	client client.Client
	module Module
	who    command.Author
}

// New returns the command fleet with the commands beneath it.
func New(env command.Environment) *cobra.Command {
	cmd := &cobra.Command{Use: "fleet", Short: "See and steer how modules get to their clusters"}
	cmd.AddCommand(newFleetStatus(env))
	for _, add := range []func(*fleeter) *cobra.Command{
		newFleetApprove, newFleetSuspend, newFleetResume, newFleetHold, newFleetRelease, newFleetRollback, newFleetHistory,
	} {
		cmd.AddCommand(add(&fleeter{now: env.Now, lookup: env.Lookup}))
	}
	return cmd
}

func newFleetStatus(env command.Environment) *cobra.Command {
	var all bool
	cmd := &cobra.Command{Use: "status", Short: "List the modules, and how they stand", Example: "  spillway fleet status -A", Args: cobra.NoArgs}
	a := command.NewQuery(env, cmd)
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "look at all namespaces")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		namespace, err := a.Cluster.ResolveNamespace()
		if err != nil {
			return err
		}
		reader, options, err := a.Connect(cmd.Context(), namespace)
		if err != nil {
			return err
		}
		if all {
			namespace = ""
		}
		found, err := hub.Status(cmd.Context(), reader, hub.Options{Namespaces: options.Namespaces, Now: options.Now}, namespace)
		if err != nil {
			return err
		}
		return command.Show(cmd.OutOrStdout(), a.Output, found, func(w io.Writer) {
			display.Modules(w, display.StyleOf(w, a.Env.Lookup), found)
			if len(found) == 0 {
				_, _ = fmt.Fprintln(w, "There is no module here; -A looks at all namespaces.")
			}
		})
	}
	return cmd
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
	f.cluster.AddFlags(cmd.Flags())
	f.cluster.AddNamespaceFlag(cmd.Flags())
	return cmd
}

// gives lets a command say why.
func (f *fleeter) gives(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; it is shown wherever the module is")
	return cmd
}

func (f *fleeter) connect(cmd *cobra.Command, arg string) error {
	namespace, err := f.cluster.ResolveNamespace()
	if err != nil {
		return err
	}
	if f.module, err = Named(arg); err != nil {
		return err
	}
	if f.client, err = f.cluster.Client(); err != nil {
		return err
	}
	f.module.Namespace, f.out = namespace, cmd.OutOrStdout()
	f.who = command.Author{By: command.Whoami(cmd.Context(), f.client), Reason: f.reason, At: metav1.NewTime(f.now().Truncate(time.Second))}
	return nil
}

// Named takes a name with or without the kind.
func Named(arg string) (Module, error) {
	if m, ok := moduleNamed(arg); ok {
		return m, nil
	}
	if arg == "" || strings.Contains(arg, "/") {
		return Module{}, fmt.Errorf("%q is not a module; name it as NAME, module/NAME or bootstrapmodule/NAME", arg)
	}
	return Module{Kind: model.KindModule, Name: arg}, nil
}

// get is the module as it is now.
func (f *fleeter) get(ctx context.Context) (client.Object, error) {
	module := model.New(f.module.Kind)
	err := f.client.Get(ctx, f.module.Key(), module)
	switch {
	case apimeta.IsNoMatchError(err):
		return nil, hub.ErrNotInstalled
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s in namespace %s; spillway fleet status -A lists all there are", f.module, f.module.Namespace)
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", f.module, err)
	default:
		return module, nil
	}
}

// steer changes the module and records who wanted it. It says what became of it.
func (f *fleeter) steer(ctx context.Context, word rollout.Reason, s model.Steering, change func(client.Object, *fleetv1.ModuleSpec) (string, error)) error {
	var module client.Object
	var said string
	err := f.again(f.module.String(), func() (err error) {
		module, said, err = f.try(ctx, s, change)
		return err
	})
	if err != nil {
		return err
	}
	return f.done(ctx, module, word, said)
}

// again tries a change anew, from what is there then, when somebody else was faster:
// the hub writes how far things are all the time.
func (*fleeter) again(what string, change func() error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, change)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s is being changed by somebody else; nothing was done, look again", what)
	}
	return err //nolint:wrapcheck // it is the change's own
}

// try changes the module, if it is as it was seen.
func (f *fleeter) try(ctx context.Context, s model.Steering, change func(client.Object, *fleetv1.ModuleSpec) (string, error)) (module client.Object, said string, err error) {
	if module, err = f.get(ctx); err != nil {
		return nil, "", err
	}
	before, ok := module.DeepCopyObject().(client.Object)
	if !ok {
		return nil, "", errors.New("a copy of a module is none")
	}
	spec, _ := model.Parts(module)
	if said, err = change(module, spec); err != nil {
		return nil, "", err
	}
	s.By, s.Reason, s.At, s.Revision = f.who.By, f.who.Reason, f.who.At, spec.TargetRevision
	if err := s.Note(module); err != nil {
		return nil, "", err
	}
	err = f.client.Patch(ctx, module, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(command.FieldOwner))
	return module, said, refused(f.module.String(), err)
}

// refused says what the API server had against a change.
func refused(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("change %s: %w", what, err)
}

// done tells what was done, here and in an Event about the module.
func (f *fleeter) done(ctx context.Context, module client.Object, word rollout.Reason, said string) error {
	if _, err := fmt.Fprintln(f.out, said); err != nil {
		return err //nolint:wrapcheck // nothing can be added to a broken pipe
	}
	return command.RecordEvent(ctx, f.client, corev1.ObjectReference{
		APIVersion: fleetv1.GroupVersion.String(), Kind: f.module.Kind,
		Namespace: f.module.Namespace, Name: f.module.Name, UID: module.GetUID(),
	}, word, f.who, f.now())
}

func newFleetSuspend(f *fleeter) *cobra.Command {
	return f.gives(f.command("suspend", "", "Pull the handbrake: nothing new is assigned or taken away, and what is on its way finishes",
		`shop -n clusters --reason "incident 42"`, func(ctx context.Context) error {
			return f.steer(ctx, command.ReasonSuspended, model.Steering{Verb: model.VerbSuspend}, func(module client.Object, spec *fleetv1.ModuleSpec) (string, error) {
				if spec.Suspend {
					return "", fmt.Errorf("%s is suspended already%s; let it go on with: %s", f.module, suspendedBy(module), f.module.command("fleet resume"))
				}
				spec.Suspend = true
				return f.module.String() + " suspended; let it go on with: " + f.module.command("fleet resume"), nil
			})
		}))
}

// suspendedBy says who has suspended a module, where it is known.
func suspendedBy(module client.Object) string {
	if s := model.SteeringOf(module); s != nil && s.Verb == model.VerbSuspend {
		return command.ByName(s.By)
	}
	return ""
}

func newFleetResume(f *fleeter) *cobra.Command {
	return f.gives(f.command("resume", "", "Let a module that is suspended go on", "shop -n clusters", func(ctx context.Context) error {
		return f.steer(ctx, command.ReasonResumed, model.Steering{Verb: model.VerbResume}, func(_ client.Object, spec *fleetv1.ModuleSpec) (string, error) {
			if !spec.Suspend {
				return "", fmt.Errorf("%s is not suspended; see what it waits for with: %s", f.module, f.module.command("explain"))
			}
			spec.Suspend = false
			return f.module.String() + " resumed", nil
		})
	}))
}
