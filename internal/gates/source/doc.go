// Package source asks the sources of gates: it makes one measurement.
//
// # Invariants
//
//   - It changes nothing in the cluster, and knows neither gates nor rollouts.
//   - A connection is made only to an address that is allowed for the host that the template
//     names; that is checked when the connection is dialed. Redirects are not followed, and
//     there is no proxy.
//   - A measurement ends within [Timeout], and reads at most [MaxResponse] bytes.
//   - The values of a Secret are sent only to hosts that the Secret names, and are in nothing
//     that is returned.
//   - What goes wrong with the source is an error, and never a success or a failure.
package source
