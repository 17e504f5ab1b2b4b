// Package command holds what all commands share: the process they run in, the flags
// that name a cluster and the options of the rings, how arguments are named, how
// lists are narrowed and sorted, how a value is printed, and how an error is said.
package command
