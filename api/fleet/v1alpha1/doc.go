// Package v1alpha1 has the kinds of the group fleet.squaremo.dev: modules, which
// say what is to run on which clusters, and assemblages, which record what is
// assigned to one cluster.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.squaremo.dev
package v1alpha1
