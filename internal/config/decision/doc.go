// Package decision decides which workloads get the hash of their config, and what else
// is written on them. It is pure.
//
// # Invariants
//
//   - Order, budget, rate and time are the engine's decisions; the units that it decides
//     on are the workloads, in their namespaces.
//   - Each workload that is out of date is one Step, or one Hold with its reason.
//   - A workload is written at most once in a pass.
//   - What the users of a namespace can write delays no workload of another one: what was
//     rolled follows from a record of the manager, and a workload that waits for its users
//     takes no place in a budget. A ClusterConfigPolicy with stages of namespaces alone lets one
//     wait for another, for objects that it names.
package decision
