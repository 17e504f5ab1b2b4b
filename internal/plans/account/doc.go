// Package account says as whom the plans of an Instance act: as a ServiceAccount of the
// Instance's namespace, or as the manager.
//
// # Invariants
//
//   - An account is of the namespace of its Instance, and of no other.
//   - Who sets no account gets the default one. With a default, none acts as the manager.
//   - The manager asks as the account alone: the API server adds its groups, so that the
//     permission to impersonate the ServiceAccount is all that is needed.
//   - A name that no ServiceAccount can have is never asked for: it might name another user.
package account
