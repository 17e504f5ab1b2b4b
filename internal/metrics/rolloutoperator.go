package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestBuckets are those of rollout-operator.
var requestBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100}

// Those of rollout-operator, so that its dashboards and alerts go on working.
var (
	// UnansweredDesc is worked out when it is asked for.
	UnansweredDesc = computed("kube_validating_webhook_failure_policy",
		"1 for what becomes of a request that a webhook does not answer: Fail if it is refused, by the webhook or by a policy; otherwise Ignore.",
		"type", "webhook", "policy")
	reconciles = counter("rollout_operator_group_reconciles_total",
		"Passes over a group. One that failed counts again with each scrape until one succeeds.", labelNamespace, labelGroup)
	reconcilesFailed = counter("rollout_operator_group_reconciles_failed_total",
		"Passes over a group that failed, or found invalid input, counted in the same way.", labelNamespace, labelGroup)
	reconcileSeconds = histogram("rollout_operator_group_reconcile_duration_seconds", "Seconds that a pass over a group took.", prometheus.DefBuckets, labelNamespace, labelGroup)
	// Passes are those over groups.
	Passes = &passes{groups: map[group]*course{}, last: computed("rollout_operator_last_successful_group_reconcile_timestamp_seconds",
		"When a group was last known to be as the manager wants it, in Unix time: now, unless its last pass failed or does not end.", labelNamespace, labelGroup)}
	// RequestSeconds are those of the requests of all rings.
	RequestSeconds = histogram("rollout_operator_kubernetes_api_client_request_duration_seconds", "Seconds that a request to the API server took.",
		requestBuckets, "path", "method", "status_code")
	WebhookSeconds = histogram("rollout_operator_request_duration_seconds", "Seconds that a request to a webhook took, by rollout-operator's name, for its dashboards.",
		requestBuckets, "method", "route", "status_code", "ws")
	// BudgetsObserved is registered with what observes them.
	BudgetsObserved = unregistered("rollout_operator_zpdb_configurations_observed_total",
		"ZoneAwarePodDisruptionBudgets that were observed: updated (or added), deleted, or invalid; one that is invalid is observed with each scrape.", labelResult)
	FormerEvictions = counter("rollout_operator_zpdb_eviction_requests_total", "Requested evictions, by reason and status of the answer.", labelReason, "status")
	FormerInFlight  = gauge("rollout_operator_zpdb_inflight_eviction_requests", "Evictions that are being decided.").WithLabelValues()
)

func init() { Register(Passes) } //nolint:gochecknoinits // as those that are not computed

// group is a RolloutGroup.
type group struct{ namespace, name string }

// passes are those over groups. rollout-operator polls, and its alerts fire for a group that it
// has not looked at for ten minutes, or that fails again and again. Spillway makes a pass when
// something has changed. So a group that rests is reconciled at any moment, and one whose last
// pass has failed fails at any moment.
type passes struct {
	last *prometheus.Desc

	mu     sync.Mutex
	groups map[group]*course
}

// course is how the passes over a group have gone.
type course struct {
	// now is the clock of the manager.
	now func() time.Time
	// since is when the first pass began that has not succeeded, zero if the last one has.
	since  time.Time
	failed bool
}

// Begin notes that a pass over a group begins, by the clock of its manager. What it returns is
// called when that ends.
func (p *passes) Begin(namespace, name string, now func() time.Time) (end func(failed bool)) {
	began, g := now(), group{namespace, name}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.groups[g] == nil {
		p.groups[g] = &course{}
	}
	c := p.groups[g]
	if c.now = now; c.since.IsZero() {
		c.since = began
	}
	return func(failed bool) {
		reconciles.WithLabelValues(namespace, name).Inc()
		reconcileSeconds.WithLabelValues(namespace, name).Observe(now().Sub(began).Seconds())
		failures := reconcilesFailed.WithLabelValues(namespace, name) // so that it exists, at 0
		p.mu.Lock()
		defer p.mu.Unlock()
		if c.failed = failed; failed {
			failures.Inc()
			return
		}
		c.since = time.Time{}
	}
}

// Forget removes the metrics of a group that is gone.
func (p *passes) Forget(namespace, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.groups, group{namespace, name})
	reconciles.DeleteLabelValues(namespace, name)
	reconcilesFailed.DeleteLabelValues(namespace, name)
	reconcileSeconds.DeleteLabelValues(namespace, name)
}

// Describe implements [prometheus.Collector].
func (p *passes) Describe(descs chan<- *prometheus.Desc) { descs <- p.last }

// Collect implements [prometheus.Collector].
func (p *passes) Collect(found chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for g, c := range p.groups {
		if c.failed {
			reconciles.WithLabelValues(g.namespace, g.name).Inc()
			reconcilesFailed.WithLabelValues(g.namespace, g.name).Inc()
		}
		last := c.since
		if last.IsZero() {
			last = c.now()
		}
		found <- prometheus.MustNewConstMetric(p.last, prometheus.GaugeValue, float64(last.UnixMilli())/1000, g.namespace, g.name)
	}
}
