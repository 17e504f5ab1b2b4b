package plans

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

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
	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/vocabulary"
)

// errOvertaken: the view on which a decision rests is not the newest.
var errOvertaken = errors.New("overtaken")

// actor makes the writes.
type actor struct {
	client client.Client
	live   client.Reader
	files  Files
	now    func() time.Time
}

// outcome is what became of a write.
type outcome struct {
	write Write
	// refusal is nil if the write was made.
	refusal *Refusal
}

// deeds are what became of a plan.
type deeds struct {
	// written: the status was.
	written  bool
	outcomes []outcome
	// err ended the pass; nothing after it was tried.
	err error
}

// act keeps what has to be kept, writes the status, and then makes the writes that
// it permits, if the Instance is still what the decision was about.
func (a actor) act(ctx context.Context, o *Observed, p *Plan) deeds {
	d := deeds{}
	switch {
	case p.Changes:
		d.err = a.permit(ctx, o, p)
		d.written = d.err == nil
	case len(p.Writes) > 0:
		d.err = a.confirm(ctx, o.Instance)
	}
	if d.err != nil {
		return d
	}
	var refused []string
	for _, w := range p.Writes {
		task := w.Path.String()
		if len(w.Path) > 0 && slices.Contains(refused, task) {
			continue // what a task writes later may need what it writes first
		}
		err := a.write(ctx, o.Instance, w)
		refusal, bad := classify(err, w, o.uidOf(w.Ref), a.now())
		if bad {
			d.err = overtakenOr(err)
			return d
		}
		if refusal != nil {
			refused = append(refused, task)
		}
		d.outcomes = append(d.outcomes, outcome{w, refusal})
	}
	return d
}

func overtakenOr(err error) error {
	if apierrors.IsConflict(err) {
		return errOvertaken
	}
	return err
}

// permit writes the status, once, with the version of the Instance that was seen.
func (a actor) permit(ctx context.Context, o *Observed, p *Plan) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if p.Pin != nil {
		if err := a.keep(ctx, p.Pin); err != nil {
			return err
		}
	}
	instance := o.Instance.DeepCopy()
	instance.Status = p.Status
	err := a.client.Status().Update(ctx, instance, client.FieldOwner(kube.FieldOwner))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errOvertaken
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// keep keeps the content of an OperatorVersion as long as that is there.
func (a actor) keep(ctx context.Context, v *Version) error {
	name := PinName(v.Name, v.Hash)
	revision := &appsv1.ControllerRevision{}
	err := a.live.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: name}, revision)
	if !apierrors.IsNotFound(err) {
		return wrapped(err, "look for what keeps "+v.Name)
	}
	raw, err := json.Marshal(v.Spec)
	if err != nil {
		return fmt.Errorf("encode OperatorVersion %s: %w", v.Name, err)
	}
	revision = &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: "OperatorVersion", Name: v.Name, UID: v.UID}},
		},
		Data: runtime.RawExtension{Raw: raw}, Revision: 1,
	}
	if v.KeepsAll {
		revision.Annotations = map[string]string{vocabulary.Prune.Native: "false"}
	}
	err = a.client.Create(ctx, revision, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err == nil {
		a.forgetOld(ctx, v)
	}
	return wrapped(err, "keep the content of OperatorVersion "+v.Name)
}

// forgetOld removes what was kept of an OperatorVersion, but for the newest
// contents and those with which a plan runs. It is done when another content is
// kept; what it misses it gets next time, so that no plan waits for it.
func (a actor) forgetOld(ctx context.Context, v *Version) {
	kept := &metav1.PartialObjectMetadataList{}
	kept.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ControllerRevisionList"))
	instances := &v1beta1.InstanceList{}
	if err := errors.Join(a.live.List(ctx, kept, client.InNamespace(v.Namespace)), a.client.List(ctx, instances)); err != nil {
		log.FromContext(ctx).V(1).Info("cannot look for contents that nobody needs", "error", err.Error())
		return
	}
	for _, old := range outdated(kept.Items, v, instances.Items) {
		err := a.client.Delete(ctx, &old, client.Preconditions{UID: &old.UID}, client.DisableReadYourWritesConsistency)
		if client.IgnoreNotFound(err) != nil {
			log.FromContext(ctx).V(1).Info("cannot remove a content that nobody needs", "name", old.Name, "error", err.Error())
		}
	}
}

func wrapped(err error, what string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// confirm makes sure that the Instance is what it was when it was observed.
func (a actor) confirm(ctx context.Context, seen *v1beta1.Instance) error {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Instance"))
	err := a.live.Get(ctx, client.ObjectKeyFromObject(seen), head)
	switch {
	case apierrors.IsNotFound(err):
		return errOvertaken
	case err != nil:
		return fmt.Errorf("confirm the Instance: %w", err)
	case head.UID != seen.UID || head.ResourceVersion != seen.ResourceVersion:
		return errOvertaken
	default:
		return nil
	}
}

// write makes one write.
func (a actor) write(ctx context.Context, i *v1beta1.Instance, w Write) error {
	timeout := writeTimeout
	if w.Act == Extract {
		timeout = extractTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch w.Act {
	case Apply:
		if err := a.takeOver(ctx, w); err != nil {
			return err
		}
		return a.apply(ctx, i, w.Object.DeepCopy(), w.Generate)
	case Delete:
		return a.remove(ctx, w)
	case Extract:
		return a.extract(ctx, i, w)
	default:
		return a.change(ctx, i, w)
	}
}

// takeOver makes the fields that the predecessor has applied the Instance's.
func (a actor) takeOver(ctx context.Context, w Write) error {
	if w.TakeOver == nil {
		return nil
	}
	err := a.client.Patch(ctx, w.Object.DeepCopy(), client.RawPatch(types.JSONPatchType, w.TakeOver), client.FieldOwner(kube.FieldOwner),
		client.DisableReadYourWritesConsistency)
	if apierrors.IsNotFound(err) {
		return errOvertaken
	}
	return wrapped(err, "take over "+w.Ref.String())
}

// apply applies an object by force, and then generates what it has no value for.
func (a actor) apply(ctx context.Context, i *v1beta1.Instance, u *unstructured.Unstructured, generate map[string]int) error {
	err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(FieldOwner(i.Name)), client.ForceOwnership,
		client.DisableReadYourWritesConsistency)
	if err != nil || len(generate) == 0 {
		return wrapped(err, "apply "+refOf(u).String())
	}
	return a.generate(ctx, u, generate)
}

// generate gives the keys of a Secret values by chance, unless somebody was faster.
func (a actor) generate(ctx context.Context, u *unstructured.Unstructured, generate map[string]int) error {
	values := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(generate)) {
		if _, ok, _ := unstructured.NestedString(u.Object, "data", key); !ok {
			values[key] = chance(generate[key])
		}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": u.GetUID(), "resourceVersion": u.GetResourceVersion()}, "stringData": values,
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	err = a.client.Patch(ctx, u, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(GeneratedFieldOwner), client.DisableReadYourWritesConsistency)
	return wrapped(err, "generate values of "+refOf(u).String())
}

// chance is text of a length that nobody can guess.
func chance(length int) string {
	text := ""
	for len(text) < length {
		text += rand.Text()
	}
	return text[:length]
}

// remove deletes the object that was seen, and what depends on it first.
func (a actor) remove(ctx context.Context, w Write) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.Ref.GroupVersionKind)
	u.SetNamespace(w.Ref.Namespace)
	u.SetName(w.Ref.Name)
	err := a.client.Delete(ctx, u, client.Preconditions{UID: &w.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.DisableReadYourWritesConsistency)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another one by now; the next pass sees which
	}
	return wrapped(err, "delete "+w.Ref.String())
}

// change changes the Instance itself, if it is as it was seen.
func (a actor) change(ctx context.Context, i *v1beta1.Instance, w Write) error {
	changed := i.DeepCopy()
	switch w.Act {
	case AddFinalizer:
		controllerutil.AddFinalizer(changed, vocabulary.CleanupFinalizer)
	case RemoveFinalizer:
		controllerutil.RemoveFinalizer(changed, vocabulary.CleanupFinalizer)
	case Identify:
		changed.Spec.PlanExecution.UID = w.UID
	case ClearRequest:
		changed.Spec.PlanExecution = v1beta1.PlanExecution{}
	default:
		return fmt.Errorf("nobody knows how to %s", w.Act)
	}
	patch := client.MergeFromWithOptions(i, client.MergeFromWithOptimisticLock{})
	err := a.client.Patch(ctx, changed, patch, client.FieldOwner(kube.FieldOwner))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errOvertaken
	}
	return wrapped(err, string(w.Act))
}

// extract reads files of the Pod that was seen, and keeps them.
func (a actor) extract(ctx context.Context, i *v1beta1.Instance, w Write) error {
	pod := &metav1.PartialObjectMetadata{}
	pod.SetGroupVersionKind(w.Ref.GroupVersionKind)
	if err := a.live.Get(ctx, client.ObjectKey{Namespace: w.Ref.Namespace, Name: w.Ref.Name}, pod); err != nil {
		return fmt.Errorf("look at %s: %w", w.Ref, err)
	}
	if pod.UID != w.UID {
		return errOvertaken
	}
	for _, file := range w.Extraction.Files {
		content, err := a.files.Read(ctx, w.Ref.Namespace, w.Ref.Name, w.Extraction.Container, file.Path, MaxPipeFile+1)
		if err != nil {
			return &extractError{fmt.Errorf("read file %s: %w", file.Path, err), false}
		}
		kept, err := file.Keep(content)
		if err != nil {
			return &extractError{err, true}
		}
		if err := a.apply(ctx, i, kept, nil); err != nil {
			return err
		}
	}
	return nil
}
