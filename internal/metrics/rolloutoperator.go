package metrics

import "github.com/prometheus/client_golang/prometheus"

// requestBuckets are those of rollout-operator.
var requestBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100}

// Those of rollout-operator, so that its dashboards and alerts go on working.
var (
	// UnansweredDesc is worked out when it is asked for.
	UnansweredDesc = computed("kube_validating_webhook_failure_policy",
		"1 for what becomes of a request that a webhook does not answer: Fail if it is refused, by the webhook or by a policy; otherwise Ignore.",
		"type", "webhook", "policy")
	Reconciles       = counter("rollout_operator_group_reconciles_total", "Passes over a group.", labelGroup)
	ReconcilesFailed = counter("rollout_operator_group_reconciles_failed_total", "Passes over a group that failed, or found invalid input.", labelGroup)
	ReconcileSeconds = histogram("rollout_operator_group_reconcile_duration_seconds", "Seconds that a pass over a group took.", prometheus.DefBuckets, labelGroup)
	ReconcileLast    = gauge("rollout_operator_last_successful_group_reconcile_timestamp_seconds", "When the last pass over a group succeeded.", labelGroup)
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
