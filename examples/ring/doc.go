// Package ring is the smallest ring there is: a tutorial, to be read from top to bottom.
//
// It rolls a revision over ConfigMaps, one at a time. The ConfigMap with the label
// example.spillway.dev/rollout says which revision is wanted:
//
//	kubectl label configmap app example.spillway.dev/rollout=app
//	kubectl annotate configmap app example.spillway.dev/revision=v2 --overwrite
//
// The members are the ConfigMaps with the label example.spillway.dev/member=app. Each
// gets the annotation example.spillway.dev/revision. A member whose data.state is
// "broken" is unhealthy, and the next one waits for it.
//
// Such a ring has five parts, in the files of the same names:
//
//   - controller.go wires them: which objects are watched, and the loop of passes.
//   - observe.go makes all the reads, into one snapshot.
//   - plan.go makes of the snapshot what package rollout decides upon, and of the answer
//     the writes. It is pure.
//   - act.go makes all the writes, each with its preconditions.
//   - controller.go also reports, because there is little to report.
//
// What it does not say, because package internal/ring does: that an intent is written
// before it is acted upon, for how long it counts, what a view that lags may decide, when
// a refused write is tried again, and what is reported of it.
package ring
