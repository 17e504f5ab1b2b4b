package change

import (
	"cmp"
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/rollout"
)

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
