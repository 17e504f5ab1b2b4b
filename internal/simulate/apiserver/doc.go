// Package apiserver is an API server in memory: as much of one as the rings can tell
// from a real one.
//
// It keeps what decisions are built upon: resourceVersions of one order, UIDs,
// generations that count changes of the spec, the preconditions of writes, the
// status as a subresource, deletion that waits for finalizers, dry runs, the three
// kinds of patches, and server-side apply with its owners of fields. Of validation it
// knows what a rollout has to do with: the fields of workloads, Jobs, ConfigMaps and
// immutable Secrets, and the values that workloads may have. It knows no
// admission.
//
// Objects in the store are never changed, only replaced. So a caller that was given one
// may keep it, and [Store.OnChange] tells of each change what was before and after.
package apiserver
