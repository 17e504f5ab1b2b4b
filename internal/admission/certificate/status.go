package certificate

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/spillway-dev/spillway/internal/metrics"
)

// report counts and logs the writes. It returns what to retry; and after a
// conflict, which is no error, how long to wait for the write of the other replica.
func report(log logr.Logger, p plan, errs []error) (wait time.Duration, failed error) {
	for n, err := range errs {
		writes := metrics.AdmissionInjections
		if n == len(p.injections) {
			writes = metrics.AdmissionCertificateWrites
		}
		writes.WithLabelValues(resultOf(err)).Inc()
		switch {
		case isConflict(err):
			wait = retryAfterConflict
		case err != nil:
			failed = errors.Join(failed, err)
		case n == len(p.injections):
			log.Info("made "+cmp.Or(string(p.step), "a new key for paths"), "because", p.reason)
		case p.injections[n].confirms:
			log.V(1).Info("wrote once more what API servers may have missed", "kind", p.injections[n].configuration.kind, "name", p.injections[n].configuration.name)
		default:
			log.Info("injected the CA and the paths", "kind", p.injections[n].configuration.kind, "name", p.injections[n].configuration.name)
		}
	}
	return wait, failed
}

func resultOf(err error) string {
	switch {
	case err == nil:
		return "made"
	case isConflict(err):
		return "conflict"
	default:
		return "failed"
	}
}

// reportHeld logs which paths another client puts back, again and again.
func reportHeld(log logr.Logger, o *observed) {
	for i := range o.configurations {
		if c := &o.configurations[i]; o.now.Before(c.heldUntil) {
			log.Info("another client sets the paths of webhooks back, so that requests are refused; have it ignore them",
				"kind", c.kind, "name", c.name, "field", "/webhooks/*/clientConfig/service/path", "next", c.heldUntil)
		}
	}
}

// Ready says why the webhooks cannot be served yet, or nil. It is a check of
// readiness: an API server calls only replicas that are ready.
func (r *reconciler) Ready(req *http.Request) error {
	c := r.server.Certificate()
	if c != nil && !r.keys.Has() {
		return errors.New("Secret " + r.options.KeysSecret() + " has no key for the paths of webhooks yet")
	}
	if c == nil {
		if why := r.problem.Load(); why != nil {
			return *why
		}
		return errors.New("the certificate and the webhook configurations were not observed yet")
	}
	if r.now().After(c.Leaf.NotAfter) {
		return errors.New("the certificate expired on " + day(c.Leaf.NotAfter))
	}
	if !r.server.IsListening() {
		return errors.New("the server is not listening yet")
	}
	return nil
}
