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
			"Meanwhile Pods keep running and no rollout continues. New Pods of an OnDelete zone start at the new revision. The failure policy of each webhook applies.",
		},
		fix: []string{
			"If the command reports no running manager, read the log and the Events of its Pods: `kubectl get pods,events -n spillway-system`.",
			"If a manager runs, give Prometheus the permission to scrape it: see [security](../security.md#metrics).",
			"There is nothing to repair afterwards: a manager that starts again continues from the state in the API server.",
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
			"Take NAME and NAMESPACE from the labels `rollout_group` and `namespace` of the alert.",
			"Run the command in the last line of the output, `next`, or do what `action` says.",
			"To go back, restore the earlier Pod template of each StatefulSet of the group: apply the earlier manifests, or run `kubectl rollout undo statefulset/NAME -n NAMESPACE`.",
			"If the deadline has passed and the cause is fixed, run `spillway retry rolloutgroup/NAME -n NAMESPACE`: it starts the deadline again.",
			"If a gate was refused by mistake, run `spillway approve rolloutgroup/NAME -n NAMESPACE`.",
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
			"Further clusters keep their revision. In the phase RolledBack all clusters return to the last revision that reached all of them.",
		},
		fix: []string{
			"Run `spillway explain module/NAME -n NAMESPACE`, and the command in its last line.",
			"If you fix the clusters that failed, each counts again when it is ready, and the rollout continues.",
			"To roll out something else, or after RolledBack, change the template of the module: that starts a new rollout.",
			"To go back, run `spillway fleet rollback NAME -n NAMESPACE`.",
			"If a gate was refused by mistake, run `spillway approve module/NAME -n NAMESPACE`.",
		},
	},
	{
		name: "SpillwayPlanFailed", severity: warning, lasts: "1m",
		expr: `sum by (plan) (increase(spillway_plans_executions_total{result="Failed"}[30m])) > 0`,
		when: "an execution of a plan failed in the last 30 minutes", summary: `An execution of plan {{ $labels.plan }} failed.`,
		command: "spillway status -A --rings plans",
		means:   []string{"A step failed with an error that a retry does not fix, so the plan ended, and later steps did not run."},
		fix: []string{
			"Run `spillway explain instance/NAME -n NAMESPACE` for the Instance that the command shows as failed.",
			"Once the cause is fixed, run `spillway plan retry NAME -n NAMESPACE`: the plan continues from the step that failed.",
		},
	},
	{
		name: "SpillwayInstancesStalled", severity: warning, lasts: quarter,
		expr: `spillway_plans_instances{state="stalled"} > 0`,
		when: "Instances cannot continue without a user", summary: `Instances that are stalled: {{ $value }}.`,
		command: "spillway status -A --rings plans",
		means:   []string{"The Instance, its OperatorVersion or the permissions of the manager have a mistake that a user must correct."},
		fix:     []string{"Run `spillway explain instance/NAME -n NAMESPACE` for each of them, and the command in its last line."},
	},
	{
		name: "SpillwayConfigFailed", severity: critical, lasts: "5m",
		expr:    `sum by (reason) (spillway_config_waiting_workloads{reason=~"ConfigFailed|ConfigRolledBack"}) > 0`,
		when:    "a workload does not become ready with a change of its config",
		summary: `Workloads that wait because a change of config failed ({{ $labels.reason }}): {{ $value }}.`,
		command: "spillway status -A --rings config --waiting",
		means: []string{
			"A workload was rolled for a change of a ConfigMap or Secret and did not become ready.",
			"No further workload rolls for the same content. With the reason ConfigRolledBack, the workload runs its previous config again.",
		},
		fix: []string{
			"Correct the ConfigMap or Secret that the output names: Spillway then rolls the new content.",
			"If the workload has pins, return it to its previous config meanwhile: `spillway rollback deployment/NAME -n NAMESPACE`.",
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
			"Units that are updated stay updated, and no further unit begins.",
		},
		fix: []string{
			"Run `spillway explain KIND/NAME -n NAMESPACE` for the rollout that waits: it shows the gate, the last values and the query.",
			"If the values are right, go back to the earlier revision: apply the earlier manifests.",
			"If the gate was wrong, approve it: `spillway approve rolloutgroup/NAME -n NAMESPACE --reason \"WHY\"`; so for an Instance, a ConfigPolicy or a Module.",
		},
	},
	{
		name: "SpillwayGateSourceErrors", severity: warning, lasts: quarter,
		expr: `sum by (source) (rate(spillway_gates_measurements_total{result="Error"}[10m])) > 0`,
		when: "gates cannot be measured", summary: `The sources ({{ $labels.source }}) of gates answer with errors.`,
		command: "kubectl get gates -A",
		means: []string{
			"A source is unreachable, answers with an error, or its answer cannot be evaluated.",
			"Rollouts wait. A gate with more than `errorLimit` errors in a row is refused.",
		},
		fix: []string{
			"Read the last errors: `kubectl get gates -n NAMESPACE -o yaml`, field `status.measurement.last`.",
			"Correct the source or the GateTemplate. A gate without a verdict is then measured again.",
			"To continue without the measurement, approve the gate: `spillway approve gate/NAME -n NAMESPACE --reason \"WHY\"`.",
		},
	},
	{
		name: "SpillwayNotifierFails", severity: warning, lasts: quarter,
		expr:    `spillway_notify_pending_messages > 0`,
		when:    "a Notifier does not deliver its messages",
		summary: `Notifier {{ $labels.namespace }}/{{ $labels.notifier }} does not deliver: {{ $value }} messages are pending.`,
		command: "spillway events -A --field-selector regarding.kind=Notifier,type=Warning",
		means: []string{
			"The receiver is down or refuses the messages, its address is not allowed, or the manager may not read the Secret of the Notifier.",
			"Rollouts continue without notifications. The manager tries again every five minutes at the latest. At most 64 messages are kept.",
		},
		fix: []string{
			"Take NAME and NAMESPACE from the labels `notifier` and `namespace` of the alert.",
			"Read why the last attempt failed: `kubectl get notifier NAME -n NAMESPACE -o jsonpath='{.status.lastError}'`.",
			"Correct the receiver, the Secret, or `--gate-hosts` of the manager: see [notify](../notify.md#receivers). What is pending is then sent, without a restart.",
			"If the receiver is gone for good, delete the Notifier, or set `suspend: true`.",
		},
	},
	{
		name: "SpillwayMessagesDropped", severity: warning, lasts: "1m",
		expr:    `sum by (transport) (increase(spillway_notify_messages_total{result="dropped"}[30m])) > 0`,
		when:    "messages of Notifiers were dropped in the last 30 minutes",
		summary: `Messages of Notifiers ({{ $labels.transport }}) are dropped.`,
		command: "spillway events -A --field-selector regarding.kind=Notifier,type=Warning",
		means: []string{
			"A receiver has rejected a message five times (status 400, 413 or 422), or more than 64 were pending.",
			"These messages are not sent again.",
		},
		fix: []string{
			"Take the Notifier from the Event `MessagesDropped`, and what the receiver says from the Event `DeliveryFailed`.",
			"If the receiver rejects messages, set the `format` of the chat that it belongs to, and check that the address in the Secret is complete.",
			"See what was missed: `spillway history KIND/NAME -n NAMESPACE`.",
		},
	},
	{
		name: "SpillwayWaitingLong", severity: warning, lasts: quarter,
		expr: `time() - spillway_oldest_wait_start_timestamp_seconds > 86400`,
		when: "something has waited for more than a day", summary: `A rollout of ring {{ $labels.ring }} has waited for {{ $value | humanizeDuration }}.`,
		command: "spillway status -A --waiting",
		means: []string{
			"A rollout waits for a user, a maintenance window, a gate, or an object that does not become ready.",
			"The usual cause is a pause that a user forgot.",
		},
		fix: []string{
			"Run `spillway explain KIND/NAME -n NAMESPACE` for the rollout that has waited longest.",
			"If it is paused, ask the user that the message names, and resume it: `spillway resume KIND/NAME -n NAMESPACE`.",
			"If rollouts wait for longer on purpose, raise the threshold of the alert.",
		},
	},
	{
		name: "SpillwayLockHeld", severity: warning, lasts: quarter,
		expr:    `time() - spillway_zones_lock_acquired_timestamp_seconds > 6 * 3600`,
		when:    "a group has been locked for more than six hours",
		summary: `RolloutGroup {{ $labels.namespace }}/{{ $labels.rollout_group }} has been locked for {{ $value | humanizeDuration }} ({{ $labels.purpose }}).`,
		command: "spillway explain rolloutgroup/NAME -n NAMESPACE",
		means:   []string{"A rollout, downscale or eviction of one zone has not ended, so those of the other zones wait."},
		fix: []string{
			"The output names the zone, and why it is not ready.",
			"Make the zone ready: the manager then releases the lock.",
		},
	},
	{
		name: "SpillwayClustersUnreachable", severity: warning, lasts: quarter,
		expr: `sum by (kind, namespace, module) (spillway_fleet_clusters{state="unreachable"}) > 0`,
		when: "clusters of a module do not answer", summary: `Clusters of {{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.module }} are unreachable: {{ $value }}.`,
		command: "spillway fleet status -A",
		means:   []string{"The hub does not reach the API servers of clusters, or their kubeconfigs are wrong. The clusters keep running their revision."},
		fix: []string{
			"Run `spillway explain module/NAME -n NAMESPACE` for the error of each cluster.",
			"If a cluster is gone for good, [abandon it](../fleet.md#kubeconfigs-and-lost-clusters): its assemblage is then removed without an answer of the cluster.",
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
			"The manager lacks a permission, an admission webhook or policy refuses its writes, or the API server is overloaded.",
			"The manager retries with a back-off; the rollouts concerned wait.",
		},
		fix: []string{
			"If the command lists missing permissions, run `spillway install` again with the flags of the installation.",
			"Read the errors in the log: `kubectl logs -n spillway-system deploy/spillway`.",
			"Correct the permissions or the policy that the error names.",
		},
	},
	{
		name: "SpillwayReconcileFails", severity: warning, lasts: quarter,
		expr: `sum by (rollout_group) (rate(rollout_operator_group_reconciles_failed_total[5m])) > 0`,
		when: "passes over a group fail, or find invalid settings", summary: `Passes over group {{ $labels.rollout_group }} fail.`,
		command: "spillway status -A --rings zones --waiting",
		means:   []string{"Settings of the StatefulSets or of the group contradict one another, or the manager cannot read the API server."},
		fix: []string{
			"Run `spillway explain rolloutgroup/NAME -n NAMESPACE` for the group in the label `rollout_group` of the alert, and correct what it names.",
			"If it names nothing, read the log: `kubectl logs -n spillway-system deploy/spillway`.",
		},
	},
	{
		name: "SpillwayWebhooksFail", severity: critical, lasts: "10m",
		expr: `sum by (path) (rate(spillway_admission_requests_total{outcome=~"late|failed"}[5m])) > 0`,
		when: "webhooks answer too late or with an error", summary: `Requests to webhook {{ $labels.path }} are not answered in time.`,
		command: "spillway check -n spillway-system",
		means:   []string{"The failure policy decides these requests: evictions and downscales may be refused until the webhooks answer again."},
		fix: []string{
			"Check CPU and memory of the manager, `kubectl top pods -n spillway-system`, and raise its limits if it reaches them.",
			"Read the log: `kubectl logs -n spillway-system deploy/spillway`.",
		},
	},
	{
		name: "SpillwayCertificateExpires", severity: critical, lasts: "1h",
		expr: `0 < spillway_admission_certificate_expiry_timestamp_seconds < time() + 7 * 86400`,
		when: "the certificate of the webhooks expires within a week", summary: "The certificate of the webhooks expires soon and was not renewed.",
		command: "spillway check -n spillway-system",
		means: []string{
			"The certificate was not renewed, which happens long before it expires.",
			"Once it has expired, calls of webhooks fail, and their failure policy applies.",
		},
		fix: []string{
			"If cert-manager issues the certificate, read the Events of its Certificate: `kubectl describe certificate -n spillway-system`.",
			"Otherwise the manager cannot write its Secret: the output of the command says why.",
		},
	},
}
