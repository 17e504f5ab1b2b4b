// Package message bounds what is said. What users write may be as long as an object may
// be, and is quoted in conditions, Events and log lines: a value is quoted in part, a
// sentence has an end, and a list names its first items and counts the others. Otherwise
// the API server refuses the status for its size, again at each try.
//
// It is pure and imports the standard library alone.
package message
