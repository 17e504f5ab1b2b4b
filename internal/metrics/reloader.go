package metrics

// Those of Reloader, so that its dashboards and alerts go on working. They are counted with --reloader-metrics alone.
var (
	reloads = counter("reloader_reload_executed_total",
		"Writes by which workloads with annotations of Reloader were rolled, and those that failed, with --reloader-metrics.", "success")
	reloadsByNamespace = counter("reloader_reload_executed_total_by_namespace", "The same by namespace.", "success", labelNamespace)
)

// Reloaded counts a write by which a workload was rolled, or which has failed.
func Reloaded(namespace string, err error) {
	success := "true"
	if err != nil {
		success = "false"
	}
	reloads.WithLabelValues(success).Inc()
	reloadsByNamespace.WithLabelValues(success, namespace).Inc()
}

// CountReloads has both results shown before there are any.
func CountReloads() {
	reloads.WithLabelValues("true")
	reloads.WithLabelValues("false")
}
