// Package history reads what was rolled out before: the entries of the status of a group,
// an Instance or a module, the last roll of a workload, and the Events about them.
//
// It adds nothing to what objects and Events say: what is not written down is left out.
package history
