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

	"github.com/rogpeppe/go-internal/diff"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/definition"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// difference is what a plan would do to an object.
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

// readAll reads the objects of a plan.
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

// write writes what would become of an object, if anything.
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

// text is an object as YAML, empty if there is none.
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

// isSecret is true of a Secret.
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
