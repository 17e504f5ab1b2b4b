// Package object has what plans know of Kubernetes objects without knowing any
// plan: their names ([Ref]), how they are parsed from manifests and ordered
// ([Parse], [Sort]), and how the fields that KUDO applied become the Instance's
// ([Takeover]).
//
// # Invariants
//
//   - Everything here is pure.
//   - Objects are sorted so that each is applied after what it lives in or needs.
//   - A takeover changes owners of fields, never values, and carries the
//     resourceVersion that it was computed from.
package object
