package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Type is what kind of values a metric has.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// The labels that many metrics have.
const (
	labelAct       = "act"
	labelGroup     = "rollout_group"
	labelKind      = "kind"
	labelNamespace = "namespace"
	labelReason    = "reason"
	labelResult    = "result"
	labelRing      = "ring"
	labelState     = "state"
)

// Metric is what is declared of a metric.
type Metric struct {
	Name   string
	Type   Type
	Help   string
	Labels []string
}

// all are the declared metrics, in the order of the files and lines.
var all []Metric

// All returns the metrics that the manager has besides those of its libraries.
func All() []Metric { return all }

// Register adds a metric that is worked out when it is asked for.
func Register(c prometheus.Collector) { controllerruntime.Registry.MustRegister(c) }

func declare(name string, t Type, help string, labels []string) {
	all = append(all, Metric{Name: name, Type: t, Help: help, Labels: labels})
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	vec := unregistered(name, help, labels...)
	Register(vec)
	return vec
}

// unregistered is a counter that is part of another collector.
func unregistered(name, help string, labels ...string) *prometheus.CounterVec {
	declare(name, Counter, help, labels)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	declare(name, Gauge, help, labels)
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	Register(vec)
	return vec
}

// computed is a gauge that is worked out when it is asked for.
func computed(name, help string, labels ...string) *prometheus.Desc {
	declare(name, Gauge, help, labels)
	return prometheus.NewDesc(name, help, labels, nil)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	declare(name, Histogram, help, labels)
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	Register(vec)
	return vec
}
