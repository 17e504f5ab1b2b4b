// Package config is the config ring: a ConfigMap or Secret changes, and the
// workloads that use it roll once.
//
// A tracked workload carries, as an annotation of its Pod template, a hash of
// the config that it uses. When that config changes the ring writes the new
// hash, and Kubernetes does the rest. The hash is the predecessor's, byte for
// byte, so changing over restarts nothing.
//
// Invariants:
//
//   - A workload is written only while its uid, its generation and its opt-in
//     are those for which the hash was computed.
//   - Nothing is written while required config is missing.
//   - Values of ConfigMaps and Secrets are never cached, logged or shown. The
//     cache holds digests; values are read when a hash is due, and dropped with it.
//   - The state kept in memory only saves work. Losing it at any instant changes
//     no outcome but this: changes that would have been one roll may be two.
package config
