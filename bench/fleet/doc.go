// Package fleet measures the fleet ring on the hub with many clusters: how long a
// decision takes, what a new revision, a cluster that joins, and rest cost in requests,
// how large objects become, and how soon a manager that was restarted goes on. The
// clusters are simulated, each with a latency of its own: nothing is fetched or applied.
package fleet
