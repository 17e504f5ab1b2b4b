// Package config is the config ring: a ConfigMap or Secret changes, and the
// workloads that use it roll once.
//
// A tracked workload has, as an annotation of its Pod template, a hash of the
// config that it uses. When that config changes the ring writes the new hash, and
// Kubernetes replaces the Pods. The hash equals wave's byte for byte, so that
// changing over restarts no Pod.
//
// Invariants:
//
//   - A workload is written only while its uid, its generation and its opt-in are
//     those for which the hash was computed.
//   - Nothing is written while required config is missing.
//   - Values of ConfigMaps and Secrets are never cached, logged or shown. The cache
//     contains digests; values are read when a hash is due, and dropped with it.
//   - A hash is computed again unless the record beside it says that it was computed from the
//     same references and the same versions of their objects.
//   - What is kept in memory only saves work. Losing it at any time changes no
//     outcome except this: changes that would have been one roll may be two.
//
// The ring is this package. [decision] is its pure part, [content] finds the config of
// a workload and computes its hash, [workload] reads and changes workloads, and [admit]
// answers the API server when a workload is created or updated. The loop of passes,
// retries, Events and metrics are those of package ring. What is kept of a workload from
// pass to pass is two things: what was read, with the changes of its config that are not rolled
// yet (cache.go), and what failed (retry.go).
package config
