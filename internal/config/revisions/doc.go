// Package revisions reads the revisions that Kubernetes keeps of a workload, with their pins,
// and the snapshots of an object, with what refers to them.
//
// # Invariants
//
//   - It only reads, with the permissions of its caller.
//   - Values of Secrets are compared, and are part of nothing that is returned.
//   - What cannot be read is unknown, and not missing.
package revisions
