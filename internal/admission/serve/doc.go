// Package serve is one TLS server for the webhooks of all rings.
//
// Invariants:
//
//   - An answer is given within the time that the API server grants. What would
//     come too late, fail or panic is answered as the webhook's failure policy
//     says: Ignore lets the write pass with a warning, Fail refuses it.
//   - Every replica serves; none waits to lead.
//   - Handlers are asked only by API servers: who shows a key in the path, or the certificate
//     of one. Others are answered from what they have sent, by what has no client.
//
// # Why
//
//   - The server of controller-runtime has no limits of time but for headers, reads bodies of
//     any size and format, and turns a panic into a refusal. This one reads JSON only; the
//     handler has nine tenths of the time that the API server grants, and bodies share a fixed
//     number of bytes. What is no review is an HTTP error, so that the failure policy that is
//     configured applies.
//   - An API server sends nothing by which it is known: its token is for itself, and certificates take
//     a file on each machine of the control plane, which hosted ones do not let users write. But
//     it calls the path that the configuration names, and few may read that.
//   - It speaks HTTP/1.1 only, as the client of the API server does, so that calls spread over
//     replicas. Its idle timeout is longer than that of the client, so that it never closes a
//     connection on which a request is sent.
package serve
