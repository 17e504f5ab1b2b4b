// Package task decides what each task of a plan needs: which objects it applies,
// deletes or waits for.
//
// # Invariants
//
//   - It is pure. What a decision needs to know and the [Snapshot] does not contain
//     is in [Finding.Needs]; the caller reads it and calls again.
//   - An object that exists and does not belong to the Instance is neither changed nor
//     deleted, unless it is annotated to be adopted.
//   - What was applied is not remembered: each object says which execution and step
//     applied it last, in the write that applied it. So after a crash the next pass
//     does what is missing, and nothing twice.
//   - A deletion names the UID of the object that was read.
//   - A refusal counts for what was sent in the same execution, and for nothing else.
//   - What holds data is replaced only by a permission that names its loss.
//   - While something must not be read, nothing that depends on it is done.
//   - Values of Secrets are in no message.
//
// # Why
//
// The objects of one kind of Kubernetes are applied at the same time, and so are
// ServiceAccounts, Secrets and ConfigMaps: none of them needs another one. Kinds that others
// define are applied in order, because their webhooks may. The read before an apply cannot be
// left out: it finds what belongs to others, and what is being deleted. The read after it can:
// the answer to the apply is one.
package task
