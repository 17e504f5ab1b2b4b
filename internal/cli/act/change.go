package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/api/spillway/v1alpha1"
	"github.com/spillway-dev/spillway/internal/cli/command"
	"github.com/spillway-dev/spillway/internal/reasons"
	"github.com/spillway-dev/spillway/rollout"
)

// Apply reads an object, lets change edit it, and writes it if it is still as it was
// read. On a conflict it starts again from a new read: the manager writes there as well.
func Apply(ctx context.Context, c client.Client, obj client.Object, change func() error) error {
	return OnConflict(Name(c, obj), func() error {
		if err := Get(ctx, c, obj); err != nil {
			return err
		}
		before, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			return errors.New("a copy of an object is not an object")
		}
		if err := change(); err != nil {
			return err
		}
		return Patch(ctx, c, obj, before)
	})
}

// OnConflict runs a change again while it loses a conflict.
func OnConflict(what string, change func() error) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, change)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s: conflict with another client; nothing was changed, try again", what)
	}
	return err //nolint:wrapcheck // the change has said what it is
}

// Patch writes an object if it is still as it was before.
func Patch(ctx context.Context, c client.Client, obj, before client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, obj, patch, client.FieldOwner(FieldOwner)); err != nil {
		return fmt.Errorf("change %s: %w", Name(c, obj), err)
	}
	return nil
}

// Get reads an object, by the name and the namespace that it has.
func Get(ctx context.Context, c client.Client, obj client.Object) error {
	what, key := Name(c, obj), client.ObjectKeyFromObject(obj)
	gvk, unknown := c.GroupVersionKindFor(obj)
	err := c.Get(ctx, key, obj)
	switch {
	case apimeta.IsNoMatchError(err):
		return command.NotInstalled(what, gvk.Kind)
	case apierrors.IsNotFound(err):
		if unknown != nil {
			return fmt.Errorf("%s not found in namespace %s", what, key.Namespace)
		}
		return command.NotFound(ctx, c, gvk, key.Namespace, key.Name)
	case err != nil:
		return fmt.Errorf("get %s: %w", what, err)
	default:
		return nil
	}
}

// Name is how kubectl names an object.
func Name(c client.Client, obj client.Object) string {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return obj.GetName()
	}
	return strings.ToLower(gvk.Kind) + "/" + obj.GetName()
}

// Show says what was done; or for machines, as kubectl does, writes the objects as they
// are now: one as it is, several as a List.
func Show(w io.Writer, output string, c client.Client, said string, changed ...client.Object) error {
	switch output {
	case "":
		_, err := fmt.Fprintln(w, said)
		return err //nolint:wrapcheck // nothing can be added to a broken pipe
	case command.OutputName:
		for _, obj := range changed {
			if _, err := fmt.Fprintln(w, Name(c, obj)); err != nil {
				return err //nolint:wrapcheck // nothing can be added to a broken pipe
			}
		}
		return nil
	}
	items := make([]any, len(changed))
	for i, obj := range changed {
		content, err := shown(c, obj)
		if err != nil {
			return err
		}
		items[i] = content
	}
	if len(items) == 1 {
		return command.Show(w, output, items[0], nil)
	}
	return command.Show(w, output, map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, nil)
}

// shown is an object without what is not for reading. The manifest that kubectl keeps with a
// Secret has its values, so it is not shown of any object.
func shown(c client.Client, obj client.Object) (map[string]any, error) {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return nil, fmt.Errorf("show %s: %w", obj.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("show %s/%s: %w", strings.ToLower(gvk.Kind), obj.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	u.SetManagedFields(nil)
	unstructured.RemoveNestedField(content, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return content, nil
}

// Author is who wants something, when and why.
type Author struct {
	By, Reason string
	At         metav1.Time
}

// About is what an Event about an object of a kind is about.
func About(kind schema.GroupVersionKind, obj client.Object) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
	}
}

// RecordEvent records in an Event about an object who did something to it, in a word,
// and why. Of an object that is in no namespace it is in the default one, as Kubernetes asks for.
func RecordEvent(ctx context.Context, c client.Client, about corev1.ObjectReference, word rollout.Reason, who Author, now time.Time) error {
	note := string(word) + ByName(who.By)
	if who.Reason != "" {
		note += ": " + who.Reason
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault), GenerateName: about.Name + "-"},
		EventTime:  metav1.NewMicroTime(now), Type: corev1.EventTypeNormal, Reason: string(word), Action: "Steer", Note: note,
		ReportingController: FieldOwner, ReportingInstance: FieldOwner, Regarding: about,
	}
	err := c.Create(ctx, event)
	if apierrors.IsForbidden(err) {
		return nil // the object has been changed, and says most of it
	}
	if err != nil {
		return fmt.Errorf("the change was made, but its Event was not written: %w", err)
	}
	return nil
}

// FieldOwner is the name of a person's writes in managedFields; those of the
// manager have another.
const FieldOwner = "spillway-cli"

// Whoami is the caller's name as the API server knows it, empty if it does not say.
func Whoami(ctx context.Context, c client.Client) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// May is true if the API server lets the caller do something.
func May(ctx context.Context, c client.Client, what *authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err //nolint:wrapcheck // who asks says what it was about
}

// ByName returns ", by NAME", empty without a name.
func ByName(name string) string {
	if name == "" {
		return ""
	}
	return ", by " + name
}

// Decided is the verdict of a gate as it is.
func Decided(g *v1alpha1.RolloutGate) metav1.ConditionStatus {
	if c := apimeta.FindStatusCondition(g.Status.Conditions, v1alpha1.GatePassed); c != nil {
		return c.Status
	}
	return metav1.ConditionUnknown
}

// SetVerdict sets a person's verdict of a gate, true or false.
func SetVerdict(g *v1alpha1.RolloutGate, verdict metav1.ConditionStatus, who Author) {
	reason := reasons.Approved
	if verdict == metav1.ConditionFalse {
		reason = reasons.Refused
	}
	apimeta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{
		Type: v1alpha1.GatePassed, Status: verdict, Reason: string(reason), Message: who.words(), LastTransitionTime: who.At,
	})
}

// WriteVerdict writes the verdict of a gate, if no other was given since it was read.
func WriteVerdict(ctx context.Context, c client.Client, gate, before client.Object) error {
	err := c.Status().Patch(ctx, gate, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldOwner))
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not decide gates; it takes the permission to patch rolloutgates/status: %w", err)
	}
	if err != nil {
		return fmt.Errorf("change rolloutgate/%s: %w", gate.GetName(), err)
	}
	return nil
}

// Decide writes a person's verdict of a gate, true or false, if no other was given since it
// was read.
func Decide(ctx context.Context, c client.Client, g *v1alpha1.RolloutGate, verdict metav1.ConditionStatus, who Author) error {
	before := g.DeepCopy()
	SetVerdict(g, verdict, who)
	return WriteVerdict(ctx, c, g, before)
}

func (a *Author) words() string {
	switch {
	case a.By == "":
		return a.Reason
	case a.Reason == "":
		return "by " + a.By
	default:
		return a.By + " says: " + a.Reason
	}
}

// The reasons of the Events that commands record.
const (
	// ReasonPaused: a user has paused a rollout.
	ReasonPaused = rollout.ReasonPaused
	// ReasonResumed: a user has resumed a paused rollout.
	// Action: nothing, for information only.
	ReasonResumed rollout.Reason = "Resumed"
	// ReasonRetried: a user has retried a rollout that had failed.
	ReasonRetried = reasons.Retried
	// ReasonTriggered: a user has triggered a plan of an Instance.
	// Action: nothing, for information only.
	ReasonTriggered rollout.Reason = "Triggered"
	// ReasonAbandoned: a user has abandoned the plan that was running.
	// Action: to continue from the step that failed: spillway plan retry.
	ReasonAbandoned rollout.Reason = "Abandoned"
	// ReasonPinned: a user has pinned a cluster at its revision.
	// Action: to let it follow the rollout again: spillway fleet unpin.
	ReasonPinned rollout.Reason = "Pinned"
	// ReasonUnpinned: a user lets a pinned cluster follow the rollout again.
	// Action: nothing, for information only.
	ReasonUnpinned rollout.Reason = "Unpinned"
	// ReasonRolledBackTo: a user has set the revision of a module or a workload, or returned to
	// the revision of the template of a module, or an Instance to an earlier execution.
	// Action: to follow the template of a module again: spillway fleet rollback --to latest; to
	// roll a workload for the present config: spillway retry for the object.
	ReasonRolledBackTo rollout.Reason = "RolledBackTo"
)
