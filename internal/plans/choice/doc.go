// Package choice decides which plan an Instance needs, and whether its
// parameters are valid.
//
// # Invariants
//
//   - The choice follows from what is wanted and what was last applied, and from
//     nothing else: [Choose]. The controller and admission ask the same function, so
//     admission refuses nothing that the controller would do.
//   - It is pure: no clock, no client.
//   - A [Problem] never contains the value of a parameter, which may be a secret.
//   - The content of an OperatorVersion is named by its hash ([ContentHash]): equal
//     content has an equal name, whatever the object is called.
//
// # Why
//
// Values are compared, and not what two specs set: a parameter that is set to its default has
// not changed. The default is that of the content that was applied, because an OperatorVersion
// can be edited. If that content is gone, the parameter counts as changed: a plan too many is
// safe, a plan too few is not.
package choice
