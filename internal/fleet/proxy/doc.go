// Package proxy hands what a ProxyAssemblage says to the Assemblage of the same name
// and namespace on a workload cluster, and copies back what becomes of it. It also adds
// the other controllers of assemblages that run on the hub ([SetupHub]).
//
// # Invariants
//
//   - What is sent follows from the ProxyAssemblage and from what its control-plane
//     bindings refer to on the hub. Of the bindings only those are sent that a sync
//     refers to, as values that stand for themselves.
//   - It is sent by server-side apply, so that others may have syncs of their own in the
//     same Assemblage. An Assemblage that another ProxyAssemblage writes is left alone.
//   - A sync whose bindings cannot be evaluated is sent as it was sent before, but for
//     what becomes of what runs when it is removed. It neither changes nor is it taken
//     away, and the others go on.
//   - What is copied back speaks of the assignment that was sent: a state of another
//     revision, or of another moment of assigning the same one, is not copied.
//   - A cluster that does not answer is waited for by nobody: see package cluster. What
//     it said last is not what it says now; its syncs are unreachable until it answers.
//   - The finalizer is there before anything is sent, and goes once the Assemblage is
//     gone. From a cluster that is given up nothing is taken away, whether it answers or
//     not: somebody has to say so ([vocabulary.AbandonCluster]), unless the Cluster of Cluster API that owns the
//     ProxyAssemblage and the Secret with its kubeconfig are both gone.
//   - Converged, nothing is written, on neither cluster.
//
// # When it looks
//
// The one Assemblage is watched on its cluster. Where that is not permitted it is
// looked at every 20 seconds while something is on its way, and every five minutes
// otherwise, each time a little sooner or later, so that clusters do not march in step.
//
// The time at which a sync came into its state is told by the clock of the hub, on
// which rollouts are decided.
package proxy
