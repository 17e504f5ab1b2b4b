// Package check checks an installation, and before there is one what the cluster and
// the permissions of the caller lack for it.
package check
