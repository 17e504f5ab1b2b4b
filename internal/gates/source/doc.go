// Package source asks the sources of gates: it makes one measurement.
//
// # Invariants
//
//   - It changes nothing in the cluster, and knows neither gates nor rollouts.
//   - Requests are made by [outbound], with its limits.
//   - The values of a Secret are sent only to hosts that the Secret names, and are in nothing
//     that is returned.
//   - What goes wrong with the source is an error, and never a success or a failure.
package source
