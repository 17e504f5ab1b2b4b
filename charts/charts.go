// Package charts holds the Helm chart, by which Helm and spillway install install the same.
package charts

import "embed"

// Files are those of the chart, in the folder spillway.
//
//go:embed all:spillway
var Files embed.FS
