// Package sentences holds the test that no code reads a sentence back: what a ring decides from, or what another
// program reads, are typed values, such as [github.com/spillway-dev/spillway/rollout.Cause].
package sentences
