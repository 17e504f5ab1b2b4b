package manager

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
)

// addAdmission adds the server for the webhooks of the rings that run, if any
// of them has some.
func (o Options) addAdmission(mgr ctrl.Manager, rings []ring) error {
	if !o.Admission.Enabled {
		return nil
	}
	var (
		webhooks []admission.Webhook
		routes   []admission.Route
		own      []string
	)
	for _, r := range rings {
		if r.routes == nil {
			continue
		}
		answered, err := r.routes(mgr)
		if err != nil {
			return fmt.Errorf("%s ring: %w", r.name, err)
		}
		webhooks = append(webhooks, o.Declarations(r.name).Webhooks...)
		routes = append(routes, answered...)
		own = append(own, admission.ConfigurationName(o.Admission.Namespace, r.name))
	}
	if len(routes) == 0 {
		return nil
	}
	options := o.Admission
	if options.Own == nil {
		options.Own = own
	}
	return certificate.Setup(mgr, options, webhooks, routes)
}
