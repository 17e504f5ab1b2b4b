// Package pods says whether the Pods of a workload run after its config has changed. A [State]
// counts those with the new hash: how many started, how many fail and why, and since when all
// are ready. [Stuck] is a Pod that a StatefulSet waits for and that cannot become ready.
//
// The ring watches Pods ([Watching]), but only as long as that matters. A command lists them
// once ([Listing]).
//
// # Invariants
//
//   - Pods are distinguished by the hash that the ring has put on the template: those with the
//     present hash started with the present config.
//   - Pods are watched only in namespaces where a workload was rolled and is not ready, or
//     has failed. Where nothing rolls, no Pod is listed or watched.
//   - What is kept of a Pod is who controls it, its hash, and what its containers wait for.
//   - Until a watch has delivered all Pods of a namespace, they are unknown, and not absent.
package pods
