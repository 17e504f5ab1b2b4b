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
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/task"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// difference is what a plan would do to an object.
type difference struct {
	ref object.Ref
	// before and after are the object as it is and as it would be, nil if it does not exist.
	before, after *unstructured.Unstructured
	// refused is why the API server would not accept the change, empty if it would.
	refused string
	// deletedFirst: the plan deletes the object before it applies it, so that no field of it
	// is immutable.
	deletedFirst bool
	// recreated: an immutable field would change, and the template permits the manager to
	// replace the object for that.
	recreated bool
	// unknown is why it is not known what would become of the object.
	unknown string
}

// differences are what a plan would do to objects in the end, by server-side dry run.
func (o *operation) differences(ctx context.Context, i *v1beta1.Instance, version *choice.Version, plan string) ([]difference, error) {
	live := map[object.Ref]*unstructured.Unstructured{}
	previews, err := o.previewOf(i, version, plan, live)
	if err != nil {
		return nil, err
	}
	if err := o.readAll(ctx, live, previews); err != nil {
		return nil, err
	}
	if previews, err = o.previewOf(i, version, plan, live); err != nil { // what exists keeps some annotations
		return nil, err
	}
	defined := definedBy(previews)
	all := inTheEnd(previews, live)
	for k := range all {
		if all[k].after != nil {
			o.judge(ctx, i, &all[k], defined)
		}
	}
	pruned, err := o.pruned(ctx, i, version, plan, live)
	return append(all, pruned...), err
}

// inTheEnd are the objects of a plan as its last task with each of them leaves it.
func inTheEnd(previews []task.Preview, live map[object.Ref]*unstructured.Unstructured) []difference {
	var all []difference
	for _, p := range previews {
		for _, u := range p.Objects {
			d := difference{ref: object.RefOf(u), before: live[object.RefOf(u)]}
			if !p.Deletes {
				d.after = u
			}
			if at := slices.IndexFunc(all, func(other difference) bool { return other.ref == d.ref }); at >= 0 {
				d.deletedFirst = d.after != nil && (all[at].after == nil || all[at].deletedFirst)
				all = slices.Delete(all, at, at+1)
			}
			all = append(all, d)
		}
	}
	return all
}

// judge lets the API server say what would become of an object.
func (o *operation) judge(ctx context.Context, i *v1beta1.Instance, d *difference, defined map[schema.GroupKind]bool) {
	if defined[d.ref.GroupKind()] && d.before == nil || d.deletedFirst && d.before != nil {
		return // the API server would judge another object
	}
	after := d.after.DeepCopy()
	mayRecreate := vocabulary.OnImmutable.Get(after.GetAnnotations()) == "recreate"
	err := o.try(ctx, i, after)
	var (
		status  apierrors.APIStatus
		retired retiredError
	)
	switch {
	case err == nil:
		d.after = after
		return
	case errors.As(err, &retired):
		d.refused = err.Error()
		return
	case apierrors.IsForbidden(err), !errors.As(err, &status):
		d.unknown = err.Error()
		return
	}
	write := task.Write{Act: task.Apply, Ref: d.ref}
	if d.before != nil {
		write.UID = d.before.GetUID()
	}
	refusal, _ := task.Classify(err, write, write.UID, o.env.Now())
	switch {
	case refusal == nil:
		d.unknown = err.Error()
	case refusal.Immutable != "" && mayRecreate:
		d.recreated = true
	case refusal.Immutable != "":
		d.refused = fmt.Sprintf("an immutable field would change (%s); to replace the object, annotate it in its template with %s=recreate", refusal.Reason, vocabulary.OnImmutable.Native)
	default:
		d.refused = refusal.Reason
	}
}

// readAll reads the objects of a plan.
func (o *operation) readAll(ctx context.Context, live map[object.Ref]*unstructured.Unstructured, previews []task.Preview) error {
	for _, p := range previews {
		for _, u := range p.Objects {
			if err := o.readInto(ctx, live, object.RefOf(u)); err != nil {
				return err
			}
		}
	}
	return nil
}

// readInto reads an object, nil if it does not exist.
func (o *operation) readInto(ctx context.Context, live map[object.Ref]*unstructured.Unstructured, ref object.Ref) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.GroupVersionKind)
	err := o.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, u)
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
func (o *operation) pruned(ctx context.Context, i *v1beta1.Instance, version *choice.Version, plan string, live map[object.Ref]*unstructured.Unstructured) ([]difference, error) {
	values, _ := choice.Values(version.Spec, i.Spec.Parameters, i.Status.ImmutableParameters) // judged before
	run := task.Run{
		Snapshot:  &task.Snapshot{Instance: i, Objects: live, Kinds: map[schema.GroupVersionKind]object.Scope{}},
		Execution: &v1beta1.Execution{Plan: plan, Spec: i.Spec, Advances: true}, Version: version, Values: values,
	}
	for range mostReads {
		f := run.Prune(i.Status.Inventory)
		if f.Needs.IsEmpty() {
			var all []difference
			for _, w := range f.Writes {
				all = append(all, difference{ref: w.Ref, before: live[w.Ref]})
			}
			return all, nil
		}
		for _, gvk := range f.Needs.Kinds {
			run.Snapshot.Kinds[gvk] = o.knownScope(gvk)
		}
		for _, ref := range f.Needs.Objects {
			if err := o.readInto(ctx, live, ref); err != nil {
				return nil, err
			}
		}
	}
	return nil, errors.New("too many objects would be pruned to list them")
}

func (o *operation) knownScope(gvk schema.GroupVersionKind) object.Scope {
	if _, err := o.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); apimeta.IsNoMatchError(err) {
		return object.NoSuchKind
	}
	return o.scope(gvk)
}

// checkImmutable refuses a change that the API server would refuse, before the plan that
// would fail at it. What the caller must not try is left to the manager.
func (u *upgrade) checkImmutable(ctx context.Context, i *v1beta1.Instance, version *choice.Version, plan string) error {
	if plan == "" || u.dryRun == dryRunClient {
		return nil
	}
	all, err := u.differences(ctx, i, version, plan)
	if err != nil {
		return err
	}
	u.tried = true
	var refusals []error
	for k := range all {
		switch d := &all[k]; {
		case d.refused != "":
			refusals = append(refusals, fmt.Errorf("plan %s would fail: %s: %s", plan, d.ref, d.refused))
		case d.unknown != "":
			_, _ = fmt.Fprintf(u.env.Err, "note: %s is not checked: %s\n", d.ref, d.unknown)
		case d.recreated:
			_, _ = fmt.Fprintf(u.env.Err, "note: %s would be deleted and created again, because an immutable field changes\n", d.ref)
		}
	}
	return errors.Join(refusals...)
}
