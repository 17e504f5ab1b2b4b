// Package record has what the kinds of all groups share: the record of a rollout. It is no kind of its own.
//
// +kubebuilder:object:generate=true
package record
