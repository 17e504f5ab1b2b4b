// Package native explains what lies beneath the rings: workloads, their Pods, and what
// those need of Kubernetes, such as config, claims, nodes, quotas, webhooks and Services.
//
// Its sentences are Kubernetes' own words wherever it has any: the message of a
// condition, of an Event, of the kubelet.
package native

import "github.com/spillway-dev/spillway/internal/describe/explain/chain"

// Asker asks one cluster about native objects. Objects of other kinds, which it comes to
// on the way, it asks about as the [chain.Asker] says.
type Asker struct{ *chain.Asker }
