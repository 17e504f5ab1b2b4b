package hub

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// actor makes all the writes of the ring. None of them waits until a cache shows
// it: what permits the next one is in the API server's answer.
type actor struct {
	kind   *kind
	client client.Client
	// live asks the API server itself, before something is taken away.
	live client.Reader
	now  func() time.Time
}

// act makes the writes of a pass, one after the other. The status comes last, unless
// it is what permits.
func (a *actor) act(ctx context.Context, s *snapshot, p *pass) (r results) {
	for _, write := range p.Writes {
		if write.Act == decision.AddFinalizer || write.Act == decision.RemoveFinalizer {
			r.Object, r.Err = a.finalizer(ctx, s, write.Act)
			return r
		}
		done := made{Write: write}
		err := a.apply(ctx, s, &done)
		r.Add(write.Change(), done, err)
		if err != nil && write.Act == decision.Note { // nothing is noted in a budget before it is in those before that
			return r
		}
	}
	if p.persist {
		r.Object, r.Err = ring.UpdateStatus(ctx, a.client.Status(), s.object, func(module client.Object) {
			_, status := model.Parts(module)
			p.Status.DeepCopyInto(status)
		})
	}
	return r
}

// finalizer adds or removes the finalizer, if no client has written the module since it
// was seen.
func (a *actor) finalizer(ctx context.Context, s *snapshot, act decision.Act) (client.Object, error) {
	changed, err := ring.SetFinalizer(ctx, a.client, s.object, vocabulary.ModuleFinalizer, act == decision.AddFinalizer, client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("%s of %s %s: %w", act, a.kind.name, s.key.Name, err)
	}
	if act == decision.RemoveFinalizer {
		return nil, nil //nolint:nilnil // it is gone
	}
	return changed, nil
}

// apply makes one write.
func (a *actor) apply(ctx context.Context, s *snapshot, m *made) error {
	w := &m.Write
	err := ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) error {
		switch w.Act {
		case decision.CreateRevision:
			return a.createRevision(ctx, s, w)
		case decision.AdoptRevision:
			return a.adoptRevision(ctx, s)
		case decision.DeleteRevision:
			return a.deleteRevision(ctx, s, w)
		case decision.Resolve:
			return a.resolve(ctx, s, w)
		case decision.CreateGate:
			return a.createGate(ctx, s, w)
		case decision.ReachGate:
			return a.noteInGate(ctx, s, w, "reachedAt")
		case decision.EndGate:
			return a.noteInGate(ctx, s, w, "endedAt")
		case decision.DeleteGate:
			g := &spillway.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: w.Target()}}
			return a.client.Delete(ctx, g, ring.Preconditions(w.UID, w.ResourceVersion), client.DisableReadYourWritesConsistency)
		case decision.Unassign:
			if err := a.confirm(ctx, s, w); err != nil {
				return err
			}
			return a.assemble(ctx, s, m)
		case decision.CreateAssemblage:
			return a.createAssemblage(ctx, s, w)
		case decision.Note:
			return a.note(ctx, s, w)
		case decision.Fence:
			return a.fence(ctx, s, w)
		default:
			return a.assemble(ctx, s, m)
		}
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", w.Act, w.Target(), err)
	}
	return nil
}

// note writes what the module is updating into a budget, if no other has written to that since.
func (a *actor) note(ctx context.Context, s *snapshot, w *decision.Write) error {
	b := s.clusterBudgets[w.Budget.Name].DeepCopy()
	modules := slices.DeleteFunc(b.Status.Modules, func(m spillway.BudgetModule) bool { return m.Kind == a.kind.name && m.Name == s.key.Name })
	if w.Note != nil {
		modules = append(modules, *w.Note)
	}
	b.Status.Modules = modules
	return a.client.Status().Update(ctx, b, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// createRevision makes what a module says now into something that does not change.
// If another manager is faster, its revision is the same.
func (a *actor) createRevision(ctx context.Context, s *snapshot, w *decision.Write) error {
	r := &spillway.ModuleRevision{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: w.Revision}}
	r.OwnerReferences = []metav1.OwnerReference{a.ownerOf(s)}
	if writer := model.WriterOf(s.object); writer != "" {
		r.Annotations = map[string]string{vocabulary.WrittenBy.Native: writer}
	}
	r.Spec = spillway.ModuleRevisionSpec{
		ModuleRef: spillway.ModuleReference{Kind: a.kind.name, Name: s.key.Name}, Number: w.Number, Template: s.Module.Template(),
	}
	return a.client.Create(ctx, r, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// adoptRevision makes a revision ours that was orphaned, with what is known of its tag.
func (a *actor) adoptRevision(ctx context.Context, s *snapshot) error {
	r := s.unowned.DeepCopy()
	patch := client.MergeFromWithOptions(s.unowned, client.MergeFromWithOptimisticLock{})
	r.OwnerReferences = append(r.OwnerReferences, a.ownerOf(s))
	return a.client.Patch(ctx, r, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// ownerOf is the module as the owner of its revisions.
func (a *actor) ownerOf(s *snapshot) metav1.OwnerReference {
	owner := *metav1.NewControllerRef(s.object, v1alpha1.GroupVersion.WithKind(a.kind.name))
	owner.BlockOwnerDeletion = nil
	return owner
}

// deleteRevision deletes a revision that nothing needs, if the module is as it was seen:
// what it needs stands in its spec and its status, and no precondition of the revision tells
// that a view of these is old.
func (a *actor) deleteRevision(ctx context.Context, s *snapshot, w *decision.Write) error {
	m, err := a.liveModule(ctx, s)
	if err != nil {
		return err
	}
	if m.GetResourceVersion() != s.Module.ResourceVersion {
		return errChanged
	}
	seen := s.revisions[w.Revision]
	return a.client.Delete(ctx, seen.DeepCopy(), ring.Preconditions(seen.UID, seen.ResourceVersion), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

func (a *actor) resolve(ctx context.Context, s *snapshot, w *decision.Write) error {
	r := s.revisions[w.Revision].DeepCopy()
	r.Status.Resolved = w.Resolved
	return a.client.Status().Update(ctx, r, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// createGate creates a RolloutGate for a user or another client to decide. It is deleted
// with its revision.
func (a *actor) createGate(ctx context.Context, s *snapshot, w *decision.Write) error {
	revision := s.revisions[w.Revision]
	g := &spillway.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: w.Target()}}
	g.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(revision, spillway.GroupVersion.WithKind("ModuleRevision"))}
	g.OwnerReferences[0].BlockOwnerDeletion = nil
	g.Spec = spillway.RolloutGateSpec{
		TargetRef: spillway.TargetReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: a.kind.name, Name: s.key.Name},
		Revision:  w.Revision, Stage: w.Stage, Gate: w.Gate.Name, When: string(model.GateTime(w.Gate)),
	}
	return a.client.Create(ctx, g, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// noteInGate notes when the rollout has come to a gate, or its stage is over, if no client has
// decided it meanwhile.
func (a *actor) noteInGate(ctx context.Context, s *snapshot, w *decision.Write, field string) error {
	g := &spillway.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: w.Target()}}
	patch, err := ring.MergePatch(w.UID, w.ResourceVersion, map[string]any{"spec": map[string]any{field: metav1.NewMicroTime(w.At)}})
	if err != nil {
		return err
	}
	return a.client.Patch(ctx, g, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}
