// Package sim is a model world in which the config ring is tried: its controller as it runs in a
// cluster, on an API server in memory. In it are Deployments, StatefulSets and DaemonSets that use
// ConfigMaps and Secrets, their controllers, which observe late, and their Pods, of which the world
// decides what becomes: with a good content they get ready, with a bad one they crash immediately or
// after a while, or never get ready. Some workloads are sick whatever content they have, some have
// no replicas, no node or no room, or are paused. Pods lose their readiness for a moment. Users edit,
// return, delete and create config again, undo, replace, restart, scale, pause and delete workloads, and
// opt them in and out, some through the webhook of the ring. The manager sees late, meets
// conflicts and errors, and is killed before and after its writes.
//
// All of it follows from a seed. After every single write an oracle, which knows nothing of the
// plan, checks the world as it is:
//
//   - What has failed is rolled nowhere any more, whatever users and the manager do; and until it has
//     failed, it is rolled for no more workloads that can show it than the first stage has.
//   - No failure is recorded of a workload of which no Pod ran a bad content.
//   - No workload is rolled for a content that it has.
//   - No more workloads are rolled at a time than may be.
//
// When the storm is over and all content is good, all workloads have to get it, and then nothing is
// written any more.
//
// A failure prints its seed; play it again, with everything that happened, with
//
//	go test ./internal/config/sim -run TestSimulation -seed=N -v
//
// and try more worlds with -seeds=N.
//
// That the oracle sees what it has to see is tried as well: each rule in turn is broken on
// purpose, and some world has to notice.
package sim
