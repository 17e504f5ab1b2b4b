package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	spillway "github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// errTooLate is the outcome of a write whose time is over.
var errTooLate = errors.New("what permits it is too old")

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
func (a *actor) act(ctx context.Context, s *sight, p *pass) *deeds {
	d := &deeds{}
	for _, write := range p.Writes {
		if write.Act == AddFinalizer || write.Act == RemoveFinalizer {
			d.object, d.err = a.finalizer(ctx, s, write.Act)
			return d
		}
		d.outcomes = append(d.outcomes, a.apply(ctx, s, &write))
	}
	if p.persist {
		d.object, d.err = a.persist(ctx, s.object, &p.Status)
	}
	return d
}

// finalizer adds or removes the finalizer, if nobody has written the module since it
// was seen.
func (a *actor) finalizer(ctx context.Context, s *sight, act Act) (client.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	changed, ok := s.object.DeepCopyObject().(client.Object)
	if !ok {
		return nil, errors.New("a copy of an object is none")
	}
	if act == AddFinalizer {
		controllerutil.AddFinalizer(changed, vocabulary.ModuleFinalizer)
	} else {
		controllerutil.RemoveFinalizer(changed, vocabulary.ModuleFinalizer)
	}
	patch := client.MergeFromWithOptions(s.object, client.MergeFromWithOptimisticLock{})
	if err := a.client.Patch(ctx, changed, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("%s of %s %s: %w", act, a.kind.name, s.key.Name, err)
	}
	if act == RemoveFinalizer {
		return nil, nil //nolint:nilnil // it is gone
	}
	return changed, nil
}

// persist writes the status, if nobody has written the module since it was seen.
func (a *actor) persist(ctx context.Context, seen client.Object, status *v1alpha1.ModuleStatus) (client.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	module, ok := seen.DeepCopyObject().(client.Object)
	if !ok {
		return nil, errors.New("a copy of an object is none")
	}
	_, written := Parts(module)
	status.DeepCopyInto(written)
	err := a.client.Status().Update(ctx, module, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("write the status of %s %s: %w", a.kind.name, seen.GetName(), err)
	}
	return module, nil
}

// apply makes one write, when it cannot be too late.
func (a *actor) apply(ctx context.Context, s *sight, w *Write) outcome {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	out := outcome{write: *w}
	if !w.Until.IsZero() {
		rest := w.Until.Sub(a.now())
		if rest <= 0 {
			out.err = errTooLate
			return out
		}
		ctx, cancel = context.WithTimeout(ctx, rest)
		defer cancel()
	}
	switch w.Act {
	case CreateRevision:
		out.err = a.createRevision(ctx, s, w)
	case AdoptRevision:
		out.err = a.adoptRevision(ctx, s)
	case DeleteRevision:
		out.err = a.deleteRevision(ctx, s, w)
	case Resolve:
		out.err = a.resolve(ctx, s, w)
	case CreateGate:
		out.err = a.createGate(ctx, s, w)
	case Unassign:
		if out.err = a.confirm(ctx, s, w); out.err == nil {
			out.err = a.assemble(ctx, s, w, &out)
		}
	default:
		out.err = a.assemble(ctx, s, w, &out)
	}
	if out.err != nil {
		out.err = fmt.Errorf("%s %s: %w", w.Act, w.target(), out.err)
	}
	return out
}

// createRevision makes what a module says now into something that does not change.
// If somebody is faster, theirs is the same.
func (a *actor) createRevision(ctx context.Context, s *sight, w *Write) error {
	r := &spillway.ModuleRevision{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: w.Revision}}
	r.OwnerReferences = []metav1.OwnerReference{a.ownerOf(s)}
	if writer := writerOf(s.object); writer != "" {
		r.Annotations = map[string]string{vocabulary.WrittenBy.Native: writer}
	}
	r.Spec = spillway.ModuleRevisionSpec{
		ModuleRef: spillway.ModuleReference{Kind: a.kind.name, Name: s.key.Name}, Number: w.Number, Template: s.Module.template(),
	}
	return a.client.Create(ctx, r, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// adoptRevision makes a revision ours that was orphaned, with what is known of its tag.
func (a *actor) adoptRevision(ctx context.Context, s *sight) error {
	r := s.stranger.DeepCopy()
	patch := client.MergeFromWithOptions(s.stranger, client.MergeFromWithOptimisticLock{})
	r.OwnerReferences = append(r.OwnerReferences, a.ownerOf(s))
	return a.client.Patch(ctx, r, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// ownerOf is the module as the owner of its revisions.
func (a *actor) ownerOf(s *sight) metav1.OwnerReference {
	owner := *metav1.NewControllerRef(s.object, v1alpha1.GroupVersion.WithKind(a.kind.name))
	owner.BlockOwnerDeletion = nil
	return owner
}

func (a *actor) deleteRevision(ctx context.Context, s *sight, w *Write) error {
	seen := s.revisions[w.Revision]
	preconditions := client.Preconditions{UID: &seen.UID, ResourceVersion: &seen.ResourceVersion}
	return a.client.Delete(ctx, seen.DeepCopy(), preconditions, client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

func (a *actor) resolve(ctx context.Context, s *sight, w *Write) error {
	r := s.revisions[w.Revision].DeepCopy()
	r.Status.Resolved = w.Resolved
	return a.client.Status().Update(ctx, r, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// createGate makes something for somebody to decide. It goes with its revision.
func (a *actor) createGate(ctx context.Context, s *sight, w *Write) error {
	revision := s.revisions[w.Revision]
	g := &spillway.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: w.target()}}
	g.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(revision, spillway.GroupVersion.WithKind("ModuleRevision"))}
	g.OwnerReferences[0].BlockOwnerDeletion = nil
	g.Spec = spillway.RolloutGateSpec{
		TargetRef: spillway.TargetReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: a.kind.name, Name: s.key.Name},
		Revision:  w.Revision, Stage: w.Stage, Gate: w.Gate.Name, When: string(gateTime(w.Gate)),
	}
	return a.client.Create(ctx, g, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// assemble writes the module's part of an assemblage, or takes it away. What others
// have in it is theirs. The API server checks by UID and resourceVersion that the
// assemblage is the one that was seen; one that was not there is made, whoever else
// does so too.
func (a *actor) assemble(ctx context.Context, s *sight, w *Write, out *outcome) error {
	part, err := a.part(s, w)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(part)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	err = a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(FieldOwner(s.key.Name)), client.ForceOwnership, client.DisableReadYourWritesConsistency)
	if err != nil {
		return err //nolint:wrapcheck // apply does
	}
	if w.Act == Unassign {
		out.foreign, out.version = isThere(u, s.key.Name), u.GetResourceVersion()
	}
	return nil
}

// part is the module's part of an assemblage. Which cluster it is for is said by all
// who write there. An assignment has to say something: if it did not, it would take
// away what is there.
func (a *actor) part(s *sight, w *Write) (map[string]any, error) {
	metadata := map[string]any{"namespace": s.key.Namespace}
	var kubeconfig v1alpha1.LocalReference
	var ref *v1alpha1.ClusterReference
	if w.Cluster != nil {
		metadata["name"], kubeconfig, ref = w.Cluster.Name, w.Cluster.Kubeconfig, &w.Cluster.Ref
		if w.Cluster.Owner != nil {
			metadata["ownerReferences"] = []any{w.Cluster.Owner}
		}
	}
	if r := w.Record; r != nil {
		metadata["name"], metadata["uid"], metadata["resourceVersion"] = r.Name, r.UID, r.ResourceVersion
		kubeconfig = r.Kubeconfig
		if ref == nil || r.Ref != nil {
			ref = r.Ref
		}
	}
	syncs, template := []any{}, s.templates[w.Revision]
	switch {
	case w.Act == Unassign:
	case template != nil:
		syncs = append(syncs, a.kind.render(a.kind.assignment(&s.Module, w.Revision, momentOf(w.AssignedAt)), template))
	case w.Act == Correct: // nobody knows any more what the revision says; what is there stays
		syncs = append(syncs, a.kind.leaving(w.Record.sync, s.Module.deletionPolicy()))
	default:
		return nil, fmt.Errorf("the ModuleRevision %s is not there", w.Revision)
	}
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), kindLabel: a.kind.assemblage,
		"metadata": metadata, "spec": a.kind.spec(kubeconfig, ref, syncs),
	}, nil
}

func momentOf(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewMicroTime(t)
	return &at
}

// isThere is true if an assemblage still has a sync of a name that somebody fetches.
func isThere(u *unstructured.Unstructured, name string) bool {
	syncs, ok, _ := unstructured.NestedSlice(u.Object, "spec", "assemblage", "syncs")
	if !ok {
		syncs, _, _ = unstructured.NestedSlice(u.Object, "spec", "syncs")
	}
	for _, s := range syncs {
		if sync, ok := s.(map[string]any); ok && sync["name"] == name && (sync["source"] != nil || sync["sourceRef"] != nil) {
			return true
		}
	}
	return false
}

// isOvertaken is true if a write was refused because somebody was faster: its
// preconditions no longer hold, and neither does the decision.
func isOvertaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errTooLate) || errors.Is(err, errChanged)
}

// isEnding is true if a write was refused because the namespace is on its way out.
func isEnding(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }
