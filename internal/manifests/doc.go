// Package manifests makes what a cluster needs to run Spillway: namespace,
// service account, permissions, the manager's Deployment.
//
// The permissions are generated from the markers beside the code that uses
// them, into the folder generated, by make generate.
package manifests
