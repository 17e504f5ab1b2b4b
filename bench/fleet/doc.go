// Package fleet measures the fleet ring on the hub with many clusters: how long a
// decision takes, what a new revision, a cluster that joins, and rest cost in requests,
// how large objects become, and how soon a manager that was restarted goes on. Who
// carries out what is assigned is played, each cluster with a latency of its own;
// nobody fetches or applies anything.
package fleet
