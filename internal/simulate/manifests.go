package simulate

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/spillway-dev/spillway/internal/kube"
	"github.com/spillway-dev/spillway/internal/plans/object"
	"github.com/spillway-dev/spillway/internal/simulate/apiserver"
	"github.com/spillway-dev/spillway/internal/source"
	"github.com/spillway-dev/spillway/internal/zones/guard"
)

// RefusedError is an object that was not applied, because an API server would not take it.
type RefusedError struct {
	// Object is the one that [Run] was given.
	Object *unstructured.Unstructured
	// Err is the answer of the API server.
	Err error
}

// Unwrap is the answer of the API server.
func (r *RefusedError) Unwrap() error { return r.Err }

const (
	actionValue = "give it a value that the kind allows"
	actionNew   = "take the change out, or delete the object and create it again"
	actionKind  = "write it in a version that is served, or install its CustomResourceDefinition first"
	actionApply = "fix the manifest as the message says"
	// actionLabel and actionLater are for what the guards refuse.
	actionLabel = "take the change of the replicas out, or remove the label first"
	actionLater = "apply it again later; or let the StatefulSet follow a leader or mirror an object, and Spillway scales it when its group allows that"
)

// Check finds what no API server would take, whatever the manifests are applied over;
// [source.Errors] takes the error apart.
func Check(documents []source.Document, kinds *runtime.Scheme) error {
	var mistakes []error
	for i := range documents {
		d := &documents[i]
		typed, err := d.Into(kinds)
		if err != nil && !errors.Is(err, source.ErrUnknownKind) {
			mistakes = append(mistakes, err)
		}
		if typed == nil {
			continue
		}
		for _, m := range apiserver.Mistakes(typed) {
			mistakes = append(mistakes, d.MistakeAt(m.Field, m.Error(), actionValue))
		}
	}
	return errors.Join(mistakes...)
}

// Locate says where in the manifests the object stands for which [Run] has returned an
// error. An error that is about none of them is said to be one of the simulation.
func Locate(err error, documents []source.Document) error {
	refusal, ok := errors.AsType[*RefusedError](err)
	if !ok {
		return fmt.Errorf("simulate: %w", err)
	}
	for i := range documents {
		if documents[i].Object == refusal.Object {
			return located(refusal.Err, &documents[i])
		}
	}
	return fmt.Errorf("simulate: %w", err)
}

// located is one mistake for each field that was refused.
func located(err error, d *source.Document) error {
	if apimeta.IsNoMatchError(err) {
		return d.Mistake(err.Error(), actionFor(d.Object), "apiVersion")
	}
	if refusal, ok := errors.AsType[*guard.RefusedError](err); ok {
		return d.Mistake(fmt.Sprintf("%s %s cannot be applied: %s", d.Object.GetKind(), d.Object.GetName(), err), actionAfter(refusal), "spec", "replicas")
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return d.Mistake(fmt.Sprintf("%s %s cannot be applied: %s", d.Object.GetKind(), d.Object.GetName(), err), actionApply)
	}
	var mistakes []error
	for _, c := range status.Status().Details.Causes {
		mistakes = append(mistakes, mistakeOf(c, d))
	}
	return errors.Join(mistakes...)
}

// actionAfter is what to do about a downscale that a guard refuses.
func actionAfter(r *guard.RefusedError) string {
	if r.Forever {
		return actionLabel
	}
	return actionLater
}

// actionFor is what to do about an object of a kind that is not served.
func actionFor(u *unstructured.Unstructured) string {
	if _, action, isRetired := strings.Cut(object.RetiredAdvice(u.GroupVersionKind()), "; "); isRetired {
		return action
	}
	if kinds, err := kube.NewScheme(); err == nil {
		if field, meant := kube.MeantKind(kinds, u.GroupVersionKind()); meant != "" {
			return "did you mean " + field + " " + meant + "?"
		}
	}
	return actionKind
}

// Error says what was refused, and why.
func (r *RefusedError) Error() string {
	return fmt.Sprintf("apply %s %s: %s", r.Object.GetKind(), r.Object.GetName(), r.Err)
}

// frozen is how the API server describes an immutable field.
const frozen = ": field is immutable"

// mistakeOf is one cause. The value of an immutable field is left out: it may
// be a whole template.
func mistakeOf(c metav1.StatusCause, d *source.Document) error {
	message, action := c.Message, actionValue
	if i := strings.LastIndex(message, frozen); i >= 0 {
		message, action = strings.TrimPrefix(message[i:], ": "), actionNew
	}
	return d.MistakeAt(c.Field, c.Field+": "+message, action)
}
