// Package cronjobs starts a run of CronJobs whose config has changed, with --reloader-cronjobs, where
// annotations of Reloader on the CronJob ask for it. What counts is in package follow.
//
// # Invariants
//
//   - The first pass over a CronJob records what its config is, and starts nothing.
//   - A change starts one run, whatever the manager and the API server do meanwhile: the Job is named by the record
//     that it ends. Changes that follow while it has not started are the same run.
//   - A CronJob that is suspended is not run, also not later for what has changed meanwhile.
//   - With concurrencyPolicy Forbid or Replace no run starts beside another: the Job is created suspended, is
//     registered in the status of the CronJob, so that Kubernetes' controller starts none, and is resumed once it
//     is the only one.
//   - The record that replaces another is that of the Job, from before it started: what changes after is run again.
//   - Jobs are never deleted, and no Job is started again.
//
// A run that fails is no verdict on the config: what a CronJob does fails for other reasons, and nothing else waits for it.
//
// The permissions are those of the chart's permissions.yaml, for an installation with reloader.cronJobs.
package cronjobs
