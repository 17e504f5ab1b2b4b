// Package proxy hands what a ProxyAssemblage says to the Assemblage of the same name
// and namespace on a workload cluster, and copies back its status. It also adds
// the other controllers of assemblages that run on the hub ([SetupHub]).
//
// # Invariants
//
//   - What is sent follows from the ProxyAssemblage and from what its control-plane
//     bindings refer to on the hub. Of the bindings only those are sent that a sync
//     refers to, as values that stand for themselves.
//   - It is sent by server-side apply, so that others may have syncs of their own in the
//     same Assemblage. An Assemblage that another ProxyAssemblage writes is left alone.
//   - One that an earlier ProxyAssemblage of the same hub, namespace, name and cluster has
//     written is adopted if its content is the same; nothing is written on the cluster then.
//   - A sync whose bindings cannot be evaluated is sent as it was sent before, but for
//     what becomes of what runs when it is removed. It neither changes nor is it taken
//     away, and the others go on.
//   - What is copied back speaks of the assignment that was sent: a state of another
//     revision, or of another moment of assigning the same one, is not copied.
//   - A cluster that does not answer delays no other: see package cluster. Its last
//     status is not its present one; its syncs are unreachable until it answers.
//   - The finalizer is added before anything is sent, and removed once the Assemblage is
//     gone. From an abandoned cluster nothing is removed, whether it answers or
//     not: a user must ask for it ([vocabulary.AbandonCluster]), unless the Cluster of Cluster API that owns the
//     ProxyAssemblage and the Secret with its kubeconfig are both gone.
//   - Converged, nothing is written, on neither cluster.
//
// # When it reads
//
// The one Assemblage is watched on its cluster. Where that is not permitted it is
// read every 20 seconds while something is not ready, and every five minutes
// otherwise, with jitter, so that the requests are spread over time.
//
// While something is updating it is read anyway, five seconds later at first, as a cluster
// that falls silent ends no watch ([outcome.NextAsk]).
//
// The time at which a sync came into its state is measured by the clock of the hub, on
// which rollouts are decided.
package proxy
