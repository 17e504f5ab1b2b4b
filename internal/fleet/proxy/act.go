package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// fieldOwner is who writes on workload clusters. There it is another than the manager
// of the cluster.
const fieldOwner = client.FieldOwner(kube.FieldOwner + "-hub")

// errConflict says that the decision was made from a view that is not the newest.
var errConflict = errors.New("conflict")

// actor makes the writes.
type actor struct {
	client client.Client
	live   client.Reader
}

// results records what became of the writes of a plan.
type results struct {
	// made is how many writes were made besides that of the status.
	made int
	// reported is true if the status was written.
	reported bool
	// err ended the pass; after it only the status was written, to show a refusal.
	err error
}

// act makes the writes if the ProxyAssemblage is unchanged since it was observed, and then
// writes the status, also when the cluster refuses a write.
func (a actor) act(ctx context.Context, o *Observed, conn *cluster.Connection, p *Plan) (d results) {
	if len(p.Writes) > 0 {
		if d.err = a.confirm(ctx, o.Proxy); d.err != nil {
			return d
		}
	}
	for _, w := range p.Writes {
		if d.err = conflictOr(a.write(ctx, o, conn, w)); d.err != nil {
			return a.actRefused(ctx, o, p, d, w)
		}
		d.made++
		if w.Act == AddFinalizer || w.Act == RemoveFinalizer || w.Act == Retire {
			return d // there is another version of the object now
		}
	}
	if p.Changes {
		d.err = conflictOr(a.writeStatus(ctx, o, p))
		d.reported = d.err == nil
	}
	return d
}

// actRefused writes into the status what the cluster refused, if that is why a write failed.
func (a actor) actRefused(ctx context.Context, o *Observed, p *Plan, d results, w Write) results {
	seen := *o
	seen.Refusal = outcome.RefusalOf(d.err)
	if seen.Refusal == nil || w.Act != Send && w.Act != Delete {
		return d
	}
	if *p = Decide(&seen); p.Changes {
		err := conflictOr(a.writeStatus(ctx, o, p))
		d.reported, d.err = err == nil, errors.Join(d.err, err)
	}
	return d
}

func conflictOr(err error) error {
	if apierrors.IsConflict(err) {
		return errConflict
	}
	return err
}

// confirm asks the API server whether the ProxyAssemblage is unchanged since it was observed.
func (a actor) confirm(ctx context.Context, seen *v1alpha1.ProxyAssemblage) error {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ProxyAssemblage"))
	err := a.live.Get(ctx, client.ObjectKeyFromObject(seen), head)
	switch {
	case apierrors.IsNotFound(err):
		return errConflict
	case err != nil:
		return fmt.Errorf("confirm the ProxyAssemblage: %w", err)
	case head.UID != seen.UID || head.ResourceVersion != seen.ResourceVersion:
		return errConflict
	default:
		return nil
	}
}

// write makes one write.
func (a actor) write(ctx context.Context, o *Observed, conn *cluster.Connection, w Write) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch w.Act {
	case Send:
		return a.send(ctx, conn, w)
	case Retire:
		return a.retire(ctx, o)
	case Delete:
		return a.remove(ctx, o, conn, w)
	case Disown:
		return a.disown(ctx, o, conn, w)
	default:
		return a.finalize(ctx, o, w.Act == AddFinalizer)
	}
}

// send applies the Assemblage on the cluster, over the one that was seen. Where there is
// no such namespace, it makes one.
func (a actor) send(ctx context.Context, conn *cluster.Connection, w Write) error {
	err := a.apply(ctx, conn, w)
	if w.UID != "" || !apierrors.IsNotFound(err) {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Object.GetNamespace()}}
	if err := conn.Create(ctx, ns, fieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s on the cluster: %w", ns.Name, err)
	}
	return a.apply(ctx, conn, w)
}

func (a actor) apply(ctx context.Context, conn *cluster.Connection, w Write) error {
	u := w.Object.DeepCopy()
	if w.UID != "" {
		u.SetUID(w.UID)
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("encode Assemblage: %w", err)
	}
	obj := &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName()}}
	if err := conn.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, raw), fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("send Assemblage %s: %w", u.GetName(), err)
	}
	return nil
}

// remove deletes the Assemblage as it was seen, with nothing in it.
func (a actor) remove(ctx context.Context, o *Observed, conn *cluster.Connection, w Write) error {
	obj := &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{Namespace: o.Proxy.Namespace, Name: o.Proxy.Name}}
	err := conn.Delete(ctx, obj, client.Preconditions{UID: &w.UID, ResourceVersion: &w.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Assemblage %s: %w", obj.Name, err)
	}
	return nil
}

// disown removes the marks of the ProxyAssemblage from the Assemblage that was seen.
func (a actor) disown(ctx context.Context, o *Observed, conn *cluster.Connection, w Write) error {
	obj := &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{Namespace: o.Proxy.Namespace, Name: o.Proxy.Name}}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:null,%q:null}}}`, w.UID, vocabulary.ProxiedBy.Native, vocabulary.AppliedHash.Native)
	err := conn.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), fieldOwner)
	if client.IgnoreNotFound(err) != nil && outcome.RefusalOf(err) == nil {
		return fmt.Errorf("disown Assemblage %s: %w", obj.Name, err)
	}
	return nil
}

// retire deletes the ProxyAssemblage as it was seen.
func (a actor) retire(ctx context.Context, o *Observed) error {
	uid, version := o.Proxy.UID, o.Proxy.ResourceVersion
	err := a.client.Delete(ctx, o.Proxy.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("retire the ProxyAssemblage: %w", err)
	}
	return nil
}

// finalize adds or removes the finalizer of the ProxyAssemblage as it was seen.
func (a actor) finalize(ctx context.Context, o *Observed, add bool) error {
	changed := o.Proxy.DeepCopy()
	if add {
		controllerutil.AddFinalizer(changed, vocabulary.AssemblageFinalizer)
	} else {
		controllerutil.RemoveFinalizer(changed, vocabulary.AssemblageFinalizer)
	}
	patch := client.MergeFromWithOptions(o.Proxy, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(a.client.Patch(ctx, changed, patch, client.FieldOwner(kube.FieldOwner))); err != nil {
		return fmt.Errorf("write the finalizer: %w", err)
	}
	return nil
}

// writeStatus writes the status of the ProxyAssemblage as it was seen.
func (a actor) writeStatus(ctx context.Context, o *Observed, p *Plan) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	changed := o.Proxy.DeepCopy()
	changed.Status = p.Status
	if err := client.IgnoreNotFound(a.client.Status().Update(ctx, changed, client.FieldOwner(kube.FieldOwner))); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}
