// Package certificate keeps the certificate of the webhooks' server and the keys in its paths, and
// both in the webhook configurations that lead to it.
//
// Invariants:
//
//   - A certificate is served only if it is valid and covers every configured
//     host. Its successor is signed by a CA that every configuration trusts
//     already, so that no request fails while it is rotated.
//   - A key is written into the Secret before any configuration has it; a replica that is shown one
//     that it does not know looks there. The one before is accepted while it may be used. So no
//     request fails while keys are rotated.
//   - In a webhook configuration nothing but caBundle and the path is written, only where
//     they differ, and only while the configuration is the one that was observed. A key is put
//     only where the API server calls a host of the certificate, at a path that is served.
//   - Each content is written once more a moment later, as an annotation: an API server can miss a
//     change, but not two of them.
//   - Nothing is replaced by a clock that differs from that of the API server.
//   - Of two replicas that write at the same time, one gets a conflict by the
//     resourceVersion; neither needs the other to be ready.
package certificate
