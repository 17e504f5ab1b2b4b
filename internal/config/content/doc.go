// Package content finds the config that a workload uses, and computes its hash.
//
// Invariants:
//
//   - For the same references the hash equals wave's byte for byte, so that
//     changing over restarts no Pod.
//   - What is kept of a ConfigMap or Secret is a digest of each value. Values are
//     read when a hash is due, and dropped with the last hash that needs them.
//   - What must not be read, or is not shared with the workload's namespace, is
//     reported as a sentence; no hash is computed from the rest.
package content
