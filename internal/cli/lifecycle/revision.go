package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/act"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/cli/display"
	"github.com/spillway-dev/spillway/internal/config/content"
	"github.com/spillway-dev/spillway/internal/config/pin"
	"github.com/spillway-dev/spillway/internal/config/revisions"
	"github.com/spillway-dev/spillway/internal/config/workload"
	"github.com/spillway-dev/spillway/internal/describe"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// RevisionKinds are those of which revisions or snapshots are kept, and ReturnKinds those of which an
// object can return to an earlier state.
var (
	RevisionKinds = []string{workload.Deployment, workload.StatefulSet, workload.DaemonSet, describe.KindConfigMap, describe.KindSecret}
	ReturnKinds   = append(slices.Clone(RevisionKinds), describe.KindInstance)
)

type revisionDiff struct {
	describe.Ref

	// From and To are what is compared: "revision 2", "content 9676b5e0aa".
	From string `json:"from"`
	To   string `json:"to"`
	// Template is true if the Pod template differs in more than the config.
	Template bool                   `json:"template,omitempty"`
	Objects  []revisions.Difference `json:"objects"`
}

type diffing struct {
	env      command.Environment
	cluster  command.Cluster
	output   string
	from, to string
	values   bool
}

// NewRevisionDiff returns the command diff.
func NewRevisionDiff(env command.Environment) *cobra.Command {
	d := &diffing{env: env}
	cmd := &cobra.Command{
		Use:   "diff KIND/NAME",
		Short: "Show which keys of the config differ between two revisions",
		Long: "Show which keys of ConfigMaps and Secrets were added, changed and removed between two\n" +
			"revisions of a workload that keeps its config, or between two contents of an object.\n" +
			"\n" +
			"The names of keys are shown; --values adds the values of ConfigMaps. Values of Secrets\n" +
			"are never shown. Spillway history lists the revisions and the contents.\n" +
			"\n" +
			"The exit code is 0, also if something differs, or 1 with an error that says what is\n" +
			"wrong.",
		Example: "  spillway diff deployment/web -n shop\n" +
			"  spillway diff deployment/web --from 3 --to 4 -n shop\n" +
			"  spillway diff secret/db --from 9676b5e0aa -n shop",
		Args: command.Exactly(1, "name one as KIND/NAME, such as deployment/web"),
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args[0]) },
	}
	d.cluster.AddNamespacedFlags(cmd.Flags())
	cmd.Flags().StringVar(&d.from, "from", "", "the revision, by number, or the content of an object, by its digest (default: the one before)")
	cmd.Flags().StringVar(&d.to, "to", "", "the revision or the content to compare it with (default: the present one)")
	cmd.Flags().BoolVar(&d.values, "values", false, "show the values of ConfigMaps too")
	command.OutputFlag(cmd, &d.output)
	return cmd
}

func (d *diffing) run(cmd *cobra.Command, arg string) error {
	ref, err := command.Wanted("compare", arg, RevisionKinds, "")
	if err != nil {
		return err
	}
	c, namespace, err := d.cluster.Connect()
	if err != nil {
		return err
	}
	ref.Namespace = namespace
	differ := &revisions.Differ{Reader: c, Namespace: ref.Namespace, Values: d.values}
	diff := revisionDiff{Ref: ref}
	if kind := content.Kind(ref.Kind); kind == content.ConfigMap || kind == content.Secret {
		err = d.ofObject(cmd.Context(), c, differ, &diff)
	} else {
		err = d.ofWorkload(cmd.Context(), c, differ, &diff)
	}
	if err != nil {
		return err
	}
	return command.Show(cmd.OutOrStdout(), d.output, diff, func(w io.Writer) { writeRevisionDiff(w, display.StyleOf(w, d.env.Lookup), &diff) })
}

func (d *diffing) ofWorkload(ctx context.Context, c client.Client, differ *revisions.Differ, diff *revisionDiff) error {
	obj := workload.New(diff.Kind)
	obj.SetNamespace(diff.Namespace)
	obj.SetName(diff.Name)
	if err := act.Get(ctx, c, obj); err != nil {
		return err
	}
	all, err := revisions.Of(ctx, c, obj)
	if err != nil {
		return err
	}
	to := current(all, obj)
	if d.to != "" {
		if to, err = act.Numbered(all, diff.Ref, "--to", d.to); err != nil {
			return err
		}
	}
	from := before(all, to)
	if d.from != "" {
		if from, err = act.Numbered(all, diff.Ref, "--from", d.from); err != nil {
			return err
		}
	}
	if from == nil {
		return fmt.Errorf("%s has no earlier revision", diff.Ref)
	}
	for _, r := range []*revisions.Revision{from, to} {
		if len(r.Pins) == 0 {
			return fmt.Errorf("%s of %s has no pins, so its config is not known", called(r), diff.Ref)
		}
	}
	diff.From, diff.To = called(from), called(to)
	diff.Template = !equality.Semantic.DeepEqual(workload.BareTemplate(&from.Template), workload.BareTemplate(&to.Template))
	diff.Objects, err = differ.Pins(ctx, from.Pins, to.Pins)
	return err
}

// current is the present Pod template, also if its controller has not kept it yet.
func current(all []revisions.Revision, obj client.Object) *revisions.Revision {
	for i := range all {
		if all[i].Current {
			return &all[i]
		}
	}
	r := revisions.Present(obj)
	return &r
}

// before is the newest revision that is older than another one, nil if none is kept.
func before(all []revisions.Revision, than *revisions.Revision) *revisions.Revision {
	for i := range all {
		if r := &all[i]; !r.Current && (than.Number == 0 || r.Number < than.Number) {
			return r
		}
	}
	return nil
}

func called(r *revisions.Revision) string {
	if r.Number == 0 {
		return "the present Pod template"
	}
	return fmt.Sprintf("revision %d", r.Number)
}

// Returnable are what --from and --to can name: the numbers of the revisions of a workload, the
// digests of the contents of an object, or the executions of an Instance; none if they cannot be
// read.
func Returnable(ctx context.Context, c client.Client, ref describe.Ref) []string {
	var names []string
	if ref.Kind == describe.KindInstance {
		i := &v1beta1.Instance{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, i); err != nil {
			return nil
		}
		return Returns(i)
	}
	if kind := content.Kind(ref.Kind); kind == content.ConfigMap || kind == content.Secret {
		known, err := contentsOf(ctx, c, ref)
		if err != nil {
			return nil
		}
		for _, p := range known.all() {
			names = append(names, p.Digest)
		}
		return names
	}
	obj := workload.New(ref.Kind)
	obj.SetNamespace(ref.Namespace)
	obj.SetName(ref.Name)
	if err := act.Get(ctx, c, obj); err != nil {
		return nil
	}
	all, err := revisions.Of(ctx, c, obj)
	if err != nil {
		return nil
	}
	for i := range all {
		names = append(names, strconv.FormatInt(all[i].Number, 10))
	}
	return names
}

func (d *diffing) ofObject(ctx context.Context, c client.Client, differ *revisions.Differ, diff *revisionDiff) error {
	known, err := contentsOf(ctx, c, diff.Ref)
	if err != nil {
		return err
	}
	to := known.present
	if d.to != "" {
		if to, err = known.named("--to", d.to); err != nil {
			return err
		}
	}
	from, ok := known.other(to)
	if d.from != "" {
		if from, err = known.named("--from", d.from); err != nil {
			return err
		}
	} else if !ok {
		return fmt.Errorf("%s has no snapshot of another content", diff.Ref)
	}
	diff.From, diff.To = "content "+from.Digest, "content "+to.Digest
	one, err := differ.Object(ctx, from, to)
	if err != nil {
		return err
	}
	diff.Objects = []revisions.Difference{one}
	return nil
}

type contents struct {
	ref describe.Ref
	// present is the pin of the object as it is, snapshots those that exist.
	present   pin.Pin
	snapshots revisions.Snapshots
}

func contentsOf(ctx context.Context, c client.Reader, ref describe.Ref) (*contents, error) {
	k, o := &contents{ref: ref}, ref.Content()
	var err error
	if k.present, err = revisions.PresentOf(ctx, c, o); err != nil {
		return nil, err
	}
	all, err := revisions.SnapshotsIn(ctx, c, ref.Namespace)
	if err != nil {
		return nil, err
	}
	if k.snapshots = all.Of(o.Kind, o.Name); !k.present.HasSnapshot() && len(k.snapshots) == 0 {
		return nil, fmt.Errorf("%s not found in namespace %s, and it has no snapshot", ref, ref.Namespace)
	}
	return k, nil
}

func (k *contents) other(than pin.Pin) (pin.Pin, bool) {
	for i := range k.snapshots {
		if k.snapshots[i].Pin != than {
			return k.snapshots[i].Pin, true
		}
	}
	return pin.Pin{}, false
}

// shortest is how many digits of a digest name a content.
const shortest = 4

// named is the content of which the digest begins with a text.
func (k *contents) named(flag, text string) (pin.Pin, error) {
	var found []pin.Pin
	var known []string
	for _, p := range k.all() {
		known = append(known, p.Digest)
		if strings.HasPrefix(p.Digest, pin.ShortDigest(text)) {
			found = append(found, p)
		}
	}
	switch {
	case len(text) < shortest:
		return pin.Pin{}, fmt.Errorf("%s: %q is too short for a digest; choose from %s", flag, text, strings.Join(known, ", "))
	case len(found) != 1:
		return pin.Pin{}, fmt.Errorf("%s: no snapshot %s of %s exists; choose from %s", flag, text, k.ref, strings.Join(known, ", "))
	default:
		return found[0], nil
	}
}

func (k *contents) all() []pin.Pin {
	var pins []pin.Pin
	if k.present.HasSnapshot() {
		pins = append(pins, k.present)
	}
	for i := range k.snapshots {
		if p := k.snapshots[i].Pin; p != k.present {
			pins = append(pins, p)
		}
	}
	return pins
}

func writeRevisionDiff(w io.Writer, s display.Style, d *revisionDiff) {
	_, _ = fmt.Fprintln(w, s.Paint(display.Bold, fmt.Sprintf("%s: %s to %s", d.Ref, d.From, d.To)))
	if d.Template {
		_, _ = fmt.Fprintln(w, "  the Pod template differs in more than its config; kubectl rollout history shows it")
	}
	if len(d.Objects) == 0 {
		_, _ = fmt.Fprintln(w, "  no config differs")
	}
	for i := range d.Objects {
		writeObject(w, &d.Objects[i])
	}
}

func writeObject(w io.Writer, d *revisions.Difference) {
	_, _ = fmt.Fprintf(w, "  %s %s: %s to %s\n", d.Kind, d.Name, d.From, d.To)
	for _, part := range []struct {
		word string
		keys []string
	}{{"added", d.Added}, {"changed", d.Changed}, {"removed", d.Removed}} {
		for _, key := range part.keys {
			_, _ = fmt.Fprintf(w, "    %-8s %s\n", part.word, display.Plain(key+valueText(d, key)))
		}
	}
	switch {
	case d.Unknown != "":
		_, _ = fmt.Fprintln(w, "    "+d.Unknown)
	case len(d.Added)+len(d.Changed)+len(d.Removed) == 0:
		_, _ = fmt.Fprintln(w, "    no key differs")
	}
}

func valueText(d *revisions.Difference, key string) string {
	quoted := func(v *string) string {
		if v == nil {
			return "none"
		}
		return strconv.Quote(*v)
	}
	for i := range d.Values {
		if v := &d.Values[i]; v.Key == key {
			return ": " + quoted(v.From) + " to " + quoted(v.To)
		}
	}
	return ""
}

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

func (r *revisionRollback) instance(cmd *cobra.Command, name string) error {
	b := &back{to: r.to, operation: operation{
		env: r.Env, cluster: r.Cluster, output: r.Output, dryRun: r.DryRun, wait: r.wait, yes: r.yes, timeout: r.timeout,
	}}
	if err := b.connect(cmd); err != nil {
		return err
	}
	return b.run(cmd.Context(), name, r.Reason)
}

func (r *revisionRollback) sayf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...)+r.DryRun.Note())
}

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

func pinOf(obj client.Object, of pin.Pin) (pin.Pin, bool) {
	pins, err := pin.Parse(vocabulary.Pins.Get(workload.TemplateOf(obj).Annotations))
	if err != nil {
		return pin.Pin{}, false
	}
	return pins.Of(of.Kind, of.Name)
}
