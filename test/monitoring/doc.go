// Package monitoring tests the alerts and dashboards in folder monitoring of the repository,
// with the parser of Prometheus and with promtool. It is a module of its own, so that
// Prometheus is no dependency of the program. Run it by "make monitoring-check".
package monitoring
