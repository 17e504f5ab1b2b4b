// Package zones measures how the zones ring rolls: the time in which nothing
// happens between two zones, writes, and many groups at once.
package zones
