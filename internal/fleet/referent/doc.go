// Package referent reads the objects that bindings refer to.
//
// Objects are read from the API server, and their kinds are watched before (package
// watch): so no value is kept, and what is read does not change without notice.
//
// A Secret cannot be bound: what is bound is in the clear wherever it is used.
package referent
