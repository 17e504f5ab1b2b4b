// Package jobs pins Jobs to the config that exists when they start.
//
// The Pod template of a Job cannot be changed once it has started, so a policy of the API server
// suspends a Job that asks for pins when it is created. This package writes the snapshots, and
// then the pins, with the write that resumes the Job. Nothing is ever rolled.
//
// # Invariants
//
//   - A Job that asks for pins starts with them, or with a sentence that says why it has none.
//   - Only a Job that the policy has suspended is resumed, and only as it was read.
//   - A snapshot exists before a Job is pinned to it.
//   - A Job whose config is missing waits for it: its pins would say that it is absent.
//   - There is no record besides the Job: a manager that stops leaves it suspended, and the next
//     one pins it.
//
// # Why
//
// A webhook that writes snapshots would refuse Jobs while no manager answers, or let them
// start without pins. A Job is suspended, and not gated, because the references of a Pod cannot
// be changed. Pins in the jobTemplate of a CronJob would be those of an earlier content for a
// Job that starts just after a change.
package jobs
