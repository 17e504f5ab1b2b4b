// Package expression compiles and evaluates CEL expressions that users write: the conditions of
// gates, and the filters of notifications.
//
// # Invariants
//
//   - It is pure.
//   - The length of an expression and the cost of its evaluation have a limit, so no
//     expression holds up the manager.
package expression
