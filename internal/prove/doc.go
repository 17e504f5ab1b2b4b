// Package prove explores what a change can do, over every single failure.
//
// It plays a change with the rings themselves in the world of package simulate, and forks that world
// at every moment: once for each thing that can go wrong there (see [Failure]), and once for each
// way in which that ends. Worlds of the same state go on in the same way, so each state is visited
// once. Parts of the change that have nothing to do with each other are explored apart, and of those that
// are equal but for names one is (see [split]); ADR 89 says why that finds the same.
//
// In every state and with every write the rules are checked (see [Rules]). They know nothing of how
// a ring decides: they read objects, as a witness would. A rule that is broken is shown by the
// shortest path to it.
//
// Invariants:
//
//   - The exploration is deterministic: the same manifests have the same result, unless time ends it.
//   - What is found apart is what is found in one world without any of this (see [Options.Exhaustive]).
//   - A result says whether it is complete: whether every state was visited that the failures reach.
//
// # Limits
//
// The world is that of package simulate, with its limits; no read is stale, and one manager runs at a
// time. Units that differ in nothing but their name (the Pods of a zone, the clusters of a stage, the
// workloads of a policy) fail alike: of each such class and state the first and the last one fail.
package prove
