// Package offline holds the commands that work on manifests: lint and simulate. Only
// simulate --cluster reads from a cluster, and neither writes to one.
package offline
