package admission

import (
	"errors"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// result counts a write and returns what is worth trying again. Being overtaken
// is not: what overtook it is an event, which leads to the next pass.
func result(writes *prometheus.CounterVec, err error) error {
	switch {
	case err == nil:
		writes.WithLabelValues("made").Inc()
	case overtaken(err):
		writes.WithLabelValues("overtaken").Inc()
		return nil
	default:
		writes.WithLabelValues("failed").Inc()
	}
	return err
}

// tell logs what was done.
func tell(log logr.Logger, p plan) {
	if p.step != keep {
		log.Info("made "+string(p.step), "because", p.reason)
	}
	for _, i := range p.injections {
		log.V(1).Info("injected the CA", "kind", i.configuration.kind, "name", i.configuration.name)
	}
}

// Ready says why the webhooks cannot be served yet, or nil. It is a check of
// readiness: an API server calls only replicas that are ready.
func (r *reconciler) Ready(req *http.Request) error {
	c := r.server.certificate.Load()
	if c == nil {
		if why := r.problem.Load(); why != nil {
			return *why
		}
		return errors.New("the certificate and the webhook configurations were not seen yet")
	}
	if r.options.Now().After(c.Leaf.NotAfter) {
		return errors.New("the certificate has expired on " + day(c.Leaf.NotAfter))
	}
	if !r.server.listening.Load() {
		return errors.New("the server does not listen yet")
	}
	return nil
}
