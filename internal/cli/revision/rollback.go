package revision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/cli/change"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/revisions"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// rollback is the return to an earlier revision, or to an earlier content of an object.
type rollback struct {
	env     command.Environment
	cluster command.Cluster
	to      string
	reason  string
	dryRun  command.DryRun
	output  string

	client client.Client
	ref    describe.Ref
	who    change.Author
	// said are lines to print once all is done, and changed what was changed.
	said    []string
	changed []client.Object
}

// NewRollback returns the command rollback.
func NewRollback(env command.Environment) *cobra.Command {
	r := &rollback{env: env}
	cmd := &cobra.Command{
		Use:   "rollback KIND/NAME",
		Short: "Go back to an earlier revision and its config, and stay there",
		Long: "Go back to an earlier revision of a Deployment, StatefulSet or DaemonSet that keeps its\n" +
			"config (spillway.dev/pin-config), with the Pod template and the config of that revision.\n" +
			"Of a ConfigMap or Secret, go back to an earlier content in all workloads that use it and\n" +
			"keep their config; the object itself is not changed.\n" +
			"\n" +
			"The workloads stay there until their config changes again, or until spillway retry.\n" +
			"Nothing is written for a revision without pins, or if a snapshot does not exist any more.\n" +
			"Spillway history lists revisions and contents, and spillway diff compares them.",
		Example: "  spillway rollback deployment/web -n shop --reason \"incident 42\"\n" +
			"  spillway rollback statefulset/db --to 3 -n shop\n" +
			"  spillway rollback secret/db --to 9676b5e0aa -n shop --dry-run=server",
		Args: command.Exactly(1, "name one as KIND/NAME, such as deployment/web"),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	r.cluster.AddFlags(cmd.Flags())
	r.cluster.AddNamespaceFlag(cmd.Flags())
	cmd.Flags().StringVar(&r.to, "to", "", "the revision, by number (default: the one before), or the content of an object, by its digest")
	cmd.Flags().StringVar(&r.reason, "reason", "", "the reason to record; explain and Events show it")
	command.OutputFlag(cmd, &r.output, command.OutputName)
	r.dryRun.AddFlag(cmd.Flags())
	return cmd
}

func (r *rollback) run(cmd *cobra.Command, arg string) error {
	ref, ok := command.NamedAs(arg, Kinds...)
	if !ok {
		return fmt.Errorf("cannot roll back %q: name one of %s as KIND/NAME; for a Module: spillway fleet rollback", arg, strings.Join(Kinds, ", "))
	}
	var err error
	if ref.Namespace, err = r.cluster.ResolveNamespace(); err != nil {
		return err
	}
	c, err := r.cluster.Client()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	r.client = r.dryRun.Client(c)
	r.ref, r.who = ref, change.Author{By: change.Whoami(ctx, r.client), Reason: r.reason, At: metav1.NewTime(r.env.Now())}
	if kind := content.Kind(ref.Kind); kind == content.ConfigMap || kind == content.Secret {
		err = r.object(ctx)
	} else {
		err = r.workload(ctx)
	}
	if len(r.said) == 0 {
		return err
	}
	return errors.Join(err, change.Show(cmd.OutOrStdout(), r.output, r.client, strings.Join(r.said, "\n"), r.changed...))
}

// sayf adds a line, which says of a dry run that it was one.
func (r *rollback) sayf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...)+r.dryRun.Note())
}

// change edits a workload as [change.Apply] does, and records who did.
func (r *rollback) change(ctx context.Context, obj client.Object, edit func() error) error {
	if err := change.Apply(ctx, r.client, obj, edit); err != nil {
		return err
	}
	r.changed = append(r.changed, obj)
	return change.RecordEvent(ctx, r.client, corev1.ObjectReference{
		APIVersion: appsv1.SchemeGroupVersion.String(), Kind: workload.KindOf(obj), Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	}, change.ReasonRolledBackTo, r.who, r.env.Now())
}

// workload goes back to an earlier revision of a workload.
func (r *rollback) workload(ctx context.Context) error {
	obj, to := workload.New(r.ref.Kind), &revisions.Revision{}
	obj.SetNamespace(r.ref.Namespace)
	obj.SetName(r.ref.Name)
	err := r.change(ctx, obj, func() (err error) {
		if to, err = r.revision(ctx, obj); err != nil {
			return err
		}
		if err := r.exist(ctx, to.Pins); err != nil {
			return err
		}
		*workload.TemplateOf(obj) = *to.Template.DeepCopy()
		return r.hold(ctx, obj)
	})
	if err != nil {
		return err
	}
	r.sayf("%s rolled back to revision %d", r.ref, to.Number)
	r.said = append(r.said, "it stays there until its config changes; to roll it for the present config: spillway retry for what differs, which spillway diff names")
	return nil
}

// revision is the one to go back to.
func (r *rollback) revision(ctx context.Context, obj client.Object) (*revisions.Revision, error) {
	if d, ok := obj.(*appsv1.Deployment); ok && d.Spec.Paused {
		return nil, fmt.Errorf("%s is paused (spec.paused); resume it first with: kubectl rollout resume %s", r.ref, r.ref)
	}
	all, err := revisions.Of(ctx, r.client, obj)
	if err != nil {
		return nil, err
	}
	to := revisions.Previous(all)
	if r.to != "" {
		if to, err = numbered(all, r.ref, "--to", r.to); err != nil {
			return nil, err
		}
	}
	switch {
	case to == nil:
		return nil, fmt.Errorf("%s has no earlier revision", r.ref)
	case to.Current:
		return nil, fmt.Errorf("%s is at revision %d already", r.ref, to.Number)
	case len(to.Pins) == 0:
		return nil, fmt.Errorf("revision %d of %s has no pins: its Pods would start with the present config; to restore the Pod template alone: kubectl rollout undo %s --to-revision=%d -n %s",
			to.Number, r.ref, r.ref, to.Number, r.ref.Namespace)
	case workload.IsSuspendedTemplate(&to.Template):
		return nil, fmt.Errorf("revision %d of %s is suspended: its Pods would never be scheduled; choose from %s", to.Number, r.ref, numbers(all))
	}
	return to, nil
}

// exist fails if Pods with these pins could not start: a snapshot is missing, and the manager
// cannot write it again because the object has another content.
func (r *rollback) exist(ctx context.Context, pins pin.Pins) error {
	kept, err := revisions.SnapshotsIn(ctx, r.client, r.ref.Namespace)
	if err != nil {
		return err
	}
	for _, p := range pins {
		if kept.Has(p) {
			continue
		}
		o := content.Object{Kind: p.Kind, Namespace: r.ref.Namespace, Name: p.Name}
		present, err := revisions.PresentOf(ctx, r.client, o)
		if err != nil {
			return err
		}
		if present != p {
			return fmt.Errorf("%s %s, the snapshot of %s %s, not found: Pods of %s could not start; restore it from a backup, or choose another revision", p.Kind, p.Snapshot(), p.Kind, p.Name, r.ref)
		}
	}
	return nil
}

// hold records what the objects contain now, so that the workload is not rolled forward again.
func (r *rollback) hold(ctx context.Context, obj client.Object) error {
	var objects []content.Object
	for _, ref := range pin.References(&workload.TemplateOf(obj).Spec) {
		objects = append(objects, content.Object{Kind: ref.Kind, Namespace: r.ref.Namespace, Name: ref.Name})
	}
	facts, err := revisions.Facts(ctx, r.client, objects...)
	if err != nil {
		return err
	}
	seen := make(pin.Pins, len(objects))
	for i, o := range objects {
		seen[i] = revisions.PinOf(facts, o)
	}
	at := r.who.At.UTC().Truncate(time.Millisecond)
	for _, retried := range facts.Retries() { // it comes after what was asked for before
		if retried.After(at) {
			at = retried
		}
	}
	workload.SetUndone(obj, seen, at, r.who.By, r.who.Reason)
	return nil
}

// object goes back to an earlier content in all workloads that keep their config.
func (r *rollback) object(ctx context.Context) error {
	known, err := contentsOf(ctx, r.client, r.ref)
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
	all, err := workload.List(ctx, r.client, []string{r.ref.Namespace})
	if err != nil {
		return err
	}
	return r.each(ctx, all, to)
}

// each changes the workloads that are pinned to another content, and says what was done with
// each that uses the object.
func (r *rollback) each(ctx context.Context, all []client.Object, to pin.Pin) error {
	var failed []error
	pinned, changed := 0, 0
	for _, obj := range all {
		name := strings.ToLower(workload.KindOf(obj)) + "/" + obj.GetName()
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
		if err := r.one(ctx, obj, to); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
			continue
		}
		changed++
		r.sayf("%s rolled back to %s", name, to)
	}
	switch {
	case pinned == 0:
		failed = append(failed, fmt.Errorf("no workload that uses %s has pins, so none can go back; annotate workloads with %s=true before the next change", r.ref, vocabulary.PinConfig.Native))
	case changed > 0:
		r.said = append(r.said, "they stay there until "+r.ref.String()+" changes; to roll them forward again: spillway retry "+r.ref.String()+" -n "+r.ref.Namespace)
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

// one pins a workload to another content of the object. If it had a revision with the same
// pins, its hash makes it that revision again, of which Pods may still run.
func (r *rollback) one(ctx context.Context, obj client.Object, to pin.Pin) error {
	return r.change(ctx, obj, func() error {
		if d, ok := obj.(*appsv1.Deployment); ok && d.Spec.Paused {
			return errors.New("is paused (spec.paused); resume it first with: kubectl rollout resume")
		}
		template := workload.TemplateOf(obj)
		pins, err := pin.Parse(vocabulary.Pins.Get(template.Annotations))
		if err != nil {
			return fmt.Errorf("annotation %s of the Pod template: %w", vocabulary.Pins.Native, err)
		}
		pins = replaced(pins, to)
		if err := r.exist(ctx, pins); err != nil {
			return err
		}
		all, err := revisions.Of(ctx, r.client, obj)
		if err != nil {
			return err
		}
		hash := workload.HashOfPins(pins)
		if same := revisions.Pinned(all, obj, pins); same != nil {
			hash = vocabulary.ConfigHash.Get(same.Template.Annotations)
		}
		workload.SetTemplatePins(template, pins, hash)
		return r.hold(ctx, obj)
	})
}

// replaced are pins with another one for the same object.
func replaced(pins pin.Pins, by pin.Pin) pin.Pins {
	for i := range pins {
		if pins[i].Kind == by.Kind && pins[i].Name == by.Name {
			pins[i] = by
		}
	}
	return pins
}
