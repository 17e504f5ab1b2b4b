// Package certificate keeps the certificate of the webhooks' server, and the CA bundle in
// the webhook configurations that lead to it.
//
// Invariants:
//
//   - A certificate is served only if it is valid and covers every configured
//     host. Its successor is signed by a CA that every configuration trusts
//     already, so that no request fails while it is rotated.
//   - In a webhook configuration nothing but caBundle is written, only where it
//     differs, and only while the configuration is the one that was observed.
//   - Of two replicas that write at the same time, one gets a conflict by the
//     resourceVersion; neither needs the other to be ready.
package certificate
