// Package serve is one TLS server for the webhooks of all rings.
//
// Invariants:
//
//   - An answer is given within the time that the API server grants. What would
//     come too late, fail or panic is answered as the webhook's failure policy
//     says: Ignore lets the write pass with a warning, Fail refuses it.
//   - Every replica serves; none waits to lead.
//
// # Why
//
//   - The server of controller-runtime has no limits of time but for headers, reads bodies of
//     any size and format, and turns a panic into a refusal. This one reads JSON only; the
//     handler has nine tenths of the time that the API server grants, and bodies share a fixed
//     number of bytes. What is no review is an HTTP error, so that the failure policy that is
//     configured applies.
//   - It speaks HTTP/1.1 only, as the client of the API server does, so that calls spread over
//     replicas. Its idle timeout is longer than that of the client, so that it never closes a
//     connection on which a request is sent.
package serve
