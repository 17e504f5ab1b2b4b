package zones

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
	"github.com/spillway-dev/spillway/internal/zones/decision"
)

// actor makes all the writes of the ring. None of them waits until a cache shows
// it: what permits the next one is in the API server's answer.
type actor struct {
	client client.Client
	now    func() time.Time
}

// act makes the writes of a pass, one after the other: what is broken goes before
// what is not. The status comes last, unless it is what permits.
func (a *actor) act(ctx context.Context, s *snapshot, p *pass) (r results) {
	switch {
	case p.create:
		r.Object, r.Err = a.create(ctx, s.key)
		r.Created = r.Err == nil
		return r
	case p.remove:
		r.Err = a.remove(ctx, s.object)
		return r
	}
	for _, write := range p.Writes {
		set, err := a.apply(ctx, s.key.Namespace, &write)
		r.Add(write.Change(), made{write, set}, err)
	}
	if p.persist {
		r.Object, r.Err = a.persist(ctx, s.object, &p.Status)
	}
	return r
}

// create makes the RolloutGroup that no user wrote. If another client is faster, theirs
// is as good.
func (a *actor) create(ctx context.Context, key types.NamespacedName) (*v1alpha1.RolloutGroup, error) {
	group := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{vocabulary.Automatic.Native: "true"},
	}}
	err := ring.Do(ctx, a.now, time.Time{}, func(ctx context.Context) error {
		return a.client.Create(ctx, group, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	})
	if err != nil {
		return nil, fmt.Errorf("create RolloutGroup %s: %w", key.Name, err)
	}
	return group, nil
}

// remove deletes a RolloutGroup, if it is as it was seen.
func (a *actor) remove(ctx context.Context, group *v1alpha1.RolloutGroup) error {
	err := ring.Do(ctx, a.now, time.Time{}, func(ctx context.Context) error {
		return a.client.Delete(ctx, group.DeepCopy(), ring.Preconditions(group.UID, group.ResourceVersion), client.DisableReadYourWritesConsistency)
	})
	if err != nil {
		return fmt.Errorf("delete RolloutGroup %s: %w", group.Name, err)
	}
	return nil
}

// persist writes the status, if no client has written the group since it was seen.
func (a *actor) persist(ctx context.Context, read *v1alpha1.RolloutGroup, status *v1alpha1.RolloutGroupStatus) (*v1alpha1.RolloutGroup, error) {
	return ring.UpdateStatus(ctx, a.client.Status(), read, func(group *v1alpha1.RolloutGroup) { status.DeepCopyInto(&group.Status) })
}

// apply makes one write, and returns the StatefulSet as the API server answers if
// its spec was written. The API server checks the preconditions.
func (a *actor) apply(ctx context.Context, namespace string, w *decision.Write) (set *appsv1.StatefulSet, err error) {
	err = ring.Do(ctx, nil, time.Time{}, func(ctx context.Context) (err error) {
		switch w.Act {
		case decision.Delete:
			return a.deletePod(ctx, namespace, w)
		case decision.Fence:
			set, err = a.fence(ctx, namespace, w)
			return err
		case decision.Advance:
			return a.patchStatus(ctx, namespace, w)
		case decision.CreateGate:
			return a.client.Create(ctx, w.Question.Object(namespace, w.At), client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
		case decision.EndGate:
			return w.Gate.WriteEnd(ctx, a.client, namespace, w.At, client.DisableReadYourWritesConsistency)
		case decision.DeleteGate:
			return a.deleteGate(ctx, namespace, w)
		default:
			set, err = a.patch(ctx, namespace, w)
			return err
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", verb(w.Act), w.Target(), err)
	}
	return set, nil
}

// verb is how a sentence calls an act.
func verb(a decision.Act) string {
	return map[decision.Act]string{
		decision.Hold: "hold", decision.Open: "open", decision.Lend: "open",
		decision.Delete: "delete", decision.Fence: "withdraw the permission for", decision.Advance: "advance the revision of",
		decision.CreateGate: "create RolloutGate", decision.EndGate: "end RolloutGate", decision.DeleteGate: "delete RolloutGate",
	}[a]
}

func (a *actor) deletePod(ctx context.Context, namespace string, w *decision.Write) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Pod}}
	return a.client.Delete(ctx, pod, ring.Preconditions(w.UID, w.ResourceVersion), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// fence changes a Pod or a StatefulSet, if it is as it was when its move was permitted.
// That of a Pod is written through its status, where nothing that runs can be changed.
func (a *actor) fence(ctx context.Context, namespace string, w *decision.Write) (*appsv1.StatefulSet, error) {
	patch, err := ring.FencePatch(w.UID, w.ResourceVersion, vocabulary.Withdrawn.Native)
	if err != nil {
		return nil, err
	}
	if w.Pod != "" {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Pod}}
		return nil, a.client.Status().Patch(ctx, pod, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Zone}}
	err = a.client.Patch(ctx, set, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	return set, err //nolint:wrapcheck // apply does
}

func (a *actor) deleteGate(ctx context.Context, namespace string, w *decision.Write) error {
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Gate.Name}}
	return a.client.Delete(ctx, gate, ring.Preconditions(w.UID, w.ResourceVersion), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

func (a *actor) patch(ctx context.Context, namespace string, w *decision.Write) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Zone}}
	patch, err := ring.MergePatch(w.UID, w.ResourceVersion, strategyPatch(w))
	if w.Generation != 0 {
		patch, err = holdPatch(w)
	}
	if err != nil {
		return nil, err
	}
	err = a.client.Patch(ctx, set, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	return set, err //nolint:wrapcheck // apply does
}

func (a *actor) patchStatus(ctx context.Context, namespace string, w *decision.Write) error {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Zone}}
	patch, err := ring.MergePatch(w.UID, w.ResourceVersion, map[string]any{"status": map[string]any{"currentRevision": w.Revision}})
	if err != nil {
		return err
	}
	return a.client.Status().Patch(ctx, set, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// strategyPatch is what Hold, Open and Lend change.
func strategyPatch(w *decision.Write) map[string]any {
	var strategy map[string]any
	var lent any
	switch w.Act {
	case decision.Lend:
		strategy, lent = map[string]any{"type": decision.OnDelete, "rollingUpdate": nil}, decision.RollingUpdate
	case decision.Open:
		strategy = strategyOf(map[string]any{"partition": 0, "maxUnavailable": w.MaxUnavailable})
	default:
		strategy = strategyOf(map[string]any{"partition": decision.Held})
	}
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{vocabulary.LentStrategy.Native: lent}},
		"spec":     map[string]any{"updateStrategy": strategy},
	}
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// holdPatch holds a set whose spec is the one that was seen, whatever its status is.
func holdPatch(w *decision.Write) (client.Patch, error) {
	raw, err := json.Marshal([]operation{
		{"test", "/metadata/uid", w.UID},
		{"test", "/metadata/generation", w.Generation},
		{"add", "/spec/updateStrategy", strategyOf(map[string]any{"partition": decision.Held, "maxUnavailable": w.MaxUnavailable})},
	})
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, raw), nil
}

func strategyOf(rolling map[string]any) map[string]any {
	return map[string]any{"type": decision.RollingUpdate, "rollingUpdate": rolling}
}

// keepsMaxUnavailable tries, by a patch that changes nothing, whether the API
// server keeps rollingUpdate.maxUnavailable of a StatefulSet or drops it.
func (a *actor) keepsMaxUnavailable(ctx context.Context, set *appsv1.StatefulSet) (bool, error) {
	raw := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1}}}}`, set.UID)
	tried := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}}
	err := ring.Do(ctx, a.now, time.Time{}, func(ctx context.Context) error {
		return a.client.Patch(ctx, tried, client.RawPatch(types.MergePatchType, raw), client.DryRunAll,
			client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	})
	if err != nil {
		return false, fmt.Errorf("try whether StatefulSets have maxUnavailable: %w", err)
	}
	rolling := tried.Spec.UpdateStrategy.RollingUpdate
	return rolling != nil && rolling.MaxUnavailable != nil, nil
}
