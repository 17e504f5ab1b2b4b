package main

// The severities.
const (
	critical = "critical"
	warning  = "warning"
)

// quarter is how long most of what needs a user may last before it alerts.
const quarter = "15m"

// alerts are those that the manager's metrics allow, the most important first.
var alerts = []alert{
	{
		name: "SpillwayDown", severity: critical, lasts: "10m",
		expr: `absent(spillway_queued_units)`,
		when: "Prometheus gets no metrics of any manager", summary: "No manager of Spillway is scraped.",
		command: "spillway check -n spillway-system",
		means: []string{
			"No manager runs, or Prometheus cannot scrape it.",
			"Nothing is rolled meanwhile: Pods keep running, zones stay at the revision that they have, and webhooks are answered by their failure policy.",
		},
		fix: []string{
			"If the command reports no running manager, read the log and the Events of its Pods: `kubectl get pods,events -n spillway-system`.",
			"If a manager runs, give Prometheus the permission to scrape it: see [security](../security.md#metrics).",
			"A manager that starts again continues from what is stored; there is nothing to repair.",
		},
	},
	{
		name: "SpillwayGroupFailed", severity: critical, lasts: "5m",
		expr:    `spillway_zones_group_phase{phase=~"Failed|Stalled"} == 1`,
		when:    "the rollout of a RolloutGroup has failed, or cannot continue without a user",
		summary: `RolloutGroup {{ $labels.namespace }}/{{ $labels.rollout_group }}: {{ $labels.phase }}.`,
		command: "spillway explain rolloutgroup/NAME -n NAMESPACE",
		means: []string{
			"A zone did not become ready in time, a gate was refused, or the settings of the group are invalid.",
			"At most one zone is affected: the next one does not begin.",
		},
		fix: []string{
			"Do what the last line of the command says.",
			"To go back, restore the earlier template, as with `spillway rollback statefulset/NAME -n NAMESPACE`.",
			"Once the cause is gone, `spillway retry rolloutgroup/NAME -n NAMESPACE` starts the deadline again.",
		},
	},
	{
		name: "SpillwayModuleFailed", severity: critical, lasts: "5m",
		expr:    `spillway_fleet_module_phase{phase=~"Failed|RolledBack|Stalled"} == 1`,
		when:    "the rollout of a module to its clusters has failed, was rolled back, or cannot continue without a user",
		summary: `{{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.module }}: {{ $labels.phase }}.`,
		command: "spillway fleet status -A",
		means: []string{
			"More clusters failed with the revision than the module allows, or a gate was refused.",
			"Further clusters keep the revision that they have.",
		},
		fix: []string{
			"Run `spillway explain module/NAME -n NAMESPACE` and do what its last line says.",
			"A new revision starts a rollout of its own; `spillway retry module/NAME -n NAMESPACE` tries the same one again.",
		},
	},
	{
		name: "SpillwayPlanFailed", severity: warning, lasts: "1m",
		expr: `sum by (plan) (increase(spillway_plans_executions_total{result="Failed"}[30m])) > 0`,
		when: "an execution of a plan failed in the last 30 minutes", summary: `An execution of plan {{ $labels.plan }} failed.`,
		command: "spillway status -A --rings plans",
		means:   []string{"A step failed for good, so the plan ended, and later steps did not run."},
		fix: []string{
			"Run `spillway explain instance/NAME -n NAMESPACE` for the Instance that the command shows as failed.",
			"Once the cause is gone, `spillway plan retry NAME -n NAMESPACE` runs the plan again.",
		},
	},
	{
		name: "SpillwayInstancesStalled", severity: warning, lasts: quarter,
		expr: `spillway_plans_instances{state="stalled"} > 0`,
		when: "Instances cannot continue without a user", summary: `Instances that are stalled: {{ $value }}.`,
		command: "spillway status -A --rings plans",
		means:   []string{"The Instance, its OperatorVersion or the permissions have a mistake that no retry corrects."},
		fix:     []string{"Run `spillway explain instance/NAME -n NAMESPACE` for each of them, and do what its last line says."},
	},
	{
		name: "SpillwayConfigFailed", severity: critical, lasts: "5m",
		expr:    `sum by (reason) (spillway_config_waiting_workloads{reason=~"ConfigFailed|ConfigRolledBack"}) > 0`,
		when:    "a workload does not become ready with a change of its config",
		summary: `Workloads that wait because a change of config failed ({{ $labels.reason }}): {{ $value }}.`,
		command: "spillway status -A --rings config --waiting",
		means: []string{
			"A workload was rolled for a content of a ConfigMap or Secret and did not become ready.",
			"No further workload is rolled for that content; with ConfigRolledBack the workload has its previous config.",
		},
		fix: []string{
			"Correct the ConfigMap or Secret: the new content is rolled in turn.",
			"To try the same content again, run `spillway retry configmap/NAME -n NAMESPACE` or `spillway retry secret/NAME -n NAMESPACE`.",
		},
	},
	{
		name: "SpillwayGateRefused", severity: warning, lasts: "1m",
		expr: `sum by (ring) (spillway_waiting_units{reason="GateRefused"}) > 0`,
		when: "a rollout is stopped by a gate", summary: `Rollouts of ring {{ $labels.ring }} are stopped by a gate.`,
		command: "spillway status -A --waiting",
		means: []string{
			"A measurement failed more often than its GateTemplate allows, or a user refused.",
			"What is updated stays updated, and nothing else begins.",
		},
		fix: []string{
			"Run `spillway explain` for what waits: it shows the gate, the last values and the query.",
			"If the values are right, go back to the earlier revision.",
			"If the gate was wrong, approve it: `spillway approve rolloutgroup/NAME -n NAMESPACE --reason \"WHY\"`.",
		},
	},
	{
		name: "SpillwayGateSourceErrors", severity: warning, lasts: quarter,
		expr: `sum by (source) (rate(spillway_gates_measurements_total{result="Error"}[10m])) > 0`,
		when: "gates cannot be measured", summary: `The sources ({{ $labels.source }}) of gates answer with errors.`,
		command: "kubectl get gates -A",
		means: []string{
			"A source is unreachable, answers with an error, or its answer cannot be evaluated.",
			"Rollouts wait, and are refused after `errorLimit` errors in a row.",
		},
		fix: []string{
			"Read the last errors: `kubectl get gates -n NAMESPACE -o yaml`, field `status.measurement.last`.",
			"Correct the source or the GateTemplate; a changed GateTemplate measures anew.",
		},
	},
	{
		name: "SpillwayWaitingLong", severity: warning, lasts: quarter,
		expr: `time() - spillway_oldest_wait_start_timestamp_seconds > 86400`,
		when: "something has waited for more than a day", summary: `A rollout of ring {{ $labels.ring }} has waited for {{ $value | humanizeDuration }}.`,
		command: "spillway status -A --waiting",
		means: []string{
			"A rollout waits for a user, a maintenance window, a gate, or for something that does not become ready.",
			"A pause that was forgotten is the usual reason.",
		},
		fix: []string{
			"Run `spillway explain` for what has waited longest.",
			"Resume what was paused, with `spillway resume`.",
			"If rollouts wait for longer on purpose, raise the threshold.",
		},
	},
	{
		name: "SpillwayLockHeld", severity: warning, lasts: quarter,
		expr:    `time() - spillway_zones_lock_acquired_timestamp_seconds > 6 * 3600`,
		when:    "a group has been locked for more than six hours",
		summary: `RolloutGroup {{ $labels.namespace }}/{{ $labels.rollout_group }} has been locked for {{ $value | humanizeDuration }} ({{ $labels.purpose }}).`,
		command: "spillway explain rolloutgroup/NAME -n NAMESPACE",
		means:   []string{"A zone may be disrupted, so no other zone may be: rollouts, downscales and evictions of other zones wait."},
		fix: []string{
			"The command says for which zone, and why that is not ready.",
			"Make the zone ready; the lock is released automatically.",
		},
	},
	{
		name: "SpillwayClustersUnreachable", severity: warning, lasts: quarter,
		expr: `sum by (kind, namespace, module) (spillway_fleet_clusters{state="unreachable"}) > 0`,
		when: "clusters of a module do not answer", summary: `Clusters of {{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.module }} are unreachable: {{ $value }}.`,
		command: "spillway fleet status -A",
		means:   []string{"The clusters, their kubeconfigs or the network between them have a problem; they keep what they run."},
		fix: []string{
			"Run `spillway explain module/NAME -n NAMESPACE` for the error of each cluster.",
			"If a cluster is gone for good, remove it from the selection of the module.",
		},
	},
	{
		name: "SpillwayWritesFail", severity: warning, lasts: quarter,
		expr: `sum(rate(spillway_config_writes_total{result="failed"}[5m])) > 0
  or sum(rate(spillway_zones_writes_total{result="failed"}[5m])) > 0
  or sum(rate(spillway_plans_writes_total{result="failed"}[5m])) > 0
  or sum(rate(spillway_fleet_writes_total{result="failed"}[5m])) > 0
  or sum(rate(spillway_gates_writes_total{result="failed"}[5m])) > 0`,
		when: "the API server refuses writes of the manager", summary: "Writes of the manager fail.",
		command: "spillway check -n spillway-system",
		means: []string{
			"The manager lacks a permission, an admission webhook or policy refuses, or the API server is overloaded.",
			"Writes are retried with a back-off; what they are for waits.",
		},
		fix: []string{
			"Read the errors in the log: `kubectl logs -n spillway-system deploy/spillway`.",
			"Correct the permissions or the policy that the error names.",
		},
	},
	{
		name: "SpillwayReconcileFails", severity: warning, lasts: quarter,
		expr: `sum by (rollout_group) (rate(rollout_operator_group_reconciles_failed_total[5m])) > 0`,
		when: "passes over a group fail, or find invalid settings", summary: `Passes over group {{ $labels.rollout_group }} fail.`,
		command: "spillway explain rolloutgroup/NAME -n NAMESPACE",
		means:   []string{"The settings of the StatefulSets or of the group contradict one another, or the API server cannot be read."},
		fix:     []string{"Correct what the command names.", "Otherwise read the log: `kubectl logs -n spillway-system deploy/spillway`."},
	},
	{
		name: "SpillwayWebhooksFail", severity: critical, lasts: "10m",
		expr: `sum by (path) (rate(spillway_admission_requests_total{outcome=~"late|failed"}[5m])) > 0`,
		when: "webhooks answer too late or with an error", summary: `Requests to webhook {{ $labels.path }} are not answered in time.`,
		command: "spillway check -n spillway-system",
		means:   []string{"Such requests are answered by the failure policy: evictions and downscales may be refused until webhooks answer again."},
		fix: []string{
			"Look at the CPU and memory of the manager, and raise its limits if it reaches them.",
			"Read the log: `kubectl logs -n spillway-system deploy/spillway`.",
		},
	},
	{
		name: "SpillwayCertificateExpires", severity: critical, lasts: "1h",
		expr: `0 < spillway_admission_certificate_expiry_timestamp_seconds < time() + 7 * 86400`,
		when: "the certificate of the webhooks expires within a week", summary: "The certificate of the webhooks expires soon and was not renewed.",
		command: "spillway check -n spillway-system",
		means: []string{
			"The certificate should have been renewed long before.",
			"After it has expired, the API server reaches no webhook.",
		},
		fix: []string{
			"If cert-manager makes the certificate, look at its Certificate object.",
			"Otherwise the manager cannot write its Secret: the command says why.",
		},
	},
}
