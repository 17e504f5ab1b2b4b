package admit

import (
	"context"

	"gomodules.xyz/jsonpatch/v2"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/config/pin"
)

// pinRoutes answer the webhooks that do what the policies of pins do.
func pinRoutes(namespaces pin.Namespaces) []admission.Route {
	var routes []admission.Route
	for path, answer := range pin.Answers() {
		p := pinner{namespaces, answer} // which reads nothing
		routes = append(routes, admission.Route{Path: path, Handler: p, Blind: p})
	}
	return routes
}

// pinner answers for objects of one kind, in some namespaces. The API server, which asks only where pins are
// on, knows the labels of a namespace that are not in a cache yet.
type pinner struct {
	namespaces pin.Namespaces
	answer     func(now, before []byte) ([]jsonpatch.Operation, error)
}

// Handle answers one request.
func (p pinner) Handle(_ context.Context, req webhook.Request) webhook.Response {
	if !p.namespaces.May(req.Namespace) {
		return webhook.Allowed("")
	}
	operations, err := p.answer(req.Object.Raw, req.OldObject.Raw)
	if err != nil {
		return webhook.Denied(err.Error())
	}
	return webhook.Patched("", operations...)
}
