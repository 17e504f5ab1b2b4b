// Package argo restarts Rollouts of Argo whose config has changed, where annotations of Reloader ask for it and the kind
// is installed: by spec.restartAt, upon which Argo replaces the Pods within maxUnavailable of the Rollout.
//
// # Invariants
//
//   - The first pass over a Rollout records what its config is, and restarts nothing, unless Reloader has written
//     into its Pod template that it has rolled it for another content.
//   - A change restarts once, whatever the manager and the API server do meanwhile: the record that ends it is part
//     of the request that restarts.
//   - A Rollout that is paused, by its spec, by spillway pause, or by a policy, is restarted once that ends.
//   - Each request names the version of the Rollout that was decided upon.
//   - Pods are never deleted, and nothing of a Rollout is written but restartAt and the record.
//
// A Pod that Argo replaces leaves no trace of the config with which it runs. So there are no stages, no verdict and no way
// back.
//
// The permissions are those of the chart's permissions.yaml, for an installation with reloader.annotations.
package argo
