package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/fleet/v1alpha1"
	"github.com/spillway-dev/spillway/internal/fleet/cluster"
	"github.com/spillway-dev/spillway/internal/fleet/hub/decision"
	"github.com/spillway-dev/spillway/internal/fleet/hub/model"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// createAssemblage makes an assemblage in which nothing is assigned. One that exists by now
// stays as it is, however late that arrives. Nothing is said of what is assigned, not even that
// it is empty: of a list or an object that another client has said is empty, the API server
// makes null when the last sync of it is removed by applying, and refuses that.
func (a *actor) createAssemblage(ctx context.Context, s *snapshot, w *decision.Write) error {
	u, err := a.object(s, w)
	if err != nil {
		return err
	}
	for _, field := range []string{"assemblage", "syncs"} {
		unstructured.RemoveNestedField(u.Object, "spec", field)
	}
	err = a.client.Create(ctx, u, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:forbidigo // act.go calls it
	if apierrors.IsAlreadyExists(err) {
		return a.named(ctx, s, w)
	}
	return err //nolint:wrapcheck // apply does
}

// named is a conflict if the assemblage of a cluster's name is the cluster's, and the view just
// does not show it yet. That of another cluster stays so until a user changes it, and keeps
// the module from this cluster alone.
func (a *actor) named(ctx context.Context, s *snapshot, w *decision.Write) error {
	list := a.kind.list()
	if err := a.live.List(ctx, list, client.InNamespace(s.key.Namespace), client.MatchingFields{metav1.ObjectNameField: w.Cluster.Name}); err != nil {
		return fmt.Errorf("look for %s %s: %w", a.kind.assemblage, w.Cluster.Name, err)
	}
	for _, item := range itemsOf(list) {
		if found := assembledOf(item); found.cluster() != w.Cluster.Name {
			return fmt.Errorf("%s %s is for cluster %s: correct its spec.clusterRef and spec.kubeconfigRef, or delete it", a.kind.assemblage, w.Cluster.Name, found.cluster())
		}
	}
	return ring.ErrConflict
}

// fence changes an assemblage, if it is as it was when its move was permitted.
func (a *actor) fence(ctx context.Context, s *snapshot, w *decision.Write) error {
	patch, err := ring.FencePatch(w.Record.UID, w.Record.ResourceVersion, vocabulary.Withdrawn.Native)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": a.kind.assemblage}}
	u.SetNamespace(s.key.Namespace)
	u.SetName(w.Record.Name)
	return a.client.Patch(ctx, u, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck,forbidigo // apply does; act.go calls it
}

// assemble writes the module's part of an assemblage, or takes it away. What others
// have in it is theirs. The API server checks by UID and resourceVersion that the
// assemblage is the one that was seen.
func (a *actor) assemble(ctx context.Context, s *snapshot, m *made) error {
	w := &m.Write
	u, err := a.object(s, w)
	if err != nil {
		return err
	}
	err = a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), //nolint:forbidigo // the actor's, see act.go
		client.FieldOwner(model.FieldOwner(s.key.Name)), client.ForceOwnership, client.DisableReadYourWritesConsistency)
	if err != nil {
		return err //nolint:wrapcheck // apply does
	}
	if w.Act == decision.Unassign {
		m.foreign, m.version = hasSync(u, s.key.Name), u.GetResourceVersion()
	}
	return nil
}

// object is the module's part of an assemblage as it is sent.
func (a *actor) object(s *snapshot, w *decision.Write) (*unstructured.Unstructured, error) {
	part, err := a.part(s, w)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return u, nil
}

// part is the module's part of an assemblage. Which cluster it is for is said by all
// who write there. An assignment must say something: if it did not, it would remove
// what exists.
func (a *actor) part(s *snapshot, w *decision.Write) (map[string]any, error) {
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
		metadata["name"] = r.Name
		ring.Require(metadata, r.UID, r.ResourceVersion)
		kubeconfig = r.Kubeconfig
		if ref == nil || r.Ref != nil {
			ref = r.Ref
		}
	}
	syncs, template := []any{}, s.templates[w.Revision]
	assignment := a.kind.assignment(&s.Module, w.Revision, w.Overrides, momentOf(w.AssignedAt), w.Unready)
	switch {
	case w.Act == decision.Unassign, w.Act == decision.CreateAssemblage:
	case w.Act == decision.Take:
		syncs = append(syncs, &v1alpha1.ProxySync{NamedSync: v1alpha1.NamedSync{Assignment: assignment, Found: true}})
	case template != nil:
		syncs = append(syncs, a.kind.render(assignment, template.With(w.Overrides)))
	case w.Act == decision.Correct: // the revision is deleted and what it says unknown; what the cluster has stays
		syncs = append(syncs, a.kind.leaving(w.Record.Sync, s.Module.DeletionPolicy(), s.Module.GivenUp()))
	default:
		return nil, fmt.Errorf("ModuleRevision %s not found", w.Revision)
	}
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": a.kind.assemblage,
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

// hasSync is true if an assemblage still has a sync of this name with a source.
func hasSync(u *unstructured.Unstructured, name string) bool {
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

// errChanged is the outcome of a removal that was decided from what is no longer so.
var errChanged = fmt.Errorf("the module or the cluster: %w", ring.ErrConflict)

// confirm asks the API server itself whether a removal is still right. It is the one
// write that takes something away for good, and what it follows from, the selector and
// the labels, stands in objects that it does not write: no precondition of the
// assemblage tells that a view of these is old. The module is named by its UID, as
// another of its name writes to the same entry.
func (a *actor) confirm(ctx context.Context, s *snapshot, w *decision.Write) error {
	if err := a.confirmModule(ctx, s); err != nil || s.Module.Deleting {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Module.Spec.Selector)
	if err != nil {
		return fmt.Errorf("spec.selector: %w", err)
	}
	c, err := cluster.LookAt(ctx, a.live, types.NamespacedName{Namespace: s.key.Namespace, Name: w.Cluster.Name})
	switch {
	case err != nil:
		return err
	case c == nil || c.UID != w.Cluster.UID || c.Deleting || selector.Matches(labels.Set(c.Labels)):
		return errChanged
	default:
		return nil
	}
}

// confirmModule is nil if the module says what it was seen to say. That it is being
// deleted is another generation, too.
func (a *actor) confirmModule(ctx context.Context, s *snapshot) error {
	m, err := a.liveModule(ctx, s)
	if err != nil {
		return err
	}
	if m.GetGeneration() != s.Module.Generation {
		return errChanged
	}
	return nil
}

// liveModule is the module as the API server itself has it. Another one of its name is a
// change.
func (a *actor) liveModule(ctx context.Context, s *snapshot) (client.Object, error) {
	list := a.kind.modules()
	err := a.live.List(ctx, list, client.InNamespace(s.key.Namespace), client.MatchingFields{metav1.ObjectNameField: s.key.Name})
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", a.kind.name, s.key.Name, err)
	}
	for _, m := range itemsOf(list) {
		if m.GetUID() == s.Module.UID {
			return m, nil
		}
	}
	return nil, errChanged
}
