package admit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/api/kudo/v1beta1"
	"github.com/spillway-dev/spillway/internal/plans/choice"
)

// webhook answers the API server when an Instance is created or its spec is updated, so
// that a user sees a mistake immediately. It changes nothing. What it cannot find out it
// admits; the controller judges it again.
type webhook struct {
	// namespaces are those that the ring watches, all if empty.
	namespaces []string
	// live reads OperatorVersions from the API server: one that was installed just before
	// the Instance may not be in a cache yet.
	live client.Reader
}

// Handle answers one request.
func (w *webhook) Handle(ctx context.Context, req admission.Request) admission.Response {
	if len(w.namespaces) > 0 && !slices.Contains(w.namespaces, req.Namespace) {
		return admission.Allowed("")
	}
	s, err := decode(req)
	if err != nil { // the failure policy admits it: nothing is refused because of an error of ours
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if err := w.observe(ctx, &s); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if problems := s.problems(); len(problems) > 0 {
		return admission.Denied(choice.Sentences(problems))
	}
	return admission.Allowed("")
}

// decode reads the Instance as it is submitted, and as it was.
func decode(req admission.Request) (submission, error) {
	s := submission{now: &v1beta1.Instance{}, versions: map[types.NamespacedName]*choice.Version{}}
	if err := json.Unmarshal(req.Object.Raw, s.now); err != nil {
		return submission{}, fmt.Errorf("decode the Instance: %w", err)
	}
	if s.now.Namespace == "" {
		s.now.Namespace = req.Namespace
	}
	if req.Operation != admissionv1.Update {
		s.now.Status = v1beta1.InstanceStatus{} // the API server drops the status of a new object
		return s, nil
	}
	s.before = &v1beta1.Instance{}
	if err := json.Unmarshal(req.OldObject.Raw, s.before); err != nil {
		return submission{}, fmt.Errorf("decode the old Instance: %w", err)
	}
	return s, nil
}

// observe reads the OperatorVersions that the judgment needs.
func (w *webhook) observe(ctx context.Context, s *submission) error {
	for _, spec := range s.specs() {
		key := choice.VersionKey(s.now.Namespace, spec)
		if _, known := s.versions[key]; known || key.Name == "" {
			continue
		}
		ov := &v1beta1.OperatorVersion{}
		switch err := w.live.Get(ctx, key, ov); {
		case err == nil && choice.MayUse(s.now.Namespace, ov):
			s.versions[key] = choice.NewVersion(ov)
		case err == nil, apierrors.IsNotFound(err), apimeta.IsNoMatchError(err), apierrors.IsForbidden(err):
			s.versions[key] = nil
		default:
			return fmt.Errorf("get OperatorVersion %s: %w", key, err)
		}
	}
	return nil
}
