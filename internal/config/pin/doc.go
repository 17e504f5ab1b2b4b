// Package pin says with which content of its config a revision of a workload runs.
//
// Pins are an annotation of a Pod template: cm/NAME=DIGEST,secret/NAME=DIGEST. Each names
// a snapshot, an immutable copy of the object with that content. An admission policy of the
// API server points a Pod with the annotation at the snapshots when the Pod is created; the
// template keeps the names that its author wrote.
//
// # Invariants
//
//   - [Rewrite] and the policy of [Policy] do the same to every Pod, and refuse the same. Where
//     the API server has no such policies, those of [Webhooks] call it.
//   - The name of a snapshot follows from the name and the content of the object alone.
//   - A Pod without the annotation is not touched.
package pin
