package metrics

import "github.com/prometheus/client_golang/prometheus"

// ConfigWritesName is the name of [ConfigWrites].
const ConfigWritesName = "spillway_config_writes_total"

// The config ring.
var (
	ConfigTracked = gauge("spillway_config_tracked_workloads", "Workloads that are rolled when their config changes.").WithLabelValues()
	ConfigWaiting = gauge("spillway_config_waiting_workloads", "Workloads that are out of date and not rolled now, by reason.", labelReason)
	ConfigChanges = counter("spillway_config_changes_total", "Observed changes of a workload's config, before coalescing.").WithLabelValues()
	ConfigRolls   = counter("spillway_config_rolls_total", "Workloads rolled by writing their hash.", labelNamespace, labelKind)
	ConfigWrites  = counter(ConfigWritesName, "Writes to workloads and ConfigRollouts, by act (Roll, Record, Free, Replace; Describe for those that only say how far a content has come) and result: made, conflict or failed.", labelAct, labelResult)
	ConfigLatency = histogram("spillway_config_change_to_write_seconds", "Seconds from the first observed change to the write that rolls the workload.",
		[]float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600}).WithLabelValues()
)

// The zones ring.
var (
	ZonesPhase = gauge("spillway_zones_group_phase",
		"1 for the present phase of a group: Complete, Progressing, Waiting, Paused, Failed or Stalled.", labelNamespace, labelGroup, "phase")
	ZonesPods = gauge("spillway_zones_pods",
		"Pods of a zone by state: updated (up to date and available), ready (available at any revision), total (desired replicas).",
		labelNamespace, labelGroup, "zone", labelState)
	ZonesWaiting = gauge("spillway_zones_waiting", "Units that are not up to date and wait, by reason.", labelNamespace, labelGroup, labelReason)
	ZonesLock    = gauge("spillway_zones_lock_acquired_timestamp_seconds",
		"When the lock of a group was acquired, in Unix time, by purpose: rollout, downscale or eviction; absent while it is free.", labelNamespace, labelGroup, "purpose")
	ZonesWrites = counter("spillway_zones_writes_total",
		"Writes to StatefulSets, Pods and RolloutGroups: made, conflict (another client was faster), or failed.", labelAct, labelResult)
	ZonesScales = counter("spillway_zones_scales_total",
		"Writes and calls by act (Scale, WriteBack, Call, Settle): made, conflict (another client was faster), or failed.",
		labelNamespace, labelGroup, labelAct, labelResult)
	ZonesScalingWaiting = gauge("spillway_zones_scaling_waiting", "StatefulSets whose replicas wait to be changed, by reason.", labelNamespace, labelGroup, labelReason)
	ZonesEvictions      = counter("spillway_zones_eviction_requests_total", "Requested evictions, by reason and status of the answer.", labelReason, "status")
)

// The plans ring.
var (
	PlansWrites = counter("spillway_plans_writes_total",
		"Writes of the status (act Instance) and those that it permits: made, refused by a conflict because another client was faster, or failed.",
		labelAct, labelResult)
	PlansExecutions       = counter("spillway_plans_executions_total", "Executions that have ended, by plan and result.", "plan", labelResult)
	PlansExecutionSeconds = histogram("spillway_plans_execution_seconds", "Duration of executions that are complete.",
		[]float64{0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400}, "plan")
	PlansInstances = gauge("spillway_plans_instances", "Instances by state: idle, running or stalled.", labelState)
)

// The fleet ring. Its label kind is the kind of the module, or of the assemblage.
var (
	FleetPhase = gauge("spillway_fleet_module_phase",
		"1 for the present phase of a module: Complete, Progressing, Waiting, Paused, Failed, RollingBack, RolledBack, Stalled or Deleting.",
		labelKind, labelNamespace, "module", "phase")
	FleetClusters = gauge("spillway_fleet_clusters",
		"Clusters of a module by state: total, updated, updating, succeeded, failed, waiting, held, unreachable.",
		labelKind, labelNamespace, "module", labelState)
	FleetWaiting = gauge("spillway_fleet_waiting",
		"Clusters and stages that are not up to date and wait, by reason.", labelKind, labelNamespace, "module", labelReason)
	FleetWrites = counter("spillway_fleet_writes_total",
		"Writes to modules, assemblages, revisions and gates: made, refused by a conflict because another client was faster, or failed.",
		labelKind, labelAct, labelResult)
	FleetSyncs = gauge("spillway_fleet_syncs", "Syncs of assemblages, by the kind of the assemblage and the state of the sync.", labelKind, labelState)
)

// FleetWritesOf are the writes for a kind of modules.
func FleetWritesOf(kind string) *prometheus.CounterVec {
	return FleetWrites.MustCurryWith(prometheus.Labels{labelKind: kind})
}

// ZonesScalesOf are the writes and calls for a group.
func ZonesScalesOf(namespace, group string) *prometheus.CounterVec {
	return ZonesScales.MustCurryWith(prometheus.Labels{labelNamespace: namespace, labelGroup: group})
}

// Gates.
var (
	GatesMeasurements = counter("spillway_gates_measurements_total",
		"Measurements of gates by source (http, prometheus) and result: Success, Failure, NoData, Error.", "source", labelResult)
	GatesVerdicts = counter("spillway_gates_verdicts_total", "Verdicts of gates that were measured: Passed, Refused.", "verdict")
	GatesWrites   = counter("spillway_gates_writes_total",
		"Writes of the status of RolloutGates: made, conflict (another client was faster), or failed.", labelAct, labelResult)
)

// Notifiers.
var (
	NotifyMessages = counter("spillway_notify_messages_total",
		"Messages of Notifiers by transport (webhook, chat, alertmanager) and result: delivered, failed (an attempt, which is repeated), dropped.", "transport", labelResult)
	NotifyPending = gauge("spillway_notify_pending_messages", "Messages of a Notifier that are not delivered yet. One that is suspended has no series.", labelNamespace, "notifier")
	NotifyWrites  = counter("spillway_notify_writes_total",
		"Writes of the status of Notifiers: made, conflict (another client was faster), or failed.", labelAct, labelResult)
)

// Admission.
var (
	AdmissionRequests = counter("spillway_admission_requests_total",
		"Requests to webhooks by how they ended: allowed, patched, denied; late or failed, and answered by the failure policy; "+
			"refused with an HTTP error; abandoned by the API server; unshown, without a key.", "path", "outcome")
	AdmissionSeconds = histogram("spillway_admission_request_seconds", "Seconds that a request to a webhook took.",
		[]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}, "path")
	AdmissionInFlight          = gauge("spillway_admission_requests_in_flight", "Requests to webhooks that are being answered.", "path")
	AdmissionExpiry            = gauge("spillway_admission_certificate_expiry_timestamp_seconds", "When the certificate that is served expires, in Unix time; 0 while there is none.").WithLabelValues()
	AdmissionCertificateWrites = counter("spillway_admission_certificate_writes_total", "Writes of the certificate's Secret: made, conflict or failed.", labelResult)
	AdmissionInjections        = counter("spillway_admission_ca_injections_total", "Writes of the CA bundle into webhook configurations: made, conflict or failed.", labelResult)
)
