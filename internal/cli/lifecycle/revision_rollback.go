package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/revisions"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// rollback is the return to an earlier revision, or to an earlier content of an object.
type revisionRollback struct {
	act.Person

	to string
	// yes, wait and timeout are about Instances.
	yes, wait bool
	timeout   time.Duration

	ref describe.Ref
	// said are lines to print once all is done, and changed what was changed.
	said    []string
	changed []client.Object
}

// NewRollback returns the command rollback.
func NewRollback(env command.Environment) *cobra.Command {
	r := &revisionRollback{Person: act.Person{Env: env}}
	cmd := &cobra.Command{
		Use:   "rollback KIND/NAME",
		Short: "Go back to an earlier revision and its config, and stay there",
		Long: "Go back to an earlier revision of a Deployment, StatefulSet or DaemonSet that keeps its\n" +
			"config (spillway.dev/pin-config), with the Pod template and the config of that revision.\n" +
			"For a ConfigMap or Secret, go back to an earlier content in all workloads that use it and\n" +
			"keep their config; the object itself is not changed.\n" +
			"\n" +
			"For an Instance, go back to the OperatorVersion and the parameters that an earlier\n" +
			"execution of a plan has applied. The plan that would run and the parameters that change\n" +
			"are shown, and the command asks before it writes.\n" +
			"\n" +
			"The workloads stay there until their config changes again, or until spillway retry.\n" +
			"Nothing is written for a revision without pins, or if a snapshot does not exist any more.\n" +
			"Spillway history lists revisions, contents and executions; spillway diff compares revisions\n" +
			"and contents.",
		Example: "  spillway rollback deployment/web -n shop --reason \"incident 42\"\n" +
			"  spillway rollback statefulset/db --to 3 -n shop\n" +
			"  spillway rollback secret/db --to 9676b5e0aa -n shop --dry-run=server\n" +
			"  spillway rollback instance/zk -n shop --wait",
		Args: command.Exactly(1, "name one as KIND/NAME, such as deployment/web"),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	r.Cluster.AddNamespacedFlags(cmd.Flags())
	r.AddFlags(cmd, "the reason to record; explain and Events show it")
	cmd.Flags().StringVar(&r.to, "to", "", "the revision, by number (default: the one before); the content of an object, by its digest; or the execution of an Instance, by its UID (default: the one before)")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "of an Instance: do not ask")
	cmd.Flags().BoolVar(&r.wait, "wait", false, "of an Instance: wait until the plan has ended and the Instance is ready, and show its progress; the exit code is 1 if that fails")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 0, "how long to wait; 0 is no limit")
	return cmd
}

func (r *revisionRollback) run(cmd *cobra.Command, arg string) error {
	ref, err := command.Wanted("roll back", arg, ReturnKinds, "name one of "+strings.Join(ReturnKinds, ", ")+" as KIND/NAME; for a Module: spillway fleet rollback")
	switch {
	case err != nil:
		return err
	case ref.Kind == describe.KindInstance:
		return r.instance(cmd, ref.Name)
	case r.wait || r.timeout != 0:
		return errors.New("--wait and --timeout are about Instances; leave them out")
	}
	if err := r.Connect(); err != nil {
		return err
	}
	ctx := cmd.Context()
	r.Identify(ctx)
	ref.Namespace, r.Who.At = r.Namespace, metav1.NewTime(r.Env.Now()) // the record has parts of seconds
	r.ref = ref
	if kind := content.Kind(ref.Kind); kind == content.ConfigMap || kind == content.Secret {
		err = r.object(ctx)
	} else {
		err = r.workload(ctx)
	}
	if len(r.said) == 0 {
		return err
	}
	return errors.Join(err, act.Show(cmd.OutOrStdout(), r.Output, r.Client, strings.Join(r.said, "\n"), r.changed...))
}

// instance returns an Instance to what an earlier execution has applied.
func (r *revisionRollback) instance(cmd *cobra.Command, name string) error {
	return Rollback{
		Cluster: r.Cluster, DryRun: r.DryRun, Output: r.Output, To: r.to, Reason: r.Reason, Yes: r.yes, Wait: r.wait, Timeout: r.timeout,
	}.Run(r.Env, cmd, name)
}

// sayf adds a line, which says of a dry run that it was one.
func (r *revisionRollback) sayf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...)+r.DryRun.Note())
}

// change writes what was prepared, and records who did.
func (r *revisionRollback) change(ctx context.Context, ref describe.Ref, prepare func() (*act.Write, error)) (*act.Write, error) {
	var w *act.Write
	err := act.OnConflict(ref.String(), func() (err error) {
		if w, err = prepare(); err != nil {
			return err
		}
		return w.Write(ctx, r.Client)
	})
	if err != nil {
		return nil, err
	}
	if r.changed = append(r.changed, w.Object); r.DryRun.On() {
		return w, nil
	}
	return w, w.Record(ctx, r.Client, r.Who, r.Env.Now())
}

// workload goes back to an earlier revision of a workload.
func (r *revisionRollback) workload(ctx context.Context) error {
	w, err := r.change(ctx, r.ref, func() (*act.Write, error) {
		return act.Prepare(ctx, r.Client, act.Request{Verb: act.Rollback, Ref: r.ref, To: r.to}, r.Who)
	})
	if err != nil {
		return err
	}
	r.sayf("%s", w.Said)
	r.said = append(r.said, w.Next)
	return nil
}

// object goes back to an earlier content in all workloads that keep their config.
func (r *revisionRollback) object(ctx context.Context) error {
	known, err := contentsOf(ctx, r.Client, r.ref)
	if err != nil {
		return err
	}
	if r.to == "" {
		var digests []string
		for _, p := range known.all() {
			digests = append(digests, p.Digest)
		}
		return fmt.Errorf("name the content to go back to with --to: %s; spillway history %s says when each was written", strings.Join(digests, ", "), r.ref)
	}
	to, err := known.named("--to", r.to)
	if err != nil {
		return err
	}
	all, err := workload.List(ctx, r.Client, []string{r.ref.Namespace})
	if err != nil {
		return err
	}
	return r.each(ctx, all, to)
}

// each changes the workloads that are pinned to another content, and says what was done with
// each that uses the object.
func (r *revisionRollback) each(ctx context.Context, all []client.Object, to pin.Pin) error {
	var failed []error
	pinned, changed := 0, 0
	for _, obj := range all {
		ref := describe.Ref{Kind: workload.KindOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName()}
		name := ref.String()
		p, ok := pinOf(obj, to)
		switch {
		case !revisions.RefersTo(workload.TemplateOf(obj), to.Kind, to.Name):
			continue
		case !ok:
			r.said = append(r.said, name+" has no pins and is not changed: its Pods use the present content")
			continue
		case p == to:
			r.said = append(r.said, name+" has this content already")
			pinned++
			continue
		}
		pinned++
		w, err := r.change(ctx, ref, func() (*act.Write, error) { return act.PrepareContent(ctx, r.Client, ref, to, r.Who) })
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		changed++
		r.sayf("%s", w.Said)
	}
	switch {
	case pinned == 0:
		failed = append(failed, fmt.Errorf("no workload that uses %s has pins, so none can go back; annotate workloads with %s=true before the next change", r.ref, vocabulary.PinConfig.Native))
	case changed > 0:
		r.said = append(r.said, "they stay there until "+r.ref.String()+" changes; to roll them forward again: spillway retry "+shell.Join(r.ref.String(), "-n", r.ref.Namespace))
	}
	return errors.Join(failed...)
}

// pinOf is the pin that a workload has for the object of another pin.
func pinOf(obj client.Object, of pin.Pin) (pin.Pin, bool) {
	pins, err := pin.Parse(vocabulary.Pins.Get(workload.TemplateOf(obj).Annotations))
	if err != nil {
		return pin.Pin{}, false
	}
	return pins.Of(of.Kind, of.Name)
}
