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
//
// # Why
//
// Packages of KUDO have fields that a kind does not have, and versions that no API server
// serves. Fields are dropped only if the API server names them: the manager may be older than
// it. Versions are a table ([Latest]), and nothing is converted, because two versions differ
// in what the same fields mean. A kind that is not installed is waited for, for ten minutes: a
// package may install it, and a misspelled one must not wait for ever.
package object
