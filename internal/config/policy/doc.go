// Package policy reads ConfigPolicies and ClusterConfigPolicies: which of them is for a
// workload and an object, and to which stages workloads belong. Its decisions are pure;
// [Reader] and [Writer] read policies and write their status.
//
// # Invariants
//
//   - Of several policies one counts, whatever the order in which they were read.
//   - A policy that is not valid lets nothing be rolled that it is for.
//   - The stages of a policy put workloads into one order, in all releases: of two
//     workloads that wait in several releases, the same one is always the first. So they
//     never wait for each other.
//   - Nothing is decided from the status of a policy.
//
// # Why
//
// The gates of a stage are of ConfigPolicies only: a user who may write the status of
// RolloutGates of a namespace decides them, so that tenants could decide those of a platform's
// ClusterConfigPolicy. A RolloutGate names the object and a digest of its content, so that
// each content has gates of its own. One of the right name that the policy does not control is
// no gate: the release waits.
package policy
