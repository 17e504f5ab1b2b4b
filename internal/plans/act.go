package plans

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/account"
	"github.com/spillway-dev/spillway/internal/plans/choice"
	"github.com/spillway-dev/spillway/internal/plans/decision"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/plans/pipe"
	"github.com/spillway-dev/spillway/internal/plans/write"
	"github.com/spillway-dev/spillway/internal/ring"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// actor makes the writes: those to the Instance, its RolloutGates and pinned contents as the
// manager, and those of plans with the rights of the account of the Instance.
type actor struct {
	client client.Client
	live   client.Reader
	now    func() time.Time
}

// atOnce is how many objects of an Instance are read, or applied, at the same time.
const atOnce = 8

// results are what became of a pass. The last write may have ended it.
type results = ring.Results[*v1beta1.Instance, made]

// made is a write with the answer of the API server, nil if that accepted it or there was
// none.
type made struct {
	write.Write

	refusal *write.Refusal
	// answer is the object as it was applied, nil if it was not or something has failed.
	answer *unstructured.Unstructured
	// dropped are fields that the kind of the object does not have.
	dropped []string
}

// endedBy is the error that ended a pass, nil if none did.
func endedBy(r *results) error {
	if n := len(r.Writes); n > 0 {
		if last := &r.Writes[n-1]; last.Write.refusal == nil || last.Write.IsToInstance() {
			return last.Err
		}
	}
	return r.Err
}

// act pins content, writes the status, and then makes the writes that the status
// permits, if the Instance is still as it was observed.
func (a actor) act(ctx context.Context, s *snapshot, d *decision.Decision) (r results) {
	var pins sync.WaitGroup
	defer pins.Wait()
	switch {
	case d.Changes:
		var pin *appsv1.ControllerRevision
		if r.Object, pin, r.Err = a.permit(ctx, s, d); pin != nil {
			pins.Go(func() { a.unpin(ctx, pin) })
		}
	case len(d.Writes) > 0:
		r.Err = ring.Confirm(ctx, a.live, v1beta1.GroupVersion.WithKind("Instance"), s.Instance)
	}
	if r.Err != nil {
		return r
	}
	var refused []string
	for batch := range write.Batches(d.Writes) {
		path := batch[0].Path.String()
		if len(batch[0].Path) > 0 && slices.Contains(refused, path) {
			continue // what a task writes later may need what it writes first
		}
		done := a.writeAll(ctx, s, batch)
		r.Writes = append(r.Writes, done...)
		last := &done[len(done)-1]
		if last.Err == nil {
			continue
		}
		if endedBy(&r) != nil {
			return r
		}
		refused = append(refused, path)
	}
	return r
}

// writeAll makes the writes of a batch at the same time. Those that failed come last, and
// of them those that end the pass.
func (a actor) writeAll(ctx context.Context, s *snapshot, batch []write.Write) []ring.Result[made] {
	done := make([]ring.Result[made], len(batch))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, w := range batch {
		group.Go(func() error {
			m, err := a.write(ctx, s, w)
			refusal, ends := write.Classify(err, w, s.UIDOf(w.Ref), a.now())
			if why, ok := account.Denied(s.Account, err); ok && refusal != nil {
				refusal.Reason = why
			}
			if refusal != nil {
				refusal.Reason = s.decision.Hidden.In(refusal.Reason)
			}
			if m.refusal = refusal; refusal != nil && !ends {
				err = errors.New(refusal.Reason)
			}
			done[i] = ring.Result[made]{Change: ring.Change{Act: string(w.Act), Object: w.Ref.String()}, Write: m, Err: err}
			return nil
		})
	}
	_ = group.Wait() // the errors are in the results
	weight := func(r ring.Result[made]) int {
		switch {
		case r.Err == nil:
			return 0
		case r.Write.refusal != nil:
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(done, func(x, y ring.Result[made]) int { return weight(x) - weight(y) })
	return done
}

// permit writes the status, once, with the resourceVersion that was observed, after it has
// kept the content that an execution begins with; it returns what keeps it, if that is new.
// Reads of Instances wait until the cache shows the status, because which contents are kept
// depends on what all of them run.
func (a actor) permit(ctx context.Context, s *snapshot, d *decision.Decision) (instance *v1beta1.Instance, pin *appsv1.ControllerRevision, err error) {
	instance = s.Instance.DeepCopy()
	instance.Status = d.Status
	err = a.do(ctx, func(ctx context.Context) error {
		if d.Pin != nil && !s.hasPin {
			var err error
			if pin, err = a.pin(ctx, s.Instance, d.Pin); err != nil {
				return err
			}
		}
		return wrapped(a.client.Status().Update(ctx, instance, client.FieldOwner(kube.FieldOwner)), "write the status")
	})
	if err != nil {
		return nil, pin, err
	}
	return instance, pin, nil
}

// pin keeps the content of an OperatorVersion in a ControllerRevision beside the Instance. It
// returns none if that exists.
func (a actor) pin(ctx context.Context, i *v1beta1.Instance, v *choice.Version) (*appsv1.ControllerRevision, error) {
	raw, err := json.Marshal(v.Spec)
	if err != nil {
		return nil, fmt.Errorf("encode OperatorVersion %s: %w", v.Name, err)
	}
	key := choice.PinKey(i, &i.Spec, v.Hash)
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name, OwnerReferences: []metav1.OwnerReference{choice.PinOwner(i, v)},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: 1,
	}
	if v.KeepsAll {
		revision.Annotations = map[string]string{vocabulary.Prune.Native: "false"}
	}
	err = a.client.Create(ctx, revision, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil, nil //nolint:nilnil // it is as good as a new one
	case err != nil:
		return nil, wrapped(err, "pin the content of OperatorVersion "+v.Name)
	default:
		return revision, nil
	}
}

// unpin deletes pinned contents of the owner of a new one, except for the newest ones and
// those that running plans use. What it misses it deletes the next time, so no plan
// waits for it: it runs beside the writes.
func (a actor) unpin(ctx context.Context, pin *appsv1.ControllerRevision) {
	kept := &metav1.PartialObjectMetadataList{}
	kept.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"))
	instances := &v1beta1.InstanceList{}
	if err := errors.Join(a.live.List(ctx, kept, client.InNamespace(pin.Namespace)), a.client.List(ctx, instances, client.InNamespace(pin.Namespace))); err != nil {
		log.FromContext(ctx).V(1).Info("cannot list pinned contents", "error", err.Error())
		return
	}
	for _, old := range choice.OutdatedPins(kept.Items, pin.OwnerReferences[0].UID, pin.Name, instances.Items) {
		err := a.client.Delete(ctx, &old, client.Preconditions{UID: &old.UID}, client.DisableReadYourWritesConsistency)
		if client.IgnoreNotFound(err) != nil {
			log.FromContext(ctx).V(1).Info("cannot delete an outdated pinned content", "name", old.Name, "error", err.Error())
		}
	}
}

// do makes writes within [writeTimeout].
func (a actor) do(ctx context.Context, write func(context.Context) error) error {
	return ring.Do(ctx, a.now, a.now().Add(writeTimeout), write)
}

// write makes one write.
func (a actor) write(ctx context.Context, s *snapshot, w write.Write) (made, error) {
	m, i, as := made{Write: w}, s.Instance, applier{s.rights, write.FieldOwner(s.Instance.Name)}
	if w.Act == write.Extract {
		return m, as.extract(ctx, w)
	}
	err := a.do(ctx, func(ctx context.Context) error {
		switch w.Act {
		case write.Apply:
			if err := as.takeOver(ctx, w); err != nil {
				return err
			}
			u := w.Object.DeepCopy()
			var err error
			if m.dropped, err = as.apply(ctx, u, w.Generate); err == nil {
				m.answer = u
			}
			return err
		case write.Delete:
			return as.remove(ctx, w)
		case write.CreateGate, write.EndGate, write.DeleteGate:
			return a.gate(ctx, i.Namespace, w)
		default:
			return a.change(ctx, i, w)
		}
	})
	return m, err
}

// applier writes the objects of an Instance with its rights.
type applier struct {
	account.Rights

	// owner owns what it applies.
	owner string
}

// takeOver makes the Instance the owner of the fields that KUDO has applied.
func (a applier) takeOver(ctx context.Context, w write.Write) error {
	if w.TakeOver == nil {
		return nil
	}
	err := a.Client.Patch(ctx, w.Object.DeepCopy(), client.RawPatch(types.JSONPatchType, w.TakeOver), client.FieldOwner(kube.FieldOwner),
		client.DisableReadYourWritesConsistency)
	if apierrors.IsNotFound(err) {
		return ring.ErrConflict
	}
	return wrapped(err, "take over "+w.Ref.String())
}

// remove deletes the object that was read, and its dependents first.
func (a applier) remove(ctx context.Context, w write.Write) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.Ref.GroupVersionKind)
	u.SetNamespace(w.Ref.Namespace)
	u.SetName(w.Ref.Name)
	err := a.Client.Delete(ctx, u, client.Preconditions{UID: &w.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.DisableReadYourWritesConsistency)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it was deleted, or replaced; the next pass reads which
	}
	return wrapped(err, "delete "+w.Ref.String())
}

// gate creates a RolloutGate, or changes or deletes the one that was read. Reads of
// RolloutGates wait until the cache shows it.
func (a actor) gate(ctx context.Context, namespace string, w write.Write) error {
	var err error
	switch w.Act {
	case write.CreateGate:
		err = a.client.Create(ctx, w.Question.Object(namespace, w.At), client.FieldOwner(kube.FieldOwner))
	case write.EndGate:
		err = w.Gate.WriteEnd(ctx, a.client, namespace, w.At)
	default:
		gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.Ref.Name}}
		err = a.client.Delete(ctx, gate, ring.Preconditions(w.UID, w.ResourceVersion))
	}
	if err != nil && ring.IsConflict(err) {
		return ring.ErrConflict // another client was faster; the watch says so
	}
	return wrapped(err, string(w.Act)+" "+w.Ref.String())
}

// change changes the Instance itself, if it is still as it was observed.
func (a actor) change(ctx context.Context, i *v1beta1.Instance, w write.Write) error {
	changed := i.DeepCopy()
	switch w.Act {
	case write.AddFinalizer:
		controllerutil.AddFinalizer(changed, vocabulary.CleanupFinalizer)
	case write.RemoveFinalizer:
		controllerutil.RemoveFinalizer(changed, vocabulary.CleanupFinalizer)
	case write.Identify:
		changed.Spec.PlanExecution.UID = w.UID
	case write.ClearRequest:
		changed.Spec.PlanExecution = v1beta1.PlanExecution{}
	default:
		return fmt.Errorf("unknown act %q", w.Act)
	}
	patch := client.MergeFromWithOptions(i, client.MergeFromWithOptimisticLock{})
	return wrapped(a.client.Patch(ctx, changed, patch, client.FieldOwner(kube.FieldOwner)), string(w.Act))
}

// extract reads files of the Pod that was read, and applies the objects that keep them.
func (a applier) extract(ctx context.Context, w write.Write) error {
	ctx, cancel := context.WithTimeout(ctx, extractTimeout)
	defer cancel()
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(w.Ref.GroupVersionKind)
	if err := a.Live.Get(ctx, client.ObjectKey{Namespace: w.Ref.Namespace, Name: w.Ref.Name}, pod); err != nil {
		return fmt.Errorf("get %s: %w", w.Ref, err)
	}
	if pod.UID != w.UID {
		return ring.ErrConflict
	}
	for _, file := range w.Extraction.Files {
		content, err := a.Files.Read(ctx, w.Ref.Namespace, w.Ref.Name, w.Extraction.Container, file.Path, pipe.MaxFile+1)
		if err != nil {
			return &write.ExtractError{Err: fmt.Errorf("read file %s: %w", file.Path, err)}
		}
		kept, err := file.Keep(content)
		if err != nil {
			return &write.ExtractError{Err: err, Fatal: true}
		}
		if _, err := a.apply(ctx, kept, nil); err != nil {
			return err
		}
	}
	return nil
}

// apply applies an object by force, and then generates what it has no value for. The object
// becomes what the API server answers.
func (a applier) apply(ctx context.Context, u *unstructured.Unstructured, generate map[string]int) (dropped []string, err error) {
	dropped, err = write.Known(u, func() error {
		return a.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(a.owner), client.ForceOwnership,
			client.DisableReadYourWritesConsistency)
	})
	if err != nil || len(generate) == 0 {
		return dropped, wrapped(err, "apply "+object.RefOf(u).String())
	}
	return dropped, a.generate(ctx, u, generate)
}

// generate sets random values for keys of a Secret, unless another client has written
// the Secret since.
func (a applier) generate(ctx context.Context, u *unstructured.Unstructured, generate map[string]int) error {
	values := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(generate)) {
		if _, ok, _ := unstructured.NestedString(u.Object, "data", key); !ok {
			values[key] = random(generate[key])
		}
	}
	patch, err := ring.MergePatch(u.GetUID(), u.GetResourceVersion(), map[string]any{"stringData": values})
	if err != nil {
		return err
	}
	err = a.Client.Patch(ctx, u, patch, client.FieldOwner(write.GeneratedFieldOwner), client.DisableReadYourWritesConsistency)
	return wrapped(err, "generate values of "+object.RefOf(u).String())
}

// random is a text of this length that cannot be guessed.
func random(length int) string {
	text := ""
	for len(text) < length {
		text += rand.Text()
	}
	return text[:length]
}

func wrapped(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
