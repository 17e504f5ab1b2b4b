// Package admit is what the API server calls or evaluates when a workload is
// created or updated: the ring's webhook and its policy.
//
// Invariants:
//
//   - It never refuses a workload, and changes nothing but its answer, so that a dry
//     run is answered as any other request. What it cannot read in time it leaves to
//     the ring.
//   - It sets a hash only where Pods are created or replaced anyway. What would
//     replace Pods that the user does not change is left to the ring, which has a
//     budget and pauses.
package admit
