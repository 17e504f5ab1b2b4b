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
package gates
