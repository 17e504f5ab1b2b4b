package guard

import (
	"context"
	"encoding/json"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	zonesv1 "github.com/spillway-dev/spillway/api/zones/v1"
	"github.com/spillway-dev/spillway/internal/zones/budget"
)

// validator refuses budgets that could not be understood. The kind's own rules say
// the same; this is for clusters where rollout-operator's kind is still installed.
type validator struct{}

// Handle answers one request.
func (validator) Handle(_ context.Context, req admission.Request) admission.Response {
	object := &zonesv1.ZoneAwarePodDisruptionBudget{}
	if err := json.Unmarshal(req.Object.Raw, object); err != nil {
		return denyWith(http.StatusBadRequest, err.Error())
	}
	if _, err := budget.Of(object); err != nil {
		return denyWith(http.StatusBadRequest, err.Error())
	}
	return allow()
}
