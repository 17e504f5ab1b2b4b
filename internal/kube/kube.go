// Package kube holds what all rings share in talking to the API server.
package kube

// FieldOwner is the name under which Spillway's writes stand in managedFields.
const FieldOwner = "spillway"

// ModuleOwner is how the names begin under which what modules assign stands there, each
// under its own.
const ModuleOwner = FieldOwner + "-module/"
