// Package examples carries the manifests that the demo applies.
package examples

import "embed"

// Shop is a small shop that uses config in every way, and the prices of it, whose workloads
// keep the config of each revision.
//
//go:embed shop/*.yaml prices/*.yaml
var Shop embed.FS
