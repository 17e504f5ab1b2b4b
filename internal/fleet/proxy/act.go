package proxy

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/assemblage"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/outcome"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// fieldOwner is who writes on workload clusters. There it is another than the manager
// of the cluster.
const fieldOwner = client.FieldOwner(kube.FieldOwner + "-hub")

// actor makes the writes.
type actor struct{ assemblage.Actor[Write] }

func newActor(c client.Client, live client.Reader) actor {
	return actor{assemblage.Actor[Write]{
		Client: c, Live: live, Kind: proxyKind, Status: statusOf, StatusFirst: true,
		Of: func(w *Write) (Act, string) { return w.Act, "" },
	}}
}

func statusOf(obj client.Object) *v1alpha1.AssemblageStatus {
	p, ok := obj.(*v1alpha1.ProxyAssemblage)
	if !ok {
		return nil
	}
	return &p.Status
}

// act makes the writes of a plan.
func (a actor) act(ctx context.Context, s *snapshot, p *Plan) assemblage.Results {
	return a.Act(ctx, assemblage.Pass[Write]{
		Read:  s.Proxy,
		Write: func(ctx context.Context, w *Write) error { return a.write(ctx, s, w) },
		Refused: func(refusals assemblage.Refusals) Plan {
			seen := *s.Observed
			seen.Refusal = refusals[""]
			return Decide(&seen)
		},
	}, p)
}

// write makes one write on the cluster.
func (a actor) write(ctx context.Context, s *snapshot, w *Write) error {
	switch w.Act {
	case Delete:
		return a.remove(ctx, s, w)
	case Disown:
		return a.disown(ctx, s, w)
	default:
		return a.send(ctx, s.conn, w)
	}
}

// send applies the Assemblage on the cluster, over the one that was seen. Where there is
// no such namespace, it makes one.
func (a actor) send(ctx context.Context, conn *cluster.Connection, w *Write) error {
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

func (a actor) apply(ctx context.Context, conn *cluster.Connection, w *Write) error {
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
func (a actor) remove(ctx context.Context, s *snapshot, w *Write) error {
	obj := &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{Namespace: s.Proxy.Namespace, Name: s.Proxy.Name}}
	err := s.conn.Delete(ctx, obj, ring.Preconditions(w.UID, w.ResourceVersion))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Assemblage %s: %w", obj.Name, err)
	}
	return nil
}

// disown removes the marks of the ProxyAssemblage from the Assemblage that was seen.
func (a actor) disown(ctx context.Context, s *snapshot, w *Write) error {
	obj := &v1alpha1.Assemblage{ObjectMeta: metav1.ObjectMeta{Namespace: s.Proxy.Namespace, Name: s.Proxy.Name}}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:null,%q:null,%q:null,%q:null,%q:null}}}`, w.UID,
		vocabulary.ProxiedBy.Native, vocabulary.ProxiedFor.Native, vocabulary.SentSyncs.Native, vocabulary.AppliedHash.Native, vocabulary.GivenUp.Native)
	err := s.conn.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), fieldOwner)
	if client.IgnoreNotFound(err) != nil && outcome.RefusalOf(err) == nil {
		return fmt.Errorf("disown Assemblage %s: %w", obj.Name, err)
	}
	return nil
}
