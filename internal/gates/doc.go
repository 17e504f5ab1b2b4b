// Package gates measures RolloutGates as their GateTemplates say, and writes the verdicts.
//
// # Invariants
//
//   - It knows no ring: a gate is measured once its rollout has reached it, and its verdict is
//     the condition Passed.
//   - Everything is decided from the status ([measure]), which is written with the
//     resourceVersion that was read: a measurement counts once, also with two managers.
//   - A verdict of a user is never changed, and ends the measuring.
//   - A namespace has at most a few requests under way ([outbound.Turns]): it cannot delay the
//     gates of others by more than its share.
//   - A Secret is read at the moment of a request, from the namespace of the gate, and is kept
//     nowhere.
//
// # Why
//
//   - A gate names a CronJob, and has no template of a Job: with one the manager would run for
//     the author of a GateTemplate what that user may not run. The CronJob must permit the
//     gate, because others have prepared it. The manager may create no Job until a Role of the
//     namespace says so. The name of a Job follows from the gate and the number of
//     measurements, so that each runs once.
//   - A gate during a stage is passed only by a measurement that begins when nothing but gates
//     keeps the stage from being complete (spec.endedAt), so that the last Pod is measured,
//     too. Before that it can only be refused.
package gates
