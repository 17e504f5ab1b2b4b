package plans

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
)

// admitter answers the API server when an Instance is created or its spec is
// updated: whoever makes a mistake learns of it at once. It changes nothing. What
// it cannot find out it lets pass; the controller judges it again.
type admitter struct {
	options Options
	// live reads OperatorVersions from the API server: one that was installed a
	// moment before the Instance may not be in any cache yet.
	live client.Reader
}

// Handle answers one request.
func (a *admitter) Handle(ctx context.Context, req admission.Request) admission.Response {
	if !a.options.watches(req.Namespace) {
		return admission.Allowed("")
	}
	s, err := decode(req)
	if err != nil { // which the failure policy lets pass: nothing is refused for our ignorance
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if err := a.observe(ctx, &s); err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if problems := s.problems(); len(problems) > 0 {
		return admission.Denied(sentences(problems))
	}
	return admission.Allowed("")
}

// decode reads the Instance as it is to be, and as it was.
func decode(req admission.Request) (submission, error) {
	s := submission{now: &v1beta1.Instance{}, versions: map[types.NamespacedName]*Version{}}
	if err := json.Unmarshal(req.Object.Raw, s.now); err != nil {
		return submission{}, fmt.Errorf("decode the Instance: %w", err)
	}
	if s.now.Namespace == "" {
		s.now.Namespace = req.Namespace
	}
	if req.Operation != admissionv1.Update {
		s.now.Status = v1beta1.InstanceStatus{} // which is dropped when it is created
		return s, nil
	}
	s.before = &v1beta1.Instance{}
	if err := json.Unmarshal(req.OldObject.Raw, s.before); err != nil {
		return submission{}, fmt.Errorf("decode the former Instance: %w", err)
	}
	return s, nil
}

// observe reads the OperatorVersions that it takes to judge.
func (a *admitter) observe(ctx context.Context, s *submission) error {
	for _, spec := range s.specs() {
		key := versionKey(s.now.Namespace, spec)
		if _, known := s.versions[key]; known || key.Name == "" {
			continue
		}
		ov := &v1beta1.OperatorVersion{}
		switch err := a.live.Get(ctx, key, ov); {
		case err == nil:
			s.versions[key] = newVersion(ov)
		case apierrors.IsNotFound(err), apimeta.IsNoMatchError(err), apierrors.IsForbidden(err):
			s.versions[key] = nil
		default:
			return fmt.Errorf("get OperatorVersion %s: %w", key, err)
		}
	}
	return nil
}

// watches is true if Instances of the namespace are looked at.
func (o Options) watches(namespace string) bool {
	return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, namespace)
}
