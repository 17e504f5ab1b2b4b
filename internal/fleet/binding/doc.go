// Package binding evaluates bindings: names for values that differ from one
// cluster to another.
//
// A binding has a value, or refers to a field of an object in its own namespace.
// Both are text in which $(NAME) stands for the value of another binding, as in
// the command of a container: $$ is one $, what is not closed stays as it is, and
// a name without a binding is empty. Every part of a reference is such text,
// so that a binding can say where another one looks.
//
// # Invariants
//
//   - The package is pure. What must be read is in [Result.Needs]; it is
//     put into what is known, and [Evaluate] is asked again.
//   - The same bindings over the same objects give the same result, whatever the
//     order of maps, and names are sorted wherever they are listed.
//   - A binding is evaluated once. One that leads back to itself is an error, and
//     never a loop.
//   - An error names the binding that must be fixed. A binding that only uses
//     one with an error has none of its own.
package binding
