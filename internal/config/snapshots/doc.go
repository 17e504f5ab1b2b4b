// Package snapshots writes the snapshots of ConfigMaps and Secrets that pins refer to, and
// collects those that nothing refers to any more.
//
// # Invariants
//
//   - A snapshot is in the namespace of its source, of its kind and type, and immutable. It
//     has none of the labels and annotations of its source, so that nothing that selects the
//     source selects it.
//   - A snapshot exists before anything is pinned to it.
//   - An object is a snapshot only if its name follows from its content: a label alone makes
//     none, and no other object is ever deleted.
//   - A snapshot is deleted only if no workload, ReplicaSet, ControllerRevision or Pod refers
//     to it, by the API server and not by a cache alone, and if it is older than [Grace].
//   - Values are read when a snapshot is written, and never kept, logged or part of a message.
//
// # Why
//
//   - Owner references cannot say who uses a snapshot: its source may be deleted while Pods
//     use it, and it belongs to every revision that has its content. Whatever has the
//     annotation with the pins refers to it; a Pod does for itself, because it may outlive its
//     ReplicaSet.
//   - A snapshot that is older than half of [Grace] and has no reference is deleted and
//     written again before something is pinned to it: a second manager that is about to delete
//     it then fails by its UID.
package snapshots
