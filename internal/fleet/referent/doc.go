// Package referent reads the objects that bindings refer to, and wakes the reconciles that
// have read one when it changes.
//
// Objects are read from the API server. A kind is watched, by the metadata of its
// objects alone, from the moment on at which the first of them is read: so no
// value is kept, and what is read after that does not change without notice.
//
// A Secret cannot be bound: what is bound is in the clear wherever it is used.
package referent
