package manager

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spillway-dev/spillway/internal/admission"
	"github.com/spillway-dev/spillway/internal/admission/certificate"
	"github.com/spillway-dev/spillway/internal/admission/leftout"
	state "github.com/spillway-dev/spillway/internal/ring"
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
	if err := mgr.Add(&leftOut{reader: mgr.GetAPIReader(), namespace: options.Namespace, own: options.Own}); err != nil {
		return fmt.Errorf("add the search for webhook configurations: %w", err)
	}
	return certificate.Setup(mgr, options, webhooks, routes)
}

// searchEach is how often the webhook configurations of others are looked at. The manager
// cannot watch those that its permissions leave out.
const searchEach = 10 * time.Minute

// leftOut logs the webhook configurations that ask for a CA and do not get that of this
// manager, once each time they are found and were not before.
type leftOut struct {
	reader    client.Reader
	namespace string
	own       []string
	said      state.Said
}

// Start searches while this replica leads.
func (l *leftOut) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, l.search, searchEach)
	return nil
}

func (l *leftOut) search(ctx context.Context) {
	log := ctrl.LoggerFrom(ctx).WithName("admission")
	found, err := leftout.Find(ctx, l.reader, l.namespace, l.own)
	if err != nil {
		log.V(1).Info("webhook configurations of others are not known", "error", err.Error())
		return
	}
	for i := range found {
		if c := &found[i]; l.said.IsNew(c.Kind+c.Name, c.What()) {
			log.Info("webhook configuration left out", "configuration", c.Name, "problem", c.What(), "action", c.Action())
		}
	}
}
