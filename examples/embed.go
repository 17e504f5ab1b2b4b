// Package examples carries the manifests that the demo applies.
package examples

import "embed"

// Shop is a small shop that uses config in every way.
//
//go:embed shop/*.yaml
var Shop embed.FS
