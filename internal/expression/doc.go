// Package expression compiles and evaluates CEL expressions that users write: the conditions of
// gates, and the filters of notifications.
//
// # Invariants
//
//   - It is pure.
//   - The length and depth of an expression, the cost of its evaluation, and the time of each
//     of its steps have a limit, so no expression holds up the manager.
//   - A value has no more in it than the documents that it was made from: lists and maps are
//     made of literals, and there is no macro map.
package expression
