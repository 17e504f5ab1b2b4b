package zones

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// errTooLate is the outcome of a write whose time is over.
var errTooLate = errors.New("what permits it is too old")

// actor makes all the writes of the ring. None of them waits until a cache shows
// it: what permits the next one is in the API server's answer.
type actor struct {
	client client.Client
	now    func() time.Time
}

// act makes the writes of a pass, one after the other: what is broken goes before
// what is not. The status comes last, unless it is what permits.
func (a *actor) act(ctx context.Context, s *sight, p *pass) *deeds {
	d := &deeds{}
	switch {
	case p.create:
		d.group, d.groupErr = a.create(ctx, s.key)
		return d
	case p.remove:
		d.groupErr = a.remove(ctx, s.object)
		return d
	}
	for _, write := range p.Writes {
		set, err := a.apply(ctx, s.key.Namespace, &write)
		d.outcomes = append(d.outcomes, outcome{write: write, set: set, err: err})
	}
	if p.persist {
		d.group, d.groupErr = a.persist(ctx, s.object, &p.Status)
	}
	return d
}

// create makes the RolloutGroup that nobody wrote. If somebody is faster, theirs
// is as good.
func (a *actor) create(ctx context.Context, key types.NamespacedName) (*v1alpha1.RolloutGroup, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	group := &v1alpha1.RolloutGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{vocabulary.Automatic.Native: "true"},
	}}
	err := a.client.Create(ctx, group, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("create RolloutGroup %s: %w", key.Name, err)
	}
	return group, nil
}

// remove deletes a RolloutGroup, if it is as it was seen.
func (a *actor) remove(ctx context.Context, group *v1alpha1.RolloutGroup) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	preconditions := client.Preconditions{UID: &group.UID, ResourceVersion: &group.ResourceVersion}
	err := a.client.Delete(ctx, group.DeepCopy(), preconditions, client.DisableReadYourWritesConsistency)
	if err != nil {
		return fmt.Errorf("delete RolloutGroup %s: %w", group.Name, err)
	}
	return nil
}

// persist writes the status, if nobody has written the group since it was seen.
func (a *actor) persist(ctx context.Context, seen *v1alpha1.RolloutGroup, status *v1alpha1.RolloutGroupStatus) (*v1alpha1.RolloutGroup, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	group := seen.DeepCopy()
	status.DeepCopyInto(&group.Status)
	err := a.client.Status().Update(ctx, group, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("write the status of RolloutGroup %s: %w", seen.Name, err)
	}
	return group, nil
}

// apply makes one write, and returns the StatefulSet as the API server answers if
// its spec was written. The API server checks the preconditions, when it cannot be
// too late.
func (a *actor) apply(ctx context.Context, namespace string, w *Write) (set *appsv1.StatefulSet, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if !w.Until.IsZero() {
		rest := w.Until.Sub(a.now())
		if rest <= 0 {
			return nil, errTooLate
		}
		ctx, cancel = context.WithTimeout(ctx, rest)
		defer cancel()
	}
	switch w.Act {
	case Delete:
		err = a.deletePod(ctx, namespace, w)
	case Advance:
		err = a.patchStatus(ctx, namespace, w)
	default:
		set, err = a.patch(ctx, namespace, w)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", w.Act.verb(), w.target(), err)
	}
	return set, nil
}

// verb is how a sentence calls an act.
func (a Act) verb() string {
	return map[Act]string{Hold: "hold", Open: "open", Lend: "open", Delete: "delete", Advance: "advance the revision of"}[a]
}

func (a *actor) deletePod(ctx context.Context, namespace string, w *Write) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Pod}}
	preconditions := client.Preconditions{UID: &w.UID, ResourceVersion: &w.ResourceVersion}
	return a.client.Delete(ctx, pod, preconditions, client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

func (a *actor) patch(ctx context.Context, namespace string, w *Write) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Zone}}
	patch, err := mergePatch(w, strategyPatch(w))
	if w.Generation != 0 {
		patch, err = holdPatch(w)
	}
	if err != nil {
		return nil, err
	}
	err = a.client.Patch(ctx, set, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	return set, err //nolint:wrapcheck // apply does
}

func (a *actor) patchStatus(ctx context.Context, namespace string, w *Write) error {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Zone}}
	patch, err := mergePatch(w, map[string]any{"status": map[string]any{"currentRevision": w.Revision}})
	if err != nil {
		return err
	}
	return a.client.Status().Patch(ctx, set, patch, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency) //nolint:wrapcheck // apply does
}

// strategyPatch is what Hold, Open and Lend change.
func strategyPatch(w *Write) map[string]any {
	var strategy map[string]any
	var lent any
	switch w.Act {
	case Lend:
		strategy, lent = map[string]any{"type": OnDelete, "rollingUpdate": nil}, RollingUpdate
	case Open:
		strategy = strategyOf(map[string]any{"partition": 0, "maxUnavailable": w.MaxUnavailable})
	default:
		strategy = strategyOf(map[string]any{"partition": Held})
	}
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{vocabulary.LentStrategy.Native: lent}},
		"spec":     map[string]any{"updateStrategy": strategy},
	}
}

func strategyOf(rolling map[string]any) map[string]any {
	return map[string]any{"type": RollingUpdate, "rollingUpdate": rolling}
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// holdPatch holds a set whose spec is the one that was seen, whatever its status is.
func holdPatch(w *Write) (client.Patch, error) {
	raw, err := json.Marshal([]operation{
		{"test", "/metadata/uid", w.UID},
		{"test", "/metadata/generation", w.Generation},
		{"add", "/spec/updateStrategy", strategyOf(map[string]any{"partition": Held, "maxUnavailable": w.MaxUnavailable})},
	})
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, raw), nil
}

// mergePatch is a change with its preconditions: the API server answers with a
// conflict if the object is another, or has another version.
func mergePatch(w *Write, change map[string]any) (client.Patch, error) {
	metadata, ok := change["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = w.UID, w.ResourceVersion
	raw, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, raw), nil
}

// keepsMaxUnavailable tries, by a patch that changes nothing, whether the API
// server keeps rollingUpdate.maxUnavailable of a StatefulSet or drops it.
func (a *actor) keepsMaxUnavailable(ctx context.Context, set *appsv1.StatefulSet) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	raw := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1}}}}`, set.UID)
	tried := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}}
	err := a.client.Patch(ctx, tried, client.RawPatch(types.MergePatchType, raw), client.DryRunAll,
		client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	if err != nil {
		return false, fmt.Errorf("try whether StatefulSets have maxUnavailable: %w", err)
	}
	rolling := tried.Spec.UpdateStrategy.RollingUpdate
	return rolling != nil && rolling.MaxUnavailable != nil, nil
}

// isOvertaken is true if a write was refused because somebody was faster: its
// preconditions no longer hold, and neither does the decision.
func isOvertaken(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || errors.Is(err, errTooLate) || isUntrue(err)
}

// isUntrue is true if a test of a JSON patch has failed. The API server answers by
// the code of an invalid object, but names no field.
func isUntrue(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}

// isEnding is true if a write was refused because the namespace is on its way out.
func isEnding(err error) bool { return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) }
