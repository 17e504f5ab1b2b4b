// Package notify tells people about rollouts, as the Notifiers of their namespaces say.
//
// # Invariants
//
//   - It decides from statuses, and not from events: what a Notifier has told is in its own
//     status, which is written with the resourceVersion that was read, before anything is sent.
//   - A message is delivered at least once, and always has the same identity.
//   - A Notifier knows only the rollouts of its namespace. Of a ClusterConfigPolicy these are
//     its releases there.
//   - A receiver that does not answer holds up no rollout, and no Notifier of another
//     namespace. It fills no memory: what is pending is in the status, which is bounded.
//   - A Secret is read at the moment of a delivery, and is kept nowhere. Its values, and so
//     the address, are in nothing that is logged or written.
//
// # Why
//
// A silence lasts three minutes and is renewed, so that a manager that stops leaves no silence
// that hides the next failure. An Alertmanager gives each silence an ID of its own, so the
// manager finds its own by author and matchers. There are two for a zone, for the labels pod
// and statefulset: a regular expression would match alerts without either.
package notify
