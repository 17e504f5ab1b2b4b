// Package admit is what the API server calls or evaluates when a workload is
// created or updated: the ring's webhook and its policy.
//
// Invariants:
//
//   - It never refuses a workload. A dry run is answered as any other request. What it
//     cannot read in time it leaves to the ring.
//   - It writes nothing but snapshots, before it answers with pins of them, and not for a
//     dry run: where a user changes a template so that its Pods could not start with the
//     content to which it is pinned, and nothing holds the present one.
//   - It sets a hash only where Pods are created or replaced anyway. What would
//     replace Pods that the user does not change is left to the ring, which has a
//     budget and pauses.
package admit
