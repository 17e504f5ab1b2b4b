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
//
// # Why
//
// A limit on the cost is compared after each step, and a step cannot be interrupted. So
// matches refuses a text before it begins, a call costs as much as its texts are long, and
// nothing builds a value that has more in it than the document: comparing lists that contain
// one another sixty times does not end. A process for each measurement is too much for a
// comparison of two numbers.
package expression
