// Package outbound makes the HTTP requests that users of a namespace make the manager send:
// measurements of gates, and notifications.
//
// # Invariants
//
//   - A connection is made only to an address that is allowed for the host of the request, or is
//     a cluster IP of the Service of its namespace that the host names;
//     that is checked when the connection is dialed. Redirects are not followed, and there is
//     no proxy.
//   - A request ends within [Timeout], and at most [MaxResponse] bytes of its response are read.
//   - The values of a Secret are in nothing that is returned: [Credentials.Redact].
//   - A namespace has at most a few requests under way: it delays others by no more ([Turns]).
package outbound
