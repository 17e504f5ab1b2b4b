// Package content finds the config that a workload uses, and computes its hash.
//
// Invariants:
//
//   - For the same references the hash equals wave's byte for byte, so that
//     changing over restarts no Pod.
//   - What is kept of a ConfigMap or Secret is a digest of each value. Values are
//     read when a hash is due, and dropped with the last hash that needs them.
//   - What must not be read is reported as a sentence. An object of another namespace is
//     left out, because only an annotation names it; without one of the workload's own
//     namespace no hash is computed.
package content
