package certificate

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	certificateWrites = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_admission_certificate_writes_total",
		Help: "Writes of the certificate's Secret: made, conflict or failed.",
	}, []string{"result"})
	injections = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "spillway_admission_ca_injections_total",
		Help: "Writes of the CA bundle into webhook configurations: made, conflict or failed.",
	}, []string{"result"})
)

func init() { //nolint:gochecknoinits // the documented use of the registry of controller-runtime
	metrics.Registry.MustRegister(unanswered, certificateWrites, injections)
}
