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
//
// # Why
//
//   - An undo holds. After kubectl rollout undo the template has an earlier hash, which
//     without pins would be rolled forward again. With pins it is the truth:
//     spillway.dev/config-answered records for which content of each object the workload was
//     rolled, and the workload is up to date as long as no object has another content and no
//     user asks to try again.
//   - A rollback is a write of the user, with the user's permissions, and no request to the
//     manager: it works while no manager runs. It writes the template of the revision and the
//     record of an undo. It does not write the earlier content into the object: that would
//     undo what a GitOps tool applies, and roll workloads that work with the present content.
//   - A workload that fails with a change gets its previous config back only if a policy, its
//     object or the workload asks for that. What to go back to is recorded in the write that
//     rolls it; the earlier revision may no longer exist when it fails, and which of them
//     worked is not known then. The failure is recorded first, in a write of its own: a
//     manager that stops in between leaves a failure that its successor reads. In a group the
//     zone that failed goes back last, or the group would go on to the next zone with the bad
//     content.
//   - Webhooks instead of the policy, for API servers before 1.36, are asked for and never
//     chosen by the manager: while no manager answers, no Pod with pins starts. They have the
//     rules and conditions of the policies.
package pin
