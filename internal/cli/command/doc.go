// Package command holds what all commands share: the process they run in, the flags
// that name a cluster and the options of the rings, how arguments are named, how a
// value is printed as JSON, and who changes what for which reason.
//
// A command that changes an object writes it only if it is still as it was read, and
// records an Event with the user and the reason.
package command
