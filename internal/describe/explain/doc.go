// Package explain follows an object to the root cause of its state: a chain of links, each
// of which waits for the next.
//
// Each ring has a file that continues from the ring's own explanation. Package native
// continues where only Kubernetes knows more, and package chain asks the questions, one
// after the other. An answer never fails because a better one is not found: where the
// caller may not read, the chain ends with a link that says so.
package explain
