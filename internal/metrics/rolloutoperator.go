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
	Reconciles       = counter("rollout_operator_group_reconciles_total", "Passes over a group.", labelNamespace, labelGroup)
	ReconcilesFailed = counter("rollout_operator_group_reconciles_failed_total", "Passes over a group that failed, or found invalid input.", labelNamespace, labelGroup)
	ReconcileSeconds = histogram("rollout_operator_group_reconcile_duration_seconds", "Seconds that a pass over a group took.", prometheus.DefBuckets, labelNamespace, labelGroup)
	ReconcileLast    = &reconciled{groups: map[group]time.Time{}, desc: computed("rollout_operator_last_successful_group_reconcile_timestamp_seconds",
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

func init() { Register(ReconcileLast) } //nolint:gochecknoinits // as those that are not computed

// group is a RolloutGroup.
type group struct{ namespace, name string }

// reconciled is when groups were reconciled last. rollout-operator polls, and its alerts fire
// for a group that it has not looked at for ten minutes. Spillway makes a pass when something
// has changed, so a group that rests is reconciled at any moment: what is kept is since when
// one is not.
type reconciled struct {
	desc *prometheus.Desc

	mu sync.Mutex
	// groups are all; the time is when the first pass began that has not succeeded, zero if
	// the last one has.
	groups map[group]time.Time
}

// Begin notes that a pass over a group begins.
func (r *reconciled) Begin(namespace, name string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups[group{namespace, name}].IsZero() {
		r.groups[group{namespace, name}] = now
	}
}

// Succeed notes that a pass has succeeded.
func (r *reconciled) Succeed(namespace, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups[group{namespace, name}] = time.Time{}
}

// Forget removes a group that is gone.
func (r *reconciled) Forget(namespace, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, group{namespace, name})
}

// Describe implements [prometheus.Collector].
func (r *reconciled) Describe(descs chan<- *prometheus.Desc) { descs <- r.desc }

// Collect implements [prometheus.Collector].
func (r *reconciled) Collect(found chan<- prometheus.Metric) { r.collect(time.Now(), found) } //nolint:forbidigo // a scrape is now

func (r *reconciled) collect(now time.Time, found chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for g, since := range r.groups {
		if since.IsZero() {
			since = now
		}
		found <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(since.UnixMilli())/1000, g.namespace, g.name)
	}
}
