// Package measure decides about a gate that is measured: when the next measurement is due,
// and what follows from those that were made.
//
// # Invariants
//
//   - It is pure: state × now × result gives the next state. All of the state is in the
//     status of the RolloutGate.
//   - A measurement counts once it is in the state, and then once. A manager that reads the
//     state measures what it lacks: a restart neither repeats nor skips a measurement.
//   - Two measurements that count are at least an interval apart.
//   - A verdict stays.
//   - A gate during a stage passes with no measurement from before the end of the stage.
//   - What is not known is no success: a gate without data waits, and a source that does
//     not answer for too long refuses.
package measure
