// Package cluster knows the clusters of the fleet, and how to talk to them.
//
// A cluster is a Cluster of Cluster API, or a Secret with a kubeconfig that carries
// the label [vocabulary.Cluster]. Either way the kubeconfig is in the Secret
// NAME-kubeconfig, in the key "value"; a cluster is ready once its control plane
// was initialized, and it has that Secret.
//
// # Invariants
//
//   - A cluster that does not answer delays only the requests for that
//     cluster: [Registry.Connect] never dials. It gives a connection to a
//     cluster that has answered, and otherwise says that it has not (yet).
//   - Whether a cluster answers is found out by probes, in queues of their own. One that
//     does not answer immediately goes from the first to the second, where it is probed
//     with a back-off of its own: so those that do answer never wait for the others. A
//     cluster that answers is not probed again until a caller suspects it.
//   - A cluster that cannot be reached stays a cluster, with all its labels.
//   - Of a kubeconfig only a client is kept, and the digest by which a change of it
//     is noticed. Another version of the Secret with the same content changes
//     nothing; another content makes another client.
//   - A kubeconfig is untrusted input: it may not run programs, nor read files
//     of the manager.
package cluster
