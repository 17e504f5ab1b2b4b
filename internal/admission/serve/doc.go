// Package serve is one TLS server for the webhooks of all rings.
//
// Invariants:
//
//   - An answer is given within the time that the API server grants. What would
//     come too late, fail or panic is answered as the webhook's failure policy
//     says: Ignore lets the write pass with a warning, Fail refuses it.
//   - Every replica serves; none waits to lead.
package serve
