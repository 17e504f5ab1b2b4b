package ring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/spillway-dev/spillway/internal/kube"
)

// WriteTimeout bounds one write, so that an admission webhook that does not answer is
// noticed.
const WriteTimeout = 10 * time.Second

var (
	// ErrConflict is the error of a write that was decided from what is no longer so.
	ErrConflict = errors.New("the object has changed")
	// ErrTooLate is the error of a write whose intent is too old. It is a conflict.
	ErrTooLate = fmt.Errorf("the intent is too old: %w", ErrConflict)
)

// Object is the kind of object whose status a ring writes.
type Object interface {
	comparable
	client.Object
}

// Confirm asks the API server itself whether an object is as it was read.
func Confirm(ctx context.Context, live client.Reader, kind schema.GroupVersionKind, read client.Object) error {
	head := &metav1.PartialObjectMetadata{}
	head.SetGroupVersionKind(kind)
	err := live.Get(ctx, client.ObjectKeyFromObject(read), head)
	switch {
	case apierrors.IsNotFound(err):
		return ErrConflict
	case err != nil:
		return fmt.Errorf("confirm %s %s: %w", kind.Kind, read.GetName(), err)
	case head.UID != read.GetUID() || head.ResourceVersion != read.GetResourceVersion():
		return ErrConflict
	default:
		return nil
	}
}

// SetFinalizer adds or removes a finalizer, if no client has written the object since it
// was read. It returns the object as the API server has answered.
func SetFinalizer[O Object](ctx context.Context, w client.Writer, read O, finalizer string, present bool, options ...client.PatchOption) (O, error) {
	set := func(o O) { controllerutil.RemoveFinalizer(o, finalizer) }
	if present {
		set = func(o O) { controllerutil.AddFinalizer(o, finalizer) }
	}
	patch := client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{})
	options = append(options, client.FieldOwner(kube.FieldOwner))
	return update(ctx, read, set, "the finalizer of ", func(ctx context.Context, o O) error { return w.Patch(ctx, o, patch, options...) })
}

// ReadBack is the option of a write that cached reads through the same client wait for. A
// ring that keeps the answer of the API server needs none ([Memory]).
const ReadBack readBack = true

type readBack bool

// ApplyToSubResourceUpdate implements [client.SubResourceUpdateOption].
func (r readBack) ApplyToSubResourceUpdate(o *client.SubResourceUpdateOptions) {
	o.DisableReadYourWritesConsistency = !bool(r)
}

// UpdateStatus writes the status of an object, if no client has written the object since
// it was read. It returns the object as the API server has answered.
func UpdateStatus[O Object](ctx context.Context, w client.SubResourceWriter, read O, set func(O), options ...client.SubResourceUpdateOption) (O, error) {
	options = append([]client.SubResourceUpdateOption{client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency}, options...)
	return update(ctx, read, set, "the status of ", func(ctx context.Context, o O) error { return w.Update(ctx, o, options...) })
}

// Update is [UpdateStatus] for objects that keep intents elsewhere than in a status.
func Update[O Object](ctx context.Context, w client.Writer, read O, set func(O)) (O, error) {
	return update(ctx, read, set, "", func(ctx context.Context, o O) error {
		return w.Update(ctx, o, client.FieldOwner(kube.FieldOwner), client.DisableReadYourWritesConsistency)
	})
}

func update[O Object](ctx context.Context, read O, set func(O), part string, write func(context.Context, O) error) (O, error) {
	var none O
	object, ok := read.DeepCopyObject().(O)
	if !ok {
		return none, fmt.Errorf("the copy of %T has another type", read)
	}
	set(object)
	object.SetResourceVersion(read.GetResourceVersion())
	err := Do(ctx, nil, time.Time{}, func(ctx context.Context) error { return write(ctx, object) })
	if err != nil {
		return none, fmt.Errorf("write %s%s: %w", part, read.GetName(), err)
	}
	return object, nil
}

// Do makes one write within [WriteTimeout], and not after until, which is zero for
// never.
func Do(ctx context.Context, now func() time.Time, until time.Time, write func(context.Context) error) error {
	timeout := WriteTimeout
	if !until.IsZero() {
		timeout = min(timeout, until.Sub(now()))
	}
	if timeout <= 0 {
		return ErrTooLate
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return write(ctx)
}

// Preconditions are those of a delete: the object is the one that was decided upon, at
// the version that was seen.
func Preconditions(uid types.UID, version string) client.Preconditions {
	return client.Preconditions{UID: &uid, ResourceVersion: &version}
}

// MergePatch is a change with its preconditions: the API server answers with a conflict
// if the object is another, or has another version.
func MergePatch(uid types.UID, version string, change map[string]any) (client.Patch, error) {
	metadata, ok := change["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	Require(metadata, uid, version)
	raw, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, raw), nil
}

// FencePatch changes an annotation of an object, if it is as it was when a write was permitted that is to be
// withdrawn: then that write names another version than the object has.
func FencePatch(uid types.UID, version, annotation string) (client.Patch, error) {
	return MergePatch(uid, version, map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotation: version}}})
}

// Require adds to the metadata of a change that the object is the one that was decided
// upon, at the version that was seen.
func Require(metadata map[string]any, uid types.UID, version string) {
	metadata["uid"], metadata["resourceVersion"] = uid, version
}

// AfterConflict is how long after a conflict an object is read again: the cache will have caught up.
const AfterConflict = 200 * time.Millisecond

// IsConflict is true if a write failed because its preconditions no longer hold. The
// decision behind it does not hold either: observe and decide again.
func IsConflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) ||
		errors.Is(err, ErrConflict) || isFailedTest(err)
}

// isFailedTest is true if a test of a JSON patch has failed. The API server answers with
// the code of an invalid object, but names no field.
func isFailedTest(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}

// IsUnacceptable is true if a write was refused for what it says or for its size, so that
// the same write is refused again.
func IsUnacceptable(err error) bool {
	const size = "request is too large" // what the storage answers, as an internal error
	return apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsInvalid(err) && !isFailedTest(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), size)
}

// IsTerminating is true if a write was refused because its namespace is being deleted.
func IsTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
