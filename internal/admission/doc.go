// Package admission is the part of Spillway that the API server calls: one TLS
// server for the webhooks of all rings, its certificate, and the CA bundle in
// the webhook configurations that lead to it.
//
// A ring declares its webhooks as values ([Webhook]), so that they can be
// installed without a manager, and answers them by handlers ([Route]).
//
// Invariants:
//
//   - An answer is given within the time that the API server grants. What would
//     come too late, fail or panic is answered as the webhook's failure policy
//     says: Ignore lets the write pass with a warning, Fail refuses it.
//   - A certificate is served only if it is valid and covers every configured
//     host. Its successor is signed by a CA that every configuration trusts
//     already, so that no request fails while it is rotated.
//   - In a webhook configuration nothing but caBundle is written, only where it
//     differs, and only while the configuration is the one that was observed.
//   - Every replica serves. Of two that write at the same time, one gets a
//     conflict by the resourceVersion; neither needs the other to be ready.
package admission
