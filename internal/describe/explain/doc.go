// Package explain follows an object to the root cause of its state: a chain of links, each
// of which waits for the next. A chain has at least one link, never asks twice about the same
// object, and ends after a bounded number of links.
//
// Each ring has a file that continues from the ring's own explanation. Beneath the rings are
// workloads, their Pods, and what those need of Kubernetes, such as config, claims, nodes, quotas,
// webhooks and Services: the sentences about these are Kubernetes' own words wherever it has any,
// the message of a condition, of an Event, of the kubelet. An answer never fails because a better
// one is not found: where the caller may not read, the chain ends with a link that says so.
package explain
