// Package pods says how the Pods of a workload do that was rolled for a change of its
// config, and watches Pods for as long as that matters.
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
