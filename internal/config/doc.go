// Package config is the config ring: a ConfigMap or Secret changes, and the
// workloads that use it roll once.
//
// A tracked workload has, as an annotation of its Pod template, a hash of the
// config that it uses. When that config changes the ring writes the new hash, and
// Kubernetes replaces the Pods. The hash equals wave's byte for byte, so that
// changing over restarts no Pod.
//
// Invariants:
//
//   - A workload is written only while its uid, its generation and its opt-in are
//     those for which the hash was computed.
//   - Nothing is written while required config is missing.
//   - Values of ConfigMaps and Secrets are never cached, logged or shown. The cache
//     contains digests; values are read when a hash is due, and dropped with it.
//   - A hash is computed again unless the record beside it says that it was computed from the
//     same references and the same versions of their objects.
//   - What is kept in memory only saves work. Losing it at any time changes no
//     outcome except this: changes that would have been one roll may be two.
//
// The ring is this package. [decision] is its pure part, [content] finds the config of
// a workload and computes its hash, [workload] reads and changes workloads, and [admit]
// answers the API server when a workload is created or updated. The loop of passes,
// retries, Events and metrics are those of package ring. What is kept of a workload from
// pass to pass is two things: what was read, with the changes of its config that are not rolled
// yet (cache.go), and what failed (retry.go).
//
// # Why
//
//   - One pass serves all workloads, because the budget, the rate and the queue belong to all
//     of them. A reconcile for each workload would need a locked view of the others, and would
//     read a ConfigMap that a thousand workloads use a thousand times.
//   - A workload with wave's hash is not restarted because this ring covers more of its
//     config. If the hash on the template is right in wave's scope, spillway.dev/config-
//     baseline records the pair of both hashes, and the workload is up to date as long as the
//     present hash is the second one. The same record serves when a user begins to ignore an
//     object: nothing is rolled for a scope that shrinks.
//   - What counts for a workload that annotations of Reloader track depends on the objects of its
//     namespace, and is found in each pass (reloaded.go). Reloader rolls for edits, and not because other
//     objects count than before; a hash alone cannot tell the two. So spillway.dev/config-seen records what
//     counted, with a digest of each content whose key is the UID of the object, and is of one hash: where
//     none of them has changed, the new hash is recorded as a baseline. The same record lets a user change
//     to the native annotation without a restart. Until there is one, what runs counts as having the present
//     config, unless that was edited after the opt-in and after the manager began.
//   - What a hash was computed from is recorded beside it (inputs, in spillway.dev/config-
//     change), so that a manager that starts reads only what changed. The record is an HMAC of
//     the hash, the references, and the UID and resourceVersion of each object, with the name
//     of the workload as its key. It has no value and no digest of a value, which would let
//     guesses of a Secret be tested. It is only written with a hash: a workload of wave is not
//     written for it.
//   - Limits for all namespaces rest on a record of the manager, spillway.dev/config-budget of
//     the Lease spillway-manager-config, and not on records of the workloads, which their
//     users can write. It is written before the rolls that it permits, with the
//     resourceVersion that was read. Memory alone would let a manager that restarts often roll
//     nothing.
//   - Namespaces take turns at being read, and a batch reads about 64 objects: the workloads
//     of one namespace that use all that a workload may use kept the others waiting for
//     minutes.
//   - The manager creates ClusterConfigPolicy default, once, and records that in the Lease.
//     Manifests cannot apply an object before its kind is served, and tools that apply them
//     again would bring back what a user has deleted.
//   - A Pod of a StatefulSet that replaces its Pods in order and can never become ready blocks
//     the corrected revision (kubernetes#67250). It is replaced where this ring rolled the
//     revision at which it waits, which recorded hashes say, and where it was never ready:
//     such a Pod serves nothing, so its deletion takes no place in a budget. A Pod that was
//     ready may hold data that it is recovering, and is left to a user.
package config
