// Package revision holds the commands for revisions that keep their config: what differs
// between two of them, and the return to an earlier one.
package revision
