// Package v1alpha1 has the kinds of the group spillway.dev.
//
// +kubebuilder:object:generate=true
// +groupName=spillway.dev
package v1alpha1
