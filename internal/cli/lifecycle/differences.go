package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/definition"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/plans/write"
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
