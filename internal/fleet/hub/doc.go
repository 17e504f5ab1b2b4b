// Package hub is the fleet ring on the hub: a module changes, and the clusters that
// it selects follow, stage by stage, under a budget.
//
// A module says what is to run where. Each content of it becomes a ModuleRevision,
// which does not change. What a cluster is assigned stands in its assemblage, where
// each module, and anybody else, keeps an entry of its own. Who carries that out
// reports in the status of the assemblage; see the packages beside this one.
//
// # Invariants
//
//   - Of the clusters of a stage never more are taken down by Spillway than the
//     budget of the stage allows, those included that are unready for reasons of
//     their own, or unknown and maybe unready.
//   - No cluster is assigned a new revision before its stage is open: every earlier
//     stage is at that revision, ready, soaked, its gates passed.
//   - No cluster is assigned a revision while a check of the module does not hold on it, or is
//     not known to, unless it returns to what it ran. What was permitted before is withdrawn.
//   - Nothing is written to a cluster on which a revision changes nothing, and that is no
//     evidence of the revision.
//   - Every selected cluster is in exactly one stage, or pinned, or belongs to none.
//   - No cluster is unassigned for being unready, unreachable, or not known at present: a
//     sync is removed only from a cluster that exists and is not selected, or with the
//     module.
//   - Before a sync is removed the API server itself is asked whether the module and
//     the cluster are what they were seen to be.
//   - A tag is looked up once: no cluster is assigned one after another cluster has
//     succeeded with it.
//   - A report counts only for the assignment that it speaks of: by revision and by
//     the moment of the assignment.
//   - What is assigned was written into the status of the module before, by
//     compare-and-swap. See "How hubs keep out of each other's way".
//   - Of the modules that share a ClusterBudget never more are updating a cluster, nor are more clusters of
//     a group updating, than it allows: what a module may update is noted in the budget before it is permitted.
//   - The status does not grow with the number of clusters.
//   - Converged, the plan is empty, and so is the one after it.
//
// # Which revision a cluster gets
//
// The target is what the module says, or what spec.targetRevision names. The good
// revision is the last that got everywhere: to every cluster of every stage, but for
// as many failures as maxFailures tolerates. When the target has failed and the module says so,
// it is given up, and the good revision is the target; that waits for no window, soak
// or gate.
//
// A cluster that has never run the module is new. It gets the good revision immediately,
// belongs to its stage from when it has become ready, and takes no place in the
// budget until then. One that fails to become ready at the good revision is treated
// like all others, so that the next revision may fix it. With the strategy Replace,
// and while no revision is good, no cluster is new.
//
// A cluster that was unready before it moved may be moved whatever the budget, as
// that takes nothing away.
//
// # How hubs keep out of each other's way
//
// There is one leader, but a lease cannot stop one that was leader a moment ago; and
// every view may be old. So, as in the zones ring:
//
//   - A pass either permits or acts. To permit is to write moves into the status of
//     the module, with the resourceVersion that was observed. To act is to do what the
//     observed status permits, with the UID and the resourceVersion of the assemblage.
//   - A cluster with a move counts as updating, until its assemblage has changed.
//   - A move names the UID, the generation and the fence of the assemblage: an annotation
//     that changes when a move is withdrawn, and that a report does not change. One that is
//     not wanted any more counts until one of them has changed, however old it is: its
//     request may be on the wire, and has a resourceVersion from before the fence.
//   - An assemblage is created before a move is permitted, and empty. What creates it with
//     an assignment has no precondition by which it could be withdrawn.
//   - A move that took nothing away, because the cluster was unready, is not acted
//     upon when the cluster has become ready.
//   - The status says how new the view was from which it was decided. A manager that
//     sees less asks the API server itself.
//
// Package hub/sim tries all of this.
//
// # Why
//
//   - A cluster that joins gets the good revision, because the newest one has not proved
//     itself, and takes no place in the budget, because a fleet that grows could not roll
//     otherwise.
//   - A tag is looked up by the first cluster that succeeds, because the network and the
//     credentials for that are on the clusters, and Flux has no field for a tag as long as it
//     is a commit. The others are assigned the commit. Otherwise moving a tag moves all
//     clusters at the same time. The module can ask for that (mutable).
//   - A cluster that is unknown for a moment, such as one whose kubeconfig is being replaced,
//     takes a place in every budget unless its assemblage says that it is ready. A failure
//     that maxFailures tolerates takes none: the rollout could neither go on nor fail
//     otherwise.
//   - A cluster that falls silent ends no watch for a minute. So a cluster that is updating is
//     asked, after five seconds or a twelfth of the time so far, and the reason says that it
//     does not answer. Shorter pings would be sent to all clusters, also at rest, and a Lease
//     of each cluster needs a way from the clusters to the hub.
//   - Only a Module returns when a gate is refused: it has a revision that reached all
//     clusters. The template of a StatefulSet is a user's or GitOps' to write, workloads that
//     work are not restarted, and a plan has no reverse.
package hub
