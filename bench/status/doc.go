// Package status measures what it costs to look at a cluster with everything in it: how
// many requests the command makes, and how long it takes.
package status
