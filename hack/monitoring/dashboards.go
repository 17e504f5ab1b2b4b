package main

import "fmt"

// dashboards are an overview, one for each ring, and one for the manager.
func dashboards() []dashboard {
	return []dashboard{
		{"overview", "Spillway / Overview", overview},
		{"config", "Spillway / Config", append(config, ofRing("config")...)},
		{"zones", "Spillway / Zones", append(zones, ofRing("zones")...)},
		{"plans", "Spillway / Plans", append(plans, ofRing("plans")...)},
		{"fleet", "Spillway / Fleet", append(fleet, ofRing("fleet")...)},
		{"manager", "Spillway / Manager", manager},
	}
}

// one is a panel with one query.
func one(title, unit, expr, legend string) panel {
	return panel{title, unit, []query{{expr, legend}}}
}

// quantiles is a panel of a histogram.
func quantiles(title, histogram string) panel {
	p := panel{title: title, unit: seconds}
	for _, q := range []string{"0.5", "0.99"} {
		p.queries = append(p.queries, query{fmt.Sprintf("histogram_quantile(%s, sum by (le) (rate(%s_bucket[15m])))", q, histogram), q})
	}
	return p
}

var overview = []panel{
	one("Rollouts that ended, in an hour", count, `sum by (ring, outcome) (increase(spillway_rollouts_total[1h]))`, "{{ring}} {{outcome}}"),
	one("Waiting, by reason", count, `sum by (ring, reason) (spillway_waiting_units)`, "{{ring}} {{reason}}"),
	one("Longest wait", seconds, `time() - spillway_oldest_wait_start_timestamp_seconds`, "{{ring}}"),
	one("Units that wait at a time, by reason", count, `sum by (reason) (rate(spillway_waiting_seconds_total[15m]))`, "{{reason}}"),
	one("Queued", count, `sum by (ring) (spillway_queued_units)`, "{{ring}}"),
	one("Median duration of rollouts", seconds, `histogram_quantile(0.5, sum by (ring, le) (rate(spillway_rollout_duration_seconds_bucket[1h])))`, "{{ring}}"),
	one("Measurements of gates", perSec, `sum by (source, result) (rate(spillway_gates_measurements_total[15m]))`, "{{source}} {{result}}"),
	one("Verdicts of gates, in an hour", count, `sum by (verdict) (increase(spillway_gates_verdicts_total[1h]))`, "{{verdict}}"),
}

// ofRing are the panels that each ring has.
func ofRing(ring string) []panel {
	return []panel{
		one("Time spent waiting, by reason", count, fmt.Sprintf(`sum by (reason) (rate(spillway_waiting_seconds_total{ring="%s"}[15m]))`, ring), "{{reason}}"),
		one("Longest wait", seconds, fmt.Sprintf(`time() - spillway_oldest_wait_start_timestamp_seconds{ring="%s"}`, ring), "{{ring}}"),
		one("Writes", perSec, fmt.Sprintf(`sum by (act, result) (rate(spillway_%s_writes_total[5m]))`, ring), "{{act}} {{result}}"),
		one("Rollouts that ended, in an hour", count, fmt.Sprintf(`sum by (outcome) (increase(spillway_rollouts_total{ring="%s"}[1h]))`, ring), "{{outcome}}"),
	}
}

var config = []panel{
	one("Tracked workloads", count, `sum(spillway_config_tracked_workloads)`, "tracked"),
	one("Waiting workloads", count, `sum by (reason) (spillway_config_waiting_workloads)`, "{{reason}}"),
	{"Changes and rolls, in 5 minutes", count, []query{
		{`sum(increase(spillway_config_changes_total[5m]))`, "changes"}, {`sum by (kind) (increase(spillway_config_rolls_total[5m]))`, "rolled {{kind}}"},
	}},
	quantiles("From the change to the write", "spillway_config_change_to_write_seconds"),
}

var zones = []panel{
	one("Phases", count, `sum by (phase) (spillway_zones_group_phase)`, "{{phase}}"),
	one("Groups that are not complete", count, `spillway_zones_group_phase{phase!="Complete"}`, "{{namespace}}/{{rollout_group}} {{phase}}"),
	one("Pods", count, `sum by (namespace, rollout_group, state) (spillway_zones_pods)`, "{{namespace}}/{{rollout_group}} {{state}}"),
	one("Waiting", count, `sum by (namespace, rollout_group, reason) (spillway_zones_waiting)`, "{{namespace}}/{{rollout_group}} {{reason}}"),
	one("Age of the locks", seconds, `time() - spillway_zones_lock_acquired_timestamp_seconds`, "{{namespace}}/{{rollout_group}} {{purpose}}"),
	one("Replicas", perSec, `sum by (act, result) (rate(spillway_zones_scales_total[5m]))`, "{{act}} {{result}}"),
	one("Replicas that wait", count, `sum by (namespace, rollout_group, reason) (spillway_zones_scaling_waiting)`, "{{namespace}}/{{rollout_group}} {{reason}}"),
	one("Evictions", perSec, `sum by (reason, status) (rate(spillway_zones_eviction_requests_total[5m]))`, "{{reason}} {{status}}"),
}

var plans = []panel{
	one("Instances", count, `sum by (state) (spillway_plans_instances)`, "{{state}}"),
	one("Executions that ended, in an hour", count, `sum by (plan, result) (increase(spillway_plans_executions_total[1h]))`, "{{plan}} {{result}}"),
	quantiles("Duration of executions", "spillway_plans_execution_seconds"),
}

var fleet = []panel{
	one("Phases", count, `sum by (kind, phase) (spillway_fleet_module_phase)`, "{{kind}} {{phase}}"),
	one("Clusters", count, `sum by (namespace, module, state) (spillway_fleet_clusters)`, "{{namespace}}/{{module}} {{state}}"),
	one("Waiting", count, `sum by (namespace, module, reason) (spillway_fleet_waiting)`, "{{namespace}}/{{module}} {{reason}}"),
	one("Syncs", count, `sum by (kind, state) (spillway_fleet_syncs)`, "{{kind}} {{state}}"),
}

// manager is about the program, also by the metrics of its libraries.
var manager = []panel{
	one("Requests to the API server", perSec, `sum by (path, method) (rate(rollout_operator_kubernetes_api_client_request_duration_seconds_count[5m]))`, "{{method}} {{path}}"),
	one("Failed requests", perSec, `sum by (path, status_code) (rate(rollout_operator_kubernetes_api_client_request_duration_seconds_count{status_code!~"[123].."}[5m]))`, "{{status_code}} {{path}}"),
	quantiles("Requests to the API server", "rollout_operator_kubernetes_api_client_request_duration_seconds"),
	quantiles("Passes over groups", "rollout_operator_group_reconcile_duration_seconds"),
	one("Passes over groups that fail", perSec, `sum by (namespace, rollout_group) (rate(rollout_operator_group_reconciles_failed_total[5m]))`, "{{namespace}}/{{rollout_group}}"),
	one("Requests to webhooks", perSec, `sum by (path, outcome) (rate(spillway_admission_requests_total[5m]))`, "{{path}} {{outcome}}"),
	quantiles("Requests to webhooks", "spillway_admission_request_seconds"),
	one("Until the certificate expires", seconds, `spillway_admission_certificate_expiry_timestamp_seconds - time() > 0`, "certificate"),
	one("Queues", count, `sum by (name) (workqueue_depth{name=~"config|zones|scaling|plans|gates|.*[Mm]odule.*"})`, "{{name}}"),
	{"Memory", inBytes, []query{{`go_memstats_heap_alloc_bytes`, "heap {{pod}}"}, {`process_resident_memory_bytes`, "resident {{pod}}"}}},
}
