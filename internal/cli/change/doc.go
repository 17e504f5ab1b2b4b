// Package change is how commands write: an object only if it is still as it was read, with an
// Event that says who changed what and why, and the result for people or machines.
package change
