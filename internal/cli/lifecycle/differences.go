package lifecycle

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/packages"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/definition"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/shell"
	"github.com/spillway-dev/spillway/internal/source"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

type difference struct {
	Ref object.Ref
	// before and after are the object as it is and as it would be, nil if it does not exist.
	before, after *unstructured.Unstructured
	// Refused is why the API server would not accept the change, empty if it would.
	Refused string
	// deletedFirst: the plan deletes the object before it applies it, so that no field of it
	// is immutable.
	deletedFirst bool
	// Recreated: an immutable field would change, and the template permits the manager to
	// replace the object for that.
	Recreated bool
	// Unknown is why it is not known what would become of the object, Unchecked why it is not known
	// whether objects of its kind would stay valid.
	Unknown, Unchecked string
}

// differences are what a plan would do to objects in the end, by server-side dry run.
func (t trial) differences(ctx context.Context, i *v1beta1.Instance, version *choice.Version, plan string) ([]difference, error) {
	live := map[object.Ref]*unstructured.Unstructured{}
	previews, err := t.render(i, version, plan, live)
	if err != nil {
		return nil, err
	}
	if err := t.readAll(ctx, live, previews); err != nil {
		return nil, err
	}
	if previews, err = t.render(i, version, plan, live); err != nil { // what exists keeps some annotations
		return nil, err
	}
	defined := definedBy(previews)
	all := inTheEnd(previews, live)
	for k := range all {
		if all[k].after != nil {
			t.judge(ctx, i, &all[k], defined)
		}
	}
	pruned, err := t.pruned(ctx, i, version, plan, live)
	return append(all, pruned...), err
}

// inTheEnd are the objects of a plan as its last task with each of them leaves it.
func inTheEnd(previews []task.Preview, live map[object.Ref]*unstructured.Unstructured) []difference {
	var all []difference
	for _, p := range previews {
		for _, u := range p.Objects {
			d := difference{Ref: object.RefOf(u), before: live[object.RefOf(u)], deletedFirst: p.IsHook}
			if !p.Deletes {
				d.after = u
			}
			if at := slices.IndexFunc(all, func(other difference) bool { return other.Ref == d.Ref }); at >= 0 {
				d.deletedFirst = d.after != nil && (all[at].after == nil || all[at].deletedFirst)
				all = slices.Delete(all, at, at+1)
			}
			all = append(all, d)
		}
	}
	return all
}

// judge lets the API server say what would become of an object.
func (t trial) judge(ctx context.Context, i *v1beta1.Instance, d *difference, defined map[schema.GroupKind]bool) {
	if defined[d.Ref.GroupKind()] && d.before == nil || d.deletedFirst && d.before != nil {
		return // the API server would judge another object
	}
	if t.breaks(ctx, i, d); d.Refused != "" || d.Unknown != "" {
		return
	}
	after := d.after.DeepCopy()
	err := t.try(ctx, i, after)
	var (
		status  apierrors.APIStatus
		retired retiredError
	)
	switch {
	case err == nil:
		d.after = after
		return
	case errors.As(err, &retired):
		d.Refused = err.Error()
		return
	case apierrors.IsForbidden(err), !errors.As(err, &status):
		d.Unknown = err.Error()
		return
	}
	apply := write.Write{Act: write.Apply, Ref: d.Ref}
	if d.before != nil {
		apply.UID = d.before.GetUID()
	}
	refusal, _ := write.Classify(err, apply, apply.UID, t.Now())
	switch {
	case refusal == nil:
		d.Unknown = err.Error()
	case refusal.Immutable != "":
		if action := task.ReplaceAction(d.after, d.before); action != "" {
			d.Refused = fmt.Sprintf("an immutable field would change (%s); %s", refusal.Reason, action)
		} else {
			d.Recreated = true
		}
	default:
		d.Refused = refusal.Reason
	}
}

// breaks says whether the change of a CustomResourceDefinition would make objects invalid.
func (t trial) breaks(ctx context.Context, i *v1beta1.Instance, d *difference) {
	if d.before == nil || d.Ref.GroupKind() != object.CRDKind || !definition.IsNarrowed(d.before, d.after) {
		return
	}
	result, err := definition.Change{Live: d.before, Wanted: d.after, Owns: (&task.Snapshot{Instance: i}).IsOwned}.Check(ctx, t.Client)
	if err != nil {
		d.Unknown = err.Error()
	}
	d.Refused, d.Unchecked = result.Breaks, result.Unchecked
}

func (t trial) readAll(ctx context.Context, live map[object.Ref]*unstructured.Unstructured, previews []task.Preview) error {
	for _, p := range previews {
		for _, u := range p.Objects {
			if err := t.readInto(ctx, live, object.RefOf(u)); err != nil {
				return err
			}
		}
	}
	return nil
}

// readInto reads an object, nil if it does not exist.
func (t trial) readInto(ctx context.Context, live map[object.Ref]*unstructured.Unstructured, ref object.Ref) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.GroupVersionKind)
	err := t.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u)
	switch {
	case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err):
		live[ref] = nil
	case err != nil:
		return fmt.Errorf("get %s: %w", ref, err)
	default:
		live[ref] = u
	}
	return nil
}

// mostReads bounds how often more is read for one decision.
const mostReads = 10

// pruned are the objects that the Instance has applied and that no plan would apply any
// more.
func (t trial) pruned(ctx context.Context, i *v1beta1.Instance, version *choice.Version, plan string, live map[object.Ref]*unstructured.Unstructured) ([]difference, error) {
	values, _ := choice.Values(version.Spec, choice.WithTokens(&i.Spec), i.Status.ImmutableParameters) // judged before
	run := task.Run{
		Snapshot:  &task.Snapshot{Instance: i, Objects: live, Kinds: map[schema.GroupVersionKind]object.Scope{}},
		Execution: &v1beta1.Execution{Plan: plan, Spec: i.Spec, Advances: true}, Version: version, Values: values,
	}
	for range mostReads {
		f := run.Prune(i.Status.Inventory)
		if f.Needs.IsEmpty() {
			var all []difference
			for _, w := range f.Writes {
				all = append(all, difference{Ref: w.Ref, before: live[w.Ref]})
			}
			return all, nil
		}
		for _, gvk := range f.Needs.Kinds {
			run.Snapshot.Kinds[gvk] = t.knownScope(gvk)
		}
		for _, ref := range f.Needs.Objects {
			if err := t.readInto(ctx, live, ref); err != nil {
				return nil, err
			}
		}
	}
	return nil, errors.New("too many objects would be pruned to list them")
}

func (t trial) knownScope(gvk schema.GroupVersionKind) object.Scope {
	if _, err := t.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); apimeta.IsNoMatchError(err) {
		return object.NoSuchKind
	}
	return t.scope(gvk)
}

func (d *difference) write(w io.Writer) {
	name := strings.ToLower(d.Ref.Kind) + "/" + d.Ref.Name
	switch {
	case d.Refused != "":
		_, _ = fmt.Fprintf(w, "%s would be refused: %s\n", name, d.Refused)
		return
	case d.Unknown != "":
		_, _ = fmt.Fprintf(w, "%s is not compared: %s\n", name, d.Unknown)
		return
	case d.before == nil && d.after == nil:
		return
	case d.after == nil:
		_, _ = fmt.Fprintf(w, "%s would be deleted\n", name)
		return
	case d.Recreated:
		_, _ = fmt.Fprintf(w, "%s would be deleted and created again, because an immutable field changes\n", name)
	case d.before == nil:
		_, _ = fmt.Fprintf(w, "%s would be created\n", name)
	case d.Unchecked != "":
		_, _ = fmt.Fprintf(w, "%s: it is not known whether objects stay valid: %s\n", name, d.Unchecked)
	}
	before, after := stripped(d.before), stripped(d.after)
	hideTokens(before, after)
	before, after = withoutValues(before, after)
	_, lines, _ := bytes.Cut(diff.Diff(name+" now", text(before), name+" then", text(after)), []byte("\n")) // the first names both again
	_, _ = w.Write(lines)
}

// stripped is an object without what the API server and the manager set on their own.
func stripped(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	c := u.DeepCopy()
	unstructured.RemoveNestedField(c.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "ownerReferences", "selfLink"} {
		unstructured.RemoveNestedField(c.Object, "metadata", field)
	}
	for _, key := range []string{vocabulary.PlanAnnotation, vocabulary.PhaseAnnotation, vocabulary.StepAnnotation, vocabulary.ExecutionAnnotation} {
		unstructured.RemoveNestedField(c.Object, "metadata", "annotations", key)
	}
	unstructured.RemoveNestedField(c.Object, "spec", "template", "metadata", "creationTimestamp")
	return c
}

func text(u *unstructured.Unstructured) []byte {
	if u == nil {
		return nil
	}
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimLeft(raw, "\n")
}

// withoutValues are two states of an object without the values of a Secret: whether they differ is
// all that is shown.
func withoutValues(before, after *unstructured.Unstructured) (_, _ *unstructured.Unstructured) {
	if isSecret(before) || isSecret(after) {
		mask(before, after, hiddenText)
		for _, u := range []*unstructured.Unstructured{before, after} {
			if u != nil {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", vocabulary.LastAppliedConfiguration)
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
			}
		}
	}
	return before, after
}

func isSecret(u *unstructured.Unstructured) bool {
	return u != nil && u.GroupVersionKind().GroupKind() == object.SecretKind
}

// mask replaces the values of Secrets: equal ones by the same text.
func mask(before, after *unstructured.Unstructured, text string) {
	for _, field := range []string{"data", "stringData"} {
		old, was := fieldsOf(before, field), fieldsOf(after, field)
		for key, value := range was {
			if other, ok := old[key]; ok && other != value {
				was[key] = text + " changed"
			} else {
				was[key] = text
			}
		}
		for key := range old {
			old[key] = text
		}
	}
}

func fieldsOf(u *unstructured.Unstructured, field string) map[string]any {
	if u == nil {
		return nil
	}
	fields, _ := u.Object[field].(map[string]any)
	return fields
}

// hiddenText stands where a value is that may be secret.
const hiddenText = "(hidden)"

// hideTokens hides what parameters from Secrets, which are not read here, make: where what would be
// applied has a token, what exists perhaps has the value.
func hideTokens(before, after *unstructured.Unstructured) {
	switch {
	case after == nil:
	case before == nil:
		after.Object, _ = hidden(nil, after.Object)
	default:
		after.Object, before.Object = hidden(before.Object, after.Object)
	}
}

// hidden returns both states of a map without what stands at the places of tokens.
func hidden(live, wanted map[string]any) (after, before map[string]any) {
	for key, value := range wanted {
		other, is := live[key]
		if wanted[key], other = hide(other, value); is {
			live[key] = other
		}
	}
	return wanted, live
}

// hide is hidden for a value of any type.
func hide(live, wanted any) (after, before any) {
	switch at := wanted.(type) {
	case string:
		raw, err := base64.StdEncoding.DecodeString(at)
		if choice.HasToken(at) || err == nil && choice.HasToken(string(raw)) {
			return hiddenText, hiddenText
		}
	case map[string]any:
		if other, ok := live.(map[string]any); ok || live == nil {
			after, before := hidden(other, at)
			return after, before
		}
	case []any:
		other, _ := live.([]any)
		for i := range at {
			if i < len(other) {
				at[i], other[i] = hide(other[i], at[i])
			} else {
				at[i], _ = hide(nil, at[i])
			}
		}
	}
	return wanted, live
}

func newDiff(env command.Environment) *cobra.Command {
	u := &upgrade{operation: operation{env: env}, allowDowngrade: true}
	cmd := &cobra.Command{
		Use: "diff instance/NAME [PACKAGE]", Short: "Show what other parameters or another version would change",
		Long: "Show the plan that other parameters or another version of the package would run, and how\n" +
			"objects would change, by server-side dry run. Immutable fields that would change are named.\n" +
			"Nothing is written. Values of Secrets are not shown. Where no plan would run, objects are\n" +
			"shown that other clients have changed or deleted since they were applied. The exit code is\n" +
			"0, also if there are differences, or 1 with an error if the plan would fail.",
		Example: "  spillway package diff instance/zk -n shop -p NODE_COUNT=5\n" +
			"  spillway package diff instance/zk zookeeper-0.4.0.tgz -n shop",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name the Instance, as in: spillway package diff instance/zk -p NAME=VALUE")
			}
			return command.AtMost(2, "name the Instance, and a package")(cmd, args)
		},
		RunE: u.connected(u.diff),
	}
	u.addFlags(cmd)
	u.from.AddFlags(cmd.Flags())
	u.settings.addFlags(cmd)
	u.addUnset(cmd)
	return cmd
}

func (u *upgrade) diff(ctx context.Context, args []string) error {
	i := u.instance(args[0])
	if err := u.get(ctx, i); err != nil {
		return err
	}
	former, err := u.formerOf(ctx, i)
	if err != nil {
		return err
	}
	next, err := u.wantedVersion(ctx, i, args[1:])
	if err != nil {
		return err
	}
	chosen, err := u.propose(i, former, next)
	if err != nil {
		return err
	}
	if chosen.Plan == "" {
		_, _ = fmt.Fprintf(u.out, "instance/%s: no plan would run\n", i.Name)
		return u.drift(ctx, i, next)
	}
	_, _ = fmt.Fprintf(u.out, "instance/%s: plan %s would run (%s)\n", i.Name, chosen.Plan, chosen.Changed)
	if former != nil {
		for _, line := range parameterChanges(former.Spec, next.Spec) {
			_, _ = fmt.Fprintln(u.out, line)
		}
	}
	all, err := u.trial().differences(ctx, i, next, chosen.Plan)
	if err != nil {
		return err
	}
	refused := 0
	for k := range all {
		if all[k].Refused != "" {
			refused++
		}
		all[k].write(u.out)
	}
	if err := checkTasks(i, next.Spec, chosen.Plan); err != nil {
		return err
	}
	if refused > 0 {
		return fmt.Errorf("plan %s would fail: the API server would not accept %d of its objects", chosen.Plan, refused)
	}
	return nil
}

// drift shows which objects differ from what was applied, and how the plan deploy would change them.
func (u *upgrade) drift(ctx context.Context, i *v1beta1.Instance, version *choice.Version) error {
	d := i.Status.Drift
	if d == nil {
		return nil
	}
	_, _ = fmt.Fprintf(u.out, "instance/%s: %s; spillway plan trigger %s would change:\n",
		i.Name, task.DriftSentence(d), shell.Join(i.Name, v1beta1.DeployPlan, "-n", i.Namespace))
	all, err := u.trial().differences(ctx, i, version, v1beta1.DeployPlan)
	for k := range all {
		if slices.ContainsFunc(d.Objects, func(o v1beta1.DriftedObject) bool {
			return all[k].Ref.Same(object.EntryRef(v1beta1.InventoryEntry{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}))
		}) {
			all[k].write(u.out)
		}
	}
	return err
}

// wantedVersion is the OperatorVersion of the package that is named, or the one that the
// Instance has.
func (u *upgrade) wantedVersion(ctx context.Context, i *v1beta1.Instance, args []string) (*choice.Version, error) {
	if len(args) == 0 {
		return u.versionOf(ctx, i)
	}
	p, _, err := u.load(ctx, args[0])
	if err != nil {
		return nil, err
	}
	version, err := p.VersionObject()
	if err != nil {
		return nil, err
	}
	version.Namespace = u.namespace
	installed, err := u.versionAt(ctx, i.Namespace, &i.Spec)
	if err != nil {
		return nil, err
	}
	if installed != nil && installed.Name == version.Name && !packages.SameContent(installed.Spec, &version.Spec) {
		_, _ = fmt.Fprintf(u.env.Err, "note: operatorversion/%s exists with other content; upgrade needs a new operatorVersion in operator.yaml\n", version.Name)
	}
	if installed == nil || installed.Name != version.Name {
		return choice.NewVersion(version), u.checkSteps(ctx, i, version)
	}
	return choice.NewVersion(version), nil
}

// trial renders plans, and asks the API server by dry run what would become of objects.
type trial struct {
	// Client is nil where the API server must not be asked.
	Client client.Client
	Now    func() time.Time
}

// render renders a plan as it would run for an Instance. live are the objects that exist.
func (t trial) render(i *v1beta1.Instance, version *choice.Version, plan string, live map[object.Ref]*unstructured.Unstructured) ([]task.Preview, error) {
	values, problems := choice.Values(version.Spec, choice.WithTokens(&i.Spec), i.Status.ImmutableParameters)
	if len(problems) > 0 {
		return nil, fmt.Errorf("instance/%s: %s", i.Name, choice.Sentences(problems))
	}
	run := task.Run{
		Snapshot:  &task.Snapshot{Instance: i, Objects: live},
		Execution: &v1beta1.Execution{Plan: plan, Spec: i.Spec, Advances: true},
		Version:   version, Values: values,
	}
	previews, err := run.Preview(t.scope)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", plan, err)
	}
	return previews, nil
}

// scope asks the cluster where objects of a kind live, if there is one. A kind that is not
// known may be defined by the package; most are namespaced.
func (t trial) scope(gvk schema.GroupVersionKind) object.Scope {
	isNamespaced := source.IsNamespaced(gvk.GroupKind())
	if t.Client != nil {
		if mapping, err := t.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			isNamespaced = mapping.Scope.Name() == apimeta.RESTScopeNameNamespace
		}
	}
	if isNamespaced {
		return object.Namespaced
	}
	return object.ClusterScoped
}

// check lets the API server check an object, where it is asked and can know the kind.
func (t trial) check(ctx context.Context, i *v1beta1.Instance, u *unstructured.Unstructured, defined map[schema.GroupKind]bool) error {
	if t.Client == nil || defined[u.GroupVersionKind().GroupKind()] {
		return nil
	}
	return t.try(ctx, i, u.DeepCopy())
}

// definedBy are the kinds that CustomResourceDefinitions of the plan define: the API server
// does not know them yet.
func definedBy(previews []task.Preview) map[schema.GroupKind]bool {
	defined := map[schema.GroupKind]bool{}
	for _, p := range previews {
		for _, u := range p.Objects {
			if u.GroupVersionKind().GroupKind() != object.CRDKind {
				continue
			}
			group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
			defined[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return defined
}

// retiredError is that a kind is not served in this version, and never will be again.
type retiredError string

func (e retiredError) Error() string { return string(e) }

// try lets the API server check an object as the manager would apply it, and changes it to
// what it would be.
func (t trial) try(ctx context.Context, i *v1beta1.Instance, u *unstructured.Unstructured) error {
	_, err := write.Known(u, func() error {
		return t.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(write.FieldOwner(i.Name)), client.ForceOwnership, client.DryRunAll)
	})
	if advice := object.RetiredAdvice(u.GroupVersionKind()); apimeta.IsNoMatchError(err) && advice != "" {
		return retiredError(advice)
	}
	if apimeta.IsNoMatchError(err) {
		gvk := u.GroupVersionKind()
		return fmt.Errorf("the API server does not know kind %s of %s; install what defines it", gvk.Kind, gvk.GroupVersion())
	}
	return err
}
