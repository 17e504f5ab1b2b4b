// Package completion completes what a person types in a shell. Names come from the
// cluster that the flags name. An error completes nothing and prints nothing.
package completion
